// SPDX-License-Identifier: Apache-2.0
// What a model file is, told by the names of the records in it, before anything in it is loaded.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace tonnage::torch_worker {

enum class ArchiveKind : std::uint8_t {
  kScript,    // torch.jit.save
  kCompiled,  // AOTInductor
  kPickle,    // torch.save: needs Python to run, and may run anything; never loaded
  kOther,
};

// Error: bad_model_file, which says what the file is instead and what would make the right one.
Status check_archive(const std::string& path, ArchiveKind wanted);

}  // namespace tonnage::torch_worker
