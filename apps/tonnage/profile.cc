// SPDX-License-Identifier: Apache-2.0
// tonnage profile: every shape of a grid measured beside its prediction.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "lone_model.h"
#include "options.h"
#include "report/profile_report.h"
#include "server/inspect.h"

namespace tonnage::app {
namespace {

Status write_file(const std::filesystem::path& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
  if (out.flush()) return Status::ok();
  return {Code::kUnavailable, "not_written", fmt::format("--out: {} cannot be written", path.string())};
}

}  // namespace

int run_profile(const ProfileOptions& options) {
  const auto seen = [&] {
    TerminalProgress progress("measuring");
    return server::profile(server_options(options), {options.refresh, options.duration}, progress.show());
  }();
  Status status = seen.is_ok() ? Status::ok() : seen.status();
  const std::filesystem::path folder(options.out);
  const auto file = [&](const char* ending) { return folder / (seen->spec->name + "-profile" + ending); };
  if (status.is_ok()) status = write_file(file(".json"), profile_json(*seen));
  if (status.is_ok()) status = write_file(file(".html"), profile_html(*seen));
  if (!status.is_ok()) {
    fmt::print(stderr, "tonnage profile: {}\n", status.detail());
    return kExitFailed;
  }
  if (options.json) {
    fmt::print("{}", profile_json(*seen));
  } else {
    fmt::print("{}\n  written: {}, {}\n", profile_text(*seen), file(".json").string(),
               file(".html").string());
  }
  return kExitOk;
}

}  // namespace tonnage::app
