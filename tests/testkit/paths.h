// SPDX-License-Identifier: Apache-2.0
// Where this build and its sources lie, whoever starts the test and from where.
#pragma once

#include <string>

namespace tonnage::testkit {

// A program of this build.
std::string built_program(const std::string& name);
// A file of the source tree, by its path in it.
std::string source_file(const std::string& name);
// What stands in one; empty where it cannot be read.
std::string source_text(const std::string& name);

}  // namespace tonnage::testkit
