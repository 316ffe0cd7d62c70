// SPDX-License-Identifier: Apache-2.0
// JsonReader: pulls one JSON text apart, front to back, without building anything.
//
// Promises:
//  1. Strict RFC 8259, UTF-8 proven first; what is skipped is checked as well as what is read.
//  2. No recursion, depth at most kMaxJsonDepth; no memory beyond one string with escapes, so that a
//     body costs its own bytes whatever is in it.
//  3. The first error sticks: from then on every call gives false, and status() says what and where.
// Use: enter_object, then next_key until false; enter_array, then next_element until false; after each
// true, one value is read or skipped. Strings are views that live until the next string is read.
// Threads: one owner. Fails with: invalid_argument/bad_json, …/json_depth.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace tonnage::codec {

enum class JsonKind : std::uint8_t { kObject, kArray, kString, kNumber, kBool, kNull, kNothing };

struct JsonNumber {
  std::string_view text;
  bool is_integer = true;  // no fraction, no exponent
};

class JsonReader {
 public:
  explicit JsonReader(std::string_view text);

  JsonKind peek();
  bool enter_object();
  bool next_key(std::string_view& key);
  bool enter_array();
  bool next_element();
  bool read_string(std::string_view& text);
  bool read_number(JsonNumber& number);
  bool read_bool(bool& value);
  bool skip_value();
  // Nothing but white space is left.
  bool finish();

  bool is_ok() const { return status_.is_ok(); }
  const Status& status() const { return status_; }
  // Bytes not read yet; bounds what an array can hold.
  std::size_t remaining() const { return text_.size() - at_; }
  std::size_t position() const { return at_; }

  // A value may be read later than it was met.
  struct Bookmark {
    std::size_t at = 0;
    std::uint64_t started = 0;
    std::uint64_t objects = 0;
    int depth = 0;
  };
  Bookmark bookmark() const { return {at_, started_, objects_, depth_}; }
  void go_to(const Bookmark& mark);

 private:
  void skip_space();
  bool fail(std::string_view expected);
  bool enter(char open, bool is_object);
  bool next_item(char close);
  bool read_escaped(std::string_view& text);
  bool append_escape();
  bool append_code_point();
  bool read_hex(std::uint32_t& value);
  bool take_word(std::string_view word);
  bool skip_scalar(JsonKind kind);

  std::string_view text_;
  std::size_t at_ = 0;
  // One bit per open container, the innermost lowest: has it had an item, is it an object.
  std::uint64_t started_ = 0;
  std::uint64_t objects_ = 0;
  int depth_ = 0;
  std::string unescaped_;
  Status status_;
};

}  // namespace tonnage::codec
