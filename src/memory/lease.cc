// SPDX-License-Identifier: Apache-2.0
#include "memory/lease.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tonnage::memory {
namespace {

constexpr Bytes kSmallestRest = mib(1);
constexpr Bytes kSmallestDataMargin = mib(64);

}  // namespace

Lease::Lease(Account& account, Bytes resident_when_ready, Bytes data_when_ready, double charged_per_byte,
             Bytes least_slack)
    : account_(account),
      charge_(account.record(Bytes())),
      ready_(resident_when_ready),
      data_ready_(data_when_ready),
      charged_per_byte_(charged_per_byte),
      least_slack_(least_slack),
      slack_(first_slack()),
      growth_(first_slack()) {}

Bytes Lease::charged(Bytes resident) const {
  return charged_per_byte_ > 1.0 ? scale(resident, charged_per_byte_) : resident;
}

Bytes Lease::explored() const { return tensor_high_ + Bytes(tensor_high_.count() / 4) + mib(1); }

Bytes Lease::rest() const { return std::max(kSmallestRest, Bytes(resident_high_.count() / 16)); }

Bytes Lease::slack_for(Bytes grant) const {
  return kept_ + grant > explored() ? std::max(slack_, first_slack()) : slack_;
}

Bytes Lease::needed_for(Bytes grant) const { return std::max(amount(), charged(use_of(grant))); }

Bytes Lease::room() const {
  const Bytes chargeable = saturating_sub(amount() + account_.available(), account_.overdraft());
  if (charged_per_byte_ <= 1.0) return chargeable;
  // Rounded down, so that what is named here can be charged.
  return saturating_sub(scale(chargeable, 1.0 / charged_per_byte_), kib(4));
}

Bytes Lease::largest_grant(Bytes resident) const {
  // For tensors, kept ones included.
  const Bytes most = usable(room());
  const Bytes beyond = saturating_sub(most, std::max(slack_, first_slack()));
  const Bytes tensors = beyond > explored() ? beyond : std::min(explored(), saturating_sub(most, slack_));
  return std::max(saturating_sub(tensors, kept_), saturating_sub(most, resident + growth_));
}

Status Lease::begin(Bytes grant) {
  TONNAGE_CHECK(grant_ == Bytes(), "a worker got a second grant while one was out");
  const Bytes needed = needed_for(grant);
  if (needed > amount()) TONNAGE_TRY(charge_.grow_to(needed));
  if (const Bytes over = account_.overdraft(); over > Bytes() && use_of(grant) > room()) {
    return Status(Code::kOverloaded, "over_budget",
                  fmt::format("{} more are in use than the budget allows", format_bytes(over)))
        .with_retry_after(1);
  }
  grant_ = grant;
  before_ = resident_high_;
  return Status::ok();
}

void Lease::raise_to(Bytes above_ready) {
  resident_high_ = std::max(resident_high_, above_ready);
  highest_ = std::max(highest_, above_ready);
  const Bytes held = charged(resident_high_);
  if (held > amount()) charge_.merge(account_.record(held - amount()));
}

void Lease::observe(Bytes resident) { raise_to(saturating_sub(resident, ready_)); }

void Lease::end(Bytes resident, Bytes peak, Bytes highest) {
  learn_peak(peak);
  learn_growth(peak, saturating_sub(resident, ready_), saturating_sub(highest, ready_));
  highest_ = std::max(highest_, saturating_sub(highest, ready_));
  raise_to(saturating_sub(resident, ready_));
  slack_ = std::max(least_slack_, saturating_sub(highest_, tensor_high_));
  highest_slack_ = std::max(highest_slack_, slack_);
  charge_.shrink_to(charged(resident_high_) + rest());
}

// A high-water mark that stands where it stood is that of an earlier batch, and what batches took that were
// not read belongs to none of them alone.
void Lease::learn_growth(Bytes peak, Bytes resident, Bytes highest) {
  Bytes most = std::max(resident, resident_high_);
  if (highest > settled_highest_) most = std::max(most, highest);
  settled_highest_ = std::max(settled_highest_, highest);
  if (std::exchange(is_read_, true)) growth_ = std::max(growth_, saturating_sub(most, before_ + peak));
}

void Lease::end_unread(Bytes peak) {
  learn_peak(peak);
  is_read_ = false;
}

void Lease::learn_peak(Bytes peak) {
  grant_ = Bytes();
  highest_peak_ = std::max(highest_peak_, peak);
  tensor_high_ = std::max(tensor_high_, kept_ + peak);
}

void Lease::settle(Bytes resident) {
  const Bytes now = saturating_sub(resident, ready_);
  is_read_ = true;
  resident_high_ = settled_ = settled_highest_ = now;  // what was learned about slack stays
  const Bytes held = charged(now);
  if (held > amount()) charge_.merge(account_.record(held - amount()));
  charge_.shrink_to(std::max(held, grant_ == Bytes() ? Bytes() : charged(kept_ + grant_ + slack_)));
}

Bytes Lease::data_limit() const {
  const Bytes expected = data_ready_ + amount();
  return expected + std::max(kSmallestDataMargin, Bytes(expected.count() / 10));
}

}  // namespace tonnage::memory
