// SPDX-License-Identifier: Apache-2.0
// TONNAGE_SOURCE_DIR and TONNAGE_BIN_DIR are flags of this file alone: absolute paths in the flags of every
// test would keep checkouts from sharing one compiler cache.
#include "testkit/paths.h"

#include <fstream>
#include <iterator>

namespace tonnage::testkit {

std::string built_program(const std::string& name) { return TONNAGE_BIN_DIR "/" + name; }
std::string source_file(const std::string& name) { return TONNAGE_SOURCE_DIR "/" + name; }

std::string source_text(const std::string& name) {
  std::ifstream in(source_file(name), std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace tonnage::testkit
