// SPDX-License-Identifier: Apache-2.0
#include "bench/predict/resident.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include "memory/lease.h"
#include "memory/reading.h"

namespace tonnage::bench {
namespace {

constexpr std::uint64_t kShapes = 60;
constexpr std::uint64_t kLargestRows = 10;
constexpr Bytes kLeastRoom = mib(96);  // toys: overhead of a process is not what is measured
constexpr std::size_t kCutBatches = 24;
constexpr std::uint64_t kMostTries = 200;

// A worker with a lease on a budget, as the supervisor keeps it.
class Leased {
 public:
  static Result<Leased> start(const Subject& subject, Bytes room) {
    TONNAGE_ASSIGN(auto front, bench::start(subject));
    TONNAGE_ASSIGN(const memory::ProcessReading reading, memory::read_process(front.pid()));
    return Leased(subject, std::move(front), reading, room);
  }

  Bytes base() const { return ready_.anonymous; }  // with weights
  Bytes room() const { return room_; }
  memory::Lease& lease() { return *lease_; }

  Status trim() {
    TONNAGE_ASSIGN(const wire::Trimmed trimmed, front_.trim());
    lease_->keep(saturating_sub(trimmed.live, front_.loaded().live));
    TONNAGE_ASSIGN(const memory::ProcessReading reading, memory::read_process(front_.pid()));
    lease_->settle(reading.anonymous);
    return Status::ok();
  }

  // Most that was resident above base during this batch; the lease has learned from it.
  Result<Bytes> run(cost::Shape shape, Bytes grant, Random& random) {
    TONNAGE_TRY(memory::reset_resident_peak(front_.pid()));
    TONNAGE_TRY(lease_->begin(grant));
    TONNAGE_ASSIGN(const auto outcome, front_.run(fill(front_, subject_, shape, random, grant)));
    TONNAGE_ASSIGN(const memory::ProcessReading reading, memory::read_process(front_.pid()));
    const Bytes highest = saturating_sub(reading.resident_peak, reading.file + reading.shared);
    const auto* done = std::get_if<wire::Done>(&outcome);
    lease_->end(reading.anonymous, done == nullptr ? grant : done->peak, highest);
    if (done != nullptr) lease_->keep(saturating_sub(done->live, front_.loaded().live));
    return saturating_sub(highest, base());
  }

 private:
  Leased(const Subject& subject, kit::BlockingFront front, const memory::ProcessReading& ready, Bytes room)
      : subject_(subject),
        front_(std::move(front)),
        ready_(ready),
        room_(room),
        budget_(std::make_unique<memory::Budget>("worker", room)),
        lease_(std::make_unique<memory::Lease>(budget_->root().child("lease"), ready.anonymous, ready.data)) {
  }

  const Subject& subject_;
  kit::BlockingFront front_;
  memory::ProcessReading ready_;
  Bytes room_;
  std::unique_ptr<memory::Budget> budget_;
  std::unique_ptr<memory::Lease> lease_;
};

std::uint32_t most_rows(const cost::CostModel& model, std::uint32_t length, Bytes grant) {
  std::uint32_t rows = 0;
  while (rows < kMaxRows && model.grant({rows + 1, length}) <= grant) ++rows;
  return rows;
}

}  // namespace

Status measure_resident(const Subject& subject, const cost::CostModel& model, std::uint64_t seed,
                        Score& score) {
  TONNAGE_ASSIGN(Leased leased, Leased::start(subject, gib(4)));
  Random random(seed + 1);
  ShapeSource source(subject.max_length, seed + 1);
  std::vector<cost::Shape> shapes;
  for (std::uint64_t i = 0; i < kShapes; ++i) shapes.push_back(source.unseen());
  std::ranges::sort(shapes, {}, [&](cost::Shape shape) { return model.grant(shape); });
  Bytes highest;
  for (const cost::Shape shape : shapes) {
    const Bytes grant = model.grant(shape);
    // The prediction is what is known without the margin, and the overhead learned so far.
    const Bytes expected = std::max(
        highest, model.predict_peak(shape) + leased.lease().kept() + leased.lease().slack_for(grant));
    TONNAGE_ASSIGN(const Bytes resident, leased.run(shape, grant, random));
    highest = std::max(highest, resident);
    const double error = resident_error(expected, highest);
    if (error <= score.worst_resident) continue;
    score.worst_resident = error;
    fmt::print(stderr, "  {}: {} × {}: {} were expected to be resident, {} were\n", subject.name, shape.rows,
               shape.length, format_bytes(expected), format_bytes(highest));
  }
  return Status::ok();
}

Status measure_budget_use(const Subject& subject, const cost::CostModel& model, std::uint64_t seed,
                          Score& score) {
  const Bytes room = std::max(kLeastRoom, model.grant({1, subject.max_length}) * kLargestRows);
  TONNAGE_ASSIGN(Leased leased, Leased::start(subject, room));
  Random random(seed + 2);
  const Bytes budget = leased.base() + room;
  for (std::uint64_t i = 0; i < kMostTries && score.budget_use.size() < kCutBatches; ++i) {
    const auto length = static_cast<std::uint32_t>(random.between(1, subject.max_length));
    const std::uint32_t rows = most_rows(model, length, leased.lease().largest_grant());
    if (rows == 0) {  // the pipeline would do so, too
      TONNAGE_TRY(leased.trim());
      continue;
    }
    if (rows == kMaxRows) continue;  // not memory, but the row limit cut it
    const cost::Shape shape{rows, length};
    TONNAGE_ASSIGN(const Bytes resident, leased.run(shape, model.grant(shape), random));
    const auto share = [](Bytes part, Bytes whole) {
      return static_cast<double>(part.count()) / static_cast<double>(whole.count());
    };
    score.budget_use.push_back(share(leased.base() + resident, budget));
    score.room_use.push_back(share(resident, room));
  }
  return Status::ok();
}

}  // namespace tonnage::bench
