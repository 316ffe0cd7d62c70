// SPDX-License-Identifier: Apache-2.0
// How a GPU is called, in model.toml, on the wire and in the ledger. Pure.
#pragma once

#include <optional>
#include <string_view>

namespace tonnage {

// N of "cuda:N", of one to three digits; nothing where it is no such name.
std::optional<unsigned> cuda_index(std::string_view device);

}  // namespace tonnage
