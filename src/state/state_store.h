// SPDX-License-Identifier: Apache-2.0
// StateStore: what the server remembers over a restart: learned profiles, hints (ceilings of the
// degradation ladder and the like), incidents. SQLite in one folder.
//
// Promises:
//  1. What a call returned from survives a crash of the process; a crash of the machine may lose the
//     last of it, never the file (WAL, synchronous = NORMAL).
//  2. Never fails its caller: a folder that cannot be written, a file of another version, a damaged or
//     a locked one mean a store in memory, with one warning that says why. A later write that fails
//     (disk full) is dropped with a warning.
//  3. Hints are hints: whoever reads one probes before trusting it.
//  4. The newest kMaxIncidents incidents are kept.
// Writes are small and rare (a model was loaded, a ladder moved, something failed) and happen on the
// caller's thread: a thread of their own would cost more than the milliseconds it hides.
// Threads: one (the loop). Owns: the database. Two servers cannot share a folder: the second one finds
// it locked.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cost/profile_store.h"
#include "telemetry/log.h"

namespace tonnage::state {

inline constexpr std::size_t kMaxIncidents = 1000;

struct Incident {
  std::int64_t at_ms = 0;  // since the Unix epoch, from the caller's clock
  std::string kind;        // over_grant, worker_lost, poison_row, …
  std::string model;
  std::string detail;
};

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

  std::optional<std::string> hint(std::string_view fingerprint, std::string_view key);
  void put_hint(std::string_view fingerprint, std::string_view key, std::string_view value);

  void add_incident(const Incident& incident);
  std::vector<Incident> incidents(std::size_t newest);  // newest first

  bool is_persistent() const;

  struct Opened;  // known to this room's sources only
  StateStore(std::unique_ptr<Opened> opened, telemetry::Log& log);

 private:
  std::unique_ptr<Opened> opened_;
  telemetry::Log& log_;
};

}  // namespace tonnage::state
