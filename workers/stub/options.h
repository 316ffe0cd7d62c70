// SPDX-License-Identifier: Apache-2.0
// What a stub model does: a name sets the defaults, every behaviour can be set on every model.
// The words are those of the [stub] table; README.md explains them.
// Fails with: invalid_argument/bad_option, naming the option and what is allowed.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/status.h"
#include "base/time.h"

namespace tonnage::stub {

enum class Computation : std::uint8_t { kEcho, kMaskedMean, kSum };
enum class ThrowAs : std::uint8_t { kValue, kOom, kOomWords, kSticky };

struct Options {
  std::string model = "echo";
  Computation computation = Computation::kEcho;

  // Memory of a batch, above its outputs; over rows × padded length.
  Bytes bytes_per_row;
  Bytes bytes_per_token;
  Bytes bytes_per_token_squared;
  std::optional<std::int64_t> branch_on;  // a batch that holds this value …
  double branch_factor = 1;               // … costs so many times as much
  double lie_factor = 1;                  // after `lie_after` batches every batch costs so many times as much
  std::uint64_t lie_after = 0;
  Bytes cache_bytes_per_token;  // kept from the first batch of each shape on, until trim
  Bytes keep_bytes_per_call;    // kept for ever: a leak

  Duration sleep{};
  Duration sleep_per_token{};

  std::optional<std::int64_t> throw_on;  // a value in the first input
  ThrowAs throw_as = ThrowAs::kValue;
  std::optional<std::int64_t> abort_on;

  Bytes weights;
  Duration load_time{};
  bool fails_to_load = false;

  std::string device;         // pretended; empty: none
  std::string execution_log;  // a file; empty: none
  std::string mode;           // of `malicious`
};

Result<Options> parse_options(const std::map<std::string, std::string>& texts);

}  // namespace tonnage::stub
