// SPDX-License-Identifier: Apache-2.0
// The real program on the wire, with the small models of testdata/ (make_models.py).
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "kit/blocking_front.h"
#include "testkit/example_messages.h"
#include "testkit/front_runs.h"
#include "testkit/sanitizer.h"

namespace tonnage::onnx_worker {
namespace {

namespace fs = std::filesystem;
using kit::BlockingFront;
using testkit::as_floats;
using testkit::done_of;
using testkit::error_of;
using testkit::floats_of;
using testkit::kPlenty;
using testkit::shape_of;

constexpr std::uint32_t kVocab = 50;
constexpr std::uint32_t kWidth = 8;
const std::string kModels = TONNAGE_ONNX_TEST_MODELS;

std::vector<wire::TensorDoc> id_inputs() {
  return {{"ids", tensor::DataType::kInt64, {-1, -1}}, {"mask", tensor::DataType::kInt64, {-1, -1}}};
}
std::vector<wire::TensorDoc> score_outputs() {
  return {{"scores", tensor::DataType::kFp32, {-1, 2}}, {"mean", tensor::DataType::kFp32, {-1, kWidth}}};
}
std::vector<wire::TensorDoc> one_float(const char* name) {
  return {{name, tensor::DataType::kFp32, {-1, kWidth}}};
}

wire::LoadDoc doc_of(const std::string& path, std::vector<wire::TensorDoc> inputs,
                     std::vector<wire::TensorDoc> outputs) {
  return {.model = "m",
          .version = "1",
          .route = "onnx",
          .path = path,
          .threads = 1,
          .inputs = std::move(inputs),
          .outputs = std::move(outputs)};
}
wire::LoadDoc scores_doc() { return doc_of(kModels + "/scores.onnx", id_inputs(), score_outputs()); }
wire::LoadDoc x_to_y(const std::string& name) {
  return doc_of(kModels + "/" + name + ".onnx", one_float("x"), one_float("y"));
}

Result<BlockingFront> start(wire::LoadDoc doc,
                            std::vector<std::pair<std::string, std::string>> environment = {}) {
  return BlockingFront::start({.program = std::string(std::getenv("TONNAGE_BIN")) + "/tonnage-worker-onnx",
                               .environment = std::move(environment),
                               .doc = std::move(doc)});
}
// "reason: text" of a worker that could not load.
std::string why(const Result<BlockingFront>& front) {
  return front.is_ok() ? "it loaded" : front.status().detail();
}

wire::Run ids_run(BlockingFront& front, std::uint32_t rows, std::uint32_t length, Bytes grant,
                  std::int64_t id = -1) {
  return testkit::write_ids(front, {rows, length, grant, kVocab, id});
}
wire::Run floats_run(BlockingFront& front, std::uint32_t rows) {
  return testkit::write_floats(front, rows, kWidth);
}

std::string contents(const std::string& name) {
  std::ifstream in(kModels + "/" + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Three rows of eleven, two positions of padding: what make_models.py computed.
wire::Run reference_run(BlockingFront& front) {
  wire::Run run = ids_run(front, 3, 11, kPlenty);
  const auto mask = as_elements<std::int64_t>(front.slot().subspan(run.inputs[1].offset));
  mask[31] = mask[32] = 0;
  return run;
}
void expect_floats(const std::string& file, const std::vector<float>& values) {
  const std::string bytes = contents(file);
  const auto expected = as_floats(bytes.data(), bytes.size());
  ASSERT_EQ(expected.size(), values.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    EXPECT_NEAR(expected[i], values[i], 1e-4) << file << " at " << i;
}
void expect_reference(BlockingFront& front) {
  const wire::Done done = done_of(front.run(reference_run(front)));
  ASSERT_EQ(2U, done.outputs.size());
  expect_floats("expected_scores.f32", floats_of(front, done.outputs[0]));
  expect_floats("expected_mean.f32", floats_of(front, done.outputs[1]));
}

// A folder for files that a test makes.
class Scratch {
 public:
  Scratch() : path_(fs::temp_directory_path() / ("tonnage-onnx-worker-" + std::to_string(::getpid()))) {
    fs::create_directories(path_);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { fs::remove_all(path_); }
  std::string write(const std::string& name, std::string_view text) const {
    std::ofstream(path_ / name, std::ios::binary)
        .write(text.data(), static_cast<std::streamsize>(text.size()));
    return path_ / name;
  }
  std::string path() const { return path_; }

 private:
  fs::path path_;
};

TEST(OnnxWorker, AnswersWhatPythonComputes) {
  auto front = start(scores_doc());
  ASSERT_TRUE(front.is_ok()) << why(front);
  expect_reference(*front);
}

TEST(OnnxWorker, AnswersTheSameWithTwoThreads) {
  auto doc = scores_doc();
  doc.threads = 2;
  auto front = start(doc);
  ASSERT_TRUE(front.is_ok()) << why(front);
  expect_reference(*front);
}

TEST(OnnxWorker, BindsInputsAndOutputsByName) {
  auto doc = scores_doc();
  std::swap(doc.inputs[0], doc.inputs[1]);
  doc.outputs = {score_outputs()[1]};
  auto front = start(doc);
  ASSERT_TRUE(front.is_ok()) << why(front);
  wire::Run run = reference_run(*front);
  std::swap(run.inputs[0], run.inputs[1]);
  const wire::Done done = done_of(front->run(run));
  ASSERT_EQ(1U, done.outputs.size());
  expect_floats("expected_mean.f32", floats_of(*front, done.outputs[0]));
}

TEST(OnnxWorker, TellsWhatTheFileSaysOfItself) {
  auto front = start(doc_of(kModels + "/scores.onnx", {}, {}));
  ASSERT_TRUE(front.is_ok()) << why(front);
  const wire::LoadedDoc& doc = front->loaded_doc();
  EXPECT_EQ("onnxruntime 1.", doc.runtime.substr(0, 14));
  ASSERT_EQ(2U, doc.inputs.size());
  EXPECT_EQ("ids", doc.inputs[0].name);
  EXPECT_EQ(tensor::DataType::kInt64, doc.inputs[0].type);
  EXPECT_EQ((std::vector<std::int64_t>{-1, -1}), doc.inputs[0].dims);
  EXPECT_EQ((std::vector<std::int64_t>{-1, 2}), doc.outputs.at(0).dims);
  EXPECT_EQ("onnx_worker_test", doc.facts.at("made_for"));
  EXPECT_EQ("ai.onnx 18", doc.facts.at("opsets"));
  EXPECT_GE(front->loaded().weights, Bytes(fs::file_size(kModels + "/scores.onnx")));
}

TEST(OnnxWorker, RepeatsItsPeaksExactlyAndLinearlyInPaddedTokens) {
  auto front = start(scores_doc());
  ASSERT_TRUE(front.is_ok()) << why(front);
  const auto peak = [&](std::uint32_t rows, std::uint32_t length) {
    return done_of(front->run(ids_run(*front, rows, length, kPlenty))).peak.count();
  };
  const std::uint64_t one = peak(4, 100);
  EXPECT_EQ(one, peak(4, 100));
  const std::uint64_t twice = peak(4, 200);
  EXPECT_EQ(twice - one, peak(4, 300) - twice);
  EXPECT_GE(twice - one, 400U * (32 + 8) * 4) << "a wide and a narrow state per token";
}

TEST(OnnxWorker, ReturnsToItsLiveBytesAfterEveryRun) {
  auto front = start(scores_doc());
  ASSERT_TRUE(front.is_ok()) << why(front);
  const Bytes live = done_of(front->run(ids_run(*front, 1, 8, kPlenty))).live;
  EXPECT_EQ(live, front->loaded().live);
  for (std::uint32_t rows = 1; rows <= 32; ++rows) {
    EXPECT_EQ(live, done_of(front->run(ids_run(*front, rows, 7 * rows, kPlenty))).live);
  }
}

TEST(OnnxWorker, RefusesAboveTheGrantByTheFlagAndServesTheNextRun) {
  auto front = start(scores_doc());
  ASSERT_TRUE(front.is_ok()) << why(front);
  const wire::Done good = done_of(front->run(ids_run(*front, 16, 128, kPlenty)));
  const wire::Error error =
      error_of(front->run(ids_run(*front, 16, 128, saturating_sub(good.peak, Bytes(1)))));
  EXPECT_EQ(wire::ErrorKind::kOverGrant, error.kind) << error.text;
  EXPECT_EQ(good.peak, error.needed);
  EXPECT_EQ(good.live, error.live);
  EXPECT_EQ(good.peak, done_of(front->run(ids_run(*front, 16, 128, good.peak))).peak)
      << "exactly the peak is enough";
}

// Whatever of a batch is refused first, the session survives it.
TEST(OnnxWorker, SurvivesARefusalOfAnyAllocationOfABatch) {
  auto front = start(scores_doc());
  ASSERT_TRUE(front.is_ok()) << why(front);
  const wire::Done good = done_of(front->run(ids_run(*front, 4, 50, kPlenty)));
  const std::uint64_t steps = 64;
  for (std::uint64_t i = 0; i < steps; ++i) {
    const Bytes grant(good.peak.count() * i / steps);
    const wire::Error error = error_of(front->run(ids_run(*front, 4, 50, grant)));
    EXPECT_EQ(wire::ErrorKind::kOverGrant, error.kind) << error.text;
    EXPECT_EQ(good.live, error.live);
    EXPECT_LE(error.peak, grant);
  }
  expect_reference(*front);
}

TEST(OnnxWorker, CallsARefusalOfTheKernelPressureAndServesTheNextRun) {
  if (testkit::kIsSanitized) GTEST_SKIP() << "not under a sanitizer (testkit/sanitizer.h)";
  auto front = start(scores_doc());
  ASSERT_TRUE(front.is_ok()) << why(front);
  (void)done_of(front->run(ids_run(*front, 1, 8, kPlenty)));
  rlimit before{};
  ASSERT_EQ(0, ::prlimit(front->pid(), RLIMIT_DATA, nullptr, &before));
  const rlimit tight{mib(1).count(), before.rlim_max};  // less than the process has mapped already
  ASSERT_EQ(0, ::prlimit(front->pid(), RLIMIT_DATA, &tight, nullptr));
  const wire::Error error = error_of(front->run(ids_run(*front, 256, 1024, kPlenty)));
  EXPECT_EQ(wire::ErrorKind::kPressure, error.kind) << error.text;
  ASSERT_EQ(0, ::prlimit(front->pid(), RLIMIT_DATA, &before, nullptr));
  EXPECT_EQ(error.live, done_of(front->run(ids_run(*front, 256, 1024, kPlenty))).live);
}

TEST(OnnxWorker, BlamesTheModelForAnIdOutsideItsVocabularyAndServesTheNextRun) {
  auto front = start(scores_doc());
  ASSERT_TRUE(front.is_ok()) << why(front);
  const wire::Error error = error_of(front->run(ids_run(*front, 2, 8, kPlenty, 100000)));
  EXPECT_EQ(wire::ErrorKind::kModelError, error.kind);
  EXPECT_NE(std::string::npos, error.text.find("100000")) << error.text;
  expect_reference(*front);
}

// Inputs are mapped read-only: a runtime that wrote to them would die here.
TEST(OnnxWorker, LeavesItsInputsAsTheyAre) {
  for (const std::string name : {"passes_through", "adds_in_place"}) {
    auto front = start(x_to_y(name));
    ASSERT_TRUE(front.is_ok()) << why(front);
    const wire::Done done = done_of(front->run(floats_run(*front, 2)));
    EXPECT_EQ(name == "passes_through" ? 5.0F : 6.0F, floats_of(*front, done.outputs.at(0)).at(5));
    EXPECT_EQ(5.0F, as_elements<float>(front->slot())[5]);
  }
}

TEST(OnnxWorker, RefusesAnOutputOfAnotherTypeThanExpected) {
  auto front = start(x_to_y("returns_half"));
  ASSERT_TRUE(front.is_ok()) << why(front);
  EXPECT_EQ(tensor::DataType::kFp16, front->loaded_doc().outputs.at(0).type) << "the front can tell at load";
  const wire::Error error = error_of(front->run(floats_run(*front, 1)));
  EXPECT_EQ(wire::ErrorKind::kBadOutput, error.kind);
  EXPECT_NE(std::string::npos, error.text.find("FP16")) << error.text;
}

TEST(OnnxWorker, ReadsWeightsBesideTheModel) {
  auto front = start(x_to_y("weights_beside"));
  ASSERT_TRUE(front.is_ok()) << why(front);
  const wire::Done done = done_of(front->run(floats_run(*front, 1)));
  EXPECT_EQ(10.0F, floats_of(*front, done.outputs.at(0)).at(5));
}

TEST(OnnxWorker, SaysWhyAFileCannotBeLoaded) {
  const Scratch scratch;
  const auto reason_of = [](const std::string& path) { return why(start(doc_of(path, {}, {}))); };
  const std::string cut = reason_of(scratch.write("cut.onnx", contents("scores.onnx").substr(0, 2200)));
  EXPECT_EQ(0U, cut.find("bad_model_file: the file is cut off")) << cut;
  const std::string text = reason_of(scratch.write("text.onnx", "this is no model"));
  EXPECT_EQ(0U, text.find("bad_model_file: the file is no ONNX model")) << text;
  const std::string missing = reason_of(kModels + "/missing.onnx");
  EXPECT_EQ(0U, missing.find("bad_model_file: cannot read ")) << missing;
  const std::string outside = reason_of(kModels + "/weights_outside.onnx");
  EXPECT_EQ(0U, outside.find("external_data: ")) << outside;
}

TEST(OnnxWorker, SaysWhichOperatorOrTypeTheRuntimeLacks) {
  const auto reason_of = [](const std::string& name) {
    return why(start(doc_of(kModels + "/" + name + ".onnx", {}, {})));
  };
  const std::string unknown = reason_of("unknown_operator");
  EXPECT_EQ(0U, unknown.find("unsupported_model: ")) << unknown;
  EXPECT_NE(std::string::npos, unknown.find("com.example:Frobnicate")) << unknown;
  const std::string future = reason_of("future_opset");
  EXPECT_EQ(0U, future.find("unsupported_model: the file asks for operators of ai.onnx 99")) << future;
  const std::string bf16 = reason_of("computes_in_bf16");
  EXPECT_EQ(0U, bf16.find("unsupported_model: ")) << bf16;
  const std::string text = reason_of("takes_text");
  EXPECT_EQ(0U, text.find("unsupported_model: input 'x'")) << text;
}

TEST(OnnxWorker, RefusesAPrecisionThatTheRuntimeCannotCompute) {
  auto doc = scores_doc();
  doc.options["precision"] = "bf16";
  EXPECT_EQ(0U, why(start(doc)).find("unsupported_precision: precision = \"bf16\"")) << why(start(doc));
  doc.options["precision"] = "fp32";
  EXPECT_TRUE(start(doc).is_ok());
}

TEST(OnnxWorker, NamesTheInputOrOutputThatTheFileLacks) {
  const auto path = kModels + "/scores.onnx";
  const std::string other = why(start(doc_of(path, one_float("x"), {})));
  EXPECT_EQ(0U, other.find("wrong_inputs: ")) << other;
  const std::string fewer = why(start(doc_of(path, {id_inputs()[0]}, {})));
  EXPECT_NE(std::string::npos, fewer.find("'mask'")) << fewer;
  const std::string output = why(start(doc_of(path, {}, one_float("logits"))));
  EXPECT_NE(std::string::npos, output.find("'logits'; it has 'scores', 'mean'")) << output;
}

TEST(OnnxWorker, RefusesToLoadAboveTheLoadLimit) {
  auto doc = scores_doc();
  const Bytes file(fs::file_size(doc.path));
  for (const Bytes limit : {kib(2), file, file + kib(1)}) {  // the file, the first and a later allocation
    doc.load_limit = limit;
    const std::string refused = why(start(doc));
    EXPECT_EQ(0U, refused.find("over_grant: loading needs ")) << refused;
  }
  doc.load_limit = file + kib(16);
  EXPECT_TRUE(start(doc).is_ok()) << why(start(doc));
}

TEST(OnnxWorker, SaysThatTheRuntimeIsMissing) {
  if (testkit::kIsSanitized) GTEST_SKIP() << "not under a sanitizer (testkit/sanitizer.h)";
  const Scratch scratch;
  (void)scratch.write("libonnxruntime.so.1", "no library");
  const std::string missing = why(start(scores_doc(), {{"LD_LIBRARY_PATH", scratch.path()}}));
  EXPECT_EQ(0U, missing.find("missing_runtime: cannot load libonnxruntime.so.1")) << missing;
}

TEST(OnnxWorker, TakesNothingButItselfAlongWhenItIsKilled) {
  auto front = start(scores_doc());
  ASSERT_TRUE(front.is_ok()) << why(front);
  ASSERT_EQ(0, ::kill(front->pid(), SIGKILL));
  EXPECT_FALSE(front->run(reference_run(*front)).is_ok());
  auto next = start(scores_doc());
  ASSERT_TRUE(next.is_ok()) << why(next);
  expect_reference(*next);
}

// Shapes that never come twice must not cost memory for ever: what is left of 300 of them is the allocator's
// slack, not a cache per shape.
TEST(OnnxWorker, StaysFlatOverThreeHundredShapes) {
  if (testkit::kIsSanitized) GTEST_SKIP() << "not under a sanitizer (testkit/sanitizer.h)";
  auto front = start(scores_doc());
  ASSERT_TRUE(front.is_ok()) << why(front);
  const Bytes live = done_of(front->run(ids_run(*front, 32, 512, kPlenty))).live;
  const Bytes before = front->trim()->resident;
  for (std::uint32_t i = 0; i < 300; ++i) {
    const wire::Done done = done_of(front->run(ids_run(*front, 1 + i % 32, 1 + (i * 131) % 512, kPlenty)));
    ASSERT_EQ(live, done.live);
  }
  EXPECT_LE(front->trim()->resident, before + mib(2));
}

}  // namespace
}  // namespace tonnage::onnx_worker
