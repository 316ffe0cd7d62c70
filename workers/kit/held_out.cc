// SPDX-License-Identifier: Apache-2.0
#include "kit/held_out.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <type_traits>
#include <utility>

#include "base/random.h"
#include "kit/elements.h"
#include "tensor/block.h"
#include "tensor/shape.h"

namespace tonnage::kit {
namespace {

constexpr std::uint32_t kDrawnRows = 8;

std::size_t elements_of(const std::vector<std::int64_t>& dims) {
  std::size_t count = 1;
  for (const std::int64_t dim : dims) count *= static_cast<std::size_t>(dim);
  return count;
}

// The element of `specs` that each tensor is; empty where one has no counterpart.
template <typename Values>
Status permute(std::vector<HeldOutTensor>& tensors, std::vector<HeldOutRow>& rows, Values HeldOutRow::*values,
               std::span<const wire::TensorDoc> specs, std::string_view kind) {
  if (specs.empty()) return Status::ok();
  std::vector<std::size_t> order;
  for (const wire::TensorDoc& spec : specs) {
    const auto found = std::ranges::find(tensors, spec.name, &HeldOutTensor::name);
    if (found == tensors.end() || found->type != spec.type || found->dims != spec.dims) {
      return invalid("bad_held_out",
                     fmt::format("the held-out rows have no {} '{}' of type {} with dims [{}]", kind,
                                 spec.name, tensor::datatype_name(spec.type), fmt::join(spec.dims, ", ")));
    }
    order.push_back(static_cast<std::size_t>(found - tensors.begin()));
  }
  std::vector<HeldOutTensor> sorted;
  for (std::size_t i = 0; i < order.size(); ++i) {
    sorted.push_back(tensors[order[i]]);
    sorted.back().range = specs[i].range;
  }
  tensors = std::move(sorted);
  for (HeldOutRow& row : rows) {
    Values moved;
    for (const std::size_t from : order) moved.push_back(std::move((row.*values)[from]));
    row.*values = std::move(moved);
  }
  return Status::ok();
}

void draw(Random& random, const wire::TensorDoc& doc, MutableByteView into) {
  const bool is_mask = doc.range && doc.range->min == 0 && doc.range->max == 1;
  const wire::ValueRange range = doc.range.value_or(wire::ValueRange{0, 1});
  visit_elements(doc.type, into, [&]<typename T>(std::span<T> elements) {
    for (T& element : elements) {
      if constexpr (std::is_floating_point_v<T>) {
        element = static_cast<T>(random.unit() * 2 - 1);
      } else {
        element = static_cast<T>(is_mask ? 1 : random.between(range.min, range.max));
      }
    }
  });
}

}  // namespace

std::vector<std::int64_t> HeldOutTensor::dims_at(std::uint32_t rows, std::uint32_t length) const {
  std::vector<std::int64_t> at = dims;
  for (std::size_t i = 0; i < at.size(); ++i) {
    if (at[i] < 0) at[i] = i == 0 ? rows : length;
  }
  return at;
}

Result<HeldOut> read_held_out(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return invalid("bad_held_out", path + " cannot be read");
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  auto parsed = parse_held_out(text);
  if (!parsed.is_ok()) return invalid("bad_held_out", path + ": " + parsed.status().detail());
  return parsed;
}

HeldOut draw_held_out(const wire::LoadDoc& doc, std::uint32_t longest) {
  HeldOut held_out;
  bool has_length = false;
  for (const wire::TensorDoc& input : doc.inputs) {
    const wire::ValueRange range = input.range.value_or(wire::ValueRange{0, 0});
    const std::int64_t pad = std::max(range.min, std::min<std::int64_t>(0, range.max));
    held_out.inputs.push_back({input.name, input.type, input.dims, pad});
    has_length |= std::count(input.dims.begin(), input.dims.end(), -1) > 1;
  }
  for (const wire::TensorDoc& output : doc.outputs)
    held_out.outputs.push_back({output.name, output.type, output.dims});
  Random random(1);
  for (std::uint32_t i = 1; i <= kDrawnRows; ++i) {
    HeldOutRow row{.length = has_length ? std::min(i, std::max(longest, 1U)) : 0};
    for (std::size_t t = 0; t < doc.inputs.size(); ++t) {
      const HeldOutTensor& tensor = held_out.inputs[t];
      row.inputs.emplace_back(elements_of(tensor.dims_at(1, row.length)) * tensor::element_size(tensor.type));
      std::ranges::fill(row.inputs.back().mutable_view(), std::byte{});
      draw(random, doc.inputs[t], row.inputs.back().mutable_view());
    }
    held_out.rows.push_back(std::move(row));
  }
  return held_out;
}

Status put_in_order(HeldOut& held_out, std::span<const wire::TensorDoc> inputs,
                    std::span<const wire::TensorDoc> outputs) {
  TONNAGE_TRY(permute(held_out.inputs, held_out.rows, &HeldOutRow::inputs, inputs, "input"));
  return permute(held_out.outputs, held_out.rows, &HeldOutRow::outputs, outputs, "output");
}

std::vector<Tensor> gather(const HeldOut& held_out, std::span<const std::size_t> rows, std::uint32_t length,
                           std::vector<tensor::Buffer>& into) {
  std::vector<Tensor> tensors;
  into.clear();
  const auto count = static_cast<std::uint32_t>(rows.size());
  for (std::size_t t = 0; t < held_out.inputs.size(); ++t) {
    const HeldOutTensor& tensor = held_out.inputs[t];
    const std::size_t size = tensor::element_size(tensor.type);
    const auto row_dims = tensor.dims_at(1, length);
    const std::size_t stride = elements_of(row_dims) * size;
    into.emplace_back(stride * rows.size());
    const MutableByteView all = into.back().mutable_view();
    std::ranges::fill(all, std::byte{});
    visit_elements(tensor.type, all, [&]<typename T>(std::span<T> elements) {
      std::ranges::fill(elements, static_cast<T>(tensor.pad));
    });
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const HeldOutRow& row = held_out.rows[rows[i]];
      const auto own = tensor.dims_at(1, row.length);
      tensor::copy_block({row.inputs[t].view(), own}, {all.subspan(i * stride, stride), row_dims}, size);
    }
    const auto dims = tensor.dims_at(count, length);
    tensors.push_back({tensor.type, tensor::Shape::make(dims).value(), into.back().view()});
  }
  return tensors;
}

}  // namespace tonnage::kit
