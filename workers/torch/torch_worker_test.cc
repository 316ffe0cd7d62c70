// SPDX-License-Identifier: Apache-2.0
// The real program on the wire, with small models that the build exports (testdata/make_models.py).
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>

#include "kit/blocking_front.h"
#include "testkit/example_messages.h"

namespace tonnage::torch_worker {
namespace {

using kit::BlockingFront;
using testkit::shape_of;

constexpr std::uint32_t kVocab = 100;
constexpr Bytes kPlenty = gib(1);
const std::string kModels = TONNAGE_TORCH_TEST_MODELS;

std::vector<wire::TensorDoc> id_inputs() {
  return {{"ids", tensor::DataType::kInt64, {-1, -1}}, {"mask", tensor::DataType::kInt64, {-1, -1}}};
}
std::vector<wire::TensorDoc> score_outputs() {
  return {{"scores", tensor::DataType::kFp32, {-1, 2}}, {"mean", tensor::DataType::kFp32, {-1, 64}}};
}
std::vector<wire::TensorDoc> one_float(const char* name) {
  return {{name, tensor::DataType::kFp32, {-1, 64}}};
}

wire::LoadDoc doc_of(const std::string& path, std::vector<wire::TensorDoc> inputs,
                     std::vector<wire::TensorDoc> outputs) {
  return {.model = "m",
          .version = "1",
          .route = "script",
          .path = path,
          .threads = 1,
          .inputs = std::move(inputs),
          .outputs = std::move(outputs)};
}

Result<BlockingFront> start(wire::LoadDoc doc) {
  return BlockingFront::start({.program = std::string(std::getenv("TONNAGE_BIN")) + "/tonnage-worker-torch",
                               .environment = {{"OMP_WAIT_POLICY", "passive"}},
                               .doc = std::move(doc)});
}
Result<BlockingFront> start_scores() {
  return start(doc_of(kModels + "/scores.pt", id_inputs(), score_outputs()));
}

// rows × length ids and a mask without padding; `id` < 0: a spread of valid ones.
wire::Run ids_run(BlockingFront& front, std::uint32_t rows, std::uint32_t length, Bytes grant,
                  std::int64_t id = -1) {
  const std::size_t count = std::size_t{rows} * length;
  const auto slot = as_elements<std::int64_t>(front.slot());
  const std::size_t second = (count + 7) / 8 * 8;
  for (std::size_t i = 0; i < count; ++i) slot[i] = id < 0 ? static_cast<std::int64_t>(i * 37 % kVocab) : id;
  for (std::size_t i = 0; i < count; ++i) slot[second + i] = 1;
  const auto shape = shape_of({rows, length});
  return {.slot = 0,
          .rows = rows,
          .length = length,
          .grant = grant,
          .inputs = {{tensor::DataType::kInt64, shape, 0, count * 8},
                     {tensor::DataType::kInt64, shape, second * 8, count * 8}}};
}

wire::Run floats_run(BlockingFront& front, std::uint32_t rows) {
  const auto slot = as_elements<float>(front.slot());
  std::iota(slot.begin(), slot.begin() + rows * 64, 0.0F);
  return {.slot = 0,
          .rows = rows,
          .length = 0,
          .grant = kPlenty,
          .inputs = {{tensor::DataType::kFp32, shape_of({rows, 64}), 0, rows * 64 * 4}}};
}

wire::Done done_of(Result<kit::FrontOutcome> outcome) {
  EXPECT_TRUE(outcome.is_ok()) << outcome.status().to_string();
  const auto* done = outcome.is_ok() ? std::get_if<wire::Done>(&*outcome) : nullptr;
  EXPECT_NE(nullptr, done) << (outcome.is_ok() ? std::get<wire::Error>(*outcome).text : "");
  return done == nullptr ? wire::Done{} : *done;
}
wire::Error error_of(Result<kit::FrontOutcome> outcome) {
  EXPECT_TRUE(outcome.is_ok()) << outcome.status().to_string();
  const auto* error = outcome.is_ok() ? std::get_if<wire::Error>(&*outcome) : nullptr;
  EXPECT_NE(nullptr, error) << "the run succeeded";
  return error == nullptr ? wire::Error{} : *error;
}

std::vector<float> floats_of(const BlockingFront& front, const wire::TensorLayout& layout) {
  const auto bytes = front.output(layout);
  EXPECT_TRUE(bytes.is_ok());
  std::vector<float> values(bytes->size() / sizeof(float));
  std::memcpy(values.data(), bytes->data(), bytes->size());
  return values;
}
std::vector<float> floats_in(const std::string& file) {
  std::ifstream in(kModels + "/" + file, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

class TorchWorker : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kModels + "/scores.pt")) {
      GTEST_SKIP() << "SKIPPED: no test models; they need the Python of build/venv at build time";
    }
  }
  // The test's own input: three rows of eleven, two positions of padding.
  wire::Run reference_run(BlockingFront& front) {
    wire::Run run = ids_run(front, 3, 11, kPlenty);
    const auto mask = as_elements<std::int64_t>(front.slot().subspan(run.inputs[1].offset));
    mask[31] = mask[32] = 0;
    return run;
  }
  void expect_reference(const BlockingFront& front, const wire::Done& done) {
    ASSERT_EQ(2U, done.outputs.size());
    for (const auto& [index, file] :
         {std::pair{0, "expected_scores.f32"}, std::pair{1, "expected_mean.f32"}}) {
      const auto values = floats_of(front, done.outputs[static_cast<std::size_t>(index)]);
      const auto expected = floats_in(file);
      ASSERT_EQ(expected.size(), values.size());
      for (std::size_t i = 0; i < values.size(); ++i)
        EXPECT_NEAR(expected[i], values[i], 1e-5) << file << " at " << i;
    }
  }
};

TEST_F(TorchWorker, AnswersWhatPythonAnswers) {
  auto front = start_scores();
  ASSERT_TRUE(front.is_ok()) << front.status().to_string();
  expect_reference(*front, done_of(front->run(reference_run(*front))));
}

TEST_F(TorchWorker, AnswersTheSameFrozenAndWithTwoThreads) {
  auto doc = doc_of(kModels + "/scores.pt", id_inputs(), score_outputs());
  doc.options["freeze"] = "true";
  doc.threads = 2;
  auto front = start(doc);
  ASSERT_TRUE(front.is_ok()) << front.status().to_string();
  expect_reference(*front, done_of(front->run(reference_run(*front))));
}

TEST_F(TorchWorker, OrdersTheAnswersOfADictByTheNamesThatTheFrontExpects) {
  auto front = start(doc_of(kModels + "/as_dict.pt", id_inputs(), score_outputs()));
  ASSERT_TRUE(front.is_ok()) << front.status().to_string();
  expect_reference(*front, done_of(front->run(reference_run(*front))));
}

TEST_F(TorchWorker, TellsWhatTheArchiveSaysOfItself) {
  auto front = start_scores();
  ASSERT_TRUE(front.is_ok());
  EXPECT_EQ("libtorch 2.13.0", front->loaded_doc().runtime.substr(0, 15));
  ASSERT_EQ(2U, front->loaded_doc().inputs.size());
  EXPECT_EQ("ids", front->loaded_doc().inputs[0].name);
  EXPECT_EQ("torch_worker_test", front->loaded_doc().facts.at("made_for"));
  // 100·64 + 64·256 + 256 + 256·64 + 64 + 64·2 + 2 floats.
  EXPECT_GE(front->loaded().weights, Bytes(39618 * 4));
  EXPECT_LE(front->loaded().weights, Bytes(39618 * 4) + kib(32));
}

TEST_F(TorchWorker, RepeatsItsPeaksExactlyAndLinearlyInPaddedTokens) {
  auto front = start_scores();
  ASSERT_TRUE(front.is_ok());
  (void)done_of(front->run(ids_run(*front, 1, 8, kPlenty)));
  const auto peak = [&](std::uint32_t rows, std::uint32_t length) {
    return done_of(front->run(ids_run(*front, rows, length, kPlenty))).peak.count();
  };
  const std::uint64_t one = peak(4, 100);
  EXPECT_EQ(one, peak(4, 100));
  EXPECT_EQ(one, peak(4, 100));
  // The 1,280 bytes per token (one hidden, one wide state) dominate; what is left is per row.
  const std::uint64_t twice = peak(4, 200);
  EXPECT_EQ(twice - one, peak(4, 300) - twice);
  EXPECT_EQ(peak(8, 200), 2 * peak(4, 200));
}

TEST_F(TorchWorker, ReturnsToItsLiveBytesAfterEveryRun) {
  auto front = start_scores();
  ASSERT_TRUE(front.is_ok());
  const Bytes live = done_of(front->run(ids_run(*front, 1, 8, kPlenty))).live;
  for (std::uint32_t rows = 1; rows <= 32; ++rows) {
    EXPECT_EQ(live, done_of(front->run(ids_run(*front, rows, 7 * rows, kPlenty))).live);
  }
}

TEST_F(TorchWorker, RefusesAboveTheGrantByTheFlagAndServesTheNextRun) {
  auto front = start_scores();
  ASSERT_TRUE(front.is_ok());
  const wire::Done good = done_of(front->run(ids_run(*front, 16, 128, kPlenty)));
  const wire::Error error =
      error_of(front->run(ids_run(*front, 16, 128, saturating_sub(good.peak, Bytes(1)))));
  EXPECT_EQ(wire::ErrorKind::kOverGrant, error.kind) << error.text;
  EXPECT_EQ(good.peak, error.needed);
  EXPECT_EQ(good.live, error.live);
  EXPECT_EQ(good.peak, done_of(front->run(ids_run(*front, 16, 128, good.peak))).peak)
      << "exactly the peak is enough";
}

TEST_F(TorchWorker, CallsARefusalOfTheKernelPressureAndServesTheNextRun) {
  auto front = start_scores();
  ASSERT_TRUE(front.is_ok());
  (void)done_of(front->run(ids_run(*front, 1, 8, kPlenty)));
  rlimit before{};
  ASSERT_EQ(0, ::prlimit(front->pid(), RLIMIT_DATA, nullptr, &before));
  const rlimit tight{mib(64).count(), before.rlim_max};  // less than the process has mapped already
  ASSERT_EQ(0, ::prlimit(front->pid(), RLIMIT_DATA, &tight, nullptr));
  const wire::Error error = error_of(front->run(ids_run(*front, 64, 1024, kPlenty)));
  EXPECT_EQ(wire::ErrorKind::kPressure, error.kind) << error.text;
  ASSERT_EQ(0, ::prlimit(front->pid(), RLIMIT_DATA, &before, nullptr));
  EXPECT_EQ(error.live, done_of(front->run(ids_run(*front, 64, 1024, kPlenty))).live);
}

TEST_F(TorchWorker, BlamesTheModelForAnIdOutsideItsVocabularyAndServesTheNextRun) {
  auto front = start_scores();
  ASSERT_TRUE(front.is_ok());
  const wire::Error error = error_of(front->run(ids_run(*front, 2, 8, kPlenty, 100000)));
  EXPECT_EQ(wire::ErrorKind::kModelError, error.kind);
  EXPECT_FALSE(error.text.empty());
  EXPECT_LE(error.text.size(), wire::kMaxText);
  expect_reference(*front, done_of(front->run(reference_run(*front))));
}

TEST_F(TorchWorker, CopiesAnInputThatTheModelChangesInPlace) {
  auto front = start(doc_of(kModels + "/changes_its_input.pt", one_float("x"), one_float("y")));
  ASSERT_TRUE(front.is_ok()) << front.status().to_string();
  EXPECT_EQ("1", front->loaded_doc().facts.at("copied_inputs"));
  const wire::Done done = done_of(front->run(floats_run(*front, 2)));
  EXPECT_EQ(6.0F, floats_of(*front, done.outputs.at(0)).at(5));
  EXPECT_EQ(5.0F, as_elements<float>(front->slot())[5]) << "shared memory is as the front wrote it";
}

TEST_F(TorchWorker, KeepsNoGraphForAModelThatStoresItsLastOutput) {
  auto front = start(doc_of(kModels + "/keeps_the_graph.pt", one_float("x"), one_float("y")));
  ASSERT_TRUE(front.is_ok()) << front.status().to_string();
  const Bytes live = done_of(front->run(floats_run(*front, 4))).live;
  for (int i = 0; i < 20; ++i) EXPECT_EQ(live, done_of(front->run(floats_run(*front, 4))).live);
}

TEST_F(TorchWorker, ShowsEveryByteThatAModelKeepsPerCall) {
  auto front = start(doc_of(kModels + "/hoards.pt", one_float("x"), one_float("y")));
  ASSERT_TRUE(front.is_ok()) << front.status().to_string();
  const Bytes live = done_of(front->run(floats_run(*front, 1))).live;
  for (std::uint64_t i = 1; i <= 10; ++i)
    EXPECT_EQ(live + kib(4) * i, done_of(front->run(floats_run(*front, 1))).live);
}

TEST_F(TorchWorker, RefusesAnOutputOfAnotherTypeThanExpected) {
  auto front = start(doc_of(kModels + "/returns_half.pt", one_float("x"), one_float("y")));
  ASSERT_TRUE(front.is_ok()) << front.status().to_string();
  const wire::Error error = error_of(front->run(floats_run(*front, 1)));
  EXPECT_EQ(wire::ErrorKind::kBadOutput, error.kind);
  EXPECT_NE(std::string::npos, error.text.find("FP16")) << error.text;
}

TEST_F(TorchWorker, SaysWhyAFileCannotBeLoaded) {
  const auto broken = start(doc_of(kModels + "/broken.pt", {}, {}));
  ASSERT_FALSE(broken.is_ok());
  EXPECT_EQ(0U, broken.status().detail().find("bad_model_file")) << broken.status().detail();
  const auto missing = start(doc_of(kModels + "/missing.pt", {}, {}));
  EXPECT_EQ(0U, missing.status().detail().find("bad_model_file")) << missing.status().detail();
}

TEST_F(TorchWorker, RefusesAModelThatTakesAnotherNumberOfInputs) {
  const auto front = start(doc_of(kModels + "/scores.pt", one_float("x"), score_outputs()));
  ASSERT_FALSE(front.is_ok());
  EXPECT_EQ(0U, front.status().detail().find("wrong_inputs")) << front.status().detail();
}

TEST_F(TorchWorker, RefusesToLoadAboveTheLoadLimit) {
  auto doc = doc_of(kModels + "/scores.pt", id_inputs(), score_outputs());
  doc.load_limit = kib(50);
  const auto front = start(doc);
  ASSERT_FALSE(front.is_ok());
  EXPECT_EQ(0U, front.status().detail().find("over_grant")) << front.status().detail();
}

}  // namespace
}  // namespace tonnage::torch_worker
