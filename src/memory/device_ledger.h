// SPDX-License-Identifier: Apache-2.0
// DeviceLedger: the budget of one device beside that of the host, and what the driver says of the device.
// Devices: all of them, each opened when the first model names it.
//
// Promises:
//  1. The budget is what was said, else kShareOfDevice of what the driver calls the device's total.
//  2. look() records what others hold there (all that is in use and is not charged here): a fact, which no
//     model of ours is promised a second time.
//  3. A device whose driver is missing is an error of the model that names it, and of nobody else.
// Does not: share compute. Not run on a GPU yet: tested against a driver that stands in.
// Threads: the loop. Owns: the budget, the reader. Fails with: those of memory/device.h, bad_device.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/function.h"
#include "base/status.h"
#include "memory/budget.h"
#include "memory/device.h"

namespace tonnage::memory {

inline constexpr double kShareOfDevice = 0.9;

class DeviceLedger {
 public:
  DeviceLedger(std::string name, Bytes limit, std::unique_ptr<DevicePort> driver);
  DeviceLedger(const DeviceLedger&) = delete;
  DeviceLedger& operator=(const DeviceLedger&) = delete;

  const std::string& name() const { return name_; }
  Budget& budget() { return budget_; }
  Account& root() { return budget_.root(); }
  const DevicePort& driver() const { return *driver_; }
  // As of the last look; nothing where the driver did not say.
  const std::optional<DeviceReading>& reading() const { return reading_; }
  void look();

 private:
  std::string name_;
  std::unique_ptr<DevicePort> driver_;
  Budget budget_;
  Charge others_;
  std::optional<DeviceReading> reading_;
};

class Devices {
 public:
  using Open = std::function<Result<std::unique_ptr<DevicePort>>(unsigned index)>;

  // `limit` of each device; zero: the share of its total.
  explicit Devices(Bytes limit, Open open = open_nvml);
  static Result<std::unique_ptr<DevicePort>> open_nvml(unsigned index);

  // "cuda:0", counted as nvidia-smi does. The ledger lives as long as this.
  Result<DeviceLedger*> ledger(const std::string& name);
  // What Budget tells, of each of them.
  void on_release(std::function<void()> fn);
  void on_shortage(std::function<void()> fn);
  void look();
  const std::map<std::string, std::unique_ptr<DeviceLedger>>& all() const { return ledgers_; }

 private:
  Bytes limit_;
  Open open_;
  std::function<void()> on_release_;
  std::function<void()> on_shortage_;
  std::map<std::string, std::unique_ptr<DeviceLedger>> ledgers_;
};

}  // namespace tonnage::memory
