// SPDX-License-Identifier: Apache-2.0
#include "base/device_name.h"

#include <charconv>
#include <system_error>

namespace tonnage {

std::optional<unsigned> cuda_index(std::string_view device) {
  constexpr std::string_view kPrefix = "cuda:";
  constexpr std::size_t kMostDigits = 3;
  if (!device.starts_with(kPrefix)) return std::nullopt;
  const std::string_view digits = device.substr(kPrefix.size());
  unsigned index = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  if (error != std::errc() || end != digits.data() + digits.size() || digits.size() > kMostDigits)
    return std::nullopt;
  return index;
}

}  // namespace tonnage
