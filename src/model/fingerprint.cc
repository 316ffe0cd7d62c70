// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "model/detail/content_hash.h"
#include "model/detail/script_folder.h"
#include "model/model_toml.h"

namespace tonnage::model {
namespace {

void add_tensors(ContentHash& hash, const std::vector<TensorSpec>& tensors) {
  hash.add_field(fmt::format("{}", tensors.size()));
  for (const TensorSpec& tensor : tensors) {
    hash.add_field(tensor.name);
    hash.add_field(tensor::datatype_name(tensor.type));
    hash.add_field(fmt::format("{}", fmt::join(tensor.dims, ",")));
    if (!tensor.sizes.empty()) hash.add_field(fmt::format("{}", fmt::join(tensor.sizes, ",")));
  }
}

}  // namespace

// Name, version, labels, deadlines and queue bounds are left out on purpose: they do not change what a
// batch costs, and a renamed model must not be profiled again.
Result<std::string> fingerprint(const ModelSpec& spec, std::string_view runtime) {
  ContentHash hash;
  hash.add_field("tonnage fingerprint 1");
  hash.add_field(runtime);
  hash.add_field(spec.route);
  hash.add_field(precision_name(spec.precision));
  // Nothing for the host, so that what was learned before there were devices is still known.
  if (!spec.device.empty()) hash.add_field("on " + spec.device);
  hash.add_field(spec.freeze ? "frozen" : "");
  hash.add_field(fmt::format("{} {} {} {}", spec.threads, spec.max_length, spec.batching.pad_multiple,
                             static_cast<int>(spec.meet)));
  for (const SizeSpec& size : spec.sizes) {
    hash.add_field(
        fmt::format("{} {} {} {}", size.name, size.max, size.multiple, static_cast<int>(size.meet)));
  }
  add_tensors(hash, spec.inputs);
  add_tensors(hash, spec.outputs);
  for (const auto& [key, value] : spec.options) {
    hash.add_field(key);
    hash.add_field(value);
  }
  if (is_script(spec.path)) {
    for (const std::string& module : modules_of(spec.path)) TONNAGE_TRY(add_file(hash, module));
    hash.add_field(fmt::format("{}", largest_file(spec.directory).count()));
  } else if (!spec.path.empty()) {
    TONNAGE_TRY(add_file(hash, spec.path));
  }
  return hash.hex();
}

}  // namespace tonnage::model
