// SPDX-License-Identifier: Apache-2.0
#include "stub/malicious.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <limits>
#include <span>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/random.h"

namespace tonnage::stub {
namespace {

constexpr int kFlood = 1'000'000;
// In an encoded `done` with outputs (docs/wire.md).
constexpr std::size_t kFirstTensor = 64;
constexpr std::size_t kFirstOffset = kFirstTensor + 8;
constexpr std::size_t kFirstDim = kFirstTensor + 24;

struct Attack {
  wire::Channel& channel;
  kit::Opening& opening;
  std::uint64_t ticket;
  const wire::Run& run;

  // Sends bytes as they are, with `fds` copies of our own socket.
  void send_raw(ByteView bytes, std::size_t fds = 0) const {
    const std::vector<int> numbers(fds, channel.fd());
    std::vector<std::byte> control(CMSG_SPACE(fds * sizeof(int)));
    iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    if (fds > 0) {
      header.msg_control = control.data();
      header.msg_controllen = control.size();
      cmsghdr* const rights = CMSG_FIRSTHDR(&header);
      rights->cmsg_level = SOL_SOCKET;
      rights->cmsg_type = SCM_RIGHTS;
      rights->cmsg_len = CMSG_LEN(fds * sizeof(int));
      std::memcpy(CMSG_DATA(rights), numbers.data(), fds * sizeof(int));
    }
    (void)::sendmsg(channel.fd(), &header, MSG_NOSIGNAL);
  }
  bool send(wire::Body body, std::uint64_t as_ticket) const {
    return channel.send({.ticket = as_ticket, .body = std::move(body)}).is_ok();
  }

  // What a good echo would say, with the data in place.
  wire::Done good_answer() const {
    wire::Done done;
    if (run.inputs.empty()) return done;
    const wire::TensorLayout& input = run.inputs[0];
    const ByteView from = std::as_const(opening.slots.at(run.slot)).view().subspan(input.offset, input.bytes);
    const std::size_t fits = std::min(from.size(), opening.region.size().size());
    std::memcpy(opening.region.view().data(), from.data(), fits);
    done.outputs = {{input.type, input.shape, 0, input.bytes}};
    return done;
  }
  std::vector<std::byte> good_bytes() const {
    return wire::encode({.ticket = ticket, .body = good_answer()});
  }

  template <typename T>
  void send_patched(std::size_t offset, T value) const {
    auto bytes = good_bytes();
    std::memcpy(bytes.data() + offset, &value, sizeof value);
    send_raw(bytes);
  }
  void send_good() const { (void)send(good_answer(), ticket); }
};

void resize_segments(const Attack& a, off_t size) {
  for (const int fd : {a.opening.region.fd(), a.opening.slots[0].fd(), a.opening.slots[1].fd()}) {
    (void)!::ftruncate(fd, size);
  }
}

void shrink(const Attack& a) {
  wire::Done answer = a.good_answer();
  resize_segments(a, 0);
  (void)a.send(std::move(answer), a.ticket);
}
void grow(const Attack& a) {
  wire::Done answer = a.good_answer();
  resize_segments(a, 1LL << 40);
  (void)a.send(std::move(answer), a.ticket);
}
void punch_holes(const Attack& a) {
  wire::Done answer = a.good_answer();
  (void)::fallocate(a.opening.region.fd(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                    static_cast<off_t>(a.opening.region.size().count()));
  (void)a.send(std::move(answer), a.ticket);
}

// Answers with one string per row whose lengths a second thread keeps changing.
void racing_lengths(const Attack& a) {
  const std::span<std::uint32_t> words = as_elements<std::uint32_t>(a.opening.region.view());
  const std::size_t rows = std::min<std::size_t>(a.run.rows, words.size() / 2);
  std::atomic<bool> stop = false;
  std::jthread racer([&] {
    for (std::uint32_t length = 4; !stop; length = length == 4 ? 0xffffffffU : 4) {
      for (std::size_t row = 0; row < rows; ++row) words[2 * row] = length;
    }
  });
  const std::array<std::int64_t, 1> dims = {static_cast<std::int64_t>(rows)};
  (void)a.send(
      wire::Done{.outputs = {{tensor::DataType::kBytes, tensor::Shape::make(dims).value(), 0, rows * 8}}},
      a.ticket);
  std::byte next{};  // race until the front says something else or leaves
  (void)::recv(a.channel.fd(), &next, 1, MSG_PEEK);
  stop = true;
}

void answer_twice(const Attack& a) {
  a.send_good();
  a.send_good();
}
void wrong_ticket(const Attack& a) { (void)a.send(a.good_answer(), a.ticket + 1); }
void wrong_type(const Attack& a) { (void)a.send(wire::Loaded{}, 0); }
void outside_region(const Attack& a) { a.send_patched(kFirstOffset, a.opening.region.size().count()); }
void wrapping_offset(const Attack& a) {
  a.send_patched(kFirstOffset, std::uint64_t{std::numeric_limits<std::int64_t>::max()} - 63);
}
void huge_dims(const Attack& a) { a.send_patched(kFirstDim, std::numeric_limits<std::int64_t>::max()); }
void negative_dims(const Attack& a) { a.send_patched(kFirstDim, std::int64_t{-1}); }
void more_rows(const Attack& a) { a.send_patched(kFirstDim, std::int64_t{a.run.rows} + 1); }
void half_message(const Attack& a) {
  const auto bytes = a.good_bytes();
  a.send_raw(ByteView(bytes).first(bytes.size() / 2));
}
void close_in_message(const Attack& a) {
  half_message(a);
  ::_exit(0);
}
void leave_quietly(const Attack&) { ::_exit(0); }
void garbage(const Attack& a) {
  Random random(a.ticket);
  std::array<std::byte, 200> bytes{};
  std::ranges::generate(bytes, [&] { return static_cast<std::byte>(random.below(256)); });
  a.send_raw(bytes);
}
void empty_message(const Attack& a) { a.send_raw({}); }
void flood(const Attack& a) {
  for (int i = 0; i < kFlood && a.send(wire::Stats{}, 0); ++i) continue;
  a.send_good();
}
void send_fds(const Attack& a) { a.send_raw(a.good_bytes(), wire::kMaxFds); }
void too_many_fds(const Attack& a) { a.send_raw(a.good_bytes(), 100); }
void never_answer(const Attack&) {}
void need_too_much(const Attack& a) { (void)a.send(wire::Need{Bytes(1ULL << 62U)}, a.ticket); }
void need_for_ever(const Attack& a) {
  Bytes size = a.opening.region.size();
  while (a.send(wire::Need{size += kib(4)}, a.ticket)) {
    const auto answer = a.channel.receive();
    if (!answer.is_ok() || std::holds_alternative<wire::Stop>(answer->message.body)) ::_exit(0);
  }
}

struct Mode {
  std::string_view name;
  void (*on_run)(const Attack&);
};
constexpr Mode kModes[] = {
    {"shrink", shrink},
    {"grow", grow},
    {"punch_holes", punch_holes},
    {"racing_lengths", racing_lengths},
    {"answer_twice", answer_twice},
    {"wrong_ticket", wrong_ticket},
    {"wrong_type", wrong_type},
    {"outside_region", outside_region},
    {"wrapping_offset", wrapping_offset},
    {"huge_dims", huge_dims},
    {"negative_dims", negative_dims},
    {"more_rows", more_rows},
    {"half_message", half_message},
    {"close_in_message", close_in_message},
    {"leave_quietly", leave_quietly},
    {"garbage", garbage},
    {"empty_message", empty_message},
    {"flood", flood},
    {"send_fds", send_fds},
    {"too_many_fds", too_many_fds},
    {"never_answer", never_answer},
    {"need_too_much", need_too_much},
    {"need_for_ever", need_for_ever},
};

Status say_loaded(std::string_view mode, wire::Channel& channel, const wire::LoadDoc& doc) {
  wire::LoadedDoc loaded{.runtime = "stub", .inputs = doc.inputs};
  if (loaded.inputs.empty()) loaded.inputs = {{"x", tensor::DataType::kFp32, {-1, -1}}};
  loaded.outputs = doc.outputs.empty() ? loaded.inputs : doc.outputs;
  if (doc.outputs.empty()) loaded.outputs[0].name = "y";
  if (mode == "racing_lengths") loaded.outputs = {{"y", tensor::DataType::kBytes, {-1}}};
  const bool is_bad = mode == "bad_document";
  TONNAGE_ASSIGN(UniqueFd fd, wire::sealed_text("loaded", is_bad ? "{\"inputs\": 7" : wire::to_json(loaded)));
  if (mode == "unsealed_document") fd = UniqueFd(::memfd_create("loaded", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  const std::array<int, 1> fds = {fd.get()};
  const std::size_t sent = mode == "no_document" ? 0 : 1;
  return channel.send({.ticket = 0, .body = wire::Loaded{}}, std::span(fds).first(sent));
}

void answer(std::string_view mode, wire::Channel& channel, kit::Opening& opening,
            const wire::Message& message) {
  if (std::holds_alternative<wire::Trim>(message.body))
    (void)channel.send({.ticket = 0, .body = wire::Trimmed{}});
  if (std::holds_alternative<wire::Stat>(message.body))
    (void)channel.send({.ticket = 0, .body = wire::Stats{}});
  const auto* run = std::get_if<wire::Run>(&message.body);
  if (run == nullptr) return;
  const Attack attack{channel, opening, message.ticket, *run};
  for (const Mode& known : kModes) {
    if (known.name == mode) return known.on_run(attack);
  }
  attack.send_good();  // a mode of loading only
}

}  // namespace

int misbehave(const std::string& mode, wire::Channel& channel, kit::Opening& opening) {
  if (Status status = say_loaded(mode, channel, opening.doc); !status.is_ok())
    return kit::refuse(channel, status);
  if (mode == "answer_unasked") (void)channel.send({.ticket = 1, .body = wire::Done{}});
  while (true) {
    const auto packet = channel.receive();
    if (!packet.is_ok()) return kit::refuse(channel, packet.status());
    if (std::holds_alternative<wire::Stop>(packet->message.body)) return kit::kStopped;
    answer(mode, channel, opening, packet->message);
  }
}

}  // namespace tonnage::stub
