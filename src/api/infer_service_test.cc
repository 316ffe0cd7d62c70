// SPDX-License-Identifier: Apache-2.0
#include "api/infer_service.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>

#include "testkit/pipeline_rig.h"
#include "testkit/post_loop.h"
#include "testkit/scripted_tokenizer.h"

namespace tonnage::api {
namespace {

using testkit::PipelineRig;

// A real service over a pipeline on a manual clock; the one thread of its pool is held by the test.
struct ServiceRig {
  ServiceRig() {
    std::ofstream(vocabulary) << "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n";
    model::ModelSpec spec = testkit::sum_spec(2048);
    spec.tokenizer = model::TokenizerSpec{"wordpiece", vocabulary, true};
    TONNAGE_CHECK(service.add_tokenizer(spec).is_ok(), "the vocabulary was not taken");
    rig.serve(std::move(spec));
  }
  ~ServiceRig() { std::filesystem::remove(vocabulary); }

  // The pool's thread reads a text until let_go(); what is submitted later waits behind it.
  void occupy_pool() {
    pool.submit({.tokenizer = tokenizer, .texts = {"wait"}, .rule = {512}},
                Completion<std::vector<text::Tokens>>([](auto) {}));
    tokenizer->entered.acquire();
  }
  // Runs what the pool has to say about its first text and about `calls` more.
  void let_go(int calls) {
    tokenizer->go.release();
    for (int i = 0; i < 1 + calls; ++i) posts.run_one();
  }

  // A text that is too long to be tokenised in place.
  CallId ask() {
    std::string text;
    while (text.size() < 3000) text += "a ";
    InferCall call;
    call.body =
        R"({"inputs": [{"name": "text", "shape": [1], "datatype": "BYTES", "data": [")" + text + "\"]}]}";
    call.ingress = service.ingress().charge(Bytes(call.body.size())).value();
    call.body.reserve(call.body.size() + 64);
    return service.infer(std::move(call),
                         Completion<Reply>([this](Result<Reply> answer) { status = answer.status(); }));
  }

  std::string vocabulary = testing::TempDir() + "infer-service-" +
                           testing::UnitTest::GetInstance()->current_test_info()->name() + ".txt";
  PipelineRig rig;
  telemetry::Registry metrics;
  testkit::PostLoop posts;
  std::shared_ptr<testkit::ScriptedTokenizer> tokenizer = std::make_shared<testkit::ScriptedTokenizer>();
  text::Pool pool{posts, 1, 8};
  InferService service{{}, {rig.loop, *rig.pipe, pool, rig.budget, metrics, {}}};
  std::optional<Status> status;
};

TEST(InferService, ATextThatWaitsInThePoolIsAnsweredInItsTurn) {
  ServiceRig s;
  s.occupy_pool();
  s.ask();
  EXPECT_FALSE(s.status.has_value());
  s.let_go(1);
  s.rig.loop.advance(seconds(1));
  ASSERT_TRUE(s.status.has_value());
  EXPECT_TRUE(s.status->is_ok()) << s.status->to_string();
  EXPECT_EQ(Bytes(), s.rig.envelopes());
}

TEST(InferService, ACancelledTextStaysChargedUntilThePoolIsDoneWithIt) {
  ServiceRig s;
  s.occupy_pool();
  const CallId call = s.ask();
  s.service.cancel(call);
  ASSERT_TRUE(s.status.has_value());
  EXPECT_EQ("cancelled", s.status->reason());
  EXPECT_GT(s.rig.envelopes(), Bytes(3000)) << "the pool holds the text";
  s.let_go(1);
  EXPECT_EQ(Bytes(), s.rig.envelopes());
}

TEST(InferService, ATextWhoseDeadlinePassesInThePoolIsAnsweredThenAndStaysCharged) {
  ServiceRig s;
  s.occupy_pool();
  s.ask();
  s.rig.loop.advance(seconds(61));
  ASSERT_TRUE(s.status.has_value());
  EXPECT_EQ("deadline", s.status->reason());
  EXPECT_GT(s.rig.envelopes(), Bytes(3000));
  s.let_go(1);
  EXPECT_EQ(Bytes(), s.rig.envelopes());
}

}  // namespace
}  // namespace tonnage::api
