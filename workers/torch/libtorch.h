// SPDX-License-Identifier: Apache-2.0
// The library behind all models of this program. No torch in here.
#pragma once

#include <string>

namespace tonnage::torch_worker {

std::string runtime_name();    // "libtorch 2.13.0"
std::string cpu_capability();  // "AVX512"
// Of this process, from now on; inter-op one.
void use_threads(int threads);

}  // namespace tonnage::torch_worker
