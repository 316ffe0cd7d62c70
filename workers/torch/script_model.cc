// SPDX-License-Identifier: Apache-2.0
#include "torch/script_model.h"

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/jit/ir/alias_analysis.h>
#include <torch/csrc/jit/passes/inliner.h>
#include <torch/csrc/jit/runtime/interpreter.h>
#include <torch/script.h>
#include <torch/version.h>

#include <algorithm>
#include <exception>
#include <utility>

namespace tonnage::torch_worker {
namespace {

constexpr std::size_t kMaxErrorText = 600;

struct TypePair {
  tensor::DataType ours;
  c10::ScalarType theirs;
};
constexpr TypePair kTypes[] = {
    {tensor::DataType::kBool, c10::ScalarType::Bool},
    {tensor::DataType::kUint8, c10::ScalarType::Byte},
    {tensor::DataType::kUint16, c10::ScalarType::UInt16},
    {tensor::DataType::kUint32, c10::ScalarType::UInt32},
    {tensor::DataType::kUint64, c10::ScalarType::UInt64},
    {tensor::DataType::kInt8, c10::ScalarType::Char},
    {tensor::DataType::kInt16, c10::ScalarType::Short},
    {tensor::DataType::kInt32, c10::ScalarType::Int},
    {tensor::DataType::kInt64, c10::ScalarType::Long},
    {tensor::DataType::kFp16, c10::ScalarType::Half},
    {tensor::DataType::kFp32, c10::ScalarType::Float},
    {tensor::DataType::kFp64, c10::ScalarType::Double},
    {tensor::DataType::kBf16, c10::ScalarType::BFloat16},
};

Result<c10::ScalarType> torch_type(tensor::DataType type) {
  for (const TypePair& pair : kTypes) {
    if (pair.ours == type) return pair.theirs;
  }
  return invalid("bad_datatype",
                 "libtorch has no tensors of type " + std::string(tensor::datatype_name(type)));
}

Result<tensor::DataType> our_type(c10::ScalarType type) {
  for (const TypePair& pair : kTypes) {
    if (pair.theirs == type) return pair.ours;
  }
  return internal("bad_output",
                  std::string("an output has type ") + c10::toString(type) + ", which the wire cannot carry");
}

// TorchScript's texts carry a back trace of several kilobytes; the last lines name the cause.
std::string shortened(std::string_view text) {
  if (text.size() <= kMaxErrorText) return std::string(text);
  constexpr std::size_t kHead = 100;
  std::string out(text.substr(0, kHead));
  out += " … ";
  out += text.substr(text.size() - (kMaxErrorText - kHead));
  return out;
}

// Runs `body` (which returns a Result) and turns whatever the runtime throws into `reason`.
template <typename Body>
auto guarded(std::string_view reason, Body body) -> decltype(body()) {
  try {
    return body();
  } catch (const c10::Error& error) {
    return internal(reason, shortened(error.what_without_backtrace()));
  } catch (const std::exception& error) {
    return internal(reason, shortened(error.what()));
  } catch (...) {
    return internal(reason, "the runtime threw something that is not an exception");
  }
}

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

Status check_output(const at::Tensor& tensor, tensor::DataType type, const wire::TensorDoc& doc) {
  const auto where = "output '" + doc.name + "' ";
  if (type != doc.type) {
    return internal("bad_output", where + "has type " + std::string(tensor::datatype_name(type)) +
                                      ", expected " + std::string(tensor::datatype_name(doc.type)));
  }
  if (static_cast<std::size_t>(tensor.dim()) != doc.dims.size()) {
    return internal("bad_output", where + "has rank " + std::to_string(tensor.dim()) + ", expected " +
                                      std::to_string(doc.dims.size()));
  }
  for (std::size_t i = 0; i < doc.dims.size(); ++i) {
    const std::int64_t size = tensor.size(static_cast<std::int64_t>(i));
    if (doc.dims[i] >= 0 && doc.dims[i] != size) {
      return internal("bad_output", where + "has size " + std::to_string(size) + " in dim " +
                                        std::to_string(i) + ", expected " + std::to_string(doc.dims[i]));
    }
  }
  return Status::ok();
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

// Without a copy: from_blob wants a mutable pointer, but inputs_written_to() proved that nobody writes.
at::Tensor wrap(const InputTensor& input, c10::ScalarType type, bool is_changed) {
  void* data = const_cast<std::byte*>(input.data.data());
  at::Tensor tensor = at::from_blob(data, c10::IntArrayRef(input.dims.data(), input.dims.size()),
                                    at::TensorOptions().dtype(type));
  return is_changed ? tensor.clone() : tensor;
}

}  // namespace

struct Outputs::Storage {
  std::vector<at::Tensor> tensors;
};

Outputs::Outputs() = default;
Outputs::~Outputs() = default;
Outputs::Outputs(Outputs&&) noexcept = default;
Outputs& Outputs::operator=(Outputs&&) noexcept = default;

struct ScriptModel::State {
  torch::jit::Module module;
  std::vector<wire::TensorDoc> outputs;
  std::vector<bool> is_changed;  // by input: the graph may write to it
  std::string config;
};

ScriptModel::ScriptModel(std::unique_ptr<State> state) : state_(std::move(state)) {}
ScriptModel::~ScriptModel() = default;
ScriptModel::ScriptModel(ScriptModel&&) noexcept = default;
ScriptModel& ScriptModel::operator=(ScriptModel&&) noexcept = default;

Result<ScriptModel> ScriptModel::load(const ScriptOptions& options) {
  return guarded("bad_model_file", [&]() -> Result<ScriptModel> {
    at::set_num_threads(options.threads);
    at::set_num_interop_threads(1);
    // Without it the interpreter repacks every exception, a refused allocation too, into one text.
    FLAGS_torch_jit_enable_rethrow_caught_exception = true;
    auto state = std::make_unique<State>();
    torch::jit::ExtraFilesMap extra{{"config.json", ""}};
    state->module = torch::jit::load(options.path, c10::Device(c10::DeviceType::CPU), extra);
    state->module.eval();
    TONNAGE_TRY(check_input_count(state->module, options.inputs));
    state->is_changed = inputs_written_to(state->module);
    if (options.freeze) state->module = torch::jit::freeze(state->module);
    state->outputs = options.outputs;
    state->config = extra["config.json"];
    return ScriptModel(std::move(state));
  });
}

Result<Outputs> ScriptModel::run(std::span<const InputTensor> inputs) {
  return guarded("model_error", [&]() -> Result<Outputs> {
    // Whatever the module does, no graph is kept: a module that stores its last output stays flat.
    const c10::InferenceMode inference_only;
    std::vector<c10::IValue> arguments;
    arguments.reserve(inputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      TONNAGE_ASSIGN(const c10::ScalarType type, torch_type(inputs[i].type));
      arguments.emplace_back(wrap(inputs[i], type, i < state_->is_changed.size() && state_->is_changed[i]));
    }
    TONNAGE_ASSIGN(std::vector<at::Tensor> tensors,
                   flatten(state_->module.forward(std::move(arguments)), state_->outputs));
    if (!state_->outputs.empty() && tensors.size() != state_->outputs.size()) {
      return internal("bad_output", "the module returned " + std::to_string(tensors.size()) +
                                        " tensors, expected " + std::to_string(state_->outputs.size()));
    }
    Outputs out;
    out.storage_ = std::make_unique<Outputs::Storage>();
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      if (!tensors[i].defined() || !tensors[i].device().is_cpu())
        return internal("bad_output", "output " + std::to_string(i) + " is not a CPU tensor");
      at::Tensor tensor = tensors[i].contiguous();
      TONNAGE_ASSIGN(const tensor::DataType type, our_type(tensor.scalar_type()));
      if (!state_->outputs.empty()) TONNAGE_TRY(check_output(tensor, type, state_->outputs[i]));
      const auto sizes = tensor.sizes();
      out.tensors_.push_back({type,
                              {sizes.begin(), sizes.end()},
                              {static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()}});
      out.storage_->tensors.push_back(std::move(tensor));
    }
    return out;
  });
}

std::size_t ScriptModel::copied_inputs() const {
  return static_cast<std::size_t>(std::count(state_->is_changed.begin(), state_->is_changed.end(), true));
}
const std::string& ScriptModel::config() const { return state_->config; }

std::string ScriptModel::runtime_name() { return std::string("libtorch ") + TORCH_VERSION; }
std::string ScriptModel::cpu_capability() { return at::get_cpu_capability(); }

}  // namespace tonnage::torch_worker
