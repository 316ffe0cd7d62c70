// SPDX-License-Identifier: Apache-2.0
#include "server/port_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>

namespace tonnage::server {
namespace {

std::string number_or_null(std::optional<std::uint16_t> port) {
  return port ? std::to_string(*port) : "null";
}

}  // namespace

Status write_port_file(const std::string& path, const Ports& ports) {
  const std::string partial = path + ".partial";
  std::ofstream file(partial, std::ios::trunc);
  file << fmt::format("{{\"http\":{},\"sagemaker\":{},\"metrics\":{},\"pid\":{}}}\n",
                      number_or_null(ports.http), number_or_null(ports.sagemaker),
                      number_or_null(ports.metrics), ::getpid());
  file.close();
  if (file.fail() || std::rename(partial.c_str(), path.c_str()) != 0) {
    return invalid("port_file", fmt::format("--port-file {}: {}", path, std::strerror(errno)));
  }
  return Status::ok();
}

}  // namespace tonnage::server
