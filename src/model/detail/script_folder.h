// SPDX-License-Identifier: Apache-2.0
// What stands beside a script that is a model: its weights, and the modules that it imports.
// Threads: any. Files that cannot be read or vanish meanwhile are left out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace tonnage::model {

bool is_script(std::string_view path);
// Of the largest file below `directory` that is no script.
Bytes largest_file(const std::string& directory);
// The .py files of the script's folder and below it, sorted; the script is among them.
std::vector<std::string> modules_of(const std::string& script);

}  // namespace tonnage::model
