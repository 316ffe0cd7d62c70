// SPDX-License-Identifier: Apache-2.0
// Property: a batch whose worker answers with its own inputs gives every row back what it sent.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>

#include "base/random.h"
#include "batch/gather.h"
#include "batch/split.h"
#include "request/assembly.h"
#include "tensor/buffer.h"
#include "testkit/model_specs.h"

namespace tonnage::batch {
namespace {

using tensor::DataType;

constexpr DataType kTypes[] = {DataType::kBool,  DataType::kUint8, DataType::kInt16, DataType::kFp16,
                               DataType::kInt32, DataType::kFp32,  DataType::kInt64, DataType::kFp64};

// Small integers in every byte pattern that is a finite value of every type.
tensor::Buffer random_bytes(Random& random, std::size_t size) {
  tensor::Buffer buffer(size);
  for (std::byte& b : buffer.mutable_view()) b = static_cast<std::byte>(random.below(0x40));
  return buffer;
}

model::ModelSpec random_spec(Random& random) {
  std::vector<model::TensorSpec> tensors;
  for (std::uint64_t i = 0, n = 1 + random.below(3); i < n; ++i) {
    std::vector<std::int64_t> dims = {-1};
    for (std::uint64_t d = 0, rank = random.below(4); d < rank; ++d) {
      dims.push_back(random.below(2) == 0 ? -1 : random.between(1, 4));
    }
    tensors.push_back(testkit::tensor_spec(std::string(1, static_cast<char>('a' + i)),
                                           kTypes[random.below(std::size(kTypes))], dims));
    tensors.back().pad_value = random.between(0, 3);
  }
  return testkit::model_spec("echo", tensors, tensors);
}

request::Request random_request(Random& random, const model::ModelSpec& spec, std::uint32_t padded) {
  request::Request request;
  request.rows = static_cast<std::uint32_t>(random.between(1, 5));
  const bool same_length = random.below(2) == 0;
  request.length = spec.has_length() ? static_cast<std::uint32_t>(random.between(1, padded)) : 0;
  for (std::uint32_t r = 0; !same_length && spec.has_length() && r < request.rows; ++r) {
    request.lengths.push_back(static_cast<std::uint32_t>(random.between(1, padded)));
  }
  for (std::size_t i = 0; i < spec.inputs.size(); ++i) {
    request::RowsTensor tensor;
    tensor.offsets.push_back(0);
    for (std::uint32_t r = 0; r < request.rows; ++r) {
      tensor.offsets.push_back(tensor.offsets.back() +
                               spec.input_row_bytes(i, request.row_length(r)).count());
    }
    tensor.data = random_bytes(random, tensor.offsets.back());
    if (request.lengths.empty()) {
      tensor.row_bytes = tensor.offsets[1];
      tensor.offsets.clear();
    }
    request.inputs.emplace_back(std::move(tensor));
  }
  return request;
}

// Images and a map of the same two sizes, and a vector of one of them.
model::ModelSpec sized_spec() {
  std::vector<model::TensorSpec> tensors = {testkit::tensor_spec("image", DataType::kFp32, {-1, 3, -1, -1}),
                                            testkit::tensor_spec("map", DataType::kUint8, {-1, -1, 2, -1}),
                                            testkit::tensor_spec("line", DataType::kInt64, {-1, -1})};
  tensors[0].sizes = {0, 0, 0, 1};
  tensors[1].sizes = {0, 1, 0, 0};
  tensors[2].sizes = {0, 1};
  model::ModelSpec spec = testkit::model_spec("echo", tensors, tensors);
  spec.sizes = {{"height", 20, model::MeetRule::kPad, 3}, {"width", 9, model::MeetRule::kGroup, 1}};
  spec.max_length = 180;
  return spec;
}

request::Request sized_request(Random& random, const model::ModelSpec& spec) {
  request::Request request;
  request.rows = static_cast<std::uint32_t>(random.between(1, 3));
  for (std::uint32_t r = 0; r < request.rows; ++r) {
    model::RowSize size;
    size.at = {static_cast<std::uint32_t>(random.between(1, 20)),
               static_cast<std::uint32_t>(random.between(1, 9)), 0};
    request.sizes.push_back(size);
  }
  for (std::size_t i = 0; i < spec.inputs.size(); ++i) {
    request::RowsTensor tensor;
    tensor.offsets.push_back(0);
    for (std::uint32_t r = 0; r < request.rows; ++r) {
      tensor.offsets.push_back(tensor.offsets.back() + spec.input_row_bytes(i, request.row_size(r)).count());
    }
    tensor.data = random_bytes(random, tensor.offsets.back());
    request.inputs.emplace_back(std::move(tensor));
  }
  return request;
}

TEST(RoundTrip, RowsOfSeveralSizesComeBackAsTheyWere) {
  Random random(7);
  const model::ModelSpec spec = sized_spec();
  for (int round = 0; round < 200; ++round) {
    std::deque<request::Request> requests;
    std::vector<RowRef> rows;
    std::vector<model::RowSize> sizes;
    for (int n = 0; n < 3; ++n) {
      const auto& request = requests.emplace_back(sized_request(random, spec));
      for (std::uint32_t r = 0; r < request.rows; ++r) rows.push_back({&request, r});
    }
    for (const RowRef& row : rows) sizes.push_back(row.request->row_size(row.row));
    const model::RowSize padded = padded_size(spec, rows, 0);
    tensor::Buffer slot(layout_bytes(spec, static_cast<std::uint32_t>(rows.size()), padded).size());
    const auto layouts = gather(spec, rows, padded, slot.mutable_view());
    ASSERT_TRUE(layouts.is_ok()) << layouts.status().to_string();
    ASSERT_TRUE(check_outputs(spec, *layouts, rows.size(), Bytes(slot.size())).is_ok());
    const SplitBatch batch{spec, *layouts, sizes, padded, slot.view()};
    std::vector<std::byte> scratch;
    for (std::uint32_t r = 0; r < rows.size(); ++r) {
      const auto outputs = split_row(batch, r, scratch);
      ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
      for (std::size_t i = 0; i < spec.inputs.size(); ++i) {
        ASSERT_TRUE(std::ranges::equal(rows[r].request->inputs[i]->row(rows[r].row), (*outputs)[i].bytes))
            << "round " << round << " row " << r << " tensor " << i;
      }
    }
  }
}

TEST(RoundTrip, SplitAfterGatherIsTheIdentity) {
  Random random(2024);
  for (int round = 0; round < 400; ++round) {
    const model::ModelSpec spec = random_spec(random);
    const std::uint32_t padded = spec.has_length() ? static_cast<std::uint32_t>(random.between(1, 9)) : 0;
    std::deque<request::Request> requests;
    std::vector<RowRef> rows;
    std::vector<model::RowSize> sizes;
    for (int n = 0; n < 4; ++n) {
      const auto& request = requests.emplace_back(random_request(random, spec, padded));
      for (std::uint32_t r = 0; r < request.rows; ++r) rows.push_back({&request, r});
    }
    std::shuffle(rows.begin(), rows.end(), random);
    for (const RowRef& row : rows) sizes.push_back(row.request->row_size(row.row));

    tensor::Buffer slot(layout_bytes(spec, static_cast<std::uint32_t>(rows.size()), padded).size());
    const auto layouts = gather(spec, rows, padded, slot.mutable_view());
    ASSERT_TRUE(layouts.is_ok()) << layouts.status().to_string();
    ASSERT_TRUE(check_outputs(spec, layouts.value(), rows.size(), Bytes(slot.size())).is_ok());
    const SplitBatch batch{spec, layouts.value(), sizes, padded, slot.view()};
    std::vector<std::byte> scratch;
    for (std::uint32_t r = 0; r < rows.size(); ++r) {
      const auto outputs = split_row(batch, r, scratch);
      ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
      for (std::size_t i = 0; i < spec.inputs.size(); ++i) {
        ASSERT_TRUE(
            std::ranges::equal(rows[r].request->inputs[i]->row(rows[r].row), outputs.value()[i].bytes))
            << "round " << round << " row " << r << " tensor " << i;
      }
    }
  }
}

}  // namespace
}  // namespace tonnage::batch
