// SPDX-License-Identifier: Apache-2.0
// Texts from a .jsonl file, sorted into the classes of the mix. A line is a JSON string or
// {"text": …, "tokens": n}; without tokens the length is estimated at 1.3 per word.
// Fails with: invalid_argument/bad_texts, naming file and line.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "load/mix.h"

namespace tonnage::load {

struct Text {
  std::string text;  // UTF-8
  std::uint32_t tokens = 0;
};

struct Texts {
  std::vector<Text> all;
  std::array<std::vector<std::uint32_t>, kClasses> of_class;  // indices into `all`

  void add(Text text);
};

std::uint32_t estimate_tokens(std::string_view text);
Result<Texts> parse_texts(std::string_view lines, std::string_view file_name);
Result<Texts> read_texts(const std::string& file_name);

}  // namespace tonnage::load
