// SPDX-License-Identifier: Apache-2.0
#include "kit/serve.h"
#include "stub/malicious.h"
#include "stub/runtime.h"

int main() {
  using namespace tonnage;
  auto channel = kit::channel_from_environment();
  if (!channel) return kit::kNotStartedByTonnage;
  auto opening = kit::open_session(*channel);
  if (!opening.is_ok()) return kit::refuse(*channel, opening.status());
  const auto options = stub::parse_options(opening->doc.options);
  if (options.is_ok() && options->model == "malicious") {
    return stub::misbehave(options->mode, *channel, *opening);
  }
  stub::StubRuntime runtime;
  return kit::serve(std::move(*channel), std::move(*opening), runtime);
}
