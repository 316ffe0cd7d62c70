// SPDX-License-Identifier: Apache-2.0
#include "memory/device_ledger.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "base/device_name.h"

namespace tonnage::memory {

DeviceLedger::DeviceLedger(std::string name, Bytes limit, std::unique_ptr<DevicePort> driver)
    : name_(std::move(name)), driver_(std::move(driver)), budget_(name_, limit) {}

void DeviceLedger::look() {
  const auto now = driver_->read();
  if (!now.is_ok()) {
    reading_.reset();
    return;
  }
  reading_ = *now;
  others_.release();
  others_ = root().child("others").record(saturating_sub(reading_->used, root().used()));
}

Devices::Devices(Bytes limit, Open open) : limit_(limit), open_(std::move(open)) {}

Result<std::unique_ptr<DevicePort>> Devices::open_nvml(unsigned index) {
  TONNAGE_ASSIGN(DeviceReader reader, DeviceReader::open(index));
  std::unique_ptr<DevicePort> port = std::make_unique<DeviceReader>(std::move(reader));
  return port;
}

Result<DeviceLedger*> Devices::ledger(const std::string& name) {
  if (const auto known = ledgers_.find(name); known != ledgers_.end()) return known->second.get();
  const std::optional<unsigned> index = cuda_index(name);
  if (!index)
    return invalid("bad_device", fmt::format("'{}' is no device; allowed: cuda:0, cuda:1, …", name));
  TONNAGE_ASSIGN(std::unique_ptr<DevicePort> driver, open_(*index));
  TONNAGE_ASSIGN(const DeviceReading reading, driver->read());
  const Bytes limit = limit_ > Bytes() ? limit_ : scale(reading.total, kShareOfDevice);
  auto made = std::make_unique<DeviceLedger>(name, limit, std::move(driver));
  made->look();
  made->budget().on_release([this] {
    if (on_release_) on_release_();
  });
  made->budget().on_shortage([this] {
    if (on_shortage_) on_shortage_();
  });
  return ledgers_.emplace(name, std::move(made)).first->second.get();
}

void Devices::on_release(std::function<void()> fn) { on_release_ = std::move(fn); }
void Devices::on_shortage(std::function<void()> fn) { on_shortage_ = std::move(fn); }

void Devices::look() {
  for (auto& [name, ledger] : ledgers_) ledger->look();
}

}  // namespace tonnage::memory
