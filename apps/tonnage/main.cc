// SPDX-License-Identifier: Apache-2.0
// tonnage: one program, a subcommand each. See arguments.h for the words, options.h for their meaning.
#include <fmt/format.h>

#include <cstdio>

#include "arguments.h"
#include "config/environment.h"

namespace tonnage::app {
namespace {

struct Dispatch {
  int operator()(const Leave& leave) const {
    fmt::print(leave.exit_code == kExitOk ? stdout : stderr, "{}", leave.text);
    return leave.exit_code;
  }
  int operator()(const ServeOptions& options) const { return run_serve(options); }
  int operator()(const InspectOptions& options) const { return run_inspect(options); }
  int operator()(const ProfileOptions& options) const { return run_profile(options); }
  int operator()(const CompareOptions& options) const { return run_compare(options); }
  int operator()(const LoadOptions& options) const { return run_load(options); }
};

}  // namespace
}  // namespace tonnage::app

int main(int argc, char** argv) {
  using namespace tonnage;
  return std::visit(app::Dispatch{}, app::parse_arguments(argc, argv, config::Environment::of_process()));
}
