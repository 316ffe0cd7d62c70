// SPDX-License-Identifier: Apache-2.0
// tonnage-bench-predict: how well the cost model knows the memory of shapes that it has never seen.
//
// Drives workers directly over the wire with any integer length (rounded ones give too few shapes); what
// is measured stands in predict/measure.h. The last line is one JSON object.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_text.h"
#include "bench/predict/measure.h"

namespace tonnage::bench {
namespace {

constexpr std::uint64_t kMainBatches = 1000;  // beside the unseen shapes

struct Options {
  std::string bin = std::filesystem::read_symlink("/proc/self/exe").parent_path().string();
  std::string models = "build/models";
  std::string toys;  // empty: none
  std::string route;
  std::string precision;
  std::string only;
  std::uint64_t shapes = 1000;
  std::uint64_t toy_batches = 100'000;
  std::uint64_t seed = 1;
};

bool parse_number(std::string_view text, std::uint64_t& into) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into);
  return error == std::errc() && end == text.data() + text.size();
}

bool parse(std::span<char*> arguments, Options& options) {
  const std::pair<std::string_view, std::string*> texts[] = {
      {"--models", &options.models},       {"--bin", &options.bin},
      {"--toys", &options.toys},           {"--route", &options.route},
      {"--precision", &options.precision}, {"--only", &options.only}};
  const std::pair<std::string_view, std::uint64_t*> numbers[] = {
      {"--shapes", &options.shapes}, {"--toy-batches", &options.toy_batches}, {"--seed", &options.seed}};
  for (std::size_t i = 1; i < arguments.size(); i += 2) {
    if (i + 1 == arguments.size()) return false;
    const std::string_view flag = arguments[i];
    const std::string_view value = arguments[i + 1];
    const auto* text = std::ranges::find(texts, flag, &std::pair<std::string_view, std::string*>::first);
    const auto* number =
        std::ranges::find(numbers, flag, &std::pair<std::string_view, std::uint64_t*>::first);
    if (text != std::end(texts)) {
      *text->second = value;
    } else if (number == std::end(numbers) || !parse_number(value, *number->second)) {
      return false;
    }
  }
  return true;
}

// Models whose peak is not one polynomial, and one that is small enough for very many batches.
std::vector<Subject> side_subjects(const Options& options) {
  std::vector<Subject> subjects;
  if (!options.toys.empty()) {
    for (const char* name : {"two_layers", "eager_attention", "convolution", "branch", "shape_cache"})
      subjects.push_back(toy(options.bin, options.toys, name));
    subjects.front().batches = options.toy_batches;
  }
  for (const char* model : {"quadratic", "branch", "shape_cache"})
    subjects.push_back(stub(options.bin, model));
  return subjects;
}

Result<std::string> run_all(const Options& options) {
  std::string line = "{\"name\":\"predict\"";
  if (options.only.empty() || options.only == "main") {
    TONNAGE_ASSIGN(Subject main, exported_model(options.bin, options.models + "/encoder-1024", options.route,
                                                options.precision));
    main.batches = kMainBatches;
    TONNAGE_ASSIGN(const Score score, measure(main, {options.shapes, options.seed}));
    line += fmt::format(",\"route\":{},{}", json_string(main.doc.route), score.keys());
  }
  line += ",\"models\":{";
  std::string separator;
  for (const Subject& subject : side_subjects(options)) {
    if (!options.only.empty() && options.only != subject.name) continue;
    TONNAGE_ASSIGN(const Score score, measure(subject, {options.shapes, options.seed}));
    fmt::print(stderr, "  {}: {}\n", subject.name, score.keys());
    line += fmt::format("{}{}:{{{}}}", separator, json_string(subject.name), score.keys());
    separator = ",";
  }
  return line + "}}";
}

}  // namespace
}  // namespace tonnage::bench

int main(int argc, char** argv) {
  tonnage::bench::Options options;
  if (!tonnage::bench::parse({argv, static_cast<std::size_t>(argc)}, options)) {
    fmt::print(
        stderr,
        "usage: tonnage-bench-predict [--models DIR] [--toys DIR] [--bin DIR] [--route NAME] [--precision "
        "NAME]\n"
        "                             [--only main|MODEL] [--shapes N] [--toy-batches N] [--seed N]\n");
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
