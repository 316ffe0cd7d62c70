// SPDX-License-Identifier: Apache-2.0
#include "model/fallback.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>

#include "testkit/model_specs.h"

namespace tonnage::model {
namespace {

class FallbackTest : public testing::Test {
 protected:
  FallbackTest() {
    add("large", "small");
    add("small", "");
  }
  void add(const std::string& name, const std::string& fallback) {
    ModelSpec spec = testkit::encoder_spec();
    spec.name = name;
    spec.fallback = fallback;
    specs_[name] = std::move(spec);
  }
  Status check(const std::string& name = "large") const { return check_fallbacks(specs_.at(name), find()); }
  FindSpec find() const {
    return [this](std::string_view other) -> const ModelSpec* {
      const auto found = specs_.find(std::string(other));
      return found == specs_.end() ? nullptr : &found->second;
    };
  }
  std::map<std::string, ModelSpec> specs_;
};

TEST_F(FallbackTest, TakesAModelThatTakesAndGivesTheSame) {
  EXPECT_TRUE(check().is_ok()) << check().detail();
  EXPECT_TRUE(check("small").is_ok());
  specs_["small"].max_length *= 2;
  specs_["small"].inputs[0].range = ValueRange{0, 50000};
  EXPECT_TRUE(check().is_ok()) << "more than is needed: " << check().detail();
}

TEST_F(FallbackTest, FollowsAChainThroughWhatIsMissingAndRoundInCircles) {
  add("other", "");
  add("absent", "nobody");
  add("one", "two");
  add("two", "one");
  const struct {
    std::string from;
    std::string to;
    bool does;
  } cases[] = {{"large", "small", true},   {"large", "other", false},  {"small", "large", false},
               {"absent", "nobody", true}, {"absent", "small", false}, {"one", "two", true},
               {"one", "one", true},       {"one", "small", false}};
  for (const auto& c : cases) {
    EXPECT_EQ(c.does, falls_back_to(specs_.at(c.from), c.to, find())) << c.from << " " << c.to;
  }
}

TEST_F(FallbackTest, SaysWhatDiffers) {
  const struct {
    std::function<void(ModelSpec&)> change;
    std::string says;
  } cases[] = {
      {[](ModelSpec& s) { s.inputs.pop_back(); }, "it has 2 inputs and the fallback 1"},
      {[](ModelSpec& s) { s.outputs[0].name = "other"; },
       "output 1 is 'scores' FP32 [-1, 2] here and 'other'"},
      {[](ModelSpec& s) {
         s.outputs[0].dims = {-1, 3};
       },
       "'scores' FP32 [-1, 3] there"},
      {[](ModelSpec& s) { s.inputs[1].source = InputSource::kClient; }, "(generated mask) here"},
      {[](ModelSpec& s) { s.inputs[0].range->max = 100; }, "may hold [0, 30521] here and [0, 100] there"},
      {[](ModelSpec& s) { s.max_length = 128; }, "length 512 and the fallback's 128"},
      {[](ModelSpec& s) { s.chunk_pooling = ChunkPooling::kFirst; }, "pools chunks in another way"},
      {[](ModelSpec& s) { s.rows = RowsRule::kTogether; }, "'rows' is \"together\""},
  };
  specs_["large"].too_long = TooLong::kChunk;
  for (const auto& [change, says] : cases) {
    add("small", "");
    change(specs_["small"]);
    const Status status = check();
    EXPECT_EQ("bad_config", status.reason());
    EXPECT_NE(std::string::npos, status.detail().find("model 'large' cannot fall back to 'small'"));
    EXPECT_NE(std::string::npos, status.detail().find(says)) << status.detail();
  }
}

TEST_F(FallbackTest, ARangeThatIsNotLimitedHereMustNotBeLimitedThere) {
  specs_["large"].inputs[0].range.reset();
  EXPECT_NE(std::string::npos, check().detail().find("may hold any value here and [0, 30521] there"));
}

TEST_F(FallbackTest, FollowsTheChainToAMissingModelOrACircle) {
  specs_["small"].fallback = "tiny";
  EXPECT_NE(std::string::npos,
            check().detail().find("model 'small' cannot fall back to 'tiny': there is no"));
  add("tiny", "large");
  EXPECT_NE(std::string::npos, check().detail().find("large -> small -> tiny -> large comes back"));
  specs_["tiny"].fallback = "";
  EXPECT_TRUE(check().is_ok());
}

TEST_F(FallbackTest, TheVocabulariesAreComparedByContent) {
  std::string folder = (std::filesystem::temp_directory_path() / "fallback.XXXXXX").string();
  ASSERT_NE(nullptr, ::mkdtemp(folder.data()));
  std::ofstream(folder + "/a") << "[PAD]\nword\n";
  std::ofstream(folder + "/b") << "[PAD]\nword\n";
  specs_["large"].tokenizer = TokenizerSpec{"wordpiece", folder + "/a", true};
  specs_["small"].tokenizer = TokenizerSpec{"wordpiece", folder + "/b", true};
  EXPECT_TRUE(check().is_ok());
  std::ofstream(folder + "/b") << "[PAD]\nother\n";
  EXPECT_NE(std::string::npos, check().detail().find("tokenizers are not the same"));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace tonnage::model
