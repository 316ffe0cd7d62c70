// SPDX-License-Identifier: Apache-2.0
#include "text/pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <thread>
#include <utility>

#include "base/guarded.h"

namespace tonnage::text {

namespace {

using Answer = Result<std::vector<Tokens>>;

Status draining() { return {Code::kUnavailable, "draining", "the server is shutting down"}; }

}  // namespace

Result<std::vector<Tokens>> encode_all(const TextJob& job, const std::stop_token& stop) {
  std::vector<Tokens> rows;
  rows.reserve(job.texts.size());
  for (std::size_t i = 0; i < job.texts.size(); ++i) {
    if (stop.stop_requested()) return draining();
    if (job.cancelled && job.cancelled->load(std::memory_order_relaxed)) {
      return Status(Code::kCancelled, "cancelled", "nobody waits for these texts");
    }
    if (const Status why = encode_rows(*job.tokenizer, job.texts[i], job.rule, rows); !why.is_ok()) {
      return Status(why.code(), why.reason(), fmt::format("text {}: {}", i, why.detail()));
    }
  }
  return rows;
}

struct Pool::State {
  struct Waiting {
    TextJob job;
    Completion<std::vector<Tokens>> done;
  };
  struct Finished {
    Completion<std::vector<Tokens>> done;
    Answer answer;
  };
  struct Queue {
    std::deque<Waiting> jobs;
    std::vector<std::unique_ptr<Finished>> late;  // finished while stopping
    bool stopping = false;
  };

  State(Loop& owner, std::size_t max) : loop(owner), max_jobs(max) {}

  Loop& loop;
  std::size_t max_jobs;
  Guarded<Queue> queue;
  std::condition_variable wake;
  std::vector<std::jthread> threads;

  // The loop may be gone while stopping, so late answers wait for the destructor.
  void deliver(std::unique_ptr<Finished> job) {
    auto held = queue.lock();
    if (held->stopping) {
      held->late.push_back(std::move(job));
      return;
    }
    loop.post([job = std::move(job)] { job->done.answer(std::move(job->answer)); });
  }

  void work(const std::stop_token& stop) {
    for (;;) {
      Waiting next;
      {
        auto held = queue.lock();
        wake.wait(held.native(), [&held] { return held->stopping || !held->jobs.empty(); });
        if (held->stopping) return;
        next = std::move(held->jobs.front());
        held->jobs.pop_front();
      }
      Answer answer = encode_all(next.job, stop);
      deliver(std::make_unique<Finished>(Finished{std::move(next.done), std::move(answer)}));
    }
  }
};

Pool::Pool(Loop& loop, unsigned threads, std::size_t max_jobs)
    : state_(std::make_unique<State>(loop, max_jobs)) {
  for (unsigned i = 0; i < std::max(1U, threads); ++i) {
    state_->threads.emplace_back([state = state_.get()](const std::stop_token& stop) { state->work(stop); });
  }
}

Pool::~Pool() {
  std::deque<State::Waiting> waiting;
  {
    auto held = state_->queue.lock();
    held->stopping = true;
    waiting.swap(held->jobs);
  }
  for (std::jthread& thread : state_->threads) thread.request_stop();
  state_->wake.notify_all();
  for (State::Waiting& job : waiting) job.done.answer(draining());
  state_->threads.clear();  // joins
  std::vector<std::unique_ptr<State::Finished>> late;
  {
    auto held = state_->queue.lock();
    late.swap(held->late);
  }
  for (const auto& job : late) job->done.answer(std::move(job->answer));
}

void Pool::submit(TextJob job, Completion<std::vector<Tokens>> done) {
  {
    auto held = state_->queue.lock();
    if (held->jobs.size() < state_->max_jobs) {
      held->jobs.push_back({std::move(job), std::move(done)});
      state_->wake.notify_one();
      return;
    }
  }
  done.answer(Status(Code::kOverloaded, "text_queue_full",
                     fmt::format("{} texts wait to be tokenised already", state_->max_jobs))
                  .with_retry_after(1));
}

}  // namespace tonnage::text
