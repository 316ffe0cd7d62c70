// SPDX-License-Identifier: Apache-2.0
// Between tensors of the wire and those of the runtime: names and types of a session, and its values.
// Threads: any. Fails with: unsupported_model (a type that the wire cannot say), wrong_inputs (a name that
// the other side lacks), bad_output.
#pragma once

#include <vector>

#include "base/status.h"
#include "kit/runtime.h"
#include "onnx/ort.h"
#include "wire/load_doc.h"

struct OrtMemoryInfo;
struct OrtSession;
struct OrtValue;

namespace tonnage::onnx_worker {

// What the file says of its inputs and outputs, in the order of `wanted`; empty: all, in the file's order.
// An input cannot be left out, an output can: it is not computed then.
Result<std::vector<wire::TensorDoc>> bind_inputs(const Ort& ort, const OrtSession* session,
                                                 const std::vector<wire::TensorDoc>& wanted);
Result<std::vector<wire::TensorDoc>> bind_outputs(const Ort& ort, const OrtSession* session,
                                                  const std::vector<wire::TensorDoc>& wanted);

// A value over the tensor's own bytes, which must outlive it; `memory` says that they are on the CPU.
Result<Owned<OrtValue>> wrap(const Ort& ort, const OrtMemoryInfo* memory, const kit::Tensor& tensor);
// Borrows the value's bytes.
Result<kit::Tensor> view_of(const Ort& ort, OrtValue* value, const std::string& name);

}  // namespace tonnage::onnx_worker
