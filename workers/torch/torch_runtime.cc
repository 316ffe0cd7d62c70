// SPDX-License-Identifier: Apache-2.0
#include "torch/torch_runtime.h"

#include <utility>

namespace tonnage::torch_worker {
namespace {

// What the export wrote beside the weights: inputs, outputs and facts, if it is there and readable.
wire::LoadedDoc doc_of(const ScriptModel& model) {
  auto doc = wire::parse_loaded_doc(model.config().empty() ? "{}" : model.config());
  return doc.is_ok() ? std::move(doc).value() : wire::LoadedDoc{};
}

Result<kit::RunOutputs> as_kit_outputs(const Outputs& outputs, Bytes peak) {
  kit::RunOutputs out{.outputs = {}, .peak = peak};
  for (const OutputTensor& output : outputs.tensors()) {
    TONNAGE_ASSIGN(tensor::Shape shape, tensor::Shape::make(output.dims));
    out.outputs.push_back({output.type, shape, output.data});
  }
  return out;
}

}  // namespace

Result<kit::Loaded> TorchRuntime::load(const wire::LoadDoc& doc) {
  const Bytes before = meter_.live();
  const auto freeze = doc.options.find("freeze");
  meter_.begin(doc.load_limit == Bytes() ? Bytes::max() : doc.load_limit);
  auto model = ScriptModel::load({.path = doc.path,
                                  .threads = static_cast<int>(doc.threads),
                                  .freeze = freeze != doc.options.end() && freeze->second == "true",
                                  .inputs = doc.inputs.size(),
                                  .outputs = doc.outputs});
  meter_.end();
  if (!model.is_ok()) {
    if (meter_.over_grant()) {
      return Status(
          Code::kOverloaded, "over_grant",
          "loading needs " + format_bytes(meter_.needed()) + ", allowed are " + format_bytes(doc.load_limit));
    }
    if (meter_.pressure())
      return Status(Code::kUnavailable, "pressure", "the kernel refused memory while loading");
    return model.status();
  }
  model_ = std::move(model).value();
  kit::Loaded loaded{.doc = doc_of(*model_), .weights = saturating_sub(meter_.live(), before)};
  loaded.doc.runtime = ScriptModel::runtime_name();
  loaded.doc.facts["cpu_capability"] = ScriptModel::cpu_capability();
  loaded.doc.facts["threads"] = std::to_string(doc.threads);
  loaded.doc.facts["copied_inputs"] = std::to_string(model_->copied_inputs());
  return loaded;
}

kit::RunResult TorchRuntime::run(const kit::RunView& view) {
  inputs_.clear();
  for (const kit::Tensor& input : view.inputs)
    inputs_.push_back({input.type, input.shape.dims(), input.data});
  meter_.begin(view.grant);
  auto outputs = model_->run(inputs_);
  meter_.end();
  if (!outputs.is_ok()) return failed(outputs.status());
  outputs_ = std::move(outputs).value();
  auto result = as_kit_outputs(*outputs_, meter_.peak());
  if (!result.is_ok()) return failed(result.status());
  return std::move(result).value();
}

kit::RunError TorchRuntime::failed(const Status& status) const {
  kit::RunError error{.kind = wire::ErrorKind::kModelError, .peak = meter_.peak(), .text = status.detail()};
  if (status.reason() == "bad_output") error.kind = wire::ErrorKind::kBadOutput;
  if (meter_.pressure()) error.kind = wire::ErrorKind::kPressure;
  if (meter_.over_grant()) {
    error.kind = wire::ErrorKind::kOverGrant;
    error.needed = meter_.needed();
  }
  return error;
}

}  // namespace tonnage::torch_worker
