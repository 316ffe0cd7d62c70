// SPDX-License-Identifier: Apache-2.0
// ScriptedTokenizer: one id per byte; "bad" is refused; "wait" tells that it is being read and waits to be
// let go. Include it only where tonnage_text is linked.
#pragma once

#include <semaphore>
#include <string_view>

#include "text/tokenizer.h"

namespace tonnage::testkit {

class ScriptedTokenizer final : public text::Tokenizer {
 public:
  Result<text::Tokens> encode(std::string_view utf8, std::uint32_t, model::TooLong) const override {
    if (utf8 == "bad") return invalid("bad_text", "no good");
    if (utf8 == "wait") {
      entered.release();
      go.acquire();
    }
    return text::Tokens{std::vector<std::int64_t>(utf8.size(), 1), false};
  }
  std::size_t vocabulary_size() const override { return 2; }

  mutable std::counting_semaphore<> entered{0};
  mutable std::counting_semaphore<> go{0};
};

}  // namespace tonnage::testkit
