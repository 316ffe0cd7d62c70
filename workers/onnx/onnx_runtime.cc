// SPDX-License-Identifier: Apache-2.0
#include "onnx/onnx_runtime.h"

#include <algorithm>
#include <utility>

#include "kit/failure.h"

namespace tonnage::onnx_worker {
namespace {

Status check_precision(const wire::LoadDoc& doc) {
  const auto precision = doc.options.find("precision");
  if (precision == doc.options.end() || precision->second == "fp32") return Status::ok();
  return {Code::kUnimplemented, "unsupported_precision",
          "precision = \"" + precision->second +
              "\": the CPU operators of ONNX Runtime compute in fp32; allowed is \"fp32\""};
}

}  // namespace

Result<kit::Loaded> OnnxRuntime::load(const wire::LoadDoc& doc) {
  TONNAGE_TRY(check_precision(doc));
  const Bytes before = meter_.live();
  meter_.begin(doc.load_limit == Bytes() ? Bytes::max() : doc.load_limit);
  auto model = OnnxModel::load(doc, meter_);
  meter_.end();
  if (!model.is_ok()) return kit::load_failure(meter_, doc, model.status());
  model_ = std::move(model).value();
  kit::Loaded loaded{.doc = model_->doc(),
                     .weights = std::max(model_->file_bytes(), saturating_sub(meter_.live(), before))};
  loaded.doc.facts["threads"] = std::to_string(doc.threads);
  return loaded;
}

kit::RunResult OnnxRuntime::run(const kit::RunView& view) {
  meter_.begin(view.grant);
  auto outputs = model_->run(view.inputs);
  meter_.end();
  if (!outputs.is_ok()) return kit::run_failure(meter_, outputs.status());
  return kit::RunOutputs{.outputs = std::move(outputs).value(), .peak = meter_.peak()};
}

}  // namespace tonnage::onnx_worker
