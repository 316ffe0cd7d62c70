// SPDX-License-Identifier: Apache-2.0
#include "torch/aoti_model.h"

#include <c10/core/InferenceMode.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>

#include <filesystem>
#include <utility>
#include <vector>

#include "torch/archive.h"
#include "torch/compiled_limits.h"
#include "torch/libtorch.h"
#include "torch/tensors.h"

namespace tonnage::torch_worker {
namespace {

using Loader = torch::inductor::AOTIModelPackageLoader;

constexpr const char* kModelName = "model";  // of the program in the package, as the exporter calls it
constexpr const char* kConfigKey = "tonnage";

Result<std::string> config_of(const std::string& path) {
  const auto metadata = Loader::load_metadata_from_package(path, kModelName);
  const auto found = metadata.find(kConfigKey);
  if (found != metadata.end()) return found->second;
  return invalid(
      "bad_model_file",
      path +
          " does not say which shapes it works for: write it with `python -m tonnage.export --routes aoti`");
}

}  // namespace

struct AotiModel::State {
  std::string config;
  CompiledLimits limits;
  std::vector<wire::TensorDoc> outputs;
  Bytes weights;
  std::unique_ptr<Loader> loader;
};

AotiModel::AotiModel(std::unique_ptr<State> state) : state_(std::move(state)) {}
AotiModel::~AotiModel() = default;

Result<std::unique_ptr<AotiModel>> AotiModel::load(const wire::LoadDoc& doc) {
  using Loaded = std::unique_ptr<AotiModel>;
  TONNAGE_TRY(check_archive(doc.path, ArchiveKind::kCompiled));
  return guarded("bad_model_file", [&]() -> Result<Loaded> {
    auto state = std::make_unique<State>();
    TONNAGE_ASSIGN(state->config, config_of(doc.path));
    TONNAGE_ASSIGN(const wire::LoadedDoc said, wire::parse_loaded_doc(state->config));
    TONNAGE_TRY(check_machine(said.facts, {runtime_name(), cpu_capability(), cpu_flags()}));
    TONNAGE_ASSIGN(state->limits, CompiledLimits::from(said));
    TONNAGE_TRY(state->limits.check_agreement(doc.inputs));
    state->outputs = doc.outputs.empty() ? said.outputs : doc.outputs;
    // The compiled program copies its weights into memory of its own; the allocator never sees them.
    state->weights = Bytes(std::filesystem::file_size(doc.path));
    state->loader = std::make_unique<Loader>(doc.path, kModelName);
    return std::make_unique<AotiModel>(std::move(state));
  });
}

Result<Outputs> AotiModel::run(const kit::RunView& view) {
  TONNAGE_TRY(state_->limits.check(view));
  return guarded("model_error", [&]() -> Result<Outputs> {
    const c10::InferenceMode inference_only;
    std::vector<at::Tensor> inputs;
    for (const kit::Tensor& input : view.inputs) {
      TONNAGE_ASSIGN(const c10::ScalarType type, torch_type(input.type));
      inputs.push_back(wrap(input, type));
    }
    return collect(state_->loader->boxed_run(std::move(inputs)), state_->outputs, std::nullopt);
  });
}

const std::string& AotiModel::config() const { return state_->config; }
Bytes AotiModel::uncounted_weights() const { return state_->weights; }

}  // namespace tonnage::torch_worker
