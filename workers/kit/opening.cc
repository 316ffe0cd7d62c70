// SPDX-License-Identifier: Apache-2.0
#include "kit/opening.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "base/json_text.h"

namespace tonnage::kit {
namespace {

constexpr Bytes kMaxDoc = mib(1);
constexpr std::size_t kLoadFds = 1 + wire::kInputSlots + 1;

void log_line(std::string_view event, const Status& status) {
  const std::string line = fmt::format("{{\"event\":{},\"reason\":{},\"detail\":{}}}\n", json_string(event),
                                       json_string(status.reason()), json_string(status.detail()));
  (void)std::fwrite(line.data(), 1, line.size(), stderr);
}

Status greet(wire::Channel& channel) {
  TONNAGE_ASSIGN(const wire::Packet packet, channel.receive());
  const auto* hello = std::get_if<wire::Hello>(&packet.message.body);
  if (hello == nullptr) return unexpected(packet.message.body, "hello");
  if (hello->version != wire::kVersion) {
    return invalid("wrong_version", fmt::format("the front speaks version {}, this worker {}", hello->version,
                                                wire::kVersion));
  }
  return Status::ok();
}

Status open_segments(const wire::Load& load, std::vector<UniqueFd>& fds, Opening& into) {
  if (fds.size() != kLoadFds) {
    return invalid("bad_message", fmt::format("load carries {} descriptors, not {}", fds.size(), kLoadFds));
  }
  for (std::size_t i = 0; i < into.slots.size(); ++i) {
    TONNAGE_ASSIGN(into.slots.at(i), wire::Segment::open(std::move(fds[1 + i]), Bytes(load.slot_bytes),
                                                         wire::Access::kReadOnly));
  }
  TONNAGE_ASSIGN(into.region, wire::Segment::open(std::move(fds.back()), Bytes(load.output_bytes),
                                                  wire::Access::kReadWrite));
  return Status::ok();
}

}  // namespace

Status unexpected(const wire::Body& body, std::string_view awaited) {
  return invalid("bad_message",
                 fmt::format("{} came where {} was awaited", wire::message_name(body), awaited));
}

std::optional<wire::Channel> channel_from_environment() {
  const char* const text = std::getenv("TONNAGE_WIRE_FD");
  int fd = -1;
  if (text != nullptr) std::from_chars(text, text + std::strlen(text), fd);
  if (fd < 0 || ::fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) {
    std::fputs("this program is started by `tonnage serve`, which sets TONNAGE_WIRE_FD\n", stderr);
    return std::nullopt;
  }
  return wire::Channel(UniqueFd(fd));
}

Result<Opening> open_session(wire::Channel& channel) {
  TONNAGE_TRY(greet(channel));
  TONNAGE_ASSIGN(wire::Packet packet, channel.receive());
  const auto* load = std::get_if<wire::Load>(&packet.message.body);
  if (load == nullptr) return unexpected(packet.message.body, "load");
  Opening opening;
  TONNAGE_TRY(open_segments(*load, packet.fds, opening));
  TONNAGE_ASSIGN(const std::string text, wire::read_sealed_text(packet.fds[0].get(), kMaxDoc));
  TONNAGE_ASSIGN(opening.doc, wire::parse_load_doc(text));
  return opening;
}

int refuse(wire::Channel& channel, const Status& status) {
  if (status.reason() == "peer_closed" || status.reason() == "stopped") return kStopped;
  log_line("worker_ends", status);
  if (status.reason() == "bad_message") return kProtocolError;
  (void)channel.send(
      {.ticket = 0, .body = wire::Failed{.reason = std::string(status.reason()), .text = status.detail()}});
  return status.reason() == "wrong_version" ? kProtocolError : kLoadFailed;
}

}  // namespace tonnage::kit
