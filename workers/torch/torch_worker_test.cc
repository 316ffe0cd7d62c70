// SPDX-License-Identifier: Apache-2.0
// Route trace and script: answers, exact memory, failures. Other routes and precisions: torch_routes_test.cc.
#include <sys/resource.h>

#include "torch/worker_fixture.h"

namespace tonnage::torch_worker {

std::string models_folder() { return TONNAGE_TORCH_TEST_MODELS; }

namespace {

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

TEST_F(TorchWorker, SaysWhereItsModelLiesAndRefusesADeviceThatItDoesNotHave) {
  auto doc = doc_of(kModels + "/scores.pt", id_inputs(), score_outputs());
  const auto here = start(doc);
  ASSERT_TRUE(here.is_ok());
  EXPECT_EQ("cpu", here->loaded_doc().facts.at("device"));
  EXPECT_FALSE(here->loaded_doc().facts.contains("reserved_bytes"));
  doc.options["device"] = "cuda:99";
  const std::string why(start(doc).status().detail());
  EXPECT_TRUE(why.starts_with("no_cuda") || why.starts_with("no_device")) << why;
  doc.options["device"] = "gpu";
  EXPECT_EQ(0U, start(doc).status().detail().find("bad_load_doc: device 'gpu'"));
}

}  // namespace
}  // namespace tonnage::torch_worker
