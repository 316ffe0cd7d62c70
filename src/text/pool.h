// SPDX-License-Identifier: Apache-2.0
// Pool: tokenises off the loop, on a few threads, with a bounded queue.
//
// Promises: the answer comes back on the loop; a full queue refuses at once; destroying the pool
// answers what still waits (unavailable/draining). Short texts may be done in place: encode_all().
// Threads: submit on the loop; owns its joined threads. Fails with: overloaded/text_queue_full.
#pragma once

#include <atomic>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "base/completion.h"
#include "base/loop.h"
#include "text/chunks.h"
#include "text/tokenizer.h"

namespace tonnage::text {

struct TextJob {
  std::shared_ptr<const Tokenizer> tokenizer;
  std::vector<std::string> texts;
  LengthRule rule;
  // Set from the loop when nobody waits any more: what is left of the job is not done.
  std::shared_ptr<const std::atomic<bool>> cancelled{};
};

// The rows of each text (encode_rows), in order; the first error (with the text's number) ends the job.
Result<std::vector<Tokens>> encode_all(const TextJob& job, const std::stop_token& stop = {});

class Pool {
 public:
  Pool(Loop& loop, unsigned threads, std::size_t max_jobs);
  ~Pool();
  // What encode_all() gives, on the loop.
  void submit(TextJob job, Completion<std::vector<Tokens>> done);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tonnage::text
