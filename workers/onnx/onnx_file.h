// SPDX-License-Identifier: Apache-2.0
// What an .onnx file says of itself, before any runtime reads it: is it whole, which operators does it ask
// for, and which other files does it want to read?
//
// Promises:
//  1. read_onnx() is pure and believes nothing: every length is proven against what is there.
//  2. inspect_onnx() gives no file whose weights lie outside the folder of the model, links followed; also
//     those of graphs inside nodes, of functions and of constants.
// Threads: any. Fails with: bad_model_file (missing, empty, no ONNX model, cut off), external_data.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/spans.h"
#include "base/status.h"

namespace tonnage::onnx_worker {

struct ExternalTensor {
  std::string name{};
  std::string location{};  // relative to the model's folder, as written
};

struct OnnxFile {
  std::map<std::string, std::uint64_t> opsets{};  // by domain; "" is ONNX's own
  std::vector<ExternalTensor> external{};
  Bytes size{};  // the model and the files of its external tensors
};

Result<OnnxFile> read_onnx(ByteView model);
Result<OnnxFile> inspect_onnx(const std::string& path);

}  // namespace tonnage::onnx_worker
