// SPDX-License-Identifier: Apache-2.0
// tonnage compare: becomes the Python that compares loading routes (python/tonnage/compare), which starts
// servers of this program.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "options.h"

namespace tonnage::app {

int run_compare(const CompareOptions& options) {
  const std::string package = options.programs + "/python";
  if (::access((package + "/tonnage/compare/__main__.py").c_str(), R_OK) != 0) {
    fmt::print(stderr, "tonnage compare: {}/tonnage/compare is missing: it is built beside this program\n",
               package);
    return kExitFailed;
  }
  if (::access(options.python.c_str(), X_OK) != 0) {
    fmt::print(stderr, "tonnage compare: {} cannot be executed; TONNAGE_PYTHON names an interpreter\n",
               options.python);
    return kExitFailed;
  }
  std::vector<std::string> words = {
      "/usr/bin/env", "PYTHONPATH=" + package, options.python, "-B",
      "-m",           "tonnage.compare",       "--programs",   options.programs};
  words.insert(words.end(), options.arguments.begin(), options.arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::execv(argv.front(), argv.data());
  fmt::print(stderr, "tonnage compare: {} cannot be started: {}\n", argv.front(), std::strerror(errno));
  return kExitFailed;
}

}  // namespace tonnage::app
