// SPDX-License-Identifier: Apache-2.0
#include "text/pool.h"

#include <gtest/gtest.h>

#include <optional>

#include "testkit/post_loop.h"
#include "testkit/scripted_tokenizer.h"

namespace tonnage::text {
namespace {

using Rows = std::vector<Tokens>;
using testkit::PostLoop;
using testkit::ScriptedTokenizer;

struct Fixture {
  std::shared_ptr<ScriptedTokenizer> tokenizer = std::make_shared<ScriptedTokenizer>();
  PostLoop loop;

  TextJob job(std::vector<std::string> texts) const { return {tokenizer, std::move(texts), {512}}; }
  static Completion<Rows> into(std::optional<Result<Rows>>& answer) {
    return Completion<Rows>([&answer](Result<Rows> rows) { answer.emplace(std::move(rows)); });
  }
};

TEST(TextPool, AnswersOnTheLoopOneRowPerTextInOrder) {
  Fixture f;
  Pool pool(f.loop, 2, 8);
  std::optional<Result<Rows>> answer;
  pool.submit(f.job({"one", "three", ""}), Fixture::into(answer));
  EXPECT_FALSE(answer.has_value());  // not inside submit, and only when the loop runs
  f.loop.run_one();
  ASSERT_TRUE(answer.has_value() && answer->is_ok());
  const Rows& rows = **answer;
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].ids.size(), 3U);
  EXPECT_EQ(rows[1].ids.size(), 5U);
  EXPECT_EQ(rows[2].ids.size(), 0U);
}

TEST(TextPool, TheFirstBadTextEndsTheJobAndIsNamed) {
  Fixture f;
  Pool pool(f.loop, 1, 8);
  std::optional<Result<Rows>> answer;
  pool.submit(f.job({"fine", "bad", "never read"}), Fixture::into(answer));
  f.loop.run_one();
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->status().code(), Code::kInvalidArgument);
  EXPECT_EQ(answer->status().reason(), "bad_text");
  EXPECT_EQ(answer->status().detail().rfind("text 1: ", 0), 0U) << answer->status().detail();
}

TEST(TextPool, RefusesAtOnceWhenFullAndTakesJobsAgainLater) {
  Fixture f;
  Pool pool(f.loop, 1, 1);
  std::optional<Result<Rows>> running, waiting, refused, later;
  pool.submit(f.job({"wait"}), Fixture::into(running));
  f.tokenizer->entered.acquire();
  pool.submit(f.job({"x"}), Fixture::into(waiting));
  pool.submit(f.job({"y"}), Fixture::into(refused));
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->status().code(), Code::kOverloaded);
  EXPECT_EQ(refused->status().reason(), "text_queue_full");
  EXPECT_EQ(refused->status().retry_after_seconds(), 1);
  f.tokenizer->go.release();
  f.loop.run_one();
  f.loop.run_one();
  ASSERT_TRUE(running.has_value() && waiting.has_value());
  EXPECT_TRUE(running->is_ok() && waiting->is_ok());
  pool.submit(f.job({"z"}), Fixture::into(later));
  f.loop.run_one();
  EXPECT_TRUE(later->is_ok());
}

TEST(TextPool, AJobThatNobodyWaitsForEndsBeforeItsNextText) {
  Fixture f;
  Pool pool(f.loop, 1, 8);
  std::optional<Result<Rows>> answer;
  const auto left = std::make_shared<std::atomic<bool>>(false);
  TextJob job = f.job({"wait", "never read"});
  job.cancelled = left;
  pool.submit(std::move(job), Fixture::into(answer));
  f.tokenizer->entered.acquire();
  left->store(true);
  f.tokenizer->go.release();
  f.loop.run_one();
  EXPECT_EQ(answer->status().code(), Code::kCancelled);
}

TEST(TextPool, TextsDoneInPlaceAreRefusedByTheirNumberToo) {
  const Fixture f;
  EXPECT_EQ(encode_all(f.job({"fine", "fine too"})).value().size(), 2U);
  const Status refused = encode_all(f.job({"fine", "bad"})).status();
  EXPECT_EQ(refused.reason(), "bad_text");
  EXPECT_EQ(refused.detail().rfind("text 1: ", 0), 0U) << refused.detail();
}

TEST(TextPool, TheEndAnswersWhatWaitsAndWhatRunsWithoutTheLoop) {
  Fixture f;
  std::optional<Result<Rows>> running, waiting;
  auto pool = std::make_unique<Pool>(f.loop, 1, 8);
  pool->submit(f.job({"wait", "never read"}), Fixture::into(running));
  f.tokenizer->entered.acquire();
  // The running text is let go only by the answer to the waiting job, so the order is certain.
  pool->submit(f.job({"x"}), Completion<Rows>([&](Result<Rows> rows) {
                 waiting.emplace(std::move(rows));
                 f.tokenizer->go.release();
               }));
  pool.reset();
  ASSERT_TRUE(waiting.has_value() && running.has_value());
  EXPECT_EQ(waiting->status().code(), Code::kUnavailable);
  EXPECT_EQ(waiting->status().reason(), "draining");
  EXPECT_EQ(running->status().reason(), "draining");
}

}  // namespace
}  // namespace tonnage::text
