// SPDX-License-Identifier: Apache-2.0
#include "kit/serve.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cstring>
#include <exception>
#include <new>
#include <optional>
#include <string_view>
#include <utility>

#include "kit/checks.h"
#include "kit/opening.h"
#include "kit/parity.h"
#include "kit/process_memory.h"
#include "wire/channel.h"
#include "wire/segment.h"

namespace tonnage::kit {
namespace {

class Session {
 public:
  Session(wire::Channel channel, Opening opening, Runtime& runtime)
      : channel_(std::move(channel)), opening_(std::move(opening)), runtime_(runtime) {}

  int run_to_the_end() {
    if (Status status = load(); !status.is_ok()) return refuse(channel_, status);
    while (true) {
      auto packet = channel_.receive();
      if (!packet.is_ok()) return refuse(channel_, packet.status());
      if (std::holds_alternative<wire::Stop>(packet->message.body)) return kStopped;
      if (Status status = answer(packet->message); !status.is_ok()) return refuse(channel_, status);
    }
  }

 private:
  Status reply(std::uint64_t ticket, wire::Body body, std::span<const int> fds = {}) {
    return channel_.send({.ticket = ticket, .body = std::move(body)}, fds);
  }

  Status load();
  Status pass_the_gate(Loaded& loaded);
  Result<Loaded> load_runtime();

  Status answer(const wire::Message& message);
  Status run(std::uint64_t ticket, const wire::Run& run);
  RunResult run_runtime(const wire::Run& run);
  Status deliver(std::uint64_t ticket, const RunOutputs& result, wire::Done done);
  Status enlarge_region(std::uint64_t ticket, Bytes needed, bool& discarded);
  Status fail_run(std::uint64_t ticket, RunError error);
  Bytes resident() const {
    const auto reserved = runtime_.reserved();
    return reserved ? *reserved : resident_.read();
  }
  std::span<const wire::TensorDoc> output_specs() const {
    return opening_.doc.outputs.empty() ? loaded_.outputs : opening_.doc.outputs;
  }

  wire::Channel channel_;
  Opening opening_;
  Runtime& runtime_;
  ResidentReader resident_;
  // Before the model was loaded.
  const Bytes libraries_ = resident_.read();
  const Heap heap_before_ = read_heap();
  wire::LoadedDoc loaded_;
  std::vector<wire::TensorDoc> input_specs_;
  std::vector<Tensor> inputs_;
  std::uint64_t batches_ = 0;
  Bytes largest_grant_;
};

Status Session::load() {
  TONNAGE_ASSIGN(Loaded loaded, load_runtime());
  input_specs_ = input_specs(opening_.doc.inputs, loaded.doc.inputs);
  TONNAGE_TRY(pass_the_gate(loaded));
  if (const auto reserved = runtime_.reserved())
    loaded.doc.facts["reserved_bytes"] = fmt::format("{}", reserved->count());
  loaded_ = std::move(loaded.doc);
  TONNAGE_ASSIGN(const UniqueFd fd, wire::sealed_text("tonnage-loaded", wire::to_json(loaded_)));
  const std::array<int, 1> fds = {fd.get()};
  return reply(0, wire::Loaded{.weights = loaded.weights, .live = runtime_.live()}, fds);
}

// Held-out rows of the front, else those that the runtime made: a model that answers otherwise than it
// was exported is not served.
Status Session::pass_the_gate(Loaded& loaded) {
  TONNAGE_ASSIGN(ParityRule rule, parity_rule(opening_.doc, runtime_.live()));
  std::optional<HeldOut> rows = std::move(loaded.own_rows);
  if (const auto named = opening_.doc.options.find("held_out"); named != opening_.doc.options.end()) {
    TONNAGE_ASSIGN(rows, read_held_out(named->second));
  }
  if (!rows) return Status::ok();
  TONNAGE_TRY(put_in_order(*rows, input_specs_,
                           opening_.doc.outputs.empty() ? loaded.doc.outputs : opening_.doc.outputs));
  TONNAGE_ASSIGN(const Parity parity, prove_parity(runtime_, *rows, rule));
  loaded.doc.facts["parity_rows"] = fmt::format("{}", rows->rows.size());
  loaded.doc.facts["parity_min_cosine"] = fmt::format("{:.6f}", parity.min_cosine);
  loaded.doc.facts["parity_max_difference"] = fmt::format("{:.3g}", parity.max_difference);
  runtime_.trim();
  purge_malloc();  // what the rows took is no part of the model
  return Status::ok();
}

Result<Loaded> Session::load_runtime() {
  try {
    return runtime_.load(opening_.doc);
  } catch (const std::bad_alloc&) {
    return Status(Code::kUnavailable, "out_of_memory",
                  "the kernel refused memory while the model was loading");
  } catch (const std::exception& error) {
    return internal("load_failed", error.what());
  }
}

Status Session::answer(const wire::Message& message) {
  if (const auto* run_message = std::get_if<wire::Run>(&message.body))
    return run(message.ticket, *run_message);
  if (std::holds_alternative<wire::Stat>(message.body)) {
    const Heap heap = growth_since(heap_before_, read_heap());
    return reply(0, wire::Stats{.live = runtime_.live(),
                                .resident = resident(),
                                .batches = batches_,
                                .libraries = libraries_,
                                .heap = heap.resident,
                                .heap_used = heap.used});
  }
  if (std::holds_alternative<wire::Trim>(message.body)) {
    runtime_.trim();
    purge_malloc();
    return reply(0, wire::Trimmed{.live = runtime_.live(), .resident = resident()});
  }
  return unexpected(message.body, "run, trim, stat or stop");
}

Status Session::run(std::uint64_t ticket, const wire::Run& run) {
  if (run.slot >= opening_.slots.size()) {
    return fail_run(ticket,
                    {.kind = wire::ErrorKind::kBadRequest, .text = fmt::format("no slot {}", run.slot)});
  }
  const ByteView slot = std::as_const(opening_.slots.at(run.slot)).view();
  if (Status status = find_inputs(run, slot, input_specs_, inputs_); !status.is_ok()) {
    return fail_run(ticket, {.kind = wire::ErrorKind::kBadRequest, .text = status.detail()});
  }
  if (run.grant > largest_grant_) {
    // Free pages of smaller batches do not fit a larger one: they would stay resident beside it.
    largest_grant_ = run.grant;
    purge_malloc();
  }
  const auto began = std::chrono::steady_clock::now();
  RunResult result = run_runtime(run);
  wire::Done done{.execution = std::chrono::steady_clock::now() - began};
  ++batches_;
  if (auto* error = std::get_if<RunError>(&result)) return fail_run(ticket, std::move(*error));
  const auto& outputs = std::get<RunOutputs>(result);
  if (Status status = check_outputs(outputs.outputs, run.rows, output_specs()); !status.is_ok()) {
    return fail_run(ticket,
                    {.kind = wire::ErrorKind::kBadOutput, .peak = outputs.peak, .text = status.detail()});
  }
  return deliver(ticket, outputs, std::move(done));
}

RunResult Session::run_runtime(const wire::Run& run) {
  try {
    return runtime_.run({.inputs = inputs_, .rows = run.rows, .length = run.length, .grant = run.grant});
  } catch (const std::bad_alloc&) {
    return RunError{.kind = wire::ErrorKind::kPressure, .text = "the kernel refused memory inside the grant"};
  } catch (const std::exception& error) {
    return RunError{.kind = wire::ErrorKind::kModelError, .text = error.what()};
  }
}

Status Session::deliver(std::uint64_t ticket, const RunOutputs& result, wire::Done done) {
  const Bytes needed = place_outputs(result.outputs, done.outputs);
  if (needed > opening_.region.size()) {
    bool discarded = false;
    TONNAGE_TRY(enlarge_region(ticket, needed, discarded));
    if (discarded) {
      return fail_run(
          ticket, {.kind = wire::ErrorKind::kBadOutput,
                   .peak = result.peak,
                   .text = fmt::format("outputs of {} bytes were discarded by the front", needed.count())});
    }
  }
  for (std::size_t i = 0; i < result.outputs.size(); ++i) {
    const ByteView from = result.outputs[i].data;
    if (!from.empty())
      std::memcpy(opening_.region.view().data() + done.outputs[i].offset, from.data(), from.size());
  }
  runtime_.release_outputs();
  done.peak = result.peak;
  done.live = runtime_.live();
  done.resident = resident();
  return reply(ticket, std::move(done));
}

Status Session::enlarge_region(std::uint64_t ticket, Bytes needed, bool& discarded) {
  TONNAGE_TRY(reply(ticket, wire::Need{needed}));
  TONNAGE_ASSIGN(wire::Packet packet, channel_.receive());
  const wire::Message& message = packet.message;
  if (std::holds_alternative<wire::Stop>(message.body)) return {Code::kCancelled, "stopped", ""};
  discarded = std::holds_alternative<wire::Discard>(message.body);
  const auto* region = std::get_if<wire::Region>(&message.body);
  if (message.ticket != ticket || (region == nullptr && !discarded)) {
    return unexpected(message.body, "region or discard for the running ticket");
  }
  if (discarded) return Status::ok();
  if (packet.fds.size() != 1 || Bytes(region->output_bytes) < needed) {
    return invalid("bad_message", "region carries no descriptor, or is smaller than needed");
  }
  TONNAGE_ASSIGN(opening_.region, wire::Segment::open(std::move(packet.fds[0]), Bytes(region->output_bytes),
                                                      wire::Access::kReadWrite));
  return Status::ok();
}

Status Session::fail_run(std::uint64_t ticket, RunError error) {
  runtime_.release_outputs();
  return reply(ticket, wire::Error{.kind = error.kind,
                                   .peak = error.peak,
                                   .live = runtime_.live(),
                                   .needed = error.needed,
                                   .text = std::move(error.text)});
}

}  // namespace

int serve(wire::Channel channel, Opening opening, Runtime& runtime) {
  return Session(std::move(channel), std::move(opening), runtime).run_to_the_end();
}

int serve(wire::Channel channel, Runtime& runtime) {
  auto opening = open_session(channel);
  if (!opening.is_ok()) return refuse(channel, opening.status());
  return serve(std::move(channel), std::move(*opening), runtime);
}

int serve_from_environment(Runtime& runtime) {
  auto channel = channel_from_environment();
  return channel ? serve(std::move(*channel), runtime) : kNotStartedByTonnage;
}

}  // namespace tonnage::kit
