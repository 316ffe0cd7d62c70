// SPDX-License-Identifier: Apache-2.0
#include "supervisor/detail/device_share.h"

#include <fmt/format.h>

#include <algorithm>

#include "wire/messages.h"

namespace tonnage::supervisor::detail {

Status missing(std::string_view what, Bytes needed, const memory::Account& account) {
  const Bytes free = account.available();
  return {Code::kUnavailable, "over_budget",
          fmt::format("{} needs {}, {} are free: {} are missing", what, format_bytes(needed),
                      format_bytes(free), format_bytes(saturating_sub(needed, free)))};
}

DeviceShare::DeviceShare(memory::Account& worker, const memory::DevicePort& driver)
    : base_account_(worker.child("base")),
      weights_account_(worker.child("weights")),
      loading_account_(worker.child("loading")),
      lease_account_(worker.child("lease")),
      driver_(driver) {}

Status DeviceShare::reserve(Bytes to_load) {
  const Bytes needed = std::max(to_load, known_need_);
  auto charge = loading_account_.charge(needed);
  if (!charge) return missing("loading on the device", needed, loading_account_);
  loading_ = std::move(charge).value();
  return Status::ok();
}

Bytes DeviceShare::use_of(pid_t pid, Bytes reserved) {
  reserved_ = reserved;
  if (const auto use = driver_.process_use(pid); use.is_ok()) {
    beside_ = saturating_sub(*use, reserved);
    return std::max(*use, reserved);
  }
  if (beside_ == Bytes()) beside_ = kContextAssumed;
  return beside_ + reserved;
}

Status DeviceShare::settle(pid_t pid, Bytes weights, Bytes reserved) {
  use_ = use_of(pid, reserved);
  known_need_ = use_;
  // The loading charge becomes weights and base, so that nobody can take the bytes in between.
  if (use_ > loading_.amount() && !loading_.grow_to(use_).is_ok())
    return missing("the model loaded on the device", use_ - loading_.amount(), loading_account_);
  weights_ = loading_.split(std::min(weights, use_));
  base_ = loading_.split(use_ - weights_.amount());
  loading_.release();
  TONNAGE_TRY(weights_.transfer(weights_account_));
  TONNAGE_TRY(base_.transfer(base_account_));
  lease_.emplace(lease_account_, use_, Bytes(), 1.0, wire::kSegmentSlack);
  return Status::ok();
}

void DeviceShare::end(Bytes peak, Bytes kept, std::optional<Bytes> reserved) {
  if (reserved) {
    reserved_ = *reserved;
    use_ = beside_ + reserved_;
    lease_->end(use_, peak);
  } else {
    lease_->end_unread(peak);
  }
  lease_->keep(kept);
}

void DeviceShare::trimmed(pid_t pid, Bytes kept, Bytes reserved) {
  use_ = use_of(pid, reserved);
  lease_->keep(kept);
  lease_->settle(use_);
}

// Between two batches the allocator has what it told, so that the rest is a context that grew.
void DeviceShare::look(pid_t pid, bool is_idle) {
  const auto use = driver_.process_use(pid);
  if (!use.is_ok()) return;
  use_ = *use;
  if (is_idle && lease_) beside_ = std::max(beside_, saturating_sub(use_, reserved_));
  if (lease_) {
    lease_->observe(use_);
  } else if (use_ > loading_.amount()) {
    loading_.merge(loading_account_.record(use_ - loading_.amount()));
  }
}

void DeviceShare::give_back() {
  lease_.reset();
  base_.release();
  weights_.release();
  loading_.release();
  beside_ = Bytes();
  reserved_ = Bytes();
  use_ = Bytes();
}

Bytes DeviceShare::charged() const {
  return base_.amount() + weights_.amount() + loading_.amount() + (lease_ ? lease_->amount() : Bytes());
}

}  // namespace tonnage::supervisor::detail
