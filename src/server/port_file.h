// SPDX-License-Identifier: Apache-2.0
// The real ports as JSON, for whoever started the server with port 0.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/status.h"

namespace tonnage::server {

struct Ports {
  std::optional<std::uint16_t> http;
  std::optional<std::uint16_t> sagemaker;
  std::optional<std::uint16_t> metrics;
};

// Written whole (a rename), so that a reader never sees half. Error: port_file.
Status write_port_file(const std::string& path, const Ports& ports);

}  // namespace tonnage::server
