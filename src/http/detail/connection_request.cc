// SPDX-License-Identifier: Apache-2.0
// From a request's first byte to the call of the service.
#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <utility>

#include "http/detail/connection.h"
#include "http/detail/routes.h"

namespace tonnage::http {
namespace {

// A body that is not wanted is read away up to this size, so that the connection can be kept.
constexpr std::uint64_t kDiscardLimit = 1024 * 1024;

bool is_loopback(const Socket& socket) {
  boost::system::error_code error;
  const boost::asio::ip::address address = socket.remote_endpoint(error).address();
  if (error) return false;
  if (address.is_v6() && address.to_v6().is_v4_mapped()) {
    return boost::asio::ip::make_address_v4(boost::asio::ip::v4_mapped, address.to_v6()).is_loopback();
  }
  return address.is_loopback();
}

}  // namespace

bool Connection::read_head() {
  if (in_.is_empty()) return false;
  std::size_t consumed = 0;
  const HeadParser::Step step = parser_.parse(in_.view(), consumed);
  in_.consume(consumed);
  if (step == HeadParser::Step::kDone) {
    begin_request();
    return true;
  }
  if (step == HeadParser::Step::kFailed) {
    const HeadError& error = parser_.error();
    send_last(error_reply(error.http_status, error.reason, error.detail));
    return true;
  }
  if (!head_started_) arm(options().header_timeout);
  head_started_ = true;
  return false;
}

void Connection::begin_request() {
  RequestHead& head = parser_.head();
  ++request_;
  head_started_ = true;
  head_only_ = head.method == Method::kHead;
  keep_alive_ = head.keep_alive;
  Result<Target> target = parse_target(head.target);
  if (!target) return answer_unread(error_reply(target.status(), options().overload_status));
  target_ = std::move(target).value();
  if (target_.endpoint == Endpoint::kAdmin) head.peer_is_loopback = is_loopback(socket_);
  if (auto refused = refuse_early(head, target_, options(), owner_->service()))
    return answer_unread(std::move(*refused));
  if (takes_body(target_.endpoint)) return begin_body();
  answer_unread(answer_now(target_, options(), owner_->service()));
}

void Connection::begin_body() {
  const RequestHead& head = parser_.head();
  const Status status =
      head.chunked ? body_.begin_chunked() : body_.begin_fixed(head.content_length.value_or(0));
  if (!status.is_ok()) {
    body_.clear();
    return answer_unread(error_reply(status, options().overload_status));
  }
  phase_ = Phase::kBody;
  progress_mark_ = 0;
  if (!head.expect.empty() && in_.is_empty() && head.has_body()) send_continue();
}

bool Connection::read_body() {
  std::size_t consumed = 0;
  const Status status = body_.take(in_.view(), consumed);
  in_.consume(consumed);
  if (!status.is_ok()) {
    body_.clear();
    send_last(error_reply(status, options().overload_status));
    return true;
  }
  if (body_.is_complete()) {
    call_service();
    return true;
  }
  watch_progress();
  return false;
}

// The stall timeout starts anew only when a real part of the body has arrived: a byte a second must
// not hold memory for hours.
void Connection::watch_progress() {
  if (deadline_ != kNever && progress_mark_ > 0 && body_.received() < progress_mark_) return;
  progress_mark_ = body_.received() + body_.progress_step();
  arm(options().body_stall_timeout);
}

// Answers a request whose body, if it has one, nobody wants.
void Connection::answer_unread(OutgoingReply reply) {
  const RequestHead& head = parser_.head();
  const std::uint64_t length = head.content_length.value_or(0);
  if (head.chunked || length > kDiscardLimit || (length > 0 && !head.expect.empty()))
    return send_last(std::move(reply));
  if (length == 0) return send(std::move(reply));
  phase_ = Phase::kDiscard;
  discard_left_ = length;
  after_discard_ = std::move(reply);
  arm(options().body_stall_timeout);
}

bool Connection::read_discarded() {
  const auto take = static_cast<std::size_t>(std::min<std::uint64_t>(discard_left_, in_.view().size()));
  in_.consume(take);
  discard_left_ -= take;
  if (discard_left_ > 0) return false;
  send(*std::exchange(after_discard_, std::nullopt));
  return true;
}

void Connection::call_admin() {
  api::AdminCall call;
  call.kind = target_.admin;
  call.model = std::move(target_.model);
  call.body = body_.take_text();
  call.ingress = body_.take_charge();
  phase_ = Phase::kCalling;
  deadline_ = kNever;
  call_ = api::CallId();  // not cancelled when the client leaves
  owner_->service().administer(
      std::move(call), Completion<api::Reply>([self = shared_from_this(), request = request_](auto answer) {
        self->on_answer(request, std::move(answer));
      }));
}

void Connection::call_service() {
  if (target_.endpoint == Endpoint::kAdmin) return call_admin();
  RequestHead& head = parser_.head();
  api::InferCall call;
  call.dialect = target_.endpoint == Endpoint::kInvocations ? api::Dialect::kSageMaker : api::Dialect::kV2;
  call.model = std::move(target_.model);
  call.version = std::move(target_.version);
  call.content_type = std::move(head.content_type);
  call.accept = std::move(head.accept);
  call.json_length_header = std::move(head.json_length);
  call.body = body_.take_text();
  call.ingress = body_.take_charge();

  phase_ = Phase::kCalling;
  deadline_ = kNever;
  call_ = api::CallId();
  const std::uint64_t request = request_;
  const auto self = shared_from_this();
  const api::CallId id = owner_->service().infer(
      std::move(call), Completion<api::Reply>([self, request](Result<api::Reply> answer) {
        self->on_answer(request, std::move(answer));
      }));
  // It may have been answered inside the call.
  if (phase_ == Phase::kCalling && request_ == request) call_ = id;
}

void Connection::on_answer(std::uint64_t request, Result<api::Reply> answer) {
  if (phase_ != Phase::kCalling || request != request_) return;  // the client left meanwhile
  call_ = api::CallId();
  if (!answer) return send(error_reply(answer.status(), options().overload_status));
  OutgoingReply reply;
  reply.content_type = std::move(answer->content_type);
  reply.headers = std::move(answer->headers);
  reply.body = std::move(answer->body);
  reply.envelope = std::move(answer->envelope);
  send(std::move(reply));
}

}  // namespace tonnage::http
