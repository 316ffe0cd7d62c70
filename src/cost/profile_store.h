// SPDX-License-Identifier: Apache-2.0
// ProfileStorePort: where learned profiles and ceilings survive a restart; `state` implements it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tonnage::cost {

class ProfileStorePort {
 public:
  virtual ~ProfileStorePort() = default;
  virtual std::optional<std::string> load(std::string_view fingerprint) = 0;
  virtual void save(std::string_view fingerprint, std::string_view profile) = 0;
};

}  // namespace tonnage::cost
