// SPDX-License-Identifier: Apache-2.0
// model.toml → ModelSpec, and a model repository → the specs in it.
//
// Promises: unknown keys are errors that name the nearest valid key; every message names file, line
// where known, what was found and what is allowed. What the model file says itself is filled in when
// the worker has loaded it (merge_loaded) and must agree with what is written.
// Fails with: invalid_argument/bad_config, not_found/no_model.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "model/spec.h"
#include "wire/load_doc.h"

namespace tonnage::model {

// What the model in that folder is called, whether it can be read or not.
std::string model_name(const std::string& directory);
// `directory` is the model's folder (holds model.toml and <version>/).
Result<ModelSpec> parse_model_toml(std::string_view text, const std::string& directory);
// `choice` overrides what model.toml says.
Result<ModelSpec> load_model_directory(const std::string& directory, const RouteChoice& choice = {});

struct RepositoryEntry {
  std::string directory;
  Result<ModelSpec> spec;  // a broken model does not hide the others
  std::string name() const { return model_name(directory); }
};
// `root` holds model folders, or is one model folder itself. Sorted by name.
Result<std::vector<RepositoryEntry>> scan_repository(const std::string& root, const RouteChoice& choice = {});

wire::LoadDoc to_load_doc(const ModelSpec& spec);
// Takes over inputs and outputs that model.toml left out; a contradiction is bad_config.
Result<ModelSpec> merge_loaded(ModelSpec spec, const wire::LoadedDoc& loaded);
// What loading has to hold at once: the model file, or beside a script the largest file of the version.
Bytes weight_file_bytes(const ModelSpec& spec);
// Identity of what decides cost: file content (or stub options), route, precision, threads, runtime.
Result<std::string> fingerprint(const ModelSpec& spec, std::string_view runtime);

}  // namespace tonnage::model
