// SPDX-License-Identifier: Apache-2.0
// The command line: words → options of one subcommand, or a text and an exit code. arguments.cc is the
// only file that knows CLI11.
#pragma once

#include <string>
#include <variant>

#include "config/environment.h"
#include "options.h"

namespace tonnage::app {

// Help, version, or a mistake: print `text` (an exit code other than 0: to standard error) and leave.
struct Leave {
  int exit_code = 0;
  std::string text;
};

using Parsed = std::variant<Leave, ServeOptions, InspectOptions, ProfileOptions, CompareOptions, LoadOptions>;

Parsed parse_arguments(int argc, const char* const* argv, const config::Environment& environment);

}  // namespace tonnage::app
