// SPDX-License-Identifier: Apache-2.0
#include "http/detail/head_parser.h"

#include <fmt/format.h>

#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <optional>

namespace tonnage::http {
namespace {

namespace beast_http = boost::beast::http;
using boost::beast::error_code;
using boost::beast::string_view;

// Takes the few fields we use; Beast checks the grammar, Content-Length and Transfer-Encoding.
class Parser final : public beast_http::basic_parser<true> {
 public:
  explicit Parser(RequestHead& head) : head_(head) {
    header_limit(kHeadLimit);
    body_limit(boost::none);  // checked by the connection, which can say more about it
  }

 private:
  void on_request_impl(beast_http::verb method, string_view, string_view target, int version,
                       error_code& error) override {
    // 1.2 or 2.0 in this form is nothing that anybody sends.
    if (version != 10 && version != 11) error = beast_http::error::bad_version;
    switch (method) {
      case beast_http::verb::get: head_.method = Method::kGet; break;
      case beast_http::verb::head: head_.method = Method::kHead; break;
      case beast_http::verb::post: head_.method = Method::kPost; break;
      default: head_.method = Method::kOther; break;
    }
    head_.target.assign(target.data(), target.size());
    head_.version = version;
  }
  void on_response_impl(int, string_view, int, error_code&) override {}

  void on_field_impl(beast_http::field field, string_view name, string_view value, error_code&) override {
    switch (field) {
      case beast_http::field::content_type: head_.content_type.assign(value.data(), value.size()); break;
      case beast_http::field::accept: append_list(head_.accept, value); break;
      case beast_http::field::content_encoding: append_list(head_.content_encoding, value); break;
      case beast_http::field::transfer_encoding: append_list(head_.transfer_encoding, value); break;
      case beast_http::field::expect: head_.expect.assign(value.data(), value.size()); break;
      case beast_http::field::authorization: head_.authorization.assign(value.data(), value.size()); break;
      case beast_http::field::forwarded:
      case beast_http::field::origin:
      case beast_http::field::via: head_.for_another = true; break;
      case beast_http::field::unknown:
        if (boost::beast::iequals(name, "X-Forwarded-For")) head_.for_another = true;
        if (boost::beast::iequals(name, "Inference-Header-Content-Length")) {
          head_.json_length.emplace(value.data(), value.size());
        }
        break;
      default: break;
    }
  }
  // Several header lines of one name are one list.
  static void append_list(std::string& list, string_view value) {
    if (!list.empty()) list += ", ";
    list.append(value.data(), value.size());
  }

  void on_header_impl(error_code&) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>&, error_code&) override {}
  std::size_t on_body_impl(string_view, error_code&) override { return 0; }
  void on_chunk_header_impl(std::uint64_t, string_view, error_code&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, string_view, error_code&) override { return 0; }
  void on_finish_impl(error_code&) override {}

  RequestHead& head_;
};

}  // namespace

struct HeadParser::State {
  RequestHead head;
  HeadError error;
  std::optional<Parser> parser;
  std::size_t consumed = 0;  // of this head, over all calls
  bool started = false;

  Step fail(int http_status, std::string_view reason, std::string detail) {
    error = {http_status, reason, std::move(detail)};
    return Step::kFailed;
  }
};

HeadParser::HeadParser() : state_(std::make_unique<State>()) { reset(); }
HeadParser::~HeadParser() = default;

void HeadParser::reset() {
  State& s = *state_;
  s.head = RequestHead();
  s.parser.emplace(s.head);
  s.consumed = 0;
  s.started = false;
}

RequestHead& HeadParser::head() { return state_->head; }
const HeadError& HeadParser::error() const { return state_->error; }

HeadParser::Step HeadParser::parse(std::string_view data, std::size_t& consumed) {
  State& s = *state_;
  consumed = 0;
  // Empty lines before a request are to be ignored (RFC 9112, 2.2).
  while (!s.started && consumed < data.size() && (data[consumed] == '\r' || data[consumed] == '\n'))
    ++consumed;
  s.consumed += consumed;
  const std::string_view rest = data.substr(consumed);
  if (!rest.empty()) {
    s.started = true;
    error_code error;
    const std::size_t used = s.parser->put(boost::asio::const_buffer(rest.data(), rest.size()), error);
    consumed += used;
    s.consumed += used;
    if (error && error != beast_http::error::need_more) {
      if (error == beast_http::error::header_limit) s.consumed = kHeadLimit;
      if (s.consumed < kHeadLimit)
        return s.fail(400, "bad_http", fmt::format("not HTTP: {}", error.message()));
    }
  }
  // Beast's limit is for what one call sees; many small pieces are summed up here.
  const std::size_t pending = s.parser->is_header_done() ? 0 : data.size() - consumed;
  if (s.consumed + pending >= kHeadLimit) {
    return s.fail(431, "headers_too_large",
                  fmt::format("the request line and headers exceed {} bytes", kHeadLimit));
  }
  if (!s.parser->is_header_done()) return Step::kNeedMore;
  s.head.chunked = s.parser->chunked();
  s.head.keep_alive = s.parser->keep_alive();
  if (const auto length = s.parser->content_length()) s.head.content_length = *length;
  return Step::kDone;
}

}  // namespace tonnage::http
