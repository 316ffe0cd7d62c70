// SPDX-License-Identifier: Apache-2.0
// docs/wire.md as a test of any worker program: the stub worker (C++ kit), one in Python from the
// page alone, and the native worker.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <ostream>
#include <utility>

#include "testkit/example_messages.h"
#include "testkit/worker_process.h"
#include "wire/load_doc.h"
#include "wire/segment.h"

namespace tonnage {
namespace {

using tensor::DataType;
using testkit::shape_of;
using testkit::WorkerProcess;
using wire::ErrorKind;

struct Kind {
  const char* name;
  std::vector<std::string> (*command)();
  // Of the model file, for workers that need one; and what has to be there so that it can run.
  std::string (*path)(const std::string& model) = nullptr;
  const char* needs = nullptr;
};
void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }  // NOLINT: gtest's name

class WireSuite : public testing::TestWithParam<Kind> {
 protected:
  using Options = std::map<std::string, std::string>;

  void SetUp() override {
    const char* const needs = GetParam().needs;
    if (needs != nullptr && !std::filesystem::exists(testkit::built_program(needs)))
      GTEST_SKIP() << "SKIPPED: " << needs << " was not built";
  }
  void start() { worker_ = std::make_unique<WorkerProcess>(GetParam().command()); }
  void send(wire::Body body, std::uint64_t ticket = 0, std::span<const int> fds = {}) {
    ASSERT_TRUE(worker_->channel().send({.ticket = ticket, .body = std::move(body)}, fds).is_ok());
  }
  // The next message; keeps its descriptors in fds_.
  wire::Message next() {
    auto packet = worker_->next();
    EXPECT_TRUE(packet.is_ok()) << packet.status().to_string();
    if (!packet.is_ok()) return {};
    fds_ = std::move(packet->fds);
    return std::move(packet->message);
  }
  template <typename Expected>
  Expected next_is() {
    const wire::Message message = next();
    const auto* body = std::get_if<Expected>(&message.body);
    EXPECT_NE(nullptr, body) << "came: " << wire::message_name(message.body);
    return body == nullptr ? Expected{} : *body;
  }

  void send_load(wire::LoadDoc doc) {
    if (GetParam().path != nullptr) doc.path = GetParam().path(doc.options.at("model"));
    const auto text = wire::sealed_text("load", wire::to_json(doc));
    const std::array<int, 4> fds = {text->get(), slots_[0].fd(), slots_[1].fd(), region_.fd()};
    send(wire::Load{slots_[0].size().count(), region_.size().count()}, 0, fds);
  }
  // Up to `loaded`.
  wire::LoadedDoc open(const Options& options) {
    start();
    send(wire::Hello{});
    send_load({.model = "m", .options = options});
    next_is<wire::Loaded>();
    EXPECT_EQ(1U, fds_.size());
    const auto text = wire::read_sealed_text(fds_.at(0).get(), mib(1));
    return wire::parse_loaded_doc(text.value()).value();
  }

  template <typename T>
  void put(std::uint32_t slot, std::size_t offset, const std::vector<T>& values) {
    std::memcpy(slots_.at(slot).view().data() + offset, values.data(), values.size() * sizeof(T));
  }
  // A run of echo on [rows, floats / rows] floats of slot 0.
  wire::Run echo_run(std::int64_t rows, std::int64_t length) {
    return {.slot = 0,
            .rows = static_cast<std::uint32_t>(rows),
            .length = static_cast<std::uint32_t>(length),
            .grant = mib(1),
            .inputs = {{DataType::kFp32, shape_of({rows, length}), 0,
                        static_cast<std::uint64_t>(rows * length * 4)}}};
  }
  // A run of masked_mean: one row of two values at 0, its mask at 64.
  wire::Run mean_run(float first) {
    put<float>(0, 0, {first, 4});
    put<std::int64_t>(0, 64, {1, 1});
    return {
        .slot = 0,
        .rows = 1,
        .length = 2,
        .grant = mib(1),
        .inputs = {{DataType::kFp32, shape_of({1, 2}), 0, 8}, {DataType::kInt64, shape_of({1, 2}), 64, 16}}};
  }
  std::vector<float> floats(const wire::Segment& region, const wire::TensorLayout& at) {
    std::vector<float> values(at.bytes / sizeof(float));
    EXPECT_TRUE(region.copy_out(at.offset, std::as_writable_bytes(std::span(values))).is_ok());
    return values;
  }
  std::vector<float> floats(const wire::Done& done) { return floats(region_, done.outputs.at(0)); }

  std::array<wire::Segment, 2> slots_ = {wire::Segment::create("slot0", kib(64)).value(),
                                         wire::Segment::create("slot1", kib(64)).value()};
  wire::Segment region_ = wire::Segment::create("region", kib(4)).value();
  std::unique_ptr<WorkerProcess> worker_;
  std::vector<UniqueFd> fds_;
};

TEST_P(WireSuite, LoadsAndSaysWhatItLoaded) {
  const auto doc = open({{"model", "masked_mean"}});
  ASSERT_EQ(2U, doc.inputs.size());
  EXPECT_EQ("values", doc.inputs[0].name);
  EXPECT_EQ(DataType::kInt64, doc.inputs[1].type);
  EXPECT_EQ("mean", doc.outputs.at(0).name);
}

TEST_P(WireSuite, EchoesFromBothSlotsUnderTheTicketOfTheRun) {
  open({{"model", "echo"}});
  for (const std::uint32_t slot : {0U, 1U}) {
    put<float>(slot, 64, {1.5F, -2, 3, float(slot)});
    wire::Run run = echo_run(2, 2);
    run.slot = slot;
    run.inputs[0].offset = 64;
    send(run, 40 + slot);
    const wire::Message reply = next();
    EXPECT_EQ(40 + slot, reply.ticket);
    const auto& done = std::get<wire::Done>(reply.body);
    EXPECT_EQ(shape_of({2, 2}), done.outputs.at(0).shape);
    EXPECT_EQ(0U, done.outputs[0].offset % 64);
    EXPECT_EQ((std::vector<float>{1.5F, -2, 3, float(slot)}), floats(done));
    EXPECT_GT(done.resident, Bytes());
  }
}

TEST_P(WireSuite, ComputesAMeanUnderAMask) {
  open({{"model", "masked_mean"}});
  put<float>(1, 0, {2, 4, 100, 7, 7, 7});
  put<std::int64_t>(1, 64, {1, 1, 0, 0, 0, 0});
  send(wire::Run{
      .slot = 1,
      .rows = 2,
      .length = 3,
      .grant = mib(1),
      .inputs = {{DataType::kFp32, shape_of({2, 3}), 0, 24}, {DataType::kInt64, shape_of({2, 3}), 64, 48}}});
  const auto means = floats(next_is<wire::Done>());
  ASSERT_EQ(2U, means.size());
  EXPECT_EQ(3.0F, means[0]);
  EXPECT_TRUE(std::isnan(means[1]));
}

TEST_P(WireSuite, AsksForALargerRegionAndKeepsIt) {
  open({{"model", "echo"}});
  put<float>(0, 0, std::vector<float>(2000, 6.0F));
  send(echo_run(1, 2000), 9);
  EXPECT_EQ(Bytes(8000), next_is<wire::Need>().output_bytes);
  const auto larger = wire::Segment::create("larger", kib(16)).value();
  const std::array<int, 1> fds = {larger.fd()};
  send(wire::Region{kib(16).count()}, 9, fds);
  for (int round = 0; round < 2; ++round) {  // the second fits at once
    const auto done = next_is<wire::Done>();
    EXPECT_EQ(std::vector<float>(2000, 6.0F), floats(larger, done.outputs.at(0)));
    if (round == 0) send(echo_run(1, 2000), 10);
  }
}

TEST_P(WireSuite, GivesUpOutputsThatTheFrontDiscards) {
  open({{"model", "echo"}});
  send(echo_run(1, 2000), 9);
  next_is<wire::Need>();
  send(wire::Discard{}, 9);
  const wire::Message reply = next();
  EXPECT_EQ(9U, reply.ticket);
  EXPECT_EQ(ErrorKind::kBadOutput, std::get<wire::Error>(reply.body).kind);
  send(echo_run(1, 2), 10);
  next_is<wire::Done>();
}

TEST_P(WireSuite, StopsWhileItWaitsForARegion) {
  open({{"model", "echo"}});
  send(echo_run(1, 2000), 9);
  next_is<wire::Need>();
  send(wire::Stop{});
  EXPECT_EQ(0, worker_->exit_status());
}

TEST_P(WireSuite, NamesTheKindOfAnErrorAndGoesOn) {
  open({{"model", "masked_mean"}, {"throw_on", "999"}});
  send(mean_run(999), 1);
  EXPECT_EQ(ErrorKind::kModelError, next_is<wire::Error>().kind);
  wire::Run poor = mean_run(2);
  poor.grant = Bytes(3);
  send(poor, 2);
  const auto refused = next_is<wire::Error>();
  EXPECT_EQ(ErrorKind::kOverGrant, refused.kind);
  EXPECT_GE(refused.needed, Bytes(4)) << "the output, and what the worker copies of the inputs";
  send(mean_run(2), 3);
  EXPECT_EQ(std::vector<float>{3.0F}, floats(next_is<wire::Done>()));
}

TEST_P(WireSuite, RefusesTensorsThatDoNotFitSlotOrModel) {
  open({{"model", "echo"}});
  const auto kind_after = [&](auto change) {
    wire::Run run = echo_run(2, 8);
    change(run, run.inputs[0]);
    send(run, 1);
    return next_is<wire::Error>().kind;
  };
  using Run = wire::Run;
  using At = wire::TensorLayout;
  EXPECT_EQ(ErrorKind::kBadRequest, kind_after([](Run&, At& at) { at.offset = 65536; }));
  EXPECT_EQ(ErrorKind::kBadRequest, kind_after([](Run&, At& at) { at.offset = 65536 - 32; }));
  EXPECT_EQ(ErrorKind::kBadRequest, kind_after([](Run&, At& at) { at.offset = (1ULL << 63U) - 64; }));
  EXPECT_EQ(ErrorKind::kBadRequest, kind_after([](Run&, At& at) { at.offset = 4; }));
  EXPECT_EQ(ErrorKind::kBadRequest, kind_after([](Run&, At& at) { at.bytes = 60; }));
  EXPECT_EQ(ErrorKind::kBadRequest, kind_after([](Run&, At& at) { at.type = DataType::kInt32; }));
  EXPECT_EQ(ErrorKind::kBadRequest, kind_after([](Run&, At& at) { at.shape = shape_of({16}); }));
  EXPECT_EQ(ErrorKind::kBadRequest, kind_after([](Run& run, At&) { run.slot = 2; }));
  EXPECT_EQ(ErrorKind::kBadRequest, kind_after([](Run& run, At&) { run.rows = 3; }));
  EXPECT_EQ(ErrorKind::kBadRequest, kind_after([](Run& run, At&) { run.rows = 0; }));
  EXPECT_EQ(ErrorKind::kBadRequest, kind_after([](Run& run, At&) { run.inputs.clear(); }));
  send(echo_run(2, 8));
  next_is<wire::Done>();
}

TEST_P(WireSuite, CountsItsBatchesAndTrims) {
  open({{"model", "echo"}});
  for (std::uint64_t batch = 0; batch < 3; ++batch) {
    send(echo_run(1, 1), batch);
    next_is<wire::Done>();
  }
  send(wire::Stat{});
  const auto stats = next_is<wire::Stats>();
  EXPECT_EQ(3U, stats.batches);
  EXPECT_GT(stats.resident, Bytes());
  EXPECT_GT(stats.libraries, Bytes());
  EXPECT_LE(stats.heap_used, stats.heap);
  send(wire::Trim{});
  EXPECT_GT(next_is<wire::Trimmed>().resident, Bytes());
}

TEST_P(WireSuite, StopsWhenToldTo) {
  open({{"model", "echo"}});
  send(wire::Stop{});
  EXPECT_EQ(0, worker_->exit_status());
}

TEST_P(WireSuite, EndsWhenTheFrontIsGone) {
  open({{"model", "echo"}});
  worker_->hang_up();
  EXPECT_EQ(0, worker_->exit_status());
}

TEST_P(WireSuite, RefusesAFrontOfAnotherVersion) {
  start();
  send(wire::Hello{.version = 99});
  EXPECT_EQ("wrong_version", next_is<wire::Failed>().reason);
  EXPECT_EQ(2, worker_->exit_status());
}

TEST_P(WireSuite, RefusesAHeaderOfAnotherVersion) {
  start();
  auto bytes = wire::encode({.ticket = 0, .body = wire::Hello{}});
  bytes[4] = std::byte{99};
  ASSERT_EQ(static_cast<ssize_t>(bytes.size()),
            ::send(worker_->channel().fd(), bytes.data(), bytes.size(), 0));
  EXPECT_EQ("wrong_version", next_is<wire::Failed>().reason);
  EXPECT_EQ(2, worker_->exit_status());
}

TEST_P(WireSuite, EndsOnWhatIsNotAMessageOrNotItsTurn) {
  open({{"model", "echo"}});
  ASSERT_EQ(7, ::send(worker_->channel().fd(), "garbage", 7, 0));
  EXPECT_EQ(2, worker_->exit_status());
  open({{"model", "echo"}});
  send(wire::Hello{});
  EXPECT_EQ(2, worker_->exit_status());
}

TEST_P(WireSuite, RefusesMemoryThatCouldShrink) {
  start();
  send(wire::Hello{});
  const auto text = wire::sealed_text("load", wire::to_json(wire::LoadDoc{.model = "m"}));
  const UniqueFd open_memory(::memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(0, ::ftruncate(open_memory.get(), 65536));
  const std::array<int, 4> fds = {text->get(), slots_[0].fd(), open_memory.get(), region_.fd()};
  send(wire::Load{65536, 4096}, 0, fds);
  next_is<wire::Failed>();
  EXPECT_EQ(3, worker_->exit_status());
}

TEST_P(WireSuite, SaysWhyItCannotLoad) {
  start();
  send(wire::Hello{});
  send_load({.model = "m", .options = {{"model", "no_such_model"}}});
  EXPECT_NE("", next_is<wire::Failed>().reason);
  EXPECT_EQ(3, worker_->exit_status());
}

INSTANTIATE_TEST_SUITE_P(
    Workers, WireSuite,
    testing::Values(Kind{"Stub", [] { return std::vector{testkit::built_program("tonnage-worker-stub")}; }},
                    Kind{"Python",
                         [] {
                           return std::vector<std::string>{
                               "/usr/bin/python3", "-I",
                               testkit::source_file("tests/integration/wire_worker.py")};
                         }},
                    Kind{"Native",
                         [] { return std::vector{testkit::built_program("tonnage-worker-native")}; },
                         [](const std::string& model) {
                           return testkit::source_file("workers/native/testdata/" + model + ".py");
                         },
                         "libtonnage_torch_allocator.so"}),
    [](const auto& chosen) { return std::string(chosen.param.name); });

}  // namespace
}  // namespace tonnage
