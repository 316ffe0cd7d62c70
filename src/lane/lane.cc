// SPDX-License-Identifier: Apache-2.0
#include "lane/lane.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_map>

namespace tonnage::lane {
namespace {

using SlotIndex = std::uint32_t;
constexpr SlotIndex kNone = ~SlotIndex{0};
constexpr std::size_t kRanks = 256;

// 1 is the highest priority, 255 the lowest that a client can name, and 0 (no wish) comes last.
std::size_t rank_of(std::uint8_t priority) { return priority == 0 ? kRanks - 1 : priority - 1U; }

struct Link {
  SlotIndex previous = kNone;
  SlotIndex next = kNone;
};

// A row's place. `generation` tells a window's old index from the row that moved in later.
struct Slot {
  QueuedRow row;
  Link order;    // among the rows of its priority, oldest first
  Link sibling;  // among the rows of its request
  std::uint32_t generation = 0;
};

struct Chain {
  SlotIndex first = kNone;
  SlotIndex last = kNone;
};

struct RequestHash {
  std::size_t operator()(const request::RequestId& id) const {
    return std::hash<std::uint64_t>()(std::uint64_t{id.generation} << 32U | id.index);
  }
};

}  // namespace

struct Lane::State {
  explicit State(const LaneLimits& bounds) : limits(bounds) {}

  // Inserts `slot` into a chain behind `before` (kNone: at its front).
  void link(Chain& chain, Link Slot::*link, SlotIndex slot, SlotIndex before) {
    Link& own = slots[slot].*link;
    own.previous = before;
    own.next = before == kNone ? chain.first : (slots[before].*link).next;
    (before == kNone ? chain.first : (slots[before].*link).next) = slot;
    (own.next == kNone ? chain.last : (slots[own.next].*link).previous) = slot;
  }
  void unlink(Chain& chain, Link Slot::*link, SlotIndex slot) {
    const Link own = slots[slot].*link;
    (own.previous == kNone ? chain.first : (slots[own.previous].*link).next) = own.next;
    (own.next == kNone ? chain.last : (slots[own.next].*link).previous) = own.previous;
  }

  // Arrivals go to the back; a row that comes back with its old arrival time goes to its old place.
  SlotIndex place_behind(const Chain& chain, TimePoint enqueued) const {
    if (chain.first == kNone || enqueued < slots[chain.first].row.enqueued) return kNone;
    SlotIndex at = chain.last;
    while (slots[at].row.enqueued > enqueued) at = slots[at].order.previous;
    return at;
  }

  void insert(const QueuedRow& row) {
    SlotIndex slot = 0;
    if (free.empty()) {
      slot = static_cast<SlotIndex>(slots.size());
      slots.emplace_back();
    } else {
      slot = free.back();
      free.pop_back();
    }
    slots[slot].row = row;
    Chain& order = by_rank[rank_of(row.priority)];
    link(order, &Slot::order, slot, place_behind(order, row.enqueued));
    Chain& siblings = by_request[row.request];
    link(siblings, &Slot::sibling, slot, siblings.last);
    ++rows;
    work += row.work;
    window_is_current = false;
  }

  QueuedRow extract(SlotIndex slot) {
    const QueuedRow row = slots[slot].row;
    unlink(by_rank[rank_of(row.priority)], &Slot::order, slot);
    const auto siblings = by_request.find(row.request);
    unlink(siblings->second, &Slot::sibling, slot);
    if (siblings->second.first == kNone) by_request.erase(siblings);
    ++slots[slot].generation;
    free.push_back(slot);
    --rows;
    work -= row.work;
    window_is_current = false;
    return row;
  }

  LaneLimits limits;
  std::vector<Slot> slots;
  std::vector<SlotIndex> free;
  std::array<Chain, kRanks> by_rank{};
  std::unordered_map<request::RequestId, Chain, RequestHash> by_request;
  std::size_t rows = 0;
  Duration work{0};

  std::vector<QueuedRow> window;
  std::vector<std::pair<SlotIndex, std::uint32_t>> window_slots;  // with the generation seen
  std::size_t window_limit = 0;
  bool window_is_current = false;
};

Lane::Lane(const LaneLimits& limits) : state_(std::make_unique<State>(limits)) {}
Lane::~Lane() = default;
Lane::Lane(Lane&&) noexcept = default;

Status Lane::push(std::span<const QueuedRow> rows) {
  State& s = *state_;
  Duration more{0};
  for (const QueuedRow& row : rows) more += row.work;
  // The newcomer's own work does not count: it would keep out the long rows and let the short ones in.
  if (s.rows + rows.size() > s.limits.max_rows || s.work >= s.limits.max_work) {
    const double excess = to_seconds(s.work + more - s.limits.max_work);
    return Status(
               Code::kOverloaded, "lane_full",
               fmt::format("the queue holds {} rows ({:.3f} predicted seconds) and {} more ({:.3f} s) do not "
                           "fit; at most {} rows and {:.3f} s are allowed",
                           s.rows, to_seconds(s.work), rows.size(), to_seconds(more), s.limits.max_rows,
                           to_seconds(s.limits.max_work)))
        .with_retry_after(static_cast<int>(std::ceil(std::clamp(excess, 1.0, 3600.0))));
  }
  for (const QueuedRow& row : rows) s.insert(row);
  return Status::ok();
}

void Lane::set_max_work(Duration max_work) { state_->limits.max_work = max_work; }

void Lane::put_back(std::span<const QueuedRow> rows) {
  for (const QueuedRow& row : rows) state_->insert(row);
}

std::span<const QueuedRow> Lane::window(std::size_t limit) {
  State& s = *state_;
  if (s.window_is_current && s.window_limit == limit) return s.window;
  s.window.clear();
  s.window_slots.clear();
  const std::size_t wanted = std::min(limit, s.rows);
  for (std::size_t rank = 0; s.window.size() < wanted; ++rank) {
    for (SlotIndex at = s.by_rank[rank].first; at != kNone && s.window.size() < wanted;
         at = s.slots[at].order.next) {
      s.window.push_back(s.slots[at].row);
      s.window_slots.emplace_back(at, s.slots[at].generation);
    }
  }
  s.window_limit = limit;
  s.window_is_current = true;
  return s.window;
}

std::vector<QueuedRow> Lane::take(std::span<const std::uint16_t> indices) {
  State& s = *state_;
  std::vector<QueuedRow> taken;
  taken.reserve(indices.size());
  for (const std::uint16_t index : indices) {
    if (index >= s.window_slots.size()) {
      TONNAGE_BUG("a row was taken by an index outside the lane's last window");
      continue;
    }
    const auto [slot, generation] = s.window_slots[index];
    // Left since the window was shown: taken before, answered at its deadline, or its client went away.
    if (s.slots[slot].generation != generation) continue;
    taken.push_back(s.extract(slot));
  }
  return taken;
}

std::size_t Lane::remove(request::RequestId request) {
  State& s = *state_;
  std::size_t removed = 0;
  for (auto found = s.by_request.find(request); found != s.by_request.end();
       found = s.by_request.find(request)) {
    s.extract(found->second.first);
    ++removed;
  }
  return removed;
}

std::size_t Lane::rows() const { return state_->rows; }
Duration Lane::work() const { return state_->work; }

}  // namespace tonnage::lane
