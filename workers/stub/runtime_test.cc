// SPDX-License-Identifier: Apache-2.0
#include "stub/runtime.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>

#include "kit/process_memory.h"
#include "testkit/example_messages.h"

namespace tonnage::stub {
namespace {

using tensor::DataType;
using testkit::shape_of;
using Texts = std::map<std::string, std::string>;

// A loaded stub, and the tensors of one batch of [rows, length] ids.
struct Batch {
  std::vector<std::int64_t> ids;
  std::int64_t rows = 1;

  kit::RunResult run_on(const std::unique_ptr<StubRuntime>& runtime, Bytes grant = mib(64)) const {
    const std::int64_t length = static_cast<std::int64_t>(ids.size()) / rows;
    const kit::Tensor input{DataType::kInt64, shape_of({rows, length}), std::as_bytes(std::span(ids))};
    return runtime->run({.inputs = std::span(&input, 1),
                         .rows = static_cast<std::uint32_t>(rows),
                         .length = static_cast<std::uint32_t>(length),
                         .grant = grant});
  }
};

std::unique_ptr<StubRuntime> loaded(const Texts& options) {
  auto runtime = std::make_unique<StubRuntime>();
  EXPECT_TRUE(runtime->load({.options = options}).is_ok());
  return runtime;
}

Bytes peak_of(const kit::RunResult& result) { return std::get<kit::RunOutputs>(result).peak; }
const kit::RunError& error_of(const kit::RunResult& result) { return std::get<kit::RunError>(result); }
std::span<const float> floats_of(const kit::RunResult& result) {
  return as_elements<float>(std::get<kit::RunOutputs>(result).outputs.at(0).data);
}

TEST(Stub, SumsEachRow) {
  auto runtime = loaded({{"model", "sleepy"}, {"sleep_ms", "0"}});
  const auto result = Batch{{1, 2, 3, 40, 50, 60}, 2}.run_on(runtime);
  EXPECT_EQ(6.0F, floats_of(result)[0]);
  EXPECT_EQ(150.0F, floats_of(result)[1]);
}

TEST(Stub, CostsToTheByteWhatItsOptionsSay) {
  auto runtime = loaded({{"model", "quadratic"},
                         {"bytes_per_row", "100"},
                         {"bytes_per_token", "10"},
                         {"bytes_per_token_squared", "1"}});
  // 2 rows of 3: 200 + 60 + 18, and two floats of output.
  EXPECT_EQ(Bytes(286), peak_of(Batch{{1, 2, 3, 4, 5, 6}, 2}.run_on(runtime)));
}

TEST(Stub, RefusesAboveTheGrantAndSaysWhatItNeeded) {
  auto runtime =
      loaded({{"model", "quadratic"}, {"bytes_per_token", "1000"}, {"bytes_per_token_squared", "0"}});
  const Batch batch{{1, 2, 3}};
  EXPECT_EQ(wire::ErrorKind::kOverGrant, error_of(batch.run_on(runtime, Bytes(2999))).kind);
  EXPECT_EQ(Bytes(3000), error_of(batch.run_on(runtime, Bytes(2999))).needed);
  EXPECT_EQ(wire::ErrorKind::kOverGrant, error_of(batch.run_on(runtime, Bytes(3003))).kind);
  EXPECT_EQ(Bytes(3004), peak_of(batch.run_on(runtime, Bytes(3004))));
  runtime->release_outputs();
  EXPECT_EQ(Bytes(), runtime->live());
}

TEST(Stub, ReallyTakesWhatItCounts) {
  const kit::ResidentReader reader;
  StubRuntime runtime;
  const Bytes before = reader.read();
  ASSERT_TRUE(runtime.load({.options = {{"model", "echo"}, {"weight_bytes", "16MiB"}}}).is_ok());
  EXPECT_GE(reader.read(), before + mib(15));
  EXPECT_EQ(mib(16), runtime.live());
}

TEST(Stub, KeepsBytesPerCallAndAdmitsThemAsLive) {
  auto runtime = loaded({{"model", "hoarder"}, {"keep_bytes_per_call", "1000"}});
  for (int call = 0; call < 3; ++call) {
    (void)Batch{{1}}.run_on(runtime);
    runtime->release_outputs();
  }
  runtime->trim();
  EXPECT_EQ(Bytes(3000), runtime->live());
}

TEST(Stub, CachesPerShapeUntilTrimmed) {
  auto runtime =
      loaded({{"model", "shape_cache"}, {"bytes_per_token", "0"}, {"cache_bytes_per_token", "1000"}});
  EXPECT_EQ(Bytes(2004), peak_of(Batch{{1, 2}}.run_on(runtime)));
  runtime->release_outputs();
  EXPECT_EQ(Bytes(4), peak_of(Batch{{3, 4}}.run_on(runtime)));
  runtime->release_outputs();
  EXPECT_EQ(Bytes(2000), runtime->live());
  runtime->trim();
  EXPECT_EQ(Bytes(), runtime->live());
}

TEST(Stub, CostsMoreForAValueOrAfterItBeganToLie) {
  auto branch = loaded({{"model", "branch"}, {"bytes_per_token", "100"}, {"branch_factor", "3"}});
  EXPECT_EQ(Bytes(204), peak_of(Batch{{1, 2}}.run_on(branch)));
  EXPECT_EQ(Bytes(604), peak_of(Batch{{1, 7}}.run_on(branch)));
  auto liar = loaded({{"model", "quadratic"},
                      {"bytes_per_token", "100"},
                      {"bytes_per_token_squared", "0"},
                      {"lie_factor", "10"},
                      {"lie_after", "1"}});
  EXPECT_EQ(Bytes(104), peak_of(Batch{{1}}.run_on(liar)));
  EXPECT_EQ(Bytes(1004), peak_of(Batch{{1}}.run_on(liar)));
}

TEST(Stub, ThrowsOnAValueAsToldAndGoesOn) {
  const Batch bad{{1, 999}};
  auto value = loaded({{"model", "thrower"}});
  EXPECT_EQ(wire::ErrorKind::kModelError, error_of(bad.run_on(value)).kind);
  EXPECT_EQ(3.0F, floats_of(Batch{{1, 2}}.run_on(value))[0]);
  auto oom = loaded({{"model", "thrower"}, {"throw_as", "oom"}});
  EXPECT_EQ(wire::ErrorKind::kOverGrant, error_of(bad.run_on(oom)).kind);
  auto words = loaded({{"model", "thrower"}, {"throw_as", "oom_words"}});
  EXPECT_EQ(wire::ErrorKind::kModelError, error_of(bad.run_on(words)).kind);
}

TEST(Stub, NeverWorksAgainAfterAStickyError) {
  auto runtime = loaded({{"model", "thrower"}, {"throw_as", "sticky"}});
  EXPECT_EQ(wire::ErrorKind::kStickyDevice, error_of(Batch{{999}}.run_on(runtime)).kind);
  EXPECT_EQ(wire::ErrorKind::kStickyDevice, error_of(Batch{{1}}.run_on(runtime)).kind);
}

TEST(Stub, LogsEveryRowThatItExecutedEvenTheOneItDiesOn) {
  const std::string path = testing::TempDir() + "/execution_log";
  std::ofstream(path).close();
  auto runtime = loaded({{"model", "aborter"}, {"execution_log", path}});
  (void)Batch{{11, 0, 12, 0}, 2}.run_on(runtime);
  EXPECT_DEATH((void)(Batch{{13, 0, 14, 666, 15, 0}, 3}.run_on(runtime)), "");
  std::ifstream file(path);
  EXPECT_EQ("11\n12\n13\n14\n", std::string(std::istreambuf_iterator<char>(file), {}));
}

TEST(Stub, MeansUnderTheMaskAndIsNanWhereTheMaskIsEmpty) {
  auto runtime = loaded({{"model", "masked_mean"}});
  const std::vector<float> values = {1, 2, 30, 5, 6, 7};
  const std::vector<std::int64_t> mask = {1, 1, 0, 0, 0, 0};
  const std::array<kit::Tensor, 2> inputs = {
      {{DataType::kFp32, shape_of({2, 3}), std::as_bytes(std::span(values))},
       {DataType::kInt64, shape_of({2, 3}), std::as_bytes(std::span(mask))}}};
  const auto result = runtime->run({.inputs = inputs, .rows = 2, .length = 3, .grant = mib(1)});
  EXPECT_EQ(1.5F, floats_of(result)[0]);
  EXPECT_TRUE(std::isnan(floats_of(result)[1]));
}

TEST(Stub, EchoesAnyTypeThatTheSpecNames) {
  StubRuntime runtime;
  const wire::LoadDoc doc{.inputs = {{"b", DataType::kUint8, {-1, 2}}}, .outputs = {}};
  const auto loaded_doc = runtime.load(doc);
  EXPECT_EQ(DataType::kUint8, loaded_doc->doc.outputs.at(0).type);
  const std::array<std::byte, 2> data = {std::byte{1}, std::byte{2}};
  const kit::Tensor input{DataType::kUint8, shape_of({1, 2}), data};
  const auto result = runtime.run({.inputs = std::span(&input, 1), .rows = 1, .length = 0, .grant = {}});
  EXPECT_EQ(data.data(), std::get<kit::RunOutputs>(result).outputs.at(0).data.data());
}

TEST(Stub, FailsToLoadForAReasonThatIsNamed) {
  const auto reason = [](const wire::LoadDoc& doc) { return StubRuntime().load(doc).status().reason(); };
  EXPECT_EQ("bad_model_file", reason({.options = {{"model", "bad_load"}}}));
  EXPECT_EQ("bad_option", reason({.options = {{"model", "no_such"}}}));
  EXPECT_EQ("bad_option", reason({.options = {{"colour", "blue"}}}));
  EXPECT_EQ("bad_option", reason({.options = {{"sleep_ms", "soon"}}}));
  EXPECT_EQ("bad_option", reason({.options = {{"sleep_ms", "99999999999"}}}));
  EXPECT_EQ("over_load_limit", reason({.load_limit = kib(1), .options = {{"weight_bytes", "2KiB"}}}));
  EXPECT_EQ("bad_spec",
            reason({.inputs = {{"x", DataType::kFp32, {-1, -1}}}, .options = {{"model", "masked_mean"}}}));
}

}  // namespace
}  // namespace tonnage::stub
