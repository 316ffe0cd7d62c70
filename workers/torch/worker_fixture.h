// SPDX-License-Identifier: Apache-2.0
// The real program on the wire, with small models that the build exports (testdata/make_models.py).
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "kit/blocking_front.h"
#include "testkit/example_messages.h"
#include "testkit/front_runs.h"

namespace tonnage::torch_worker {

using kit::BlockingFront;
using testkit::done_of;
using testkit::error_of;
using testkit::floats_of;
using testkit::kPlenty;
using testkit::shape_of;

constexpr std::uint32_t kVocab = 100;
std::string models_folder();  // where the build exported them to
inline const std::string kModels = models_folder();

inline std::vector<wire::TensorDoc> id_inputs() {
  return {{"ids", tensor::DataType::kInt64, {-1, -1}}, {"mask", tensor::DataType::kInt64, {-1, -1}}};
}
inline std::vector<wire::TensorDoc> score_outputs() {
  return {{"scores", tensor::DataType::kFp32, {-1, 2}}, {"mean", tensor::DataType::kFp32, {-1, 64}}};
}
inline std::vector<wire::TensorDoc> one_float(const char* name) {
  return {{name, tensor::DataType::kFp32, {-1, 64}}};
}

inline wire::LoadDoc doc_of(const std::string& path, std::vector<wire::TensorDoc> inputs,
                            std::vector<wire::TensorDoc> outputs) {
  return {.model = "m",
          .version = "1",
          .route = "script",
          .path = path,
          .threads = 1,
          .inputs = std::move(inputs),
          .outputs = std::move(outputs)};
}

inline Result<BlockingFront> start(wire::LoadDoc doc) {
  return BlockingFront::start({.program = std::string(std::getenv("TONNAGE_BIN")) + "/tonnage-worker-torch",
                               .environment = {{"OMP_WAIT_POLICY", "passive"}},
                               .doc = std::move(doc)});
}
inline Result<BlockingFront> start_scores() {
  return start(doc_of(kModels + "/scores.pt", id_inputs(), score_outputs()));
}

inline wire::Run ids_run(BlockingFront& front, std::uint32_t rows, std::uint32_t length, Bytes grant,
                         std::int64_t id = -1) {
  return testkit::write_ids(front, {rows, length, grant, kVocab, id});
}
inline wire::Run floats_run(BlockingFront& front, std::uint32_t rows) {
  return testkit::write_floats(front, rows, 64);
}

inline std::vector<float> floats_in(const std::string& file) {
  std::ifstream in(kModels + "/" + file, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  return testkit::as_floats(bytes.data(), bytes.size());
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

}  // namespace tonnage::torch_worker
