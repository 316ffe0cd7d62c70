// SPDX-License-Identifier: Apache-2.0
#include "kit/blocking_front.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>

#include <array>

#include "wire/channel.h"
#include "wire/segment.h"

namespace tonnage::kit {
namespace {

constexpr int kWorkerFd = 3;

Result<pid_t> spawn(const BlockingFrontOptions& options, int fd) {
  std::vector<std::string> variables{fmt::format("TONNAGE_WIRE_FD={}", kWorkerFd)};
  for (const auto& [name, value] : options.environment)
    variables.push_back(fmt::format("{}={}", name, value));
  std::vector<char*> environment;
  for (std::string& variable : variables) environment.push_back(variable.data());
  environment.push_back(nullptr);
  std::string program = options.program;
  std::array<char*, 2> arguments{program.data(), nullptr};

  posix_spawn_file_actions_t actions{};
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, fd, kWorkerFd);
  pid_t pid = -1;
  const int failed =
      ::posix_spawn(&pid, program.c_str(), &actions, nullptr, arguments.data(), environment.data());
  ::posix_spawn_file_actions_destroy(&actions);
  if (failed != 0)
    return Status(Code::kNotFound, "no_program", fmt::format("cannot start {}: error {}", program, failed));
  return pid;
}

Status unexpected(const wire::Body& body) {
  return invalid("bad_message", fmt::format("the worker answered with {}", wire::message_name(body)));
}

}  // namespace

struct BlockingFront::State {
  State(wire::Channel opened, pid_t started) : channel(std::move(opened)), pid(started) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  // The worker ends when its front is gone, in the middle of a batch at the end of that batch.
  ~State() {
    channel = wire::Channel(UniqueFd());
    while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
  }

  wire::Channel channel;
  pid_t pid;
  wire::Segment slot;
  wire::Segment region;
  wire::Loaded loaded;
  wire::LoadedDoc doc;
  std::uint64_t tickets = 0;
};

BlockingFront::BlockingFront(std::unique_ptr<State> state) : state_(std::move(state)) {}
BlockingFront::BlockingFront(BlockingFront&&) noexcept = default;
BlockingFront& BlockingFront::operator=(BlockingFront&&) noexcept = default;
BlockingFront::~BlockingFront() = default;

Result<BlockingFront> BlockingFront::start(const BlockingFrontOptions& options) {
  TONNAGE_ASSIGN(auto pair, wire::Channel::make_pair());
  if (::fcntl(pair.first.fd(), F_SETFL, O_RDWR) != 0)
    return internal("fcntl", "the channel stays non-blocking");
  TONNAGE_ASSIGN(const pid_t pid, spawn(options, pair.second.get()));
  pair.second.reset();
  BlockingFront front(std::make_unique<State>(std::move(pair.first), pid));
  State& s = *front.state_;
  TONNAGE_ASSIGN(s.slot, wire::Segment::create("slot", options.slot));
  TONNAGE_ASSIGN(s.region, wire::Segment::create("region", options.region));
  TONNAGE_ASSIGN(const UniqueFd doc, wire::sealed_text("load", wire::to_json(options.doc)));
  TONNAGE_ASSIGN(const UniqueFd slot, s.slot.read_only_fd());
  const std::array<int, 4> fds{doc.get(), slot.get(), slot.get(), s.region.fd()};
  TONNAGE_TRY(s.channel.send({.ticket = 0, .body = wire::Hello{}}));
  TONNAGE_TRY(
      s.channel.send({.ticket = 0, .body = wire::Load{options.slot.count(), options.region.count()}}, fds));
  TONNAGE_ASSIGN(const wire::Packet packet, s.channel.receive());
  if (const auto* failed = std::get_if<wire::Failed>(&packet.message.body)) {
    return internal("failed_to_load", fmt::format("{}: {}", failed->reason, failed->text));
  }
  const auto* loaded = std::get_if<wire::Loaded>(&packet.message.body);
  if (loaded == nullptr || packet.fds.size() != 1) return unexpected(packet.message.body);
  s.loaded = *loaded;
  TONNAGE_ASSIGN(const std::string text, wire::read_sealed_text(packet.fds[0].get(), mib(1)));
  TONNAGE_ASSIGN(s.doc, wire::parse_loaded_doc(text));
  return front;
}

pid_t BlockingFront::pid() const { return state_->pid; }
const wire::Loaded& BlockingFront::loaded() const { return state_->loaded; }
const wire::LoadedDoc& BlockingFront::loaded_doc() const { return state_->doc; }
MutableByteView BlockingFront::slot() { return state_->slot.view(); }

Result<wire::Message> BlockingFront::ask(wire::Body body, std::uint64_t ticket) {
  TONNAGE_TRY(state_->channel.send({.ticket = ticket, .body = std::move(body)}));
  TONNAGE_ASSIGN(wire::Packet packet, state_->channel.receive());
  return std::move(packet.message);
}

Result<FrontOutcome> BlockingFront::run(const wire::Run& run) {
  const std::uint64_t ticket = ++state_->tickets;
  TONNAGE_ASSIGN(wire::Message answer, ask(run, ticket));
  if (const auto* need = std::get_if<wire::Need>(&answer.body)) {
    TONNAGE_ASSIGN(state_->region, wire::Segment::create("region", need->output_bytes));
    const std::array<int, 1> fds{state_->region.fd()};
    TONNAGE_TRY(state_->channel.send(
        {.ticket = ticket, .body = wire::Region{.output_bytes = need->output_bytes.count()}}, fds));
    TONNAGE_ASSIGN(wire::Packet packet, state_->channel.receive());
    answer = std::move(packet.message);
  }
  if (auto* done = std::get_if<wire::Done>(&answer.body)) return FrontOutcome(std::move(*done));
  if (auto* error = std::get_if<wire::Error>(&answer.body)) return FrontOutcome(std::move(*error));
  return unexpected(answer.body);
}

Result<std::vector<std::byte>> BlockingFront::output(const wire::TensorLayout& layout) const {
  std::vector<std::byte> bytes(layout.bytes);
  TONNAGE_TRY(state_->region.copy_out(layout.offset, bytes));
  return bytes;
}

Result<wire::Trimmed> BlockingFront::trim() {
  TONNAGE_ASSIGN(const wire::Message answer, ask(wire::Trim{}, 0));
  const auto* trimmed = std::get_if<wire::Trimmed>(&answer.body);
  if (trimmed == nullptr) return unexpected(answer.body);
  return *trimmed;
}

Result<wire::Stats> BlockingFront::stat() {
  TONNAGE_ASSIGN(const wire::Message answer, ask(wire::Stat{}, 0));
  const auto* stats = std::get_if<wire::Stats>(&answer.body);
  if (stats == nullptr) return unexpected(answer.body);
  return *stats;
}

}  // namespace tonnage::kit
