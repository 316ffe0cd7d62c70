// SPDX-License-Identifier: Apache-2.0
#include "planner/arbiter.h"

#include <algorithm>
#include <cmath>

namespace tonnage::planner {
namespace {

constexpr double kLeastWeight = 1e-6;

double weight_of(const Contender& contender) { return std::max(contender.weight, kLeastWeight); }

}  // namespace

Duration wait_bound(std::span<const Contender> lanes, std::size_t i, Duration quantum) {
  double heaviest = kLeastWeight;
  for (const Contender& c : lanes) heaviest = std::max(heaviest, weight_of(c));
  const double rounds = to_seconds(lanes[i].time) / weight_of(lanes[i]) + 2 * to_seconds(quantum) / heaviest;
  double running = 0;
  double others = 0;
  for (std::size_t j = 0; j < lanes.size(); ++j) {
    if (j == i) continue;
    running = std::max(running, to_seconds(lanes[j].time));
    others += to_seconds(lanes[j].time) + weight_of(lanes[j]) * rounds;
  }
  return from_seconds(running + others);
}

// Adds whole rounds until some contender can pay for its batch. The heaviest gets the quantum.
void Arbiter::refill(std::span<const Contender> contenders) {
  double heaviest = kLeastWeight;
  for (const Contender& c : contenders) heaviest = std::max(heaviest, weight_of(c));
  const double unit = to_seconds(quantum_) / heaviest;
  double rounds = HUGE_VAL;
  for (const Contender& c : contenders) {
    const double missing = to_seconds(c.time) - deficits_[c.lane];
    rounds = std::min(rounds, std::max(std::ceil(missing / (unit * weight_of(c))), 0.0));
  }
  for (const Contender& c : contenders) deficits_[c.lane] += rounds * unit * weight_of(c);
}

bool Arbiter::can_pay(const Contender& contender) const {
  constexpr double kRounding = 1e-9;
  return deficits_[contender.lane] + kRounding >= to_seconds(contender.time);
}

std::optional<std::size_t> Arbiter::choose(std::span<const Contender> contenders, std::uint32_t free_tokens) {
  most_tokens_ = std::max(most_tokens_, free_tokens);
  const auto fits = [&](const Contender& c) { return std::min(c.tokens, most_tokens_) <= free_tokens; };
  // Nobody gains a share while the device is busy: the lanes that keep it busy are not here to gain theirs.
  if (std::ranges::none_of(contenders, fits)) return std::nullopt;
  for (const Contender& c : contenders) {
    if (c.lane >= deficits_.size()) deficits_.resize(c.lane + std::size_t{1}, 0.0);
  }
  if (std::none_of(contenders.begin(), contenders.end(), [&](const Contender& c) { return can_pay(c); })) {
    refill(contenders);
  }
  const auto distance = [&](const Contender& c) {  // lanes between whose turn it is and this one
    return (c.lane + deficits_.size() - turn_) % deficits_.size();
  };
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    const Contender& c = contenders[i];
    if (!can_pay(c) || !fits(c)) continue;
    if (best) {
      const Contender& other = contenders[*best];
      if (other.must_start_by < c.must_start_by) continue;
      if (other.must_start_by == c.must_start_by && distance(other) < distance(c)) continue;
    }
    best = i;
  }
  // Nothing, where only lanes that wait for tokens have a share left: another round would let small
  // batches take every token that comes back, and a large one would never run.
  if (best) turn_ = (contenders[*best].lane + std::size_t{1}) % deficits_.size();
  return best;
}

void Arbiter::charge(std::uint32_t lane, Duration time) {
  if (lane >= deficits_.size()) deficits_.resize(lane + std::size_t{1}, 0.0);
  deficits_[lane] -= to_seconds(time);
}

void Arbiter::forget(std::uint32_t lane) {
  if (lane < deficits_.size()) deficits_[lane] = 0;
}

}  // namespace tonnage::planner
