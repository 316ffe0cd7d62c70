// SPDX-License-Identifier: Apache-2.0
// Proving that what a run says, and what a runtime returns, is what it must be. Pure.
// Fails with: invalid_argument/bad_tensor (the detail names the tensor).
#pragma once

#include <span>
#include <vector>

#include "base/status.h"
#include "kit/runtime.h"

namespace tonnage::kit {

// What the inputs of a run are proven against: those that the front names, else those of the model file.
// Values must lie in the ranges of both, so that a runtime need not look at them again.
std::vector<wire::TensorDoc> input_specs(std::span<const wire::TensorDoc> named,
                                         std::span<const wire::TensorDoc> loaded);

// The tensors of `run` inside `slot`. An empty `specs` means that nothing is known of the model.
Status find_inputs(const wire::Run& run, ByteView slot, std::span<const wire::TensorDoc> specs,
                   std::vector<Tensor>& into);

// The same of inputs that were found already: types, dims, rows, values inside their ranges.
Status check_inputs(std::span<const Tensor> inputs, std::uint32_t rows,
                    std::span<const wire::TensorDoc> specs);

// What a runtime returned, against an expectation that may be empty.
Status check_outputs(std::span<const Tensor> outputs, std::uint32_t rows,
                     std::span<const wire::TensorDoc> specs);

// Places outputs one after the other, each aligned; returns the bytes that all need.
Bytes place_outputs(std::span<const Tensor> outputs, std::vector<wire::TensorLayout>& into);

}  // namespace tonnage::kit
