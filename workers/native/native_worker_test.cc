// SPDX-License-Identifier: Apache-2.0
// The real program on the wire, with the handlers of testdata/.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>

#include "kit/blocking_front.h"
#include "testkit/example_messages.h"
#include "testkit/front_runs.h"

namespace tonnage::native_worker {
namespace {

using kit::BlockingFront;
using testkit::done_of;
using testkit::error_of;
using testkit::kPlenty;
using Options = std::map<std::string, std::string>;

constexpr std::uint64_t kWidth = 64;
constexpr std::uint64_t kRow = kWidth * sizeof(float);
const std::string kModels = TONNAGE_NATIVE_TEST_MODELS;

wire::LoadDoc doc_of(const std::string& file, Options options = {}) {
  return {.model = "m",
          .version = "1",
          .route = "native",
          .path = kModels + "/" + file,
          .threads = 1,
          .inputs = {{"x", tensor::DataType::kFp32, {-1, 64}}},
          .outputs = {{"y", tensor::DataType::kFp32, {-1, 64}}},
          .options = std::move(options)};
}

Result<BlockingFront> start(wire::LoadDoc doc) {
  return BlockingFront::start({.program = std::string(std::getenv("TONNAGE_BIN")) + "/tonnage-worker-native",
                               .environment = {{"PATH", "/usr/bin:/bin"}, {"OMP_WAIT_POLICY", "passive"}},
                               .doc = std::move(doc)});
}
BlockingFront started(wire::LoadDoc doc) {
  auto front = start(std::move(doc));
  EXPECT_TRUE(front.is_ok()) << front.status().to_string();
  return std::move(front).value();
}
std::string refusal(wire::LoadDoc doc) {
  const auto front = start(std::move(doc));
  EXPECT_FALSE(front.is_ok()) << "it loaded";
  return std::string(front.status().detail());
}

// Rows whose first element is `first`; linear.py chooses its fault by that of row 0.
wire::Run run_of(BlockingFront& front, float first, std::uint32_t rows = 4, Bytes grant = kPlenty) {
  const auto slot = as_elements<float>(front.slot());
  for (std::size_t i = 0; i < rows * kWidth; ++i) slot[i] = i % kWidth == 0 ? first : float(i % kWidth);
  return {.slot = 0,
          .rows = rows,
          .length = 0,
          .grant = grant,
          .inputs = {{tensor::DataType::kFp32, testkit::shape_of({rows, 64}), 0, rows * kRow}}};
}

float value_at(const BlockingFront& front, const wire::Done& done, std::size_t index) {
  const auto bytes = front.output(done.outputs.at(0));
  float value = 0;
  std::memcpy(&value, bytes->data() + index * sizeof(float), sizeof value);
  return value;
}

void expect_works(BlockingFront& front) {
  const wire::Done done = done_of(front.run(run_of(front, 5)));
  EXPECT_EQ(11.0F, value_at(front, done, 0));
  EXPECT_EQ(2.0F * 63 + 1, value_at(front, done, 4 * kWidth - 1));
}

TEST(NativeWorker, AnswersWhatTheScriptComputes) {
  auto front = started(doc_of("linear.py"));
  expect_works(front);
  EXPECT_EQ("guarded", front.loaded_doc().facts.at("native_mode"));
  EXPECT_EQ("torch 2.13.0", front.loaded_doc().runtime.substr(0, 12));
  EXPECT_EQ(Bytes((64 * 64 + 64 + 1) * 4), front.loaded().weights) << "and the one float of STATE";
}

TEST(NativeWorker, CountsTensorsToTheByteAndRefusesAboveTheGrant) {
  auto front = started(doc_of("linear.py"));
  expect_works(front);
  const wire::Done good = done_of(front.run(run_of(front, 5)));
  EXPECT_EQ(good.peak, done_of(front.run(run_of(front, 5))).peak);
  const wire::Error error = error_of(front.run(run_of(front, 5, 4, saturating_sub(good.peak, Bytes(1)))));
  EXPECT_EQ(wire::ErrorKind::kOverGrant, error.kind) << error.text;
  EXPECT_EQ(good.peak, error.needed);
  EXPECT_EQ(good.live, error.live);
  EXPECT_EQ(good.peak, done_of(front.run(run_of(front, 5, 4, good.peak))).peak)
      << "exactly the peak is enough";
}

TEST(NativeWorker, KeepsNoGraphThatAGuardedHandlerWouldKeep) {
  auto front = started(doc_of("linear.py"));
  const Bytes live = done_of(front.run(run_of(front, 102))).live;
  for (int i = 0; i < 20; ++i) EXPECT_EQ(live, done_of(front.run(run_of(front, 102))).live);
  // What is appended to a list stays, but it is the output alone.
  const Bytes before = done_of(front.run(run_of(front, 101))).live;
  for (std::uint64_t i = 1; i <= 5; ++i)
    EXPECT_EQ(before + Bytes(4 * kRow) * i, done_of(front.run(run_of(front, 101))).live);
}

TEST(NativeWorker, ShowsTheGraphThatAHandlerKeepsAsIs) {
  auto front = started(doc_of("linear.py", {{"mode", "as-is"}}));
  EXPECT_EQ("as-is", front.loaded_doc().facts.at("native_mode"));
  const Bytes chain = done_of(front.run(run_of(front, 102))).live;
  EXPECT_GT(done_of(front.run(run_of(front, 102))).live, chain)
      << "the sum holds each batch that it was made of";
  const Bytes before = done_of(front.run(run_of(front, 101))).live;
  EXPECT_GT(done_of(front.run(run_of(front, 101))).live, before + Bytes(2 * 4 * kRow))
      << "the output, its input and what lies between";
}

TEST(NativeWorker, CollectsWhatOnlyACycleHoldsBeforeItSaysWhatIsLive) {
  auto front = started(doc_of("linear.py"));
  const Bytes live = done_of(front.run(run_of(front, 5))).live;
  EXPECT_EQ(live, done_of(front.run(run_of(front, 105))).live);
}

TEST(NativeWorker, SeesThePythonObjectsThatAreKeptOnlyInItsResidentBytes) {
  auto front = started(doc_of("linear.py"));
  const wire::Done first = done_of(front.run(run_of(front, 103)));
  wire::Done last;
  for (int i = 0; i < 10; ++i) last = done_of(front.run(run_of(front, 103)));
  EXPECT_EQ(first.live, last.live);
  EXPECT_GT(last.resident, first.resident + mib(20));
}

TEST(NativeWorker, LetsAHandlerChangeItsCopyOfTheInput) {
  auto front = started(doc_of("linear.py"));
  const wire::Done done = done_of(front.run(run_of(front, 104)));
  EXPECT_EQ(2.0F * 104 + 1, value_at(front, done, 0));
  EXPECT_EQ(104.0F, as_elements<float>(front.slot())[0]) << "shared memory is as the front wrote it";
}

TEST(NativeWorker, BlamesTheHandlerForWhatItRaisesAndServesTheNextRun) {
  auto front = started(doc_of("linear.py"));
  const Bytes live = done_of(front.run(run_of(front, 5))).live;
  wire::Run run = run_of(front, 107);
  as_elements<float>(front.slot())[70] = 999;
  const wire::Error error = error_of(front.run(run));
  EXPECT_EQ(wire::ErrorKind::kModelError, error.kind);
  EXPECT_EQ(0U, error.text.find("ValueError: a row is not allowed")) << error.text;
  EXPECT_NE(std::string::npos, error.text.find("linear.py:")) << error.text;
  EXPECT_EQ(live, error.live);
  expect_works(front);
}

TEST(NativeWorker, CallsARefusalOfTheKernelPressureAndServesTheNextRun) {
  auto front = started(doc_of("linear.py"));
  expect_works(front);
  rlimit before{};
  ASSERT_EQ(0, ::prlimit(front.pid(), RLIMIT_DATA, nullptr, &before));
  const rlimit tight{mib(900).count(), before.rlim_max};
  ASSERT_EQ(0, ::prlimit(front.pid(), RLIMIT_DATA, &tight, nullptr));
  const wire::Error error = error_of(front.run(run_of(front, 106)));
  EXPECT_EQ(wire::ErrorKind::kPressure, error.kind) << error.text;
  EXPECT_NE(std::string::npos, error.text.find("MemoryError")) << error.text;
  expect_works(front);
}

TEST(NativeWorker, RefusesOutputsThatAreNotTheModels) {
  auto front = started(doc_of("linear.py"));
  const std::map<float, const char*> words = {{201.0F, "3 rows, expected 4"},
                                              {202.0F, "FP64, expected FP32"},
                                              {203.0F, "returned str"},
                                              {204.0F, "2 outputs"},
                                              {205.0F, "no 'y'"},
                                              {206.0F, "size 3 in dim 1"},
                                              {207.0F, "not a dense"}};
  for (const auto& [fault, expected] : words) {
    const wire::Error error = error_of(front.run(run_of(front, fault)));
    EXPECT_EQ(wire::ErrorKind::kBadOutput, error.kind) << fault << ": " << error.text;
    EXPECT_NE(std::string::npos, error.text.find(expected)) << fault << ": " << error.text;
  }
  expect_works(front);
}

TEST(NativeWorker, TakesNumpyArraysForTensors) {
  auto front = started(doc_of("linear.py"));
  EXPECT_EQ(2.0F * 108 + 1, value_at(front, done_of(front.run(run_of(front, 108))), 0));
}

TEST(NativeWorker, IsAnsweredOnceByAHandlerThatForksAndComesBack) {
  auto front = started(doc_of("linear.py"));
  EXPECT_EQ(2.0F * 109 + 1, value_at(front, done_of(front.run(run_of(front, 109))), 0));
  expect_works(front);
}

TEST(NativeWorker, EndsWhereTheHandlerEndsTheProcess) {
  for (const float fault : {301.0F, 302.0F, 303.0F}) {
    auto front = started(doc_of("linear.py"));
    EXPECT_FALSE(front.run(run_of(front, fault)).is_ok()) << fault;
  }
}

TEST(NativeWorker, GivesAHandlerThatReadsBodiesJsonAndReadsItsJson) {
  auto front = started(doc_of("json_bodies.py"));
  EXPECT_EQ(15.0F, value_at(front, done_of(front.run(run_of(front, 5))), 0));
  EXPECT_EQ("input_fn, output_fn, predict_fn of the script", front.loaded_doc().facts.at("native_handler"));
}

TEST(NativeWorker, LoadsATorchScriptFileWhereTheScriptHasNoModelFn) {
  auto front = started(doc_of("scripted/inference.py"));
  EXPECT_EQ(15.0F, value_at(front, done_of(front.run(run_of(front, 5))), 0));
}

TEST(NativeWorker, LoadsATorchScriptFileAlone) {
  auto front = started(doc_of("scripted/model.pt"));
  EXPECT_EQ(15.0F, value_at(front, done_of(front.run(run_of(front, 5))), 0));
}

TEST(NativeWorker, LoadsAClassWithItsWeights) {
  auto front = started(doc_of("net.py", {{"entry", "net.py:Net"}, {"weights", "whole.pt"}}));
  EXPECT_EQ(20.5F, value_at(front, done_of(front.run(run_of(front, 5))), 0));
}

TEST(NativeWorker, FailsALoadOfWeightsThatDoNotFitAlsoWhereTheHandlerWouldNot) {
  for (const Options& options : {Options{}, Options{{"entry", "net.py:Net"}, {"weights", "half.pt"}}}) {
    const std::string why = refusal(doc_of("net.py", options));
    EXPECT_EQ(0U, why.find("wrong_weights")) << why;
    EXPECT_NE(std::string::npos, why.find("missing 1: shift; unexpected 1: stretch")) << why;
  }
}

TEST(NativeWorker, LoadsWeightsWhoseMissingKeysAreAllowed) {
  auto front = started(doc_of("net.py", {{"allow_missing", "shi*\nstretch"}}));
  EXPECT_EQ(20.0F, value_at(front, done_of(front.run(run_of(front, 5))), 0));
}

TEST(NativeWorker, SaysWhyAModelCannotBeLoaded) {
  const auto begins = [](const std::string& why, const char* reason, const char* word) {
    EXPECT_EQ(0U, why.find(reason)) << why;
    EXPECT_NE(std::string::npos, why.find(word)) << why;
  };
  begins(refusal(doc_of("missing.py")), "bad_model_file", "is not a file");
  begins(refusal(doc_of("raises_while_loading.py")), "load_failed", "another castle");
  begins(refusal(doc_of("too_large.py")), "out_of_memory", "model_fn");
  begins(refusal(doc_of("no_model/inference.py")), "bad_handler", "no model_fn");
  begins(refusal(doc_of("pickle.pt")), "bad_model_file", "no TorchScript file");
  begins(refusal(doc_of("net.py", {{"entry", "net.py:Network"}})), "bad_handler",
         "no class or function 'Network'");
  begins(refusal(doc_of("net.py", {{"entry", "net.py:Net"}, {"weights", "cut.pt"}})), "bad_model_file",
         "cut.pt");
  begins(refusal(doc_of("linear.py", {{"mode", "free"}})), "bad_load_doc", "guarded, as-is");
}

TEST(NativeWorker, RefusesToLoadAboveTheLoadLimit) {
  auto doc = doc_of("large.py");
  doc.load_limit = mib(32);
  const std::string why = refusal(doc);
  EXPECT_EQ(0U, why.find("over_load_limit")) << why;
}

TEST(NativeWorker, NamesTheInterpreterThatCannotBeStartedOrLacksTorch) {
  const auto with = [](const char* python) {
    const auto front =
        BlockingFront::start({.program = std::string(std::getenv("TONNAGE_BIN")) + "/tonnage-worker-native",
                              .environment = {{"PATH", "/usr/bin:/bin"}, {"TONNAGE_PYTHON", python}},
                              .doc = doc_of("linear.py")});
    EXPECT_FALSE(front.is_ok());
    return std::string(front.status().detail());
  };
  const std::string nowhere = with("/nowhere/python");
  EXPECT_EQ(0U, nowhere.find("no_python")) << nowhere;
  EXPECT_NE(std::string::npos, nowhere.find("/nowhere/python")) << nowhere;
}

}  // namespace
}  // namespace tonnage::native_worker
