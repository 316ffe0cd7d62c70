// SPDX-License-Identifier: Apache-2.0
// tonnage-worker-native: becomes a Python interpreter that runs the worker beside it (python/tonnage/native),
// isolated from the user's packages and variables.
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <string>

#include "kit/opening.h"

namespace tonnage::native_worker {
namespace {

// As the torch worker's main.cc has them, with the reasons.
constexpr const char* kMallocConf = "narenas:1,dirty_decay_ms:5000,muzzy_decay_ms:0,retain:false";
constexpr const char* kMalloc = "libjemalloc.so.2";
constexpr const char* kOnednnCache = "64";

std::string own_folder() {
  std::array<char, PATH_MAX> path{};
  const ssize_t size = ::readlink("/proc/self/exe", path.data(), path.size());
  const std::string program(path.data(), size < 0 ? 0 : static_cast<std::size_t>(size));
  return program.substr(0, program.find_last_of('/'));
}

// What --python names; else that of build/venv, of which a build folder is a neighbour; else the system's.
std::string interpreter(const std::string& folder) {
  const char* const named = std::getenv("TONNAGE_PYTHON");  // NOLINT(concurrency-mt-unsafe): no thread yet
  if (named != nullptr && *named != '\0') return named;
  std::string neighbour = folder + "/../../venv/bin/python";
  return ::access(neighbour.c_str(), X_OK) == 0 ? neighbour : "/usr/bin/python3";
}

void set_environment() {
  // NOLINTBEGIN(concurrency-mt-unsafe): no thread yet
  ::setenv("LD_PRELOAD", kMalloc, 1);
  ::setenv("MALLOC_CONF", kMallocConf, 1);
  ::setenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY", kOnednnCache, 0);
  ::setenv("LRU_CACHE_CAPACITY", kOnednnCache, 0);
  // NOLINTEND(concurrency-mt-unsafe)
}

// The front hears why, as of any other model that cannot be loaded.
int refuse(const std::string& why) {
  auto channel = kit::channel_from_environment();
  if (!channel) return kit::kNotStartedByTonnage;
  const auto opening = kit::open_session(*channel);
  return kit::refuse(*channel,
                     opening.is_ok() ? Status(Code::kUnavailable, "no_python", why) : opening.status());
}

int run() {
  const std::string folder = own_folder();
  const std::string start = folder + "/python/tonnage/native/start.py";
  if (::access(start.c_str(), R_OK) != 0)
    return refuse(start + " is missing: it is built beside this program");
  const std::string python = interpreter(folder);
  set_environment();
  // -I: neither PYTHON* variables nor the user's own packages; -B: no byte code is written beside models;
  // -u: what a script printed is in the log also when the process is killed.
  ::execlp(python.c_str(), python.c_str(), "-I", "-B", "-u", "-X", "faulthandler", start.c_str(), nullptr);
  return refuse(fmt::format("{} cannot be started ({}); --python names an interpreter that has torch", python,
                            std::strerror(errno)));
}

}  // namespace
}  // namespace tonnage::native_worker

int main() { return tonnage::native_worker::run(); }
