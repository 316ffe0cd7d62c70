// SPDX-License-Identifier: Apache-2.0
#include "bench/predict/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <optional>
#include <utility>
#include <vector>

#include "bench/predict/resident.h"
#include "cost/profiler.h"

namespace tonnage::bench {
namespace {

constexpr Bytes kFree = gib(2);
constexpr std::uint64_t kShapesOfValues = 40;  // of a value-dependent model: each run often
constexpr std::uint64_t kDraws = 200;

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point began) {
  return std::chrono::duration<double>(Clock::now() - began).count();
}

double number(Bytes bytes) { return static_cast<double>(std::max<std::uint64_t>(1, bytes.count())); }

// One model on its way through the bench.
class Session {
 public:
  Session(const Subject& subject, const Plan& plan, kit::BlockingFront front)
      : subject_(subject),
        plan_(plan),
        front_(std::move(front)),
        random_(plan.seed),
        shapes_(subject.max_length, plan.seed) {}

  Status profile();
  Status run_unseen();
  Status run_seen();
  Status run_values();
  const cost::CostModel& model() const { return *model_; }
  Score score{};

 private:
  bool learns() const { return model_->determinism() == cost::Determinism::kValueDependent; }
  // The peak, also where the grant was too small.
  Result<Bytes> run(cost::Shape shape);
  void say(std::string_view what, std::uint64_t done, std::uint64_t of);

  const Subject& subject_;
  const Plan& plan_;
  kit::BlockingFront front_;
  Random random_;
  ShapeSource shapes_;
  std::vector<cost::Shape> run_;
  std::optional<cost::CostModel> model_;
  Clock::time_point said_ = Clock::now();
};

void Session::say(std::string_view what, std::uint64_t done, std::uint64_t of) {
  if (seconds_since(said_) < 5) return;
  said_ = Clock::now();
  fmt::print(stderr, "  {}: {} of {} {}\n", subject_.name, done, of, what);
}

Status Session::profile() {
  cost::Profiler profiler(cost::CostOptions{kMaxRows, 32, subject_.max_length},
                          cost::ProfileLimits{.free = kFree});
  const auto began = Clock::now();
  while (const auto step = profiler.next(Clock::now() - began)) {
    Random random(1000 + step->seed);
    TONNAGE_ASSIGN(const auto outcome, front_.run(fill(front_, subject_, step->shape, random, step->grant)));
    if (const auto* done = std::get_if<wire::Done>(&outcome)) {
      profiler.add(*step, {step->shape, done->peak, done->execution});
    } else if (const auto& error = std::get<wire::Error>(outcome);
               error.kind == wire::ErrorKind::kOverGrant) {
      profiler.refused(*step, error.needed);
    } else {
      return internal("profile_failed", error.text);
    }
    shapes_.was_seen(step->shape);
  }
  score.profiled = shapes_.seen();
  score.profile_seconds = seconds_since(began);
  model_ = profiler.take_model();
  score.determinism = learns() ? "value_dependent" : "deterministic";
  return Status::ok();
}

Result<Bytes> Session::run(cost::Shape shape) {
  ++score.batches;
  TONNAGE_ASSIGN(auto outcome, front_.run(fill(front_, subject_, shape, random_, model_->grant(shape))));
  if (const auto* error = std::get_if<wire::Error>(&outcome);
      error != nullptr && error->kind == wire::ErrorKind::kOverGrant) {
    ++score.over_grant;
    fmt::print(stderr, "  {}: {} × {} was granted {} and needed {} at least\n", subject_.name, shape.rows,
               shape.length, model_->grant(shape).count(), error->needed.count());
    if (learns()) model_->observe_over_grant(shape, error->needed);
    TONNAGE_ASSIGN(outcome, front_.run(fill(front_, subject_, shape, random_, gib(8))));
  }
  const auto* done = std::get_if<wire::Done>(&outcome);
  if (done == nullptr) return internal("run_failed", std::get<wire::Error>(outcome).text);
  if (learns()) model_->observe({shape, done->peak, done->execution});
  return done->peak;
}

Status Session::run_unseen() {
  for (std::uint64_t i = 0; i < plan_.shapes; ++i) {
    const cost::Shape shape = shapes_.unseen();
    const double fit = number(model_->predict_peak(shape));
    const double grant = number(model_->grant(shape));
    TONNAGE_ASSIGN(const Bytes peak, run(shape));
    score.errors.push_back(std::abs(fit - number(peak)) / number(peak));
    if (score.ratios.empty() || grant / number(peak) > *std::ranges::max_element(score.ratios)) {
      fmt::print(stderr, "  {}: {} × {} was granted {:.3f} of {}\n", subject_.name, shape.rows, shape.length,
                 grant / number(peak), format_bytes(peak));
    }
    score.ratios.push_back(grant / number(peak));
    run_.push_back(shape);
    say("unseen shapes", i + 1, plan_.shapes);
  }
  return Status::ok();
}

Status Session::run_seen() {
  std::ranges::sort(run_, {}, [](cost::Shape shape) { return shape.rows * shape.length; });
  for (std::uint64_t i = 0; i < subject_.batches; ++i) {
    // The fourth power of an even draw: small ones above all, so that many batches take little time.
    const double even = static_cast<double>(random_.below(1'000'000)) / 1e6;
    const auto index = static_cast<std::size_t>(std::pow(even, 4) * static_cast<double>(run_.size()));
    TONNAGE_TRY(run(run_[index]).status());
    say("batches", i + 1, subject_.batches);
  }
  return Status::ok();
}

// What a grant is over the peaks that other values of the same shape have.
Status Session::run_values() {
  if (!learns()) return Status::ok();
  for (std::uint64_t i = 0; i < kShapesOfValues; ++i) {
    const cost::Shape shape = run_[random_.below(run_.size())];
    std::vector<double> peaks;
    std::vector<double> grants;
    for (std::uint64_t draw = 0; draw < kDraws; ++draw) {
      grants.push_back(number(model_->grant(shape)));
      TONNAGE_ASSIGN(const Bytes peak, run(shape));
      peaks.push_back(number(peak));
    }
    score.ratios_of_shapes.push_back(quantile(grants, 0.99) / quantile(peaks, 0.99));
    say("shapes with many values", i + 1, kShapesOfValues);
  }
  return Status::ok();
}

}  // namespace

Result<Score> measure(const Subject& subject, const Plan& plan) {
  const auto began = Clock::now();
  TONNAGE_ASSIGN(auto front, start(subject));
  Session session(subject, plan, std::move(front));
  TONNAGE_TRY(session.profile());
  TONNAGE_TRY(session.run_unseen());
  TONNAGE_TRY(session.run_seen());
  TONNAGE_TRY(session.run_values());
  if (plan.with_memory) {
    TONNAGE_TRY(measure_resident(subject, session.model(), plan.seed, session.score));
    TONNAGE_TRY(measure_budget_use(subject, session.model(), plan.seed, session.score));
  }
  session.score.seconds = seconds_since(began);
  return std::move(session.score);
}

}  // namespace tonnage::bench
