// SPDX-License-Identifier: Apache-2.0
// DeviceReader: what a GPU's driver says of its memory, through NVML found at run time.
//
// Promises: nothing of NVIDIA's is needed to build or to start; where the library or the device is missing,
// open() says so. What a process holds includes its context (hundreds of MB), which no framework's allocator
// counts. Not run on a GPU yet: tested against a library that stands in. Threads: one at a time. Owns: the
// loaded library. Fails with: not_found/no_nvml, not_found/no_device, unavailable/nvml.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "base/bytes.h"
#include "base/status.h"

namespace tonnage::memory {

struct DeviceReading {
  Bytes total;
  Bytes used;  // by everybody
  Bytes free;
};

class DevicePort {
 public:
  virtual ~DevicePort() = default;
  virtual Result<DeviceReading> read() const = 0;
  // Of one process, with its context. Error: not_found/not_on_device; in a container the driver may name
  // processes by numbers that mean nothing here, or say nothing at all.
  virtual Result<Bytes> process_use(pid_t pid) const = 0;
};

class DeviceReader final : public DevicePort {
 public:
  static Result<DeviceReader> open(unsigned device, const std::string& library = "libnvidia-ml.so.1");
  DeviceReader(DeviceReader&&) noexcept;
  DeviceReader& operator=(DeviceReader&&) noexcept;
  ~DeviceReader() override;

  Result<DeviceReading> read() const override;
  Result<Bytes> process_use(pid_t pid) const override;

 private:
  struct State;
  explicit DeviceReader(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tonnage::memory
