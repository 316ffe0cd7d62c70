// SPDX-License-Identifier: Apache-2.0
#include "text/pool.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <deque>
#include <optional>
#include <semaphore>

#include "base/guarded.h"

namespace tonnage::text {
namespace {

using Rows = std::vector<Tokens>;

// A loop of posts only, which a test runs one at a time and waits for.
class PostLoop final : public Loop {
 public:
  TimePoint now() const override { return {}; }
  void post(UniqueFunction<void()> fn) override {
    auto held = posts_.lock();
    held->push_back(std::move(fn));
    arrived_.notify_one();
  }
  Timer call_at(TimePoint, UniqueFunction<void()>) override { return nullptr; }
  Watch watch_readable(int, UniqueFunction<void()>) override { return nullptr; }

  void run_one() {
    UniqueFunction<void()> next;
    {
      auto held = posts_.lock();
      arrived_.wait(held.native(), [&held] { return !held->empty(); });
      next = std::move(held->front());
      held->pop_front();
    }
    next();
  }

 private:
  Guarded<std::deque<UniqueFunction<void()>>> posts_;
  std::condition_variable arrived_;
};

// One id per byte; "bad" is refused; "wait" tells that it is being read and waits to be let go.
class FakeTokenizer final : public Tokenizer {
 public:
  Result<Tokens> encode(std::string_view text, std::uint32_t, model::TooLong) const override {
    if (text == "bad") return invalid("bad_text", "no good");
    if (text == "wait") {
      entered.release();
      go.acquire();
    }
    return Tokens{std::vector<std::int64_t>(text.size(), 1), false};
  }
  std::size_t vocabulary_size() const override { return 2; }

  mutable std::counting_semaphore<> entered{0};
  mutable std::counting_semaphore<> go{0};
};

struct Fixture {
  std::shared_ptr<FakeTokenizer> tokenizer = std::make_shared<FakeTokenizer>();
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
