// SPDX-License-Identifier: Apache-2.0
#include "stub/runtime.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>

#include "stub/computation.h"
#include "stub/elements.h"

namespace tonnage::stub {
namespace {

// Of the allocator of the device that is pretended.
constexpr Bytes kSegment = mib(2);

// The private exception of a broken device; every later run fails as well.
class DeviceBroken final : public std::exception {};

std::uint64_t tokens_of(const kit::RunView& view) {
  return std::uint64_t{view.rows} * std::max<std::uint64_t>(view.length, 1);
}

bool holds(const kit::Tensor& tensor, std::size_t from, std::size_t to, std::int64_t wanted) {
  bool found = false;
  visit_elements(tensor, [&](auto elements) {
    const auto part = elements.subspan(from, to - from);
    found = std::ranges::any_of(part, [&](auto value) { return equals(value, wanted); });
  });
  return found;
}

bool row_holds(const kit::RunView& view, std::size_t row, std::optional<std::int64_t> wanted) {
  if (!wanted) return false;
  const kit::Tensor& first = view.inputs[0];
  const std::size_t length = first.shape.elements() / view.rows;
  return holds(first, row * length, (row + 1) * length, *wanted);
}

}  // namespace

Result<kit::Loaded> StubRuntime::load(const wire::LoadDoc& doc) {
  TONNAGE_ASSIGN(options_, parse_options(doc.options));
  TONNAGE_ASSIGN(log_, ExecutionLog::open(options_.execution_log));
  TONNAGE_ASSIGN(wire::LoadedDoc loaded, describe(options_.computation, doc));
  loaded.facts["model"] = options_.model;
  if (!options_.device.empty()) loaded.facts["device"] = options_.device;
  memory_.begin(doc.load_limit == Bytes() ? Bytes::max() : doc.load_limit);
  try {
    weights_ = memory_.allocate(options_.weights);
  } catch (const GrantExceeded&) {
    return Status(Code::kUnavailable, "over_load_limit",
                  fmt::format("the weights take {}, {} are allowed while loading",
                              format_bytes(options_.weights), format_bytes(doc.load_limit)));
  }
  memory_.end();
  std::this_thread::sleep_for(options_.load_time);
  if (options_.fails_to_load)
    return invalid("bad_model_file", "this stub model fails to load, as it was told");
  return kit::Loaded{.doc = std::move(loaded), .weights = options_.weights};
}

kit::RunResult StubRuntime::run(const kit::RunView& view) {
  memory_.begin(view.grant);
  kit::RunResult result = execute(view);
  memory_.end();
  ++batches_;
  reserved_ = std::max(reserved_, round_up(memory_.live() + memory_.peak(), kSegment));
  return result;
}

kit::RunResult StubRuntime::execute(const kit::RunView& view) {
  try {
    if (is_device_broken_) throw DeviceBroken();
    Block working = memory_.allocate(cost_of(view));
    keep_what_leaks(view);
    std::this_thread::sleep_for(options_.sleep +
                                options_.sleep_per_token * static_cast<std::int64_t>(tokens_of(view)));
    execute_rows(view);
    auto outputs = compute(options_.computation, view, memory_, outputs_);
    return kit::RunOutputs{.outputs = std::move(outputs), .peak = memory_.peak()};
  } catch (const GrantExceeded&) {
    return kit::RunError{.kind = wire::ErrorKind::kOverGrant,
                         .peak = memory_.peak(),
                         .needed = memory_.refused().value_or(Bytes()),
                         .text = "an allocation above the grant was refused"};
  } catch (const DeviceBroken&) {
    is_device_broken_ = true;
    return kit::RunError{.kind = wire::ErrorKind::kStickyDevice,
                         .peak = memory_.peak(),
                         .text = "device-side assert triggered; the context is unusable"};
  } catch (const std::runtime_error& error) {
    return kit::RunError{.kind = wire::ErrorKind::kModelError, .peak = memory_.peak(), .text = error.what()};
  }
}

void StubRuntime::execute_rows(const kit::RunView& view) {
  for (std::size_t row = 0; row < view.rows; ++row) {
    log_.add(view.inputs[0], row, view.rows);
    if (row_holds(view, row, options_.abort_on)) {
      log_.flush();
      std::abort();
    }
    if (row_holds(view, row, options_.throw_on)) {
      log_.flush();
      fail_row(view);
    }
  }
  log_.flush();
}

void StubRuntime::fail_row(const kit::RunView& view) {
  switch (options_.throw_as) {
    case ThrowAs::kValue:
      throw std::runtime_error(fmt::format("value {} is not in the vocabulary", *options_.throw_on));
    case ThrowAs::kOom:
      (void)memory_.allocate(view.grant + Bytes(1));
      throw std::runtime_error("the grant has no bound that could be exceeded");
    case ThrowAs::kOomWords: throw std::runtime_error("CUDA out of memory. Tried to allocate 2.00 GiB");
    case ThrowAs::kSticky: throw DeviceBroken();
  }
}

Bytes StubRuntime::cost_of(const kit::RunView& view) const {
  const std::uint64_t tokens = tokens_of(view);
  const Bytes honest = options_.bytes_per_row * view.rows + options_.bytes_per_token * tokens +
                       options_.bytes_per_token_squared * tokens * view.length;
  double factor = batches_ >= options_.lie_after ? options_.lie_factor : 1.0;
  if (options_.branch_on && holds(view.inputs[0], 0, view.inputs[0].shape.elements(), *options_.branch_on)) {
    factor *= options_.branch_factor;
  }
  return factor == 1.0 ? honest : scale(honest, factor);
}

void StubRuntime::keep_what_leaks(const kit::RunView& view) {
  if (options_.keep_bytes_per_call > Bytes())
    leaked_.push_back(memory_.allocate(options_.keep_bytes_per_call));
  const Bytes cached = options_.cache_bytes_per_token * tokens_of(view);
  if (cached > Bytes() && !cached_shapes_.contains({view.rows, view.length})) {
    cache_.push_back(memory_.allocate(cached));
    cached_shapes_.emplace(view.rows, view.length);
  }
}

std::optional<Bytes> StubRuntime::reserved() const {
  if (options_.device.empty()) return std::nullopt;
  return std::max(reserved_, round_up(memory_.live(), kSegment));
}

void StubRuntime::trim() {
  reserved_ = Bytes();
  cache_.clear();
  cached_shapes_.clear();
}

}  // namespace tonnage::stub
