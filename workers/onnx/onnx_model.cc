// SPDX-License-Identifier: Apache-2.0
#include "onnx/onnx_model.h"

#include <fmt/format.h>
#include <onnxruntime_c_api.h>

#include <algorithm>
#include <array>
#include <utility>

#include "onnx/counting_allocator.h"
#include "onnx/onnx_file.h"
#include "onnx/ort.h"
#include "onnx/tensor_docs.h"

namespace tonnage::onnx_worker {
namespace {

Result<Owned<OrtSessionOptions>> session_options(const Ort& ort, std::uint32_t threads) {
  OrtSessionOptions* raw = nullptr;
  TONNAGE_TRY(ort.status_of(ort->CreateSessionOptions(&raw), "runtime_error"));
  Owned<OrtSessionOptions> options(raw, ort->ReleaseSessionOptions);
  const auto set = [&](const char* key, const char* value) {
    return ort.status_of(ort->AddSessionConfigEntry(raw, key, value), "runtime_error");
  };
  TONNAGE_TRY(set("session.use_env_allocators", "1"));
  TONNAGE_TRY(set("session.intra_op.allow_spinning", "0"));
  TONNAGE_TRY(set("session.inter_op.allow_spinning", "0"));
  // Both keep memory between runs for the sake of shapes that come again; ours vary.
  TONNAGE_TRY(ort.status_of(ort->DisableMemPattern(raw), "runtime_error"));
  TONNAGE_TRY(ort.status_of(ort->DisableCpuMemArena(raw), "runtime_error"));
  TONNAGE_TRY(ort.status_of(ort->SetIntraOpNumThreads(raw, static_cast<int>(threads)), "runtime_error"));
  return options;
}

std::string opsets_of(const OnnxFile& file) {
  std::string text;
  for (const auto& [domain, version] : file.opsets) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", domain.empty() ? "ai.onnx" : domain, version);
  }
  return text;
}

// A file that is whole and still no session: an operator, a type or an opset that this runtime lacks.
Status unsupported(const Status& why, const OnnxFile& file) {
  return {Code::kUnimplemented, "unsupported_model",
          fmt::format("the file asks for operators of {}: {}", opsets_of(file), why.detail())};
}

// Facts of the exporter; nothing where they are absent or unreadable.
std::map<std::string, std::string> facts_of(const Ort& ort, OrtSession* session) {
  OrtModelMetadata* raw = nullptr;
  OrtAllocator* allocator = nullptr;
  if (!ort.status_of(ort->SessionGetModelMetadata(session, &raw), "runtime_error").is_ok()) return {};
  const Owned<OrtModelMetadata> metadata(raw, ort->ReleaseModelMetadata);
  char* text = nullptr;
  if (!ort.status_of(ort->GetAllocatorWithDefaultOptions(&allocator), "runtime_error").is_ok() ||
      !ort.status_of(ort->ModelMetadataLookupCustomMetadataMap(raw, allocator, "config.json", &text),
                     "runtime_error")
           .is_ok() ||
      text == nullptr) {
    return {};
  }
  auto doc = wire::parse_loaded_doc(text);
  allocator->Free(allocator, text);
  return doc.is_ok() ? std::move(doc->facts) : std::map<std::string, std::string>{};
}

// The weights of the file exist beside what is packed from them until the session is made. The runtime
// holds them by itself, so they are counted by hand.
class WhileLoading {
 public:
  WhileLoading(kit::MemoryMeter& meter, Bytes bytes)
      : meter_(meter), bytes_(bytes), fit_(meter.take(bytes.count())) {}
  WhileLoading(const WhileLoading&) = delete;
  WhileLoading& operator=(const WhileLoading&) = delete;
  ~WhileLoading() {
    if (fit_) meter_.give_back(bytes_.count());
  }
  bool fit() const { return fit_; }

 private:
  kit::MemoryMeter& meter_;
  Bytes bytes_;
  bool fit_;
};

std::vector<const char*> pointers(const std::vector<wire::TensorDoc>& docs) {
  std::vector<const char*> names;
  for (const wire::TensorDoc& doc : docs) names.push_back(doc.name.c_str());
  return names;
}

}  // namespace

// Destroyed from the bottom up: the session goes before what it was made of.
struct OnnxModel::State {
  State(Ort opened, Owned<OrtEnv> made, CountingAllocator installed, Owned<OrtMemoryInfo> described,
        Owned<OrtSession> loaded)
      : ort(std::move(opened)),
        allocator(std::move(installed)),
        env(std::move(made)),
        memory(std::move(described)),
        session(std::move(loaded)) {}

  Ort ort;
  CountingAllocator allocator;
  Owned<OrtEnv> env;
  Owned<OrtMemoryInfo> memory;  // of inputs
  Owned<OrtSession> session;
  wire::LoadedDoc doc{};
  Bytes file_bytes{};
  std::vector<const char*> input_names{};  // into doc
  std::vector<const char*> output_names{};
  std::vector<Owned<OrtValue>> outputs{};
};

OnnxModel::OnnxModel(std::unique_ptr<State> state) : state_(std::move(state)) {}
OnnxModel::OnnxModel(OnnxModel&&) noexcept = default;
OnnxModel& OnnxModel::operator=(OnnxModel&&) noexcept = default;
OnnxModel::~OnnxModel() = default;

Result<OnnxModel> OnnxModel::load(const wire::LoadDoc& doc, kit::MemoryMeter& meter) {
  TONNAGE_ASSIGN(const OnnxFile file, inspect_onnx(doc.path));
  const WhileLoading weights(meter, file.size);
  if (!weights.fit()) return Status(Code::kOverloaded, "over_grant", "the file exceeds the load limit");
  TONNAGE_ASSIGN(Ort ort, Ort::open());
  OrtEnv* raw_env = nullptr;
  // The runtime's own log repeats what its statuses say.
  TONNAGE_TRY(ort.status_of(ort->CreateEnv(ORT_LOGGING_LEVEL_FATAL, "tonnage", &raw_env), "runtime_error"));
  Owned<OrtEnv> env(raw_env, ort->ReleaseEnv);
  TONNAGE_ASSIGN(CountingAllocator allocator, CountingAllocator::install(ort, raw_env, meter));
  OrtMemoryInfo* raw_memory = nullptr;
  TONNAGE_TRY(ort.status_of(ort->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &raw_memory),
                            "runtime_error"));
  Owned<OrtMemoryInfo> memory(raw_memory, ort->ReleaseMemoryInfo);
  TONNAGE_ASSIGN(const Owned<OrtSessionOptions> options, session_options(ort, doc.threads));
  OrtSession* raw_session = nullptr;
  if (Status made = ort.status_of(ort->CreateSession(raw_env, doc.path.c_str(), options.get(), &raw_session),
                                  "runtime_error");
      !made.is_ok()) {
    return unsupported(made, file);
  }
  Owned<OrtSession> session(raw_session, ort->ReleaseSession);

  auto state = std::make_unique<State>(ort, std::move(env), std::move(allocator), std::move(memory),
                                       std::move(session));
  TONNAGE_ASSIGN(state->doc.inputs, bind_inputs(ort, raw_session, doc.inputs));
  TONNAGE_ASSIGN(state->doc.outputs, bind_outputs(ort, raw_session, doc.outputs));
  state->doc.runtime = "onnxruntime " + ort.version();
  state->doc.facts = facts_of(ort, raw_session);
  state->doc.facts["opsets"] = opsets_of(file);
  state->file_bytes = file.size;
  state->input_names = pointers(state->doc.inputs);
  state->output_names = pointers(state->doc.outputs);
  return OnnxModel(std::move(state));
}

Result<std::vector<kit::Tensor>> OnnxModel::run(std::span<const kit::Tensor> inputs) {
  State& s = *state_;
  std::vector<Owned<OrtValue>> wrapped;
  std::vector<const OrtValue*> arguments;
  for (const kit::Tensor& input : inputs) {
    TONNAGE_ASSIGN(Owned<OrtValue> value, wrap(s.ort, s.memory.get(), input));
    arguments.push_back(value.get());
    wrapped.push_back(std::move(value));
  }
  if (arguments.size() != s.input_names.size()) {
    return internal("model_error", fmt::format("the model takes {} inputs, {} came", s.input_names.size(),
                                               arguments.size()));
  }
  std::vector<OrtValue*> results(s.output_names.size(), nullptr);
  const Status ran =
      s.ort.status_of(s.ort->Run(s.session.get(), nullptr, s.input_names.data(), arguments.data(),
                                 arguments.size(), s.output_names.data(), results.size(), results.data()),
                      "model_error");
  s.outputs.clear();
  for (OrtValue* result : results) s.outputs.emplace_back(result, s.ort->ReleaseValue);
  TONNAGE_TRY(ran);

  std::vector<kit::Tensor> tensors;
  for (std::size_t i = 0; i < results.size(); ++i) {
    TONNAGE_ASSIGN(const kit::Tensor tensor, view_of(s.ort, results[i], s.doc.outputs[i].name));
    tensors.push_back(tensor);
  }
  return tensors;
}

void OnnxModel::release_outputs() { state_->outputs.clear(); }
const wire::LoadedDoc& OnnxModel::doc() const { return state_->doc; }
Bytes OnnxModel::file_bytes() const { return state_->file_bytes; }

}  // namespace tonnage::onnx_worker
