// SPDX-License-Identifier: Apache-2.0
// The library behind all models of this program. No torch in here.
#pragma once

#include <string>

#include "base/status.h"

namespace tonnage::torch_worker {

std::string runtime_name();    // "libtorch 2.13.0"
std::string cpu_capability();  // "AVX512"
// Of this process, from now on; inter-op one.
void use_threads(int threads);
// The first product on a device brings handles and workspaces (tens of MB, for good) into being: they are the
// device's, not the model's first batch. Error: no_device.
Status wake_device(const std::string& device);

}  // namespace tonnage::torch_worker
