// SPDX-License-Identifier: Apache-2.0
// FakeDevice: a driver's word about a device on which FakeProcesses lie; their models say `device`.
#pragma once

#include <algorithm>

#include "memory/device.h"
#include "testkit/fake_process.h"

namespace tonnage::testkit {

struct FakeDeviceState {
  FakeFactory& processes;
  Bytes total = mib(1000);
  Bytes others{};               // held there by nobody of ours
  bool names_processes = true;  // false: as in many containers
  bool answers = true;
};

class FakeDevice final : public memory::DevicePort {
 public:
  // `state` outlives it.
  explicit FakeDevice(const FakeDeviceState& state) : state_(state) {}

  Result<memory::DeviceReading> read() const override {
    if (!state_.answers) return Status(Code::kUnavailable, "nvml", "the driver does not answer");
    Bytes used = state_.others;
    for (const FakeProcess* process : state_.processes.living()) used += process->device_use();
    return memory::DeviceReading{state_.total, used, saturating_sub(state_.total, used)};
  }
  Result<Bytes> process_use(pid_t pid) const override {
    const auto& living = state_.processes.living();
    const auto found = std::ranges::find_if(living, [pid](const FakeProcess* p) { return p->pid() == pid; });
    if (found != living.end() && state_.names_processes) return (*found)->device_use();
    return Status(Code::kNotFound, "not_on_device", "the driver names no such process");
  }

 private:
  const FakeDeviceState& state_;
};

}  // namespace tonnage::testkit
