// SPDX-License-Identifier: Apache-2.0
// What a worker is told to load, and what it says it has loaded; JSON in a sealed memfd.
// Unknown keys are ignored (a newer peer may send more). Fails with: bad_load_doc.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "tensor/datatype.h"

namespace tonnage::wire {

struct ValueRange {
  std::int64_t min = 0;
  std::int64_t max = 0;  // inclusive
};

struct TensorDoc {
  std::string name{};
  tensor::DataType type = tensor::DataType::kFp32;
  std::vector<std::int64_t> dims;        // −1 = free; the first is the row dim
  std::optional<ValueRange> range = {};  // of an input of integer type
};

struct LoadDoc {
  std::string model{};
  std::string version{};
  std::string route{};  // script, trace, stub, …
  std::string path{};   // model file; empty for the stub
  std::uint32_t threads = 1;
  Bytes load_limit{};                            // tensor bytes allowed while loading
  std::vector<TensorDoc> inputs{};               // in the order of Run::inputs
  std::vector<TensorDoc> outputs{};              // expected; empty: the worker says
  std::map<std::string, std::string> options{};  // [stub] table, precision, freeze, …
};

struct LoadedDoc {
  std::string runtime{};            // "libtorch 2.13.0", "stub", "python 3.11"
  std::vector<TensorDoc> inputs{};  // as the model file says; empty where it says nothing
  std::vector<TensorDoc> outputs{};
  std::map<std::string, std::string> facts{};  // isa, precision, held_out_accuracy, …
};

std::string to_json(const LoadDoc& doc);
std::string to_json(const LoadedDoc& doc);
Result<LoadDoc> parse_load_doc(std::string_view json);
Result<LoadedDoc> parse_loaded_doc(std::string_view json);

}  // namespace tonnage::wire
