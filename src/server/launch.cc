// SPDX-License-Identifier: Apache-2.0
#include "server/launch.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <system_error>

#include "memory/limits.h"
#include "model/route.h"

namespace tonnage::server {
namespace {

struct Programs {
  std::string directory;    // of the worker programs
  std::string python;       // interpreter of native workers; empty: their launcher looks for one
  std::uint32_t cores = 1;  // threads of a model that asks for all
};

supervisor::LaunchCommand launch_command(const model::ModelSpec& spec, const Programs& programs) {
  supervisor::LaunchCommand command;
  command.program = programs.directory + "/" + std::string(model::route_of(spec.route).program);
  const std::uint32_t threads = spec.threads == 0 ? programs.cores : spec.threads;
  command.environment = {
      {"PATH", "/usr/bin:/bin"},
      {"LANG", "C.UTF-8"},
      {"OMP_NUM_THREADS", std::to_string(threads)},
      // A waiting thread that spins loses 27 × beside one busy neighbour; one that sleeps loses 3 ×.
      {"OMP_WAIT_POLICY", "passive"},
  };
  if (!spec.device.empty()) {
    // Where containers have the driver's libraries; elsewhere the loader knows them.
    command.environment.emplace_back("LD_LIBRARY_PATH", "/usr/local/nvidia/lib64:/usr/local/nvidia/lib");
  }
  if (!programs.python.empty()) command.environment.emplace_back("TONNAGE_PYTHON", programs.python);
  std::error_code error;
  const auto temporary = std::filesystem::temp_directory_path(error);
  command.scratch_root = error ? "/tmp" : temporary.string();
  return command;
}

}  // namespace

pipeline::PipelineOptions worker_side(const ServerOptions& options) {
  pipeline::PipelineOptions pipeline;
  pipeline.compute_tokens = memory::detect_cores().cores;
  pipeline.launch = [programs = Programs{options.worker_directory, options.python, pipeline.compute_tokens}](
                        const model::ModelSpec& spec) { return launch_command(spec, programs); };
  return pipeline;
}

}  // namespace tonnage::server
