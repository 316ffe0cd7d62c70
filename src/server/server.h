// SPDX-License-Identifier: Apache-2.0
// The whole server: puts the rooms together, runs the event loop, drains on SIGTERM.
//
// Promises:
//  1. The first thing that is wrong at start (port in use, budget too small, no models) is returned
//     as a Status that names the flag; nothing is left running.
//  2. A model that fails to load leaves the server up and not ready, with the reason.
//  3. SIGTERM and SIGINT: readiness is false and new work is refused (503), while the ports listen on and
//     what was begun is finished, at least `drain_least` and at most `drain`; a second signal ends at once.
// Threads: run() is the loop's thread. Owns: everything below it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/status.h"
#include "base/time.h"
#include "model/spec.h"

namespace tonnage::server {

// Defaults are those of docs/config.md, where each key has its unit and reason.
struct ServerOptions {
  std::string models;                  // --models: a repository, or one model's folder
  std::string model_control = "none";  // --model-control: explicit lets models come and go by call
  std::string load_models = "all";     // --load-models at start: all, none, or names with commas
  std::string admin_token_file;        // --admin-token-file: for calls from other machines

  Bytes memory;              // --memory: budget, taken literally; 0: (1 − headroom) × detected limit
  double headroom = 0.20;    // --headroom
  Bytes device_memory;       // --device-memory: budget of each device; 0: 90 % of its total
  Bytes ingress;             // --ingress: for bodies; 0: max(32 MiB, 10 % of the budget)
  Bytes max_body = mib(64);  // --max-body

  std::string host = "0.0.0.0";                      // --host
  std::optional<std::uint16_t> http_port = 8000;     // --http-port; 0: any free one; "off": none
  std::optional<std::uint16_t> sagemaker_port;       // --sagemaker-port; 8080 where SAGEMAKER_* is set
  std::optional<std::uint16_t> metrics_port = 8002;  // --metrics-port
  std::string port_file;      // --port-file: JSON {"http":…,"sagemaker":…,"metrics":…,"pid":…}
  int overload_status = 503;  // --overload-status: 503 or 429

  std::string state_directory;     // --state; the command line fills in the default; empty: in memory
  std::string worker_directory;    // --worker-dir: where tonnage-worker-* are; empty: beside this program
  std::string python;              // --python: interpreter of native workers
  std::string log_file;            // --log-file; empty: standard error
  std::string log_level = "info";  // --log-level: debug, info, warning, error

  model::RouteChoice route;             // --route, --precision: override every model's
  std::uint32_t threads = 0;            // --threads of each worker; 0: the model's, else all cores
  std::uint32_t text_threads = 1;       // --text-threads: of the tokenizer pool
  std::optional<model::Policy> policy;  // --policy: overrides every model's (dp, buckets, fifo)

  Duration v2_deadline = seconds(60);         // --v2-deadline
  Duration sagemaker_deadline = seconds(55);  // --sagemaker-deadline
  Duration drain = seconds(25);               // --drain
  Duration drain_least{0};                    // --drain-least: listens so long after SIGTERM in any case
  Duration header_timeout = seconds(10);      // --header-timeout
  Duration body_stall_timeout = seconds(30);  // --body-stall-timeout
  Duration keep_alive_timeout = seconds(75);  // --keep-alive-timeout
};

// Serves until told to stop. Errors are those of start.
Status run(const ServerOptions& options);

// Everything that run() would check before it starts a worker (`tonnage serve --check`).
Status check(const ServerOptions& options);

}  // namespace tonnage::server
