// SPDX-License-Identifier: Apache-2.0
// A library that answers as libnvidia-ml.so.1 would on a machine with one GPU and forty processes, the last
// of which is 4242 with 700 MiB, the first 17 without a number.
#include <cstdint>

namespace {
struct Memory {
  std::uint64_t total;
  std::uint64_t free;
  std::uint64_t used;
};
struct Process {
  unsigned pid;
  std::uint64_t used;
  unsigned gpu_instance;
  unsigned compute_instance;
};
constexpr int kInvalidArgument = 2;
constexpr int kInsufficientSize = 7;
constexpr unsigned kProcesses = 40;
constexpr std::uint64_t kMib = 1024 * 1024;
int the_device;
}  // namespace

extern "C" {
int nvmlInit_v2() { return 0; }
int nvmlShutdown() { return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  if (index != 0) return kInvalidArgument;
  *device = &the_device;
  return 0;
}
int nvmlDeviceGetMemoryInfo(void*, Memory* memory) {
  *memory = {16384 * kMib, 12000 * kMib, 4384 * kMib};
  return 0;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void*, unsigned* count, Process* processes) {
  const unsigned room = *count;
  *count = kProcesses;
  if (room < kProcesses) return kInsufficientSize;
  for (unsigned i = 0; i < kProcesses; ++i) processes[i] = {17 + i, i == 0 ? ~0ULL : i * kMib, 0, 0};
  processes[kProcesses - 1] = {4242, 700 * kMib, 0, 0};
  return 0;
}
const char* nvmlErrorString(int code) {
  return code == kInvalidArgument ? "Invalid Argument" : "Unknown Error";
}
}
