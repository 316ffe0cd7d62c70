// SPDX-License-Identifier: Apache-2.0
// HeadParser: the request line and headers, by Beast's parser fed by hand. Bodies are not its business
// (body_reader.h), so that every body byte can be charged before it is read.
//
// Promises: at most kHeadLimit bytes are looked at for one head, however they are cut; nothing thrown.
// Threads: the loop.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "http/detail/request_head.h"

namespace tonnage::http {

inline constexpr std::size_t kHeadLimit = 16 * 1024;

struct HeadError {
  int http_status = 400;  // 400 or 431
  std::string_view reason;
  std::string detail;
};

class HeadParser {
 public:
  HeadParser();
  ~HeadParser();
  HeadParser(const HeadParser&) = delete;
  HeadParser& operator=(const HeadParser&) = delete;

  enum class Step : std::uint8_t { kNeedMore, kDone, kFailed };
  // Looks at `data`; `consumed` tells how much of it is used up. What is not must be shown again,
  // with more behind it.
  Step parse(std::string_view data, std::size_t& consumed);
  // Valid after kDone.
  RequestHead& head();
  // Valid after kFailed.
  const HeadError& error() const;
  // For the next request of the connection.
  void reset();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tonnage::http
