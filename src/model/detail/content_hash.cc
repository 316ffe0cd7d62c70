// SPDX-License-Identifier: Apache-2.0
#include "model/detail/content_hash.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "base/unique_fd.h"

namespace tonnage::model {
namespace {

constexpr std::size_t kBlock = std::size_t{1} << 20;

// SplitMix64's finalizer, as in base/random.h.
std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

}  // namespace

void ContentHash::step(std::size_t lane, std::uint64_t word) {
  std::uint64_t& state = lanes_[lane];
  state = (state ^ word) * 0x9e3779b97f4a7c15ULL;
  state ^= state >> 29;
}

void ContentHash::add_block(ByteView bytes) {
  bytes_ += bytes.size();
  std::size_t lane = 0;
  while (!bytes.empty()) {
    const std::size_t take = std::min<std::size_t>(bytes.size(), sizeof(std::uint64_t));
    std::uint64_t word = 0;
    for (std::size_t i = 0; i < take; ++i)
      word |= std::uint64_t{std::to_integer<std::uint8_t>(bytes[i])} << (8 * i);
    step(lane, word);
    lane = (lane + 1) % lanes_.size();
    bytes = bytes.subspan(take);
  }
}

void ContentHash::add_field(std::string_view text) {
  step(0, text.size() + 1);
  add_block(as_bytes(text));
}

std::string ContentHash::hex() const {
  std::uint64_t low = mix(bytes_);
  std::uint64_t high = ~low;
  for (const std::uint64_t lane : lanes_) {
    low = mix(low ^ lane);
    high = mix(high + lane * 0xd1342543de82ef95ULL);
  }
  return fmt::format("{:016x}{:016x}", high, low);
}

Status add_file(ContentHash& hash, const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::vector<std::byte> block(kBlock);
  std::size_t filled = 0;
  bool at_end = !file;
  while (!at_end) {
    const ssize_t got = ::read(file.get(), block.data() + filled, block.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) break;
    filled += static_cast<std::size_t>(got);
    at_end = got == 0;
    // Only whole blocks, so that the hash does not depend on how read() cut the file.
    if (filled == block.size() || at_end) {
      hash.add_block(std::span(block).first(filled));
      filled = 0;
    }
  }
  if (file && at_end) return Status::ok();
  return {Code::kNotFound, "no_model", fmt::format("{} cannot be read: {}", path, std::strerror(errno))};
}

}  // namespace tonnage::model
