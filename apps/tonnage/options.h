// SPDX-License-Identifier: Apache-2.0
// What the command line says, as plain structs: one per subcommand. arguments.cc fills them (the only
// file that knows CLI11), a file per subcommand acts on them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/time.h"
#include "server/server.h"

namespace tonnage::app {

// Exit codes that scripts can use.
inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;  // it ran, and the answer is no
inline constexpr int kExitUsage = 2;   // the command line or a file it names is wrong

struct ServeOptions {
  server::ServerOptions server;
  bool check = false;         // --check: validate and leave
  bool print_config = false;  // --print-config: every value and where it came from
  std::string config_text;    // what --print-config prints; filled by arguments.cc
};

// Of every tool that loads one model in a worker of its own.
struct LoneModelOptions {
  std::string model;  // its folder
  bool json = false;
  std::string state_directory;  // profiles known already
  std::string worker_directory;
  std::string python;
  model::RouteChoice route;
  Bytes memory;  // for "largest admissible batch"; 0: detected
  std::uint32_t threads = 0;
};

struct InspectOptions : LoneModelOptions {};

struct ProfileOptions : LoneModelOptions {
  bool refresh = false;              // measure anew what the state directory knows
  Duration duration = seconds(120);  // for the grid
  std::string out = ".";             // folder of NAME-profile.json and .html
};

struct CompareOptions {
  std::vector<std::string> arguments;  // python/tonnage/compare reads them
  std::string programs;                // folder of this program and of the workers
  std::string python;
};

struct LoadOptions {
  std::string url = "http://127.0.0.1:8000";
  std::string model;                // empty: the only one that the server names
  double rate = 0;                  // requests/s, open loop; 0: saturate
  std::uint32_t concurrency = 64;   // --saturate N: outstanding requests
  std::string mix;                  // "80/15/5": percent short/medium/long; empty: texts as they come
  std::string spacing = "poisson";  // of arrivals at a rate: poisson, fixed
  std::string texts;                // JSON lines: a string, or {"text", "tokens"}
  Duration duration{0};             // --for; 0: until `requests`
  std::uint64_t requests = 0;       // 0: until `duration`
  std::uint64_t seed = 1;
  std::string save;  // file: one JSON line per request
  bool json = false;
  std::string dialect = "v2";        // v2, sagemaker
  std::string format = "binary";     // v2: json, binary; sagemaker: json, text, csv, jsonlines
  std::string payload = "text";      // text, ids (random ids of the mix's lengths)
  std::uint32_t vocabulary = 30522;  // ids are below it
  std::uint32_t max_length = 1024;   // longest row of ids
  double deadline_ms = 0;            // 0: the server's
  Duration warmup{0};                // answered, not counted
  std::uint32_t rows = 1;            // per request
  std::uint32_t connections = 0;     // 0: as many as needed
};

int run_serve(const ServeOptions& options);
int run_inspect(const InspectOptions& options);
int run_profile(const ProfileOptions& options);
int run_compare(const CompareOptions& options);
int run_load(const LoadOptions& options);

}  // namespace tonnage::app
