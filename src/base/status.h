// SPDX-License-Identifier: Apache-2.0
// Status and Result: what crosses a room's border instead of an exception.
//
// Promises:
//  1. A Status carries a code (few, one-to-one with HTTP and gRPC codes), a stable reason word for
//     programs and metrics, and a detail for people. Tests compare code and reason, never detail.
//  2. A Result<T> holds exactly one of T or a non-ok Status.
// Threads: values, no shared state.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/bug.h"

namespace tonnage {

enum class Code {
  kOk,
  kInvalidArgument,   // 400
  kPermissionDenied,  // 403
  kNotFound,          // 404
  kMethodNotAllowed,  // 405
  kNotAcceptable,     // 406
  kAlreadyExists,     // 409
  kTooLarge,          // 413: never fits, or longer than what may be read
  kUnsupportedMedia,  // 415
  kCancelled,         // 499: the client left
  kInternal,          // 500
  kUnimplemented,     // 501
  kOverloaded,        // 503 or 429 (configured), with Retry-After
  kUnavailable,       // 503 (400 on V2 readiness)
  kDeadlineExceeded,  // 504
};

std::string_view code_name(Code code);
int http_status(Code code);

class [[nodiscard]] Status {
 public:
  Status() = default;
  // `reason` must be a string literal (or otherwise live for ever): snake_case, stable.
  Status(Code code, std::string_view reason, std::string detail)
      : code_(code), reason_(reason), detail_(std::move(detail)) {}

  static Status ok() { return {}; }

  bool is_ok() const { return code_ == Code::kOk; }
  Code code() const { return code_; }
  std::string_view reason() const { return reason_; }
  const std::string& detail() const { return detail_; }

  // Whole seconds for a Retry-After header; set on overload only.
  std::optional<int> retry_after_seconds() const { return retry_after_; }
  Status with_retry_after(int wait_seconds) && {
    retry_after_ = wait_seconds;
    return std::move(*this);
  }

  std::string to_string() const;

 private:
  Code code_ = Code::kOk;
  std::string_view reason_ = "ok";
  std::string detail_;
  std::optional<int> retry_after_;
};

inline Status invalid(std::string_view reason, std::string detail) {
  return {Code::kInvalidArgument, reason, std::move(detail)};
}
inline Status internal(std::string_view reason, std::string detail) {
  return {Code::kInternal, reason, std::move(detail)};
}

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}        // NOLINT(*-explicit-*)
  Result(Status status) : state_(std::in_place_index<1>, std::move(status)) {  // NOLINT
    TONNAGE_CHECK(!std::get<1>(state_).is_ok(), "a Result is made from a value or from an error");
  }

  bool is_ok() const { return state_.index() == 0; }
  explicit operator bool() const { return is_ok(); }

  T& value() & {
    TONNAGE_CHECK(is_ok(), std::get<1>(state_).to_string());
    return std::get<0>(state_);
  }
  const T& value() const& {
    TONNAGE_CHECK(is_ok(), std::get<1>(state_).to_string());
    return std::get<0>(state_);
  }
  T value() && {  // by value: a reference into a temporary would dangle in a range-for
    TONNAGE_CHECK(is_ok(), std::get<1>(state_).to_string());
    return std::get<0>(std::move(state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  // Status::ok() when a value is held.
  Status status() const { return is_ok() ? Status::ok() : std::get<1>(state_); }

 private:
  std::variant<T, Status> state_;
};

#define TONNAGE_CONCAT_INNER(a, b) a##b
#define TONNAGE_CONCAT(a, b) TONNAGE_CONCAT_INNER(a, b)
// Returns the Status from the enclosing function when `expr` is an error.
#define TONNAGE_TRY(expr)                                                                          \
  do {                                                                                             \
    if (::tonnage::Status tonnage_status = (expr); !tonnage_status.is_ok()) return tonnage_status; \
  } while (false)
// TONNAGE_ASSIGN(auto x, f()): declares x from a Result, or returns its Status.
#define TONNAGE_ASSIGN(decl, expr) TONNAGE_ASSIGN_INNER(TONNAGE_CONCAT(tonnage_result_, __LINE__), decl, expr)
#define TONNAGE_ASSIGN_INNER(name, decl, expr) \
  auto name = (expr);                          \
  if (!name.is_ok()) return name.status();     \
  decl = std::move(name).value()

}  // namespace tonnage
