// SPDX-License-Identifier: Apache-2.0
// tonnage serve.
#include <fmt/format.h>

#include <cstdio>

#include "options.h"

namespace tonnage::app {

int run_serve(const ServeOptions& options) {
  if (options.print_config) {
    fmt::print("{}", options.config_text);
    return kExitOk;
  }
  const Status status = options.check ? server::check(options.server) : server::run(options.server);
  if (status.is_ok()) {
    if (options.check) fmt::print("this would start\n");
    return kExitOk;
  }
  fmt::print(stderr, "tonnage serve: {}\n", status.to_string());
  return status.code() == Code::kInvalidArgument ? kExitUsage : kExitFailed;
}

}  // namespace tonnage::app
