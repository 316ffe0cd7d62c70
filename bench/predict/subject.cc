// SPDX-License-Identifier: Apache-2.0
#include "bench/predict/subject.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <thread>

#include "model/model_toml.h"
#include "model/route.h"
#include "tensor/buffer.h"

namespace tonnage::bench {
namespace {

constexpr std::uint32_t kShortest = 32;  // pad_multiple: nothing shorter is ever run
constexpr std::uint64_t kFewTokens = 512;
constexpr std::uint64_t kUsualTokens = 2048;
constexpr std::uint64_t kLargestTokens = 4096;
constexpr std::uint64_t kUsualEvery = 5;
constexpr std::uint64_t kBeyondEvery = 50;

tensor::Shape shape_of(cost::Shape shape) {
  const std::array<std::int64_t, 2> dims{shape.rows, shape.length};
  return tensor::Shape::make(dims).value();
}

wire::TensorDoc ids_doc(const char* name) { return {name, tensor::DataType::kInt64, {-1, -1}}; }

}  // namespace

Result<Subject> exported_model(const std::string& bin, const std::string& directory, const std::string& route,
                               const std::string& precision) {
  if (!route.empty() && model::find_route(route) == nullptr)
    return invalid("bad_route", fmt::format("route '{}'; there are {}", route, model::route_names()));
  model::RouteChoice choice{.route = route};
  if (!precision.empty()) {
    choice.precision = model::find_precision(precision);
    if (!choice.precision)
      return invalid("bad_precision", fmt::format("precision '{}'; there are fp32, bf16, fp16", precision));
  }
  TONNAGE_ASSIGN(const model::ModelSpec spec, model::load_model_directory(directory, choice));
  Subject subject;
  subject.name = spec.name;
  subject.program = bin + "/" + std::string(model::route_of(spec.route).program);
  subject.doc = model::to_load_doc(spec);
  subject.doc.threads = std::max(1U, std::thread::hardware_concurrency());
  subject.vocabulary = spec.inputs.front().range ? spec.inputs.front().range->max + 1 : 1000;
  subject.max_length = spec.max_length;
  return subject;
}

Subject toy(const std::string& bin, const std::string& folder, const std::string& name) {
  wire::LoadDoc doc{.model = name, .version = "1", .route = "script", .path = folder + "/" + name + ".pt"};
  doc.threads = std::max(1U, std::thread::hardware_concurrency());
  doc.inputs = {ids_doc("ids")};
  return {name, bin + "/tonnage-worker-torch", std::move(doc), 1000, 1024, 0};
}

Subject stub(const std::string& bin, const std::string& model) {
  wire::LoadDoc doc{.model = model, .version = "1", .route = "stub"};
  doc.inputs = {ids_doc("ids")};
  doc.options = {{"model", model}};
  // A hundred values: `branch` takes its dear way in nearly every batch but the small ones.
  return {"stub_" + model, bin + "/tonnage-worker-stub", std::move(doc), 100, 1024, 0};
}

Result<kit::BlockingFront> start(const Subject& subject) {
  return kit::BlockingFront::start(
      {.program = subject.program, .environment = {{"OMP_WAIT_POLICY", "passive"}}, .doc = subject.doc});
}

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

cost::Shape ShapeSource::draw(std::uint64_t most_tokens) {
  const auto longest = std::min<std::uint64_t>(max_length_, most_tokens);
  const auto length =
      static_cast<std::uint32_t>(random_.between(kShortest, static_cast<std::int64_t>(longest)));
  const std::uint64_t most_rows = std::min<std::uint64_t>(kMaxRows, most_tokens / length);
  return {static_cast<std::uint32_t>(1 + random_.below(most_rows)), length};
}

cost::Shape ShapeSource::unseen() {
  const bool is_beyond = ++drawn_ % kBeyondEvery == 0;
  while (true) {
    const bool is_usual = drawn_ % kUsualEvery == 0;
    const cost::Shape shape = draw(is_beyond ? kLargestTokens : is_usual ? kUsualTokens : kFewTokens);
    if (is_beyond && std::uint64_t{shape.rows} * shape.length <= kUsualTokens) continue;
    if (seen_.insert({shape.rows, shape.length}).second) return shape;
  }
}

}  // namespace tonnage::bench
