// SPDX-License-Identifier: Apache-2.0
// "Did you mean": the nearest of the allowed words.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tonnage::config {

// The candidate with the fewest changed letters (insert, remove, replace, swap of neighbours), if it
// is near enough to be meant: at most a third of the word's letters, at least one.
std::optional<std::string> nearest_word(std::string_view word, std::span<const std::string> candidates);

// "did you mean 'x'?", or "allowed: a, b, c" where nothing is near.
std::string suggestion(std::string_view word, std::span<const std::string> candidates);

}  // namespace tonnage::config
