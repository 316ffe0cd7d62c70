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
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "kit/blocking_front.h"
#include "testkit/example_messages.h"

namespace tonnage::torch_worker {

using kit::BlockingFront;
using testkit::shape_of;

constexpr std::uint32_t kVocab = 100;
constexpr Bytes kPlenty = gib(1);
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

// rows × length ids and a mask without padding; `id` < 0: a spread of valid ones.
inline wire::Run ids_run(BlockingFront& front, std::uint32_t rows, std::uint32_t length, Bytes grant,
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

inline wire::Run floats_run(BlockingFront& front, std::uint32_t rows) {
  const auto slot = as_elements<float>(front.slot());
  std::iota(slot.begin(), slot.begin() + rows * 64, 0.0F);
  return {.slot = 0,
          .rows = rows,
          .length = 0,
          .grant = kPlenty,
          .inputs = {{tensor::DataType::kFp32, shape_of({rows, 64}), 0, rows * 64 * 4}}};
}

inline wire::Done done_of(Result<kit::FrontOutcome> outcome) {
  EXPECT_TRUE(outcome.is_ok()) << outcome.status().to_string();
  const auto* done = outcome.is_ok() ? std::get_if<wire::Done>(&*outcome) : nullptr;
  EXPECT_NE(nullptr, done) << (outcome.is_ok() ? std::get<wire::Error>(*outcome).text : "");
  return done == nullptr ? wire::Done{} : *done;
}
inline wire::Error error_of(Result<kit::FrontOutcome> outcome) {
  EXPECT_TRUE(outcome.is_ok()) << outcome.status().to_string();
  const auto* error = outcome.is_ok() ? std::get_if<wire::Error>(&*outcome) : nullptr;
  EXPECT_NE(nullptr, error) << "the run succeeded";
  return error == nullptr ? wire::Error{} : *error;
}

inline std::vector<float> floats_of(const BlockingFront& front, const wire::TensorLayout& layout) {
  const auto bytes = front.output(layout);
  EXPECT_TRUE(bytes.is_ok());
  std::vector<float> values(bytes->size() / sizeof(float));
  std::memcpy(values.data(), bytes->data(), bytes->size());
  return values;
}
inline std::vector<float> floats_in(const std::string& file) {
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

}  // namespace tonnage::torch_worker
