// SPDX-License-Identifier: Apache-2.0
#include "http/detail/body.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "http/detail/routes.h"

namespace tonnage::http {
namespace {

constexpr std::uint64_t kFirstChunkedBytes = 4096;

}  // namespace

Status Body::charge(std::uint64_t text_bytes) {
  const Bytes wanted(text_bytes + kBodySpare);
  if (wanted <= charge_.amount()) return Status::ok();
  Status status;
  if (charge_.account() == nullptr) {
    Result<memory::Charge> charged = service_.ingress().charge(wanted);
    if (charged) {
      charge_ = std::move(charged).value();
    } else {
      status = charged.status();
    }
  } else {
    status = charge_.grow_to(wanted);
  }
  if (!status.is_ok()) {
    return Status(Code::kOverloaded, "ingress_full",
                  fmt::format("no memory for a body of {} bytes now: {}", text_bytes, status.detail()))
        .with_retry_after(1);
  }
  // A new string instead of reserve(), which may take twice what it is asked for.
  std::string larger;
  larger.reserve(wanted.size());
  larger.append(text_);
  text_.swap(larger);
  return Status::ok();
}

Status Body::begin_fixed(std::uint64_t length) {
  clear();
  TONNAGE_TRY(check_body_size(length, service_));
  length_ = length;
  return charge(length);
}

Status Body::begin_chunked() {
  clear();
  chunked_ = true;
  return charge(kFirstChunkedBytes);
}

Status Body::on_chunk(std::uint64_t size) {
  // Compared, not charged: a size that was only announced holds nothing.
  return check_body_size(received_ + size, service_);
}

Status Body::on_data(std::string_view data) {
  const std::uint64_t needed = received_ + data.size();
  if (needed + kBodySpare > charge_.amount().count()) {
    const std::uint64_t doubled = std::min(2 * needed, service_.max_body().count());
    if (doubled <= needed || !charge(doubled).is_ok()) TONNAGE_TRY(charge(needed));
  }
  text_.append(data);
  received_ = needed;
  return Status::ok();
}

Status Body::take(std::string_view data, std::size_t& consumed) {
  if (chunked_) return decoder_.feed(data, *this, consumed);
  consumed = static_cast<std::size_t>(std::min<std::uint64_t>(length_ - received_, data.size()));
  text_.append(data.substr(0, consumed));
  received_ += consumed;
  return Status::ok();
}

bool Body::is_complete() const { return chunked_ ? decoder_.is_done() : received_ == length_; }

std::span<char> Body::room(std::size_t at_most) {
  const std::uint64_t missing = chunked_ ? 0 : length_ - received_;
  const auto room = static_cast<std::size_t>(std::min<std::uint64_t>(missing, at_most));
  text_.resize(static_cast<std::size_t>(received_) + room);
  return std::span(text_).subspan(static_cast<std::size_t>(received_));
}

void Body::commit(std::size_t bytes) {
  received_ += bytes;
  text_.resize(static_cast<std::size_t>(received_));
}

std::uint64_t Body::progress_step() const {
  return std::max<std::uint64_t>(4096, (chunked_ ? received_ : length_) / 16);
}

std::string Body::take_text() { return std::exchange(text_, std::string()); }

memory::Charge Body::take_charge() { return std::exchange(charge_, memory::Charge()); }

void Body::clear() {
  std::string().swap(text_);
  charge_.release();
  charge_ = memory::Charge();
  decoder_.reset();
  chunked_ = false;
  length_ = 0;
  received_ = 0;
}

}  // namespace tonnage::http
