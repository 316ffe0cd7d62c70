// SPDX-License-Identifier: Apache-2.0
#include "model/detail/script_folder.h"

#include <algorithm>
#include <filesystem>

namespace tonnage::model {
namespace {

namespace fs = std::filesystem;

// Calls take(path) for each regular file below `folder`.
template <typename Take>
void each_file(const fs::path& folder, Take take) {
  std::error_code error;
  fs::recursive_directory_iterator it(folder, fs::directory_options::skip_permission_denied, error);
  for (; !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    std::error_code ignored;
    if (it->is_regular_file(ignored)) take(it->path());
  }
}

}  // namespace

bool is_script(std::string_view path) { return path.ends_with(".py"); }

Bytes largest_file(const std::string& directory) {
  Bytes largest;
  each_file(directory, [&](const fs::path& file) {
    std::error_code error;
    const std::uintmax_t size = is_script(file.string()) ? 0 : fs::file_size(file, error);
    if (!error) largest = std::max(largest, Bytes(size));
  });
  return largest;
}

std::vector<std::string> modules_of(const std::string& script) {
  std::vector<std::string> modules;
  each_file(fs::path(script).parent_path(), [&](const fs::path& file) {
    if (is_script(file.string())) modules.push_back(file.string());
  });
  std::sort(modules.begin(), modules.end());
  return modules;
}

}  // namespace tonnage::model
