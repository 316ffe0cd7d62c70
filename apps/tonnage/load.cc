// SPDX-License-Identifier: Apache-2.0
// tonnage load: the command line's words turned into a run, and its results into text.
#include <fmt/format.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <fstream>

#include "load/discover.h"
#include "load/driver.h"
#include "load/report.h"
#include "options.h"

namespace tonnage::app {
namespace {

Status bad_option(std::string detail) { return invalid("bad_option", std::move(detail)); }

Result<load::Format> parse_format(const LoadOptions& options) {
  const std::string both = options.dialect + "/" + options.format;
  if (both == "v2/json") return load::Format::kV2Json;
  if (both == "v2/binary") return load::Format::kV2Binary;
  if (both == "sagemaker/json") return load::Format::kSageMakerJson;
  if (both == "sagemaker/text") return load::Format::kSageMakerText;
  if (both == "sagemaker/csv") return load::Format::kSageMakerCsv;
  if (both == "sagemaker/jsonlines") return load::Format::kSageMakerJsonLines;
  return bad_option(
      fmt::format("--dialect {} with --format {}: allowed are v2 with json or binary, sagemaker with "
                  "json, text, csv or jsonlines",
                  options.dialect, options.format));
}

Result<load::WorkloadOptions> workload_options(const LoadOptions& options) {
  load::WorkloadOptions workload;
  TONNAGE_ASSIGN(workload.format, parse_format(options));
  workload.payload = options.payload == "ids" ? load::Payload::kTensors : load::Payload::kText;
  if (!options.mix.empty()) {
    TONNAGE_ASSIGN(workload.mix, load::parse_mix(options.mix));
  }
  workload.seed = options.seed;
  workload.rows = options.rows;
  workload.vocabulary = options.vocabulary;
  workload.max_length = options.max_length;
  workload.deadline = from_seconds(options.deadline_ms / 1e3);
  return workload;
}

Result<load::DriveOptions> drive_options(const LoadOptions& options) {
  if (options.requests == 0 && options.duration == Duration(0)) {
    return bad_option("say when to end: --requests N or --for TIME");
  }
  load::DriveOptions drive;
  drive.rate = options.rate;
  drive.spacing = options.spacing == "fixed" ? load::Spacing::kFixed : load::Spacing::kPoisson;
  drive.outstanding = options.concurrency;
  drive.requests = options.requests;
  drive.duration = options.duration;
  drive.warmup = options.warmup;
  if (options.connections > 0) drive.max_connections = options.connections;
  drive.keep_bodies = !options.save.empty();
  return drive;
}

// SIGINT and SIGTERM end the sending; what is in flight is still answered and reported.
class StopSignal {
 public:
  StopSignal() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, nullptr);
    fd_ = UniqueFd(::signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
  }
  bool seen() const {
    signalfd_siginfo info{};
    return ::read(fd_.get(), &info, sizeof info) == sizeof info;
  }

 private:
  UniqueFd fd_;
};

Status run(const LoadOptions& options) {
  TONNAGE_ASSIGN(const load::Endpoint endpoint, load::parse_endpoint(options.url));
  TONNAGE_ASSIGN(const load::WorkloadOptions chosen, workload_options(options));
  TONNAGE_ASSIGN(const load::DriveOptions drive, drive_options(options));
  TONNAGE_ASSIGN(const load::ModelInfo model, load::discover(endpoint, options.model));
  load::Texts texts;
  if (!options.texts.empty()) {
    TONNAGE_ASSIGN(texts, load::read_texts(options.texts));
  }
  TONNAGE_ASSIGN(load::Workload workload, load::Workload::make(chosen, model, std::move(texts)));
  std::ofstream save;
  if (!options.save.empty()) {
    save.open(options.save, std::ios::trunc);
    if (!save) return bad_option(fmt::format("--save {}: cannot be written", options.save));
  }

  load::Results results(chosen.deadline);
  load::ProgressPrinter progress(stderr, ::isatty(STDERR_FILENO) == 1, drive);
  const StopSignal stop;
  std::uint64_t index = 0;
  load::Observer observer;
  observer.on_sample = [&](const load::Sample& sample) {
    results.add(sample);
    if (save.is_open()) save << load::save_line(sample, index++);
  };
  observer.on_progress = [&](const load::Progress& now) { progress.show(now); };
  observer.wants_stop = [&] { return stop.seen(); };
  TONNAGE_ASSIGN(const load::RunTimes done, load::run_requests(endpoint, workload, drive, observer));
  progress.clear();
  if (!options.json) fmt::print("{}", load::table(results, done, drive));
  if (options.json) fmt::print("{}\n", load::json_object(results, done, drive));
  return Status::ok();
}

}  // namespace

int run_load(const LoadOptions& options) {
  const Status status = run(options);
  if (status.is_ok()) return kExitOk;
  fmt::print(stderr, "tonnage load: {}\n", status.to_string());
  return status.code() == Code::kInvalidArgument ? kExitUsage : kExitFailed;
}

}  // namespace tonnage::app
