// SPDX-License-Identifier: Apache-2.0
#include "kit/checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "base/checked.h"
#include "kit/elements.h"
#include "tensor/buffer.h"

namespace tonnage::kit {
namespace {

Status bad(std::string_view which, std::size_t index, std::string_view problem) {
  return invalid("bad_tensor", fmt::format("{} {}: {}", which, index, problem));
}

// A BYTES tensor is a list of (uint32 length, bytes): as many as its shape has elements, and no more.
bool is_list_of_strings(ByteView data, std::uint64_t elements) {
  for (; elements > 0; --elements) {
    std::uint32_t length = 0;
    if (data.size() < sizeof length) return false;
    std::memcpy(&length, data.data(), sizeof length);
    data = data.subspan(sizeof length);
    if (data.size() < length) return false;
    data = data.subspan(length);
  }
  return data.empty();
}

bool has_bytes_of_shape(const Tensor& tensor) {
  if (tensor.type == tensor::DataType::kBytes)
    return is_list_of_strings(tensor.data, tensor.shape.elements());
  return Bytes(tensor.data.size()) == tensor.shape.bytes_of(tensor.type);
}

bool fits_dims(const tensor::Shape& shape, std::span<const std::int64_t> dims, std::uint32_t rows) {
  if (shape.rank() != dims.size()) return false;
  if (shape.rank() > 0 && shape.dim(0) != std::int64_t{rows}) return false;
  for (std::size_t i = 1; i < dims.size(); ++i) {
    if (dims[i] >= 0 && shape.dim(i) != dims[i]) return false;
  }
  return true;
}

std::string describe(const wire::TensorDoc& spec) {
  return fmt::format("{} {} of rank {}", spec.name, tensor::datatype_name(spec.type), spec.dims.size());
}

bool is_inside(const Tensor& tensor, const wire::ValueRange& range) {
  bool inside = true;
  visit_elements(tensor.type, tensor.data, [&]<typename T>(std::span<const T> elements) {
    if constexpr (std::is_integral_v<T>) {
      inside = std::ranges::all_of(elements, [&](T value) {
        return std::cmp_less_equal(range.min, value) && std::cmp_less_equal(value, range.max);
      });
    }
  });
  return inside;
}

// A compiled runtime reads beyond its table, or ends the process, on an id that is not in it.
Status check_values(std::span<const Tensor> inputs, std::span<const wire::TensorDoc> specs) {
  for (std::size_t i = 0; i < specs.size(); ++i) {
    if (specs[i].range && !is_inside(inputs[i], *specs[i].range)) {
      return bad("input", i,
                 fmt::format("a value of {} is outside [{}, {}]", specs[i].name, specs[i].range->min,
                             specs[i].range->max));
    }
  }
  return Status::ok();
}

Status check_tensors(std::string_view which, std::span<const Tensor> tensors, std::uint32_t rows,
                     std::span<const wire::TensorDoc> specs) {
  if (!specs.empty() && tensors.size() != specs.size()) {
    return invalid("bad_tensor",
                   fmt::format("{} {}s where the model has {}", tensors.size(), which, specs.size()));
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& tensor = tensors[i];
    if (!has_bytes_of_shape(tensor)) return bad(which, i, "its bytes are not those of its shape");
    if (specs.empty()) continue;
    if (tensor.type != specs[i].type || !fits_dims(tensor.shape, specs[i].dims, rows)) {
      return bad(which, i,
                 fmt::format("{} {} with {} rows does not fit {}", tensor::datatype_name(tensor.type),
                             tensor.shape.to_string(), rows, describe(specs[i])));
    }
  }
  return Status::ok();
}

wire::ValueRange both(const wire::ValueRange& a, const wire::ValueRange& b) {
  return {std::max(a.min, b.min), std::min(a.max, b.max)};
}

}  // namespace

std::vector<wire::TensorDoc> input_specs(std::span<const wire::TensorDoc> named,
                                         std::span<const wire::TensorDoc> loaded) {
  if (named.empty()) return {loaded.begin(), loaded.end()};
  std::vector<wire::TensorDoc> specs(named.begin(), named.end());
  for (wire::TensorDoc& spec : specs) {
    const auto said = std::ranges::find(loaded, spec.name, &wire::TensorDoc::name);
    if (said == loaded.end() || !said->range) continue;
    spec.range = spec.range ? both(*spec.range, *said->range) : *said->range;
  }
  return specs;
}

Status find_inputs(const wire::Run& run, ByteView slot, std::span<const wire::TensorDoc> specs,
                   std::vector<Tensor>& into) {
  into.clear();
  if (run.rows == 0) return invalid("bad_tensor", "a run has no rows");
  for (std::size_t i = 0; i < run.inputs.size(); ++i) {
    const wire::TensorLayout& at = run.inputs[i];
    if (at.offset % tensor::kAlignment != 0) return bad("input", i, "its offset is not a multiple of 64");
    if (!fits_inside(at.offset, at.bytes, slot.size())) {
      return bad("input", i,
                 fmt::format("{} bytes at {} lie outside a slot of {}", at.bytes, at.offset, slot.size()));
    }
    into.push_back({at.type, at.shape, slot.subspan(at.offset, at.bytes)});
  }
  return check_inputs(into, run.rows, specs);
}

Status check_inputs(std::span<const Tensor> inputs, std::uint32_t rows,
                    std::span<const wire::TensorDoc> specs) {
  TONNAGE_TRY(check_tensors("input", inputs, rows, specs));
  return check_values(inputs, specs);
}

Status check_outputs(std::span<const Tensor> outputs, std::uint32_t rows,
                     std::span<const wire::TensorDoc> specs) {
  if (outputs.size() > wire::kMaxTensors) {
    return invalid("bad_tensor",
                   fmt::format("{} outputs; at most {} fit a message", outputs.size(), wire::kMaxTensors));
  }
  return check_tensors("output", outputs, rows, specs);
}

Bytes place_outputs(std::span<const Tensor> outputs, std::vector<wire::TensorLayout>& into) {
  into.clear();
  std::size_t end = 0;
  for (const Tensor& output : outputs) {
    const std::size_t offset = tensor::align_up(end);
    into.push_back({output.type, output.shape, offset, output.data.size()});
    end = offset + output.data.size();
  }
  return Bytes(end);
}

}  // namespace tonnage::kit
