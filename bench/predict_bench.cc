// SPDX-License-Identifier: Apache-2.0
// tonnage-bench-predict: how well the cost model knows the peak of shapes that it has never seen.
//
// Drives a worker directly over the wire with any integer length (rounded ones give too few shapes):
// profiles it as a load does, freezes learning, then runs unseen shapes, nearly all with rows × length
// ≤ 2,048 and some beyond, each inside the grant that the model predicts. An over-grant is counted and
// the shape run again with room, so that its true peak is known. The last line is one JSON object.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/json_text.h"
#include "base/random.h"
#include "cost/cost_model.h"
#include "cost/profiler.h"
#include "kit/blocking_front.h"
#include "tensor/buffer.h"

namespace tonnage::bench {
namespace {

constexpr Bytes kFree = gib(2);
constexpr std::uint32_t kMaxRows = 64;
constexpr std::uint32_t kMaxLength = 1024;
constexpr std::uint32_t kUsualTokens = 2048;
constexpr std::uint32_t kLargestTokens = 4096;
constexpr std::uint64_t kBeyondEvery = 50;  // one shape of so many lies beyond the usual cap

using Clock = std::chrono::steady_clock;

struct Subject {
  std::string name;
  std::string program;
  wire::LoadDoc doc;
  std::int64_t vocabulary = 0;
};

struct Score {
  std::vector<double> errors;  // |fit − peak| ÷ peak
  std::vector<double> ratios;  // grant ÷ peak
  std::size_t over_grant = 0;
  std::size_t profiled = 0;
  double profile_seconds = 0;
  std::string_view determinism;
};

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const auto rank = static_cast<std::size_t>(std::ceil(q * static_cast<double>(values.size())));
  return values[std::clamp<std::size_t>(rank, 1, values.size()) - 1];
}

tensor::Shape shape_of(cost::Shape shape) {
  const std::array<std::int64_t, 2> dims{shape.rows, shape.length};
  return tensor::Shape::make(dims).value();
}

// Random ids and a mask of ones, written into the worker's slot.
wire::Run fill(kit::BlockingFront& front, const Subject& subject, cost::Shape shape, Random& random,
               Bytes grant) {
  wire::Run run{.slot = 0, .rows = shape.rows, .length = shape.length, .grant = grant, .inputs = {}};
  const std::size_t count = std::size_t{shape.rows} * shape.length;
  std::uint64_t offset = 0;
  for (std::size_t i = 0; i < subject.doc.inputs.size(); ++i) {
    const auto values = as_elements<std::int64_t>(front.slot().subspan(offset, count * sizeof(std::int64_t)));
    for (std::int64_t& value : values) {
      value = i == 0 ? static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(subject.vocabulary)))
                     : 1;
    }
    run.inputs.push_back({tensor::DataType::kInt64, shape_of(shape), offset, count * sizeof(std::int64_t)});
    offset = tensor::align_up(offset + count * sizeof(std::int64_t));
  }
  return run;
}

Result<cost::CostModel> profile(kit::BlockingFront& front, const Subject& subject,
                                std::set<std::pair<std::uint32_t, std::uint32_t>>& seen, Score& score) {
  cost::Profiler profiler(cost::CostOptions{kMaxRows, 32, kMaxLength}, cost::ProfileLimits{.free = kFree});
  const auto began = Clock::now();
  while (const auto step = profiler.next(Clock::now() - began)) {
    Random random(1000 + step->seed);
    TONNAGE_ASSIGN(const auto outcome, front.run(fill(front, subject, step->shape, random, step->grant)));
    if (const auto* done = std::get_if<wire::Done>(&outcome)) {
      profiler.add(*step, {step->shape, done->peak, done->execution});
    } else if (const auto& error = std::get<wire::Error>(outcome);
               error.kind == wire::ErrorKind::kOverGrant) {
      profiler.refused(*step, error.needed);
    } else {
      return internal("profile_failed", error.text);
    }
    seen.insert({step->shape.rows, step->shape.length});
  }
  score.profiled = seen.size();
  score.profile_seconds = std::chrono::duration<double>(Clock::now() - began).count();
  return profiler.take_model();
}

cost::Shape unseen_shape(Random& random, std::uint64_t index,
                         std::set<std::pair<std::uint32_t, std::uint32_t>>& seen) {
  const bool is_beyond = index % kBeyondEvery == kBeyondEvery - 1;
  while (true) {
    const auto length = static_cast<std::uint32_t>(random.between(1, kMaxLength));
    const std::uint32_t most = std::min(kMaxRows, (is_beyond ? kLargestTokens : kUsualTokens) / length);
    const auto rows = static_cast<std::uint32_t>(random.between(1, std::max(1U, most)));
    if (is_beyond && rows * length <= kUsualTokens) continue;
    if (seen.insert({rows, length}).second) return {rows, length};
  }
}

Result<Score> measure(const Subject& subject, std::uint64_t shapes, std::uint64_t seed) {
  TONNAGE_ASSIGN(auto front, kit::BlockingFront::start({.program = subject.program,
                                                        .environment = {{"OMP_WAIT_POLICY", "passive"}},
                                                        .doc = subject.doc}));
  Score score;
  std::set<std::pair<std::uint32_t, std::uint32_t>> seen;
  TONNAGE_ASSIGN(const cost::CostModel model, profile(front, subject, seen, score));
  score.determinism =
      model.determinism() == cost::Determinism::kValueDependent ? "value_dependent" : "deterministic";
  Random random(seed);
  for (std::uint64_t i = 0; i < shapes; ++i) {
    const cost::Shape shape = unseen_shape(random, i, seen);
    const Bytes grant = model.grant(shape);
    TONNAGE_ASSIGN(auto outcome, front.run(fill(front, subject, shape, random, grant)));
    if (const auto* error = std::get_if<wire::Error>(&outcome);
        error != nullptr && error->kind == wire::ErrorKind::kOverGrant) {
      ++score.over_grant;
      TONNAGE_ASSIGN(outcome, front.run(fill(front, subject, shape, random, gib(8))));
    }
    const auto* done = std::get_if<wire::Done>(&outcome);
    if (done == nullptr) return internal("run_failed", std::get<wire::Error>(outcome).text);
    const auto peak = static_cast<double>(std::max<std::uint64_t>(1, done->peak.count()));
    score.errors.push_back(std::abs(static_cast<double>(model.predict_peak(shape).count()) - peak) / peak);
    score.ratios.push_back(static_cast<double>(grant.count()) / peak);
    if ((i + 1) % 100 == 0) fmt::print(stderr, "  {}: {} of {} shapes\n", subject.name, i + 1, shapes);
  }
  return score;
}

std::string keys_of(const Score& score) {
  return fmt::format(
      "\"median\":{:.6g},\"p99\":{:.6g},\"over_grant\":{},\"grant_over_measured_p99\":{:.4f},"
      "\"shapes\":{},\"profiled\":{},\"profile_seconds\":{:.2f},\"class\":{}",
      quantile(score.errors, 0.5), quantile(score.errors, 0.99), score.over_grant,
      quantile(score.ratios, 0.99), score.errors.size(), score.profiled, score.profile_seconds,
      json_string(score.determinism));
}

wire::TensorDoc ids_doc(const char* name) { return {name, tensor::DataType::kInt64, {-1, -1}}; }

Subject encoder(const std::string& bin, const std::string& models) {
  wire::LoadDoc doc{
      .model = "encoder-1024", .version = "1", .route = "trace", .path = models + "/encoder-1024/1/model.pt"};
  doc.threads = std::max(1U, std::thread::hardware_concurrency());
  doc.inputs = {ids_doc("input_ids"), ids_doc("attention_mask")};
  doc.outputs = {{"sentence_embedding", tensor::DataType::kFp32, {-1, 384}}};
  return {"encoder-1024", bin + "/tonnage-worker-torch", std::move(doc), 30522};
}

Subject stub(const std::string& bin, const std::string& model) {
  wire::LoadDoc doc{.model = model, .version = "1", .route = "stub"};
  doc.inputs = {ids_doc("ids")};
  doc.options = {{"model", model}};
  // A hundred values: `branch` takes its dear way in nearly every batch but the small ones.
  return {model, bin + "/tonnage-worker-stub", std::move(doc), 100};
}

struct Options {
  std::string bin = std::filesystem::read_symlink("/proc/self/exe").parent_path().string();
  std::string models = "build/models";
  std::uint64_t shapes = 1000;
  std::uint64_t seed = 1;
};

bool parse_number(std::string_view text, std::uint64_t& into) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into);
  return error == std::errc() && end == text.data() + text.size();
}

bool parse(std::span<char*> arguments, Options& options) {
  for (std::size_t i = 1; i < arguments.size(); i += 2) {
    const std::string_view flag = arguments[i];
    if (i + 1 == arguments.size()) return false;
    const std::string_view value = arguments[i + 1];
    if (flag == "--models") {
      options.models = value;
    } else if (flag == "--bin") {
      options.bin = value;
    } else if (flag == "--shapes" ? !parse_number(value, options.shapes)
                                  : flag != "--seed" || !parse_number(value, options.seed)) {
      return false;
    }
  }
  return true;
}

Result<std::string> run_all(const Options& options) {
  TONNAGE_ASSIGN(const Score main,
                 measure(encoder(options.bin, options.models), options.shapes, options.seed));
  std::string line = fmt::format("{{\"name\":\"predict\",{},\"models\":{{", keys_of(main));
  std::string separator;
  for (const char* model : {"quadratic", "branch", "shape_cache"}) {
    TONNAGE_ASSIGN(const Score score, measure(stub(options.bin, model), options.shapes, options.seed));
    line += fmt::format("{}{}:{{{}}}", separator, json_string(model), keys_of(score));
    separator = ",";
  }
  return line + "}}";
}

}  // namespace
}  // namespace tonnage::bench

int main(int argc, char** argv) {
  tonnage::bench::Options options;
  if (!tonnage::bench::parse({argv, static_cast<std::size_t>(argc)}, options)) {
    fmt::print(stderr, "usage: tonnage-bench-predict [--models DIR] [--bin DIR] [--shapes N] [--seed N]\n");
    return 64;
  }
  const auto line = tonnage::bench::run_all(options);
  if (!line.is_ok()) {
    fmt::print(stderr, "predict: {}\n", line.status().to_string());
    return 1;
  }
  fmt::print("{}\n", *line);
  return 0;
}
