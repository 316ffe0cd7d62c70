// SPDX-License-Identifier: Apache-2.0
#include "torch/script_model.h"

#include <c10/core/InferenceMode.h>
#include <torch/csrc/jit/ir/alias_analysis.h>
#include <torch/csrc/jit/passes/inliner.h>
#include <torch/csrc/jit/runtime/interpreter.h>
#include <torch/script.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "torch/archive.h"
#include "torch/tensors.h"

namespace tonnage::torch_worker {
namespace {

constexpr std::pair<std::string_view, c10::ScalarType> kPrecisions[] = {
    {"fp32", c10::ScalarType::Float}, {"bf16", c10::ScalarType::BFloat16}, {"fp16", c10::ScalarType::Half}};

// The module's return value as tensors, in the order of `docs`.
Result<std::vector<at::Tensor>> flatten(const c10::IValue& value, const std::vector<wire::TensorDoc>& docs) {
  std::vector<at::Tensor> out;
  if (value.isTensor()) {
    out.push_back(value.toTensor());
  } else if (value.isTuple()) {
    for (const c10::IValue& element : value.toTupleRef().elements()) {
      if (!element.isTensor())
        return internal("bad_output",
                        "element " + std::to_string(out.size()) + " of the returned tuple is not a tensor");
      out.push_back(element.toTensor());
    }
  } else if (value.isTensorList()) {
    for (const at::Tensor& element : value.toTensorVector()) out.push_back(element);
  } else if (value.isGenericDict()) {
    const auto dict = value.toGenericDict();
    if (docs.empty())
      return internal("bad_output", "the module returns a dict: name its outputs in model.toml");
    for (const wire::TensorDoc& doc : docs) {
      const auto found = dict.find(doc.name);
      if (found == dict.end() || !found->value().isTensor()) {
        return internal("bad_output", "the returned dict has no tensor called '" + doc.name + "'");
      }
      out.push_back(found->value().toTensor());
    }
  } else {
    return internal("bad_output", "the module returns " + value.tagKind() +
                                      "; allowed are a tensor, a tuple or list of tensors, and a dict");
  }
  return out;
}

// By input of forward(), without self: may the graph write to it? Shared memory is mapped read-only,
// so that a write would end the process.
std::vector<bool> inputs_written_to(const torch::jit::Module& module) {
  const auto graph = module.get_method("forward").graph()->copy();
  torch::jit::Inline(*graph);
  const torch::jit::AliasDb aliases(graph);
  std::vector<bool> written;
  for (std::size_t i = 1; i < graph->inputs().size(); ++i)
    written.push_back(aliases.hasWriters(graph->inputs()[i]));
  return written;
}

Status check_input_count(const torch::jit::Module& module, std::size_t sent) {
  if (sent == 0) return Status::ok();
  const auto& arguments = module.get_method("forward").function().getSchema().arguments();
  std::size_t required = 0;
  for (std::size_t i = 1; i < arguments.size(); ++i) required += arguments[i].default_value() ? 0U : 1U;
  if (sent >= required && sent <= arguments.size() - 1) return Status::ok();
  return invalid("wrong_inputs", "forward() takes " + std::to_string(arguments.size() - 1) +
                                     " inputs, model.toml names " + std::to_string(sent));
}

// A parameter that two modules share is one tensor here, and is converted once.
void convert_weight(at::Tensor weight, c10::ScalarType to) {
  if (weight.scalar_type() == c10::ScalarType::Float) weight.set_data(weight.detach().to(to));
}

}  // namespace

struct ScriptModel::State {
  c10::Device device = c10::Device(c10::DeviceType::CPU);
  torch::jit::Module module;
  std::vector<wire::TensorDoc> outputs;
  std::vector<bool> is_changed;            // by input: the graph may write to it
  std::optional<c10::ScalarType> reduced;  // of weights and arithmetic; empty: fp32, as it was exported
  std::string config;

  // An input where the module expects it: as it lies in shared memory, where nothing speaks against it.
  at::Tensor placed(const at::Tensor& input, bool must_be_copied) const {
    const bool is_cast = reduced && input.scalar_type() == c10::ScalarType::Float;
    const at::Tensor out = input.to(device, is_cast ? *reduced : input.scalar_type());
    return must_be_copied && out.is_same(input) ? out.clone() : out;
  }
};

ScriptModel::ScriptModel(std::unique_ptr<State> state) : state_(std::move(state)) {}
ScriptModel::~ScriptModel() = default;

Result<std::unique_ptr<ScriptModel>> ScriptModel::load(const wire::LoadDoc& doc, const std::string& device) {
  using Loaded = std::unique_ptr<ScriptModel>;
  TONNAGE_TRY(check_archive(doc.path, ArchiveKind::kScript));
  return guarded("bad_model_file", [&]() -> Result<Loaded> {
    // Without it the interpreter repacks every exception, a refused allocation too, into one text.
    FLAGS_torch_jit_enable_rethrow_caught_exception = true;
    auto state = std::make_unique<State>();
    torch::jit::ExtraFilesMap extra{{"config.json", ""}};
    state->device = c10::Device(device);
    // On a device the executor would compile a kernel per class of shapes, in the middle of a batch.
    torch::jit::FusionStrategy none;
    if (!state->device.is_cpu()) torch::jit::setFusionStrategy(none);
    state->module = torch::jit::load(doc.path, state->device, extra);
    state->module.eval();
    TONNAGE_TRY(check_input_count(state->module, doc.inputs.size()));
    state->is_changed = inputs_written_to(state->module);
    state->outputs = doc.outputs;
    state->config = extra["config.json"];
    return std::make_unique<ScriptModel>(std::move(state));
  });
}

Status ScriptModel::convert(std::string_view precision) {
  const auto* found =
      std::ranges::find(kPrecisions, precision, &std::pair<std::string_view, c10::ScalarType>::first);
  if (found == std::end(kPrecisions)) {
    return invalid("bad_load_doc", "precision '" + std::string(precision) + "'; allowed: fp32, bf16, fp16");
  }
  if (found->second == c10::ScalarType::Float) return Status::ok();
  return guarded("bad_model_file", [&] {
    for (const at::Tensor& weight : state_->module.parameters()) convert_weight(weight, found->second);
    for (const at::Tensor& buffer : state_->module.buffers()) convert_weight(buffer, found->second);
    state_->reduced = found->second;
    return Status::ok();
  });
}

Status ScriptModel::freeze() {
  return guarded("bad_model_file", [&] {
    state_->module = torch::jit::freeze(state_->module);
    return Status::ok();
  });
}

Result<Outputs> ScriptModel::run(const kit::RunView& view) {
  return guarded("model_error", [&]() -> Result<Outputs> {
    // Whatever the module does, no graph is kept: a module that stores its last output stays flat.
    const c10::InferenceMode inference_only;
    std::vector<c10::IValue> arguments;
    arguments.reserve(view.inputs.size());
    for (std::size_t i = 0; i < view.inputs.size(); ++i) {
      TONNAGE_ASSIGN(const c10::ScalarType type, torch_type(view.inputs[i].type));
      const bool must_be_copied = i < state_->is_changed.size() && state_->is_changed[i];
      arguments.emplace_back(state_->placed(wrap(view.inputs[i], type), must_be_copied));
    }
    TONNAGE_ASSIGN(std::vector<at::Tensor> tensors,
                   flatten(state_->module.forward(std::move(arguments)), state_->outputs));
    // Nothing of a device leaves it otherwise: the copy waits until the kernels are through.
    for (at::Tensor& tensor : tensors) tensor = tensor.defined() ? tensor.cpu() : tensor;
    return collect(std::move(tensors), state_->outputs, state_->reduced);
  });
}

std::map<std::string, std::string> ScriptModel::facts() const {
  const auto copied = std::count(state_->is_changed.begin(), state_->is_changed.end(), true);
  return {{"copied_inputs", std::to_string(copied)}};
}
const std::string& ScriptModel::config() const { return state_->config; }

}  // namespace tonnage::torch_worker
