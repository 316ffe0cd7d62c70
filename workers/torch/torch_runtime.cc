// SPDX-License-Identifier: Apache-2.0
#include "torch/torch_runtime.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/device_name.h"
#include "base/spans.h"
#include "kit/failure.h"
#include "torch/aoti_model.h"
#include "torch/libtorch.h"
#include "torch/script_model.h"

namespace tonnage::torch_worker {
namespace {

constexpr const char* kHost = "cpu";

struct LoadedModel {
  std::unique_ptr<Model> model;
  wire::LoadedDoc doc;                     // as the file says
  std::optional<kit::HeldOut> own_rows{};  // answered before the weights were converted
};

std::string option(const wire::LoadDoc& doc, const char* key, const char* otherwise) {
  const auto found = doc.options.find(key);
  return found == doc.options.end() ? otherwise : found->second;
}

std::string device_of(const wire::LoadDoc& doc) { return option(doc, "device", kHost); }

// What the export wrote beside the weights: inputs, outputs and facts, if it is there and readable.
wire::LoadedDoc doc_of(const Model& model) {
  auto doc = wire::parse_loaded_doc(model.config().empty() ? "{}" : model.config());
  return doc.is_ok() ? std::move(doc).value() : wire::LoadedDoc{};
}

std::uint32_t longest_of(const wire::LoadDoc& doc) {
  const std::string text = option(doc, "max_length", "");
  std::uint32_t length = 1;
  std::from_chars(text.data(), text.data() + text.size(), length);
  return length;
}

std::vector<float> floats_of(const kit::Tensor& output) {
  if (output.type != tensor::DataType::kFp32) return {};
  const auto values = as_elements<float>(output.data);
  return {values.begin(), values.end()};
}

// Rows drawn here, and what the model answers as long as its weights are those of the file.
Result<kit::HeldOut> answered_rows(Model& model, wire::LoadDoc doc, const wire::LoadedDoc& said) {
  if (doc.inputs.empty()) doc.inputs = said.inputs;
  if (doc.outputs.empty()) doc.outputs = said.outputs;
  kit::HeldOut rows = kit::draw_held_out(doc, longest_of(doc));
  std::vector<tensor::Buffer> storage;
  for (std::size_t i = 0; i < rows.rows.size(); ++i) {
    kit::HeldOutRow& row = rows.rows[i];
    const std::vector<kit::Tensor> inputs = kit::gather(rows, std::span(&i, 1), row.length, storage);
    TONNAGE_ASSIGN(const Outputs outputs, model.run({.inputs = inputs, .rows = 1, .length = row.length}));
    for (const kit::Tensor& output : outputs.tensors()) row.outputs.push_back(floats_of(output));
    if (row.outputs.size() != rows.outputs.size())
      return invalid("parity", "how many outputs the model has is not known; name them in model.toml");
  }
  return rows;
}

Result<LoadedModel> load_script(const wire::LoadDoc& doc) {
  TONNAGE_ASSIGN(std::unique_ptr<ScriptModel> model, ScriptModel::load(doc, device_of(doc)));
  LoadedModel loaded{.model = nullptr, .doc = doc_of(*model)};
  const std::string precision = option(doc, "precision", "fp32");
  if (precision != "fp32" && !doc.options.contains("held_out")) {
    TONNAGE_ASSIGN(loaded.own_rows, answered_rows(*model, doc, loaded.doc));
  }
  TONNAGE_TRY(model->convert(precision));
  if (option(doc, "freeze", "false") == "true") TONNAGE_TRY(model->freeze());
  loaded.model = std::move(model);
  return loaded;
}

Result<LoadedModel> load_model(const wire::LoadDoc& doc) {
  if (doc.route != "aoti") return load_script(doc);
  TONNAGE_ASSIGN(std::unique_ptr<AotiModel> model, AotiModel::load(doc));
  LoadedModel loaded{.model = nullptr, .doc = doc_of(*model)};
  loaded.model = std::move(model);
  return loaded;
}

}  // namespace

Result<kit::Loaded> TorchRuntime::load(const wire::LoadDoc& doc) {
  use_threads(static_cast<int>(doc.threads));
  TONNAGE_TRY(choose_device(device_of(doc)));
  if (device_ && doc.route == "aoti")
    return invalid("bad_load_doc", "route aoti runs on the cpu; on a device models of trace and script do");
  const Bytes before = memory().live();
  memory().begin(doc.load_limit == Bytes() ? Bytes::max() : doc.load_limit);
  auto model = load_model(doc);
  memory().end();
  if (!model.is_ok()) return kit::load_failure(memory(), doc, model.status());
  model_ = std::move(model->model);
  trim();  // what converting and freezing left behind
  kit::Loaded loaded{.doc = std::move(model->doc),
                     .weights = saturating_sub(memory().live(), before) + model_->uncounted_weights(),
                     .own_rows = std::move(model->own_rows)};
  loaded.doc.runtime = runtime_name();
  loaded.doc.facts["cpu_capability"] = cpu_capability();
  loaded.doc.facts["precision"] = option(doc, "precision", "fp32");
  loaded.doc.facts["device"] = device_of(doc);
  loaded.doc.facts["threads"] = std::to_string(doc.threads);
  loaded.doc.facts.merge(model_->facts());
  return loaded;
}

Status TorchRuntime::choose_device(const std::string& device) {
  if (device == kHost) return Status::ok();
  const std::optional<unsigned> index = cuda_index(device);
  if (!index) return invalid("bad_load_doc", "device '" + device + "'; allowed: cpu, cuda:0, cuda:1, …");
  TONNAGE_ASSIGN(stats_, open_device_(static_cast<int>(*index)));
  device_ = std::make_unique<GpuMeter>(*stats_);
  return wake_device(device);
}

kit::RunResult TorchRuntime::run(const kit::RunView& view) {
  memory().begin(view.grant);
  auto outputs = model_->run(view);
  memory().end();
  if (!outputs.is_ok()) return kit::run_failure(memory(), outputs.status());
  outputs_ = std::move(outputs).value();
  const auto tensors = outputs_->tensors();
  return kit::RunOutputs{.outputs = {tensors.begin(), tensors.end()}, .peak = memory().peak()};
}

}  // namespace tonnage::torch_worker
