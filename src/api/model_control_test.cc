// SPDX-License-Identifier: Apache-2.0
// Loads that wait, and what the index says, on a manual clock; the calls themselves are driven over HTTP
// by tests/integration/test_model_control.py.
#include "api/model_control.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "testkit/pipeline_rig.h"

namespace tonnage::api {
namespace {

using testkit::FakeBatch;
using testkit::FakeFault;

model::ModelSpec named(const std::string& name) {
  model::ModelSpec spec = testkit::sum_spec();
  spec.name = name;
  return spec;
}

class ModelControlTest : public testing::Test {
 protected:
  // What the repository holds.
  std::vector<model::ModelSpec> held_{named("sum")};
  testkit::PipelineRig rig_{mib(400)};
  ModelControl control_{
      {rig_.loop, *rig_.pipe,
       [this] {
         std::vector<model::RepositoryEntry> entries;
         for (const model::ModelSpec& spec : held_) entries.push_back({spec.name, spec});
         return Result<std::vector<model::RepositoryEntry>>(std::move(entries));
       },
       [](const model::ModelSpec&) { return ModelControl::Tokenizer(); },
       [](const std::string&, const ModelControl::Tokenizer&) {}, [](const std::string&) {}},
      seconds(1)};

  ModelControlTest() {
    rig_.pipe->on_model_change([this] { control_.model_changed(); });
  }
  ~ModelControlTest() override { rig_.pipe->on_model_change(nullptr); }

  void call(AdminKind kind, std::optional<Result<Reply>>& answer) {
    AdminCall call;
    call.kind = kind;
    call.model = "sum";
    control_.call(std::move(call),
                  Completion<Reply>([&answer](Result<Reply> reply) { answer.emplace(std::move(reply)); }));
  }
  std::string index() {
    std::optional<Result<Reply>> answer;
    call(AdminKind::kIndex, answer);
    return answer->is_ok() ? (*answer)->body : answer->status().to_string();
  }
};

TEST_F(ModelControlTest, ALoadWaitsHalfAMinuteForMemoryThatAnotherModelGivesBack) {
  std::optional<Result<Reply>> answer;
  rig_.budget.root().set_limit(kib(64));
  call(AdminKind::kLoad, answer);
  rig_.loop.advance(seconds(29));
  ASSERT_FALSE(answer.has_value());
  rig_.budget.root().set_limit(mib(400));
  rig_.loop.advance(seconds(5));
  ASSERT_TRUE(answer.has_value());
  EXPECT_TRUE(answer->is_ok()) << answer->status().to_string();
}

TEST_F(ModelControlTest, ALoadThatNoMemoryCameForIsAnsweredWithWhatIsMissing) {
  std::optional<Result<Reply>> answer;
  rig_.budget.root().set_limit(kib(64));
  call(AdminKind::kLoad, answer);
  rig_.loop.advance(seconds(31));
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ("over_budget", answer->status().reason());
  EXPECT_NE(std::string::npos, answer->status().detail().find("are missing"));
  EXPECT_TRUE(rig_.pipe->models().empty()) << "nothing of it is left";
}

TEST_F(ModelControlTest, ALoadThatTakesLongIsAnsweredWhenItIsReady) {
  std::optional<Result<Reply>> answer;
  rig_.processes.model.load_time = seconds(100);
  call(AdminKind::kLoad, answer);
  rig_.loop.advance(seconds(99));
  ASSERT_FALSE(answer.has_value());
  rig_.loop.advance(seconds(20));
  ASSERT_TRUE(answer.has_value());
  EXPECT_TRUE(answer->is_ok()) << answer->status().to_string();
}

TEST_F(ModelControlTest, ALoadWhoseMemoryIsFoundMissingLateIsAnsweredThen) {
  std::optional<Result<Reply>> answer;
  rig_.processes.model.load_time = milliseconds(39'500);
  call(AdminKind::kLoad, answer);
  rig_.loop.advance(milliseconds(39'300));
  ASSERT_FALSE(answer.has_value());
  rig_.processes.model.weights = mib(500);  // more than there is, when the model is almost loaded
  rig_.loop.advance(seconds(1));
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ("over_budget", answer->status().reason()) << answer->status().to_string();
  rig_.loop.advance(seconds(10));
  EXPECT_TRUE(rig_.pipe->models().empty());
}

TEST_F(ModelControlTest, ALoadOutlivesAWorkerThatIsKilledForMemoryInTheWarmUp) {
  std::optional<Result<Reply>> answer;
  int runs = 0;
  rig_.processes.model.fault = [&](const FakeBatch&) {
    return ++runs == 9 ? FakeFault::kMemoryKill : FakeFault::kNone;
  };
  call(AdminKind::kLoad, answer);
  rig_.loop.advance(seconds(20));
  ASSERT_TRUE(answer.has_value());
  EXPECT_TRUE(answer->is_ok()) << answer->status().to_string();
  EXPECT_EQ(2U, rig_.processes.starts());
}

TEST_F(ModelControlTest, AModelWhoseFallbackAnswersIsReadyInTheIndexToo) {
  constexpr std::uint32_t kLarge = 64;  // a length that only the large model pads to
  model::ModelSpec spare = named("spare");
  spare.batching.pad_multiple = 32;
  model::ModelSpec main = named("sum");
  main.fallback = "spare";
  main.batching.pad_multiple = kLarge;
  main.batching.max_rows = 4;
  held_ = {spare, main};
  rig_.serve(spare);
  rig_.serve(main);
  bool spare_is_bad = false;
  rig_.processes.model.fault = [&](const FakeBatch& batch) {
    return spare_is_bad || batch.run.length == kLarge ? FakeFault::kPressure : FakeFault::kNone;
  };
  const auto rest = [&](std::string_view name) {
    for (int i = 0; i < 1000 && !rig_.model(name).ladder.is_resting(); ++i) {
      rig_.ask({.model = name});
      rig_.loop.advance(milliseconds(200));
    }
    ASSERT_TRUE(rig_.model(name).ladder.is_resting());
  };
  EXPECT_NE(std::string::npos, index().find(R"({"name":"sum","version":"1","state":"READY"})")) << index();
  rest("sum");
  EXPECT_NE(std::string::npos,
            index().find(R"("name":"sum","version":"1","state":"READY","reason":"its fallback)"))
      << index();
  spare_is_bad = true;
  rest("spare");
  EXPECT_NE(std::string::npos,
            index().find(R"("name":"sum","version":"1","state":"UNAVAILABLE","reason":"the model runs out)"))
      << index();
}

}  // namespace
}  // namespace tonnage::api
