// SPDX-License-Identifier: Apache-2.0
// Route: a way to load and run a model. One line of one table says everything the front knows about it.
//
// A new route is a line in route.cc and a worker program that speaks the wire; nothing else in the front
// asks for a route by name.
// Threads: any; the table is constant.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tonnage::model {

// How far a grant is held (shown by `inspect`).
enum class Tier : std::uint8_t {
  kExact,   // our allocator counts every tensor byte and throws above the grant
  kCapped,  // a limit of malloc or the kernel ends what goes beyond it; never claims to be exact
};

struct Route {
  std::string_view name;
  std::string_view program;  // of the worker, in the folder of the worker programs
  std::string_view file;     // of the model, in the version's folder; empty: none
  double load_factor = 1.0;  // bytes held while loading ÷ bytes of the file
  Tier tier = Tier::kExact;
  std::string_view other_file{};  // where `file` is not there; empty: none
};

// In the order in which a folder that holds several files is understood.
std::span<const Route> routes();
const Route* find_route(std::string_view name);
// Of a spec that was checked. Precondition: it exists.
const Route& route_of(std::string_view name);
// "trace", "script", …: for messages.
std::string route_names();
std::string_view tier_name(Tier tier);
// What the lease charges for a resident byte: memory that nobody counts may be more in the next batch.
double charged_per_byte(Tier tier);

}  // namespace tonnage::model
