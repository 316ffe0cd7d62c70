// SPDX-License-Identifier: Apache-2.0
// StateStore: what the server remembers over a restart: what it learned about models. SQLite in one
// folder.
//
// Promises:
//  1. What a call returned from survives a crash of the process; a crash of the machine may lose the
//     last of it, never the file (WAL, synchronous = NORMAL).
//  2. Never fails its caller: a folder that cannot be written, a file of another version, a damaged or
//     a locked one mean a store in memory, with one warning that says why. A later write that fails
//     (disk full) is dropped with a warning.
// Writes are small and rare (a model was loaded, a ladder moved) and happen on the
// caller's thread: a thread of their own would cost more than the milliseconds it hides.
// Threads: one (the loop). Owns: the database. Two servers cannot share a folder: the second one finds
// it locked.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "cost/profile_store.h"
#include "telemetry/log.h"

namespace tonnage::state {

class StateStore final : public cost::ProfileStorePort {
 public:
  // Opens `directory`/state.sqlite3, making the folder where needed; empty: in memory, as asked for.
  // `log` outlives the store.
  static std::unique_ptr<StateStore> open(const std::string& directory, telemetry::Log& log);
  ~StateStore() override;
  StateStore(const StateStore&) = delete;
  StateStore& operator=(const StateStore&) = delete;

  std::optional<std::string> load(std::string_view fingerprint) override;
  void save(std::string_view fingerprint, std::string_view profile) override;

  struct Opened;  // known to this room's sources only
  StateStore(std::unique_ptr<Opened> opened, telemetry::Log& log);

 private:
  std::unique_ptr<Opened> opened_;
  telemetry::Log& log_;
};

}  // namespace tonnage::state
