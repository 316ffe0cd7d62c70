// SPDX-License-Identifier: Apache-2.0
// Between the kit's tensors and torch's, for the models of this program. ATen's headers are behind it.
#pragma once

#include <ATen/core/Tensor.h>

#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "kit/tensor.h"
#include "torch/model.h"
#include "wire/load_doc.h"

namespace tonnage::torch_worker {

Result<c10::ScalarType> torch_type(tensor::DataType type);

// Without a copy, over memory that is mapped read-only: whoever may write to it clones first.
at::Tensor wrap(const kit::Tensor& input, c10::ScalarType type);

// Contiguous CPU tensors as Outputs. Where `docs` are given, number, type and dims must be theirs; a
// float of the type `reduced` was computed in a lower precision and is cast to the declared type.
Result<Outputs> collect(std::vector<at::Tensor> tensors, const std::vector<wire::TensorDoc>& docs,
                        std::optional<c10::ScalarType> reduced);

// The runtime's texts carry a back trace of several kilobytes; the last lines name the cause.
std::string shortened(std::string_view text);

// Runs `body` (which returns a Result or a Status) and turns whatever the runtime throws into `reason`.
template <typename Body>
auto guarded(std::string_view reason, Body body) -> decltype(body()) {
  try {
    return body();
  } catch (const c10::Error& error) {
    return internal(reason, shortened(error.what_without_backtrace()));
  } catch (const std::exception& error) {
    return internal(reason, shortened(error.what()));
  } catch (...) {
    return internal(reason, "the runtime threw something that is not an exception");
  }
}

}  // namespace tonnage::torch_worker
