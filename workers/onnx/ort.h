// SPDX-License-Identifier: Apache-2.0
// Ort: the C API of ONNX Runtime, looked up when the program runs, so that a machine without the
// library gets a reason instead of a linker's message. No header of the runtime is needed to read this one.
//
// Promises: every OrtStatus ends in status_of(); a text of the runtime is cut to its first lines.
// Threads: any. Fails with: missing_runtime.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"

struct OrtApi;
struct OrtStatus;

namespace tonnage::onnx_worker {

// An object of the runtime and its release function.
template <typename T>
using Owned = std::unique_ptr<T, void (*)(T*)>;

class Ort {
 public:
  static Result<Ort> open();

  const OrtApi* operator->() const { return api_; }
  const std::string& version() const { return version_; }  // "1.29.0"
  // Takes the status. kUnimplemented where the runtime lacks what was asked for.
  Status status_of(OrtStatus* status, std::string_view reason) const;

 private:
  Ort(const OrtApi* api, std::string version) : api_(api), version_(std::move(version)) {}

  const OrtApi* api_;
  std::string version_;
};

}  // namespace tonnage::onnx_worker
