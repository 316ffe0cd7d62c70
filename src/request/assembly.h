// SPDX-License-Identifier: Apache-2.0
// Assembly: the outputs of one request, put together row by row in whatever order batches end.
//
// Promises: each row is put or failed once; finish() gives rows in the client's order; rows of
// different length are padded with zeros to the longest of the request; the first failed row (lowest
// index) decides the error, and its detail names the row.
// Threads: the loop. Fails with: what a row failed with; internal/bad_output.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/spans.h"
#include "base/status.h"
#include "model/spec.h"
#include "tensor/buffer.h"
#include "tensor/datatype.h"
#include "tensor/shape.h"

namespace tonnage::request {

struct OutputTensor {
  std::string name;
  tensor::DataType type = tensor::DataType::kFp32;
  tensor::Shape shape;  // with the row dim
  tensor::Buffer data;
};

// One output of one row: dims without the row dim.
struct RowOutput {
  tensor::DataType type = tensor::DataType::kFp32;
  tensor::Shape shape;
  ByteView bytes;
};

class Assembly {
 public:
  Assembly(std::uint32_t rows, std::vector<std::string> output_names);

  // `outputs`: one per output name. The bytes are copied.
  void put(std::uint32_t row, std::span<const RowOutput> outputs);
  void fail(std::uint32_t row, Status status);
  bool is_row_open(std::uint32_t row) const;
  bool is_complete() const { return open_ == 0; }
  Result<std::vector<OutputTensor>> finish();

 private:
  struct Slot {
    tensor::DataType type = tensor::DataType::kFp32;
    tensor::Shape shape;
    tensor::Buffer data;
  };
  Result<OutputTensor> join(std::size_t output);
  tensor::Buffer join_elements(std::size_t output, std::span<const std::int64_t> dims);
  tensor::Buffer join_strings(std::size_t output, std::span<const std::int64_t> dims);

  std::vector<std::string> names_;
  std::vector<Slot> slots_;  // rows × outputs
  std::vector<std::uint8_t> state_;
  std::uint32_t open_;
  std::uint32_t failed_row_;
  Status failure_;
};

}  // namespace tonnage::request
