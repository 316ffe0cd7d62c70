// SPDX-License-Identifier: Apache-2.0
// Route: a way to load and run a model. One line of one table says everything the front knows about it.
//
// A new route is a line in route.cc and a worker program that speaks the wire; nothing else in the front
// asks for a route by name.
// Threads: any; the table is constant.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tonnage::model {

// How far a grant is held (shown by `inspect`).
enum class Tier : std::uint8_t {
  kExact,   // our allocator counts every tensor byte and throws above the grant
  kCapped,  // a limit of malloc or the kernel ends what goes beyond it; never claims to be exact
};

// Of weights and arithmetic; inputs and outputs keep the types that the model declares.
enum class Precision : std::uint8_t { kFp32, kBf16, kFp16 };

enum class PrecisionRule : std::uint8_t {
  kFp32Only,
  kConverted,  // one file; the worker converts the weights when it loads
  kPerFile,    // compiled in: model.bf16.pt2 beside model.pt2
};

struct Route {
  std::string_view name;
  std::string_view program;  // of the worker, in the folder of the worker programs
  std::string_view file;     // of the model, in the version's folder; empty: none
  double load_factor = 1.0;  // bytes held while loading ÷ bytes of the file
  Tier tier = Tier::kExact;
  PrecisionRule precisions = PrecisionRule::kFp32Only;
  std::string_view other_file{};  // taken where `file` is not there
  bool on_device = false;         // its worker can hold a model on a device
};

// In the order in which a folder that holds several files is understood.
std::span<const Route> routes();
const Route* find_route(std::string_view name);
// Of a spec that was checked. Precondition: it exists.
const Route& route_of(std::string_view name);
// Names of the model's file for this precision, best first; empty where the route has no file or no
// such precision.
std::vector<std::string> files_of(const Route& route, Precision precision);
bool has_precision(const Route& route, Precision precision);

// "trace", "script", …: for messages.
std::string route_names();
std::string device_route_names();  // of those that can have a device
std::string_view tier_name(Tier tier);
// What the lease charges for a resident byte: memory that nobody counts may be more in the next batch.
double charged_per_byte(Tier tier);
std::string_view precision_name(Precision precision);
std::optional<Precision> find_precision(std::string_view name);

// What the command line says of every model; what is empty is each model's own.
struct RouteChoice {
  std::string route{};
  std::optional<Precision> precision{};
};

}  // namespace tonnage::model
