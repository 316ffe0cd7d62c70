// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "model/detail/consistency.h"
#include "model/model_toml.h"

namespace tonnage::model {
namespace {

std::vector<wire::TensorDoc> to_docs(const std::vector<TensorSpec>& tensors) {
  std::vector<wire::TensorDoc> docs;
  for (const TensorSpec& tensor : tensors) {
    docs.push_back({tensor.name, tensor.type, tensor.dims});
    if (tensor.range) docs.back().range = wire::ValueRange{tensor.range->min, tensor.range->max};
  }
  return docs;
}

std::vector<TensorSpec> to_specs(const std::vector<wire::TensorDoc>& docs) {
  std::vector<TensorSpec> specs;
  for (const wire::TensorDoc& doc : docs) {
    TensorSpec spec;
    spec.name = doc.name;
    spec.type = doc.type;
    spec.dims = doc.dims;
    if (doc.range) spec.range = ValueRange{doc.range->min, doc.range->max};
    specs.push_back(std::move(spec));
  }
  return specs;
}

// A free dim on either side agrees with anything.
bool dims_agree(const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](std::int64_t x, std::int64_t y) { return x == y || x == -1 || y == -1; });
}

Status check_agreement(const std::vector<TensorSpec>& written, const std::vector<wire::TensorDoc>& loaded,
                       std::string_view kind, const std::string& where) {
  for (const wire::TensorDoc& doc : loaded) {
    const auto found = std::find_if(written.begin(), written.end(),
                                    [&](const TensorSpec& spec) { return spec.name == doc.name; });
    if (found == written.end()) {
      return invalid("bad_config",
                     fmt::format("{}: the model file has an {} '{}' that model.toml does not name", where,
                                 kind, doc.name));
    }
    if (found->type != doc.type || !dims_agree(found->dims, doc.dims)) {
      return invalid(
          "bad_config",
          fmt::format("{}: {} '{}' is {} [{}] in model.toml and {} [{}] in the model file", where, kind,
                      doc.name, tensor::datatype_name(found->type), fmt::join(found->dims, ", "),
                      tensor::datatype_name(doc.type), fmt::join(doc.dims, ", ")));
    }
  }
  if (!loaded.empty() && loaded.size() != written.size()) {
    return invalid("bad_config", fmt::format("{}: model.toml names {} {}s and the model file {}", where,
                                             written.size(), kind, loaded.size()));
  }
  return Status::ok();
}

Status merge(std::vector<TensorSpec>& written, const std::vector<wire::TensorDoc>& loaded,
             std::string_view kind, const std::string& where) {
  if (written.empty()) written = to_specs(loaded);
  if (written.empty()) {
    return invalid("bad_config",
                   fmt::format("{}: neither model.toml nor the model file names an {}; write [[{}]]", where,
                               kind, kind));
  }
  return check_agreement(written, loaded, kind, where);
}

}  // namespace

wire::LoadDoc to_load_doc(const ModelSpec& spec) {
  wire::LoadDoc doc;
  doc.model = spec.name;
  doc.version = spec.version;
  doc.route = spec.route;
  doc.path = spec.path;
  doc.threads = spec.threads;
  doc.inputs = to_docs(spec.inputs);
  doc.outputs = to_docs(spec.outputs);
  doc.options = spec.options;
  if (!spec.device.empty()) doc.options["device"] = spec.device;
  if (spec.path.empty()) return doc;
  doc.options["precision"] = precision_name(spec.precision);
  doc.options["max_length"] = fmt::format("{}", spec.max_length);
  doc.options["freeze"] = spec.freeze ? "true" : "false";
  if (!spec.held_out.empty()) {
    doc.options["held_out"] = spec.held_out;
    doc.options["parity_min_cosine"] = fmt::format("{}", spec.parity_min_cosine);
  }
  return doc;
}

Result<ModelSpec> merge_loaded(ModelSpec spec, const wire::LoadedDoc& loaded) {
  const std::string where = fmt::format("model '{}'", spec.name);
  TONNAGE_TRY(merge(spec.inputs, loaded.inputs, "input", where));
  TONNAGE_TRY(merge(spec.outputs, loaded.outputs, "output", where));
  for (const auto& [key, value] : loaded.facts) spec.metadata.try_emplace(key, value);
  TONNAGE_TRY(check_consistency(spec, where));
  return spec;
}

}  // namespace tonnage::model
