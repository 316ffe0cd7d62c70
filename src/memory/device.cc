// SPDX-License-Identifier: Apache-2.0
#include "memory/device.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

namespace tonnage::memory {
namespace {

// Own declarations of the few calls that are used; source: NVML API reference, version 12.
using NvmlReturn = int;
using NvmlDevice = void*;
constexpr NvmlReturn kSuccess = 0;
constexpr NvmlReturn kInsufficientSize = 7;
constexpr std::uint64_t kNotAvailable = ~0ULL;  // of usedGpuMemory
constexpr unsigned kMostProcesses = 1024;

struct NvmlMemory {
  std::uint64_t total;
  std::uint64_t free;
  std::uint64_t used;
};
struct NvmlProcess {
  unsigned pid;
  std::uint64_t used;
  unsigned gpu_instance;
  unsigned compute_instance;
};

struct Calls {
  NvmlReturn (*init)() = nullptr;
  NvmlReturn (*shutdown)() = nullptr;
  NvmlReturn (*handle)(unsigned, NvmlDevice*) = nullptr;
  NvmlReturn (*memory)(NvmlDevice, NvmlMemory*) = nullptr;
  NvmlReturn (*processes)(NvmlDevice, unsigned*, NvmlProcess*) = nullptr;
  const char* (*error_text)(NvmlReturn) = nullptr;
};

struct Library {
  explicit Library(const std::string& path) : handle(::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {}
  ~Library() {
    if (handle != nullptr) ::dlclose(handle);
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  template <typename Function>
  bool find(const char* name, Function& into) const {
    into = std::bit_cast<Function>(::dlsym(handle, name));
    return into != nullptr;
  }
  void* handle;
};

bool find_all(const Library& library, Calls& calls) {
  return library.find("nvmlInit_v2", calls.init) && library.find("nvmlShutdown", calls.shutdown) &&
         library.find("nvmlDeviceGetHandleByIndex_v2", calls.handle) &&
         library.find("nvmlDeviceGetMemoryInfo", calls.memory) &&
         library.find("nvmlDeviceGetComputeRunningProcesses_v3", calls.processes) &&
         library.find("nvmlErrorString", calls.error_text);
}

}  // namespace

struct DeviceReader::State {
  explicit State(const std::string& path) : library(path) {}
  ~State() {
    if (is_initialised) calls.shutdown();
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  Status failed(std::string_view what, NvmlReturn code) const {
    return {Code::kUnavailable, "nvml", fmt::format("{}: {}", what, calls.error_text(code))};
  }

  Library library;
  Calls calls;
  NvmlDevice device = nullptr;
  bool is_initialised = false;
};

DeviceReader::DeviceReader(std::unique_ptr<State> state) : state_(std::move(state)) {}
DeviceReader::DeviceReader(DeviceReader&&) noexcept = default;
DeviceReader& DeviceReader::operator=(DeviceReader&&) noexcept = default;
DeviceReader::~DeviceReader() = default;

Result<DeviceReader> DeviceReader::open(unsigned device, const std::string& library) {
  auto state = std::make_unique<State>(library);
  if (state->library.handle == nullptr) {
    return Status(Code::kNotFound, "no_nvml",
                  fmt::format("{} cannot be loaded: no NVIDIA driver here", library));
  }
  if (!find_all(state->library, state->calls)) {
    return Status(Code::kNotFound, "no_nvml",
                  fmt::format("{} lacks a call that is needed; driver 510 or newer has it", library));
  }
  if (const NvmlReturn code = state->calls.init(); code != kSuccess) return state->failed("nvmlInit", code);
  state->is_initialised = true;
  if (const NvmlReturn code = state->calls.handle(device, &state->device); code != kSuccess) {
    return Status(Code::kNotFound, "no_device",
                  fmt::format("device {}: {}", device, state->calls.error_text(code)));
  }
  return DeviceReader(std::move(state));
}

Result<DeviceReading> DeviceReader::read() const {
  NvmlMemory memory{};
  if (const NvmlReturn code = state_->calls.memory(state_->device, &memory); code != kSuccess) {
    return state_->failed("nvmlDeviceGetMemoryInfo", code);
  }
  return DeviceReading{Bytes(memory.total), Bytes(memory.used), Bytes(memory.free)};
}

Result<Bytes> DeviceReader::process_use(pid_t pid) const {
  std::vector<NvmlProcess> processes(16);
  auto count = static_cast<unsigned>(processes.size());
  NvmlReturn code = state_->calls.processes(state_->device, &count, processes.data());
  while (code == kInsufficientSize && processes.size() < kMostProcesses) {
    processes.resize(processes.size() * 2);
    count = static_cast<unsigned>(processes.size());
    code = state_->calls.processes(state_->device, &count, processes.data());
  }
  if (code != kSuccess) return state_->failed("nvmlDeviceGetComputeRunningProcesses", code);
  for (unsigned i = 0; i < count; ++i) {
    if (processes[i].pid != static_cast<unsigned>(pid)) continue;
    if (processes[i].used == kNotAvailable) {
      return Status(Code::kUnavailable, "nvml", "the driver does not tell what a process holds");
    }
    return Bytes(processes[i].used);
  }
  return Status(Code::kNotFound, "not_on_device", fmt::format("the driver names no process {}", pid));
}

}  // namespace tonnage::memory
