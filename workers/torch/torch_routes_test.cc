// SPDX-License-Identifier: Apache-2.0
// Precisions, the gate behind a load, compiled programs, and files that are not what they should be.
#include "torch/worker_fixture.h"

namespace tonnage::torch_worker {
namespace {

class TorchRoutes : public TorchWorker {
 protected:
  wire::LoadDoc scores_doc(const std::string& file, std::string route = "trace") {
    auto doc = doc_of(kModels + "/" + file, id_inputs(), score_outputs());
    doc.route = std::move(route);
    doc.options["max_length"] = "64";
    return doc;
  }
  // The reason and text with which a load fails.
  std::string failure_of(const wire::LoadDoc& doc) {
    const auto front = start(doc);
    EXPECT_FALSE(front.is_ok()) << doc.path << " was loaded";
    return front.is_ok() ? "" : front.status().detail();
  }
  void expect_failure(const wire::LoadDoc& doc, const std::string& reason, const std::string& text) {
    const std::string failure = failure_of(doc);
    EXPECT_EQ(0U, failure.find(reason + ": ")) << failure;
    EXPECT_NE(std::string::npos, failure.find(text)) << failure;
  }
  // Within one part in a hundred of what Python answers in fp32.
  void expect_nearly_reference(const BlockingFront& front, const wire::Done& done) {
    ASSERT_EQ(2U, done.outputs.size());
    EXPECT_EQ(tensor::DataType::kFp32, done.outputs[1].type);
    const auto values = floats_of(front, done.outputs[1]);
    const auto expected = floats_in("expected_mean.f32");
    ASSERT_EQ(expected.size(), values.size());
    float largest = 0;
    for (std::size_t i = 0; i < values.size(); ++i)
      largest = std::max(largest, std::abs(expected[i] - values[i]));
    EXPECT_LT(largest, 1e-2F);
    EXPECT_GT(largest, 1e-6F) << "this was not computed in a lower precision";
  }
};

TEST_F(TorchRoutes, ConvertsTheWeightsOnceAndAnswersInTheDeclaredType) {
  auto doc = scores_doc("scripted.pt", "script");
  doc.options["precision"] = "bf16";
  auto front = start(doc);
  ASSERT_TRUE(front.is_ok()) << front.status().to_string();
  EXPECT_EQ("bf16", front->loaded_doc().facts.at("precision"));
  EXPECT_LE(front->loaded().weights, Bytes(39618 * 2) + kib(32)) << "half of what fp32 takes";
  expect_nearly_reference(*front, done_of(front->run(reference_run(*front))));
}

TEST_F(TorchRoutes, AnswersTheSameInALowerPrecisionWhenItIsFrozen) {
  auto doc = scores_doc("scripted.pt", "script");
  doc.options["precision"] = "bf16";
  doc.options["freeze"] = "true";
  auto front = start(doc);
  ASSERT_TRUE(front.is_ok()) << front.status().to_string();
  expect_nearly_reference(*front, done_of(front->run(reference_run(*front))));
}

TEST_F(TorchRoutes, CastsInsideTheGrant) {
  auto doc = doc_of(kModels + "/doubles.pt", one_float("x"), one_float("y"));
  doc.options["precision"] = "bf16";
  auto front = start(doc);
  ASSERT_TRUE(front.is_ok()) << front.status().to_string();
  const wire::Done done = done_of(front->run(floats_run(*front, 4)));
  EXPECT_EQ(tensor::DataType::kFp32, done.outputs.at(0).type);
  EXPECT_EQ(10.0F, floats_of(*front, done.outputs.at(0)).at(5));
  EXPECT_GE(done.peak, Bytes(4 * 64 * (2 + 4))) << "the result, and the result in its declared type";
  wire::Run tight = floats_run(*front, 4);
  tight.grant = saturating_sub(done.peak, Bytes(1));
  EXPECT_EQ(wire::ErrorKind::kOverGrant, error_of(front->run(tight)).kind);
}

TEST_F(TorchRoutes, ComparesAConvertedModelWithItselfWhenNobodyNamesRows) {
  auto doc = scores_doc("scripted.pt", "script");
  doc.options["precision"] = "bf16";
  auto front = start(doc);
  ASSERT_TRUE(front.is_ok()) << front.status().to_string();
  const auto& facts = front->loaded_doc().facts;
  EXPECT_GT(std::stod(facts.at("parity_min_cosine")), 0.999);
  EXPECT_LT(std::stod(facts.at("parity_min_cosine")), 1.0);
  EXPECT_GT(std::stod(facts.at("parity_max_difference")), 0.0);
}

TEST_F(TorchRoutes, RefusesAModelThatALowerPrecisionChanges) {
  auto doc = doc_of(kModels + "/loses_precision.pt", one_float("x"), one_float("y"));
  doc.options["precision"] = "bf16";
  expect_failure(doc, "parity", "the least cosine is ");
  doc.options["parity_min_cosine"] = "-1";
  EXPECT_TRUE(start(doc).is_ok()) << "who asks for it gets it";
}

TEST_F(TorchRoutes, RefusesATracedModelWhoseGraphNamesAnotherPrecision) {
  auto doc = scores_doc("scores.pt");
  doc.options["precision"] = "bf16";
  expect_failure(doc, "parity", "cannot be run: ");
}

TEST_F(TorchRoutes, NamesThePrecisionsThatThereAre) {
  auto doc = scores_doc("scores.pt");
  doc.options["precision"] = "int4";
  doc.options["held_out"] = kModels + "/held_out.json";
  expect_failure(doc, "bad_load_doc", "allowed: fp32, bf16, fp16");
}

TEST_F(TorchRoutes, RunsTheHeldOutRowsAndTellsWhatItSaw) {
  auto doc = scores_doc("scores.pt");
  doc.options["held_out"] = kModels + "/held_out.json";
  auto front = start(doc);
  ASSERT_TRUE(front.is_ok()) << front.status().to_string();
  EXPECT_EQ("16", front->loaded_doc().facts.at("parity_rows"));
  EXPECT_EQ("1.000000", front->loaded_doc().facts.at("parity_min_cosine"));
  EXPECT_LT(std::stod(front->loaded_doc().facts.at("parity_max_difference")), 1e-5);
  expect_reference(*front, done_of(front->run(reference_run(*front))));
}

TEST_F(TorchRoutes, RefusesAModelThatAnswersOtherwiseThanItsHeldOutRows) {
  auto doc = scores_doc("scores.pt");
  doc.options["held_out"] = kModels + "/held_out_of_another.json";
  expect_failure(doc, "parity", "allowed from 0.999 on");
  doc.options["held_out"] = kModels + "/absent.json";
  expect_failure(doc, "bad_held_out", "absent.json cannot be read");
}

TEST_F(TorchRoutes, SaysWhatAFileIsInsteadAndRunsNothingOfIt) {
  expect_failure(scores_doc("half.pt"), "bad_model_file", "half.pt is no archive of torch, or is cut off");
  expect_failure(scores_doc("broken.pt"), "bad_model_file", "broken.pt is no archive of torch");
  expect_failure(scores_doc("held_out.json"), "bad_model_file", "is no archive of torch");
  expect_failure(scores_doc(""), "bad_model_file", "is not a file");
  expect_failure(scores_doc("saved_by_torch.pt"), "bad_model_file", "what torch.save writes");
  EXPECT_FALSE(std::filesystem::exists(kModels + "/executed")) << "a pickle was executed";
}

class CompiledRoute : public TorchRoutes {
 protected:
  void SetUp() override {
    TorchRoutes::SetUp();
    if (!std::filesystem::exists(kModels + "/compiled.pt2"))
      GTEST_SKIP() << "SKIPPED: no compiled test model";
  }
  wire::LoadDoc compiled_doc(const std::string& file = "compiled.pt2") { return scores_doc(file, "aoti"); }
};

TEST_F(CompiledRoute, AnswersWhatPythonAnswersAtEveryLengthItWasCompiledFor) {
  auto doc = compiled_doc();
  doc.options["held_out"] = kModels + "/held_out.json";
  auto front = start(doc);
  ASSERT_TRUE(front.is_ok()) << front.status().to_string();
  EXPECT_EQ("1.000000", front->loaded_doc().facts.at("parity_min_cosine"));
  expect_reference(*front, done_of(front->run(reference_run(*front))));
  for (const auto& [rows, length] :
       {std::pair{1U, 1U}, std::pair{1U, 64U}, std::pair{256U, 1U}, std::pair{7U, 33U}}) {
    const wire::Done done = done_of(front->run(ids_run(*front, rows, length, kPlenty)));
    EXPECT_EQ(std::int64_t{rows}, done.outputs.at(0).shape.dim(0));
  }
}

TEST_F(CompiledRoute, HoldsItsGrantExactlyAndReportsItsWeights) {
  auto front = start(compiled_doc());
  ASSERT_TRUE(front.is_ok()) << front.status().to_string();
  EXPECT_GE(front->loaded().weights, Bytes(39618 * 4)) << "which the allocator does not see";
  const wire::Done good = done_of(front->run(ids_run(*front, 16, 64, kPlenty)));
  EXPECT_GT(good.peak, Bytes(16 * 64 * 64 * 4));
  EXPECT_EQ(good.peak, done_of(front->run(ids_run(*front, 16, 64, kPlenty))).peak);
  const wire::Error error =
      error_of(front->run(ids_run(*front, 16, 64, saturating_sub(good.peak, Bytes(1)))));
  EXPECT_EQ(wire::ErrorKind::kOverGrant, error.kind) << error.text;
  EXPECT_EQ(good.live, error.live);
  EXPECT_EQ(good.peak, done_of(front->run(ids_run(*front, 16, 64, good.peak))).peak);
}

// Each of these ends the process, or reads wrong memory, when it reaches the compiled program.
TEST_F(CompiledRoute, RefusesWhatTheProgramWouldNotSurvive) {
  auto front = start(compiled_doc());
  ASSERT_TRUE(front.is_ok()) << front.status().to_string();
  const auto refused = [&](const wire::Run& run, const std::string& text) {
    const wire::Error error = error_of(front->run(run));
    EXPECT_EQ(wire::ErrorKind::kBadRequest, error.kind) << error.text;
    EXPECT_NE(std::string::npos, error.text.find(text)) << error.text;
  };
  refused(ids_run(*front, 2, 8, kPlenty, 100), "ids is outside [0, 99]");
  refused(ids_run(*front, 2, 8, kPlenty, std::numeric_limits<std::int64_t>::max()), "ids is outside [0, 99]");
  refused(ids_run(*front, 2, 65, kPlenty), "a length of 65 where the program was compiled for 1 to 64");
  refused(ids_run(*front, 257, 1, kPlenty), "a batch of 257 where the program was compiled for 1 to 256");
  wire::Run run = ids_run(*front, 2, 8, kPlenty);
  run.inputs[1].shape = shape_of({2, 4});
  run.inputs[1].bytes /= 2;
  refused(run, "'mask' has 4 in dim 1, the batch is padded to 8");
  run = ids_run(*front, 2, 8, kPlenty);
  run.inputs[0].type = tensor::DataType::kInt32;
  run.inputs[0].bytes /= 2;
  refused(run, "INT32");
  expect_reference(*front, done_of(front->run(reference_run(*front))));
}

TEST_F(CompiledRoute, RefusesAFileForAnotherMachineOrAnotherTorch) {
  expect_failure(compiled_doc("compiled_elsewhere.pt2"), "wrong_machine",
                 "compiled for a CPU with avx4096, which this one lacks");
  expect_failure(compiled_doc("compiled_by_another_torch.pt2"), "wrong_machine",
                 "compiled for torch 1.2.3+cpu, this worker runs libtorch 2.13.0");
}

TEST_F(CompiledRoute, RefusesAFileThatIsCutOffOrOfAnotherRoute) {
  expect_failure(compiled_doc("half.pt2"), "bad_model_file",
                 "half.pt2 is no archive of torch, or is cut off");
  expect_failure(compiled_doc("scores.pt"), "bad_model_file", "is a TorchScript archive");
  expect_failure(scores_doc("compiled.pt2"), "bad_model_file", "a program that AOTInductor compiled");
}

TEST_F(CompiledRoute, RefusesInputsInAnotherOrderThanTheProgramTakesThem) {
  auto doc = compiled_doc();
  std::swap(doc.inputs[0], doc.inputs[1]);
  expect_failure(doc, "wrong_inputs", "in this order: ids INT64 [-1,-1], mask INT64 [-1,-1]");
}

}  // namespace
}  // namespace tonnage::torch_worker
