// SPDX-License-Identifier: Apache-2.0
// tonnage inspect: what a model is, and what it will cost.
#include <fmt/format.h>

#include <cstdio>
#include <string>

#include "base/json_text.h"
#include "lone_model.h"
#include "model/route.h"
#include "options.h"
#include "server/inspect.h"

namespace tonnage::app {
namespace {

std::string dims_text(const std::vector<std::int64_t>& dims) {
  std::string out = "[";
  for (std::size_t i = 0; i < dims.size(); ++i) out += (i > 0 ? "," : "") + std::to_string(dims[i]);
  return out + "]";
}

// Whether predictions could refuse is counted from traffic, so only a running server knows.
std::string_view enforce_text(const model::ModelSpec& spec) {
  return spec.enforce == model::Enforce::kOn ? "predictions refuse (enforce = \"on\")"
                                             : "predictions refuse nothing (enforce = \"observe\"); whether "
                                               "they safely may, a running server "
                                               "counts: safe_to_enforce in /v1/tonnage/status";
}

void print_tensors(const char* title, const std::vector<model::TensorSpec>& tensors) {
  for (const model::TensorSpec& tensor : tensors) {
    fmt::print("  {:<7} {:<22} {:<6} {}", title, tensor.name, tensor::datatype_name(tensor.type),
               dims_text(tensor.dims));
    if (tensor.range) fmt::print("  values {}…{}", tensor.range->min, tensor.range->max);
    if (tensor.source == model::InputSource::kMask) fmt::print("  generated mask");
    fmt::print("\n");
  }
}

std::string signed_bytes(std::int64_t bytes) {
  const auto amount = Bytes(static_cast<std::uint64_t>(bytes < 0 ? -bytes : bytes));
  return (bytes < 0 ? "-" : "") + format_bytes(amount);
}

void print_table(const server::Inspection& seen) {
  const model::ModelSpec& spec = *seen.spec;
  fmt::print("{} version {}, route {} in {}, {}\n", spec.name, spec.version, spec.route,
             model::precision_name(spec.precision), seen.loaded.runtime);
  print_tensors("input", spec.inputs);
  print_tensors("output", spec.outputs);
  fmt::print("\n  weights {}   base {}   ready after {:.1f} s   {}   margin {:.2f} %   enforcement {}\n",
             format_bytes(seen.memory.weights), format_bytes(seen.memory.base), to_seconds(seen.cold_start),
             cost::determinism_name(seen.determinism), seen.margin * 100, model::tier_name(spec.tier()));
  if (const auto& there = seen.memory.device) {
    fmt::print("  on {}: weights {}   base {}\n", spec.device, format_bytes(there->weights),
               format_bytes(there->base));
  }
  if (const auto& memory = seen.memory.accounts) {
    fmt::print("  resident {}: libraries {}, weights {}, tensors {}, caches {}, remainder {}\n",
               format_bytes(memory->resident), format_bytes(memory->libraries), format_bytes(memory->weights),
               format_bytes(memory->tensors), format_bytes(memory->caches), signed_bytes(memory->remainder));
  }
  if (const auto& kept = seen.memory.retention; kept.is_named)
    fmt::print("  it keeps {} with each row: {} so far\n", format_bytes(scale(Bytes(1), kept.bytes_per_row)),
               format_bytes(kept.kept));
  for (const auto& [key, value] : spec.metadata) fmt::print("  {}: {}\n", key, value);
  std::string sizes;
  for (const model::SizeSpec& size : spec.sizes) sizes += (sizes.empty() ? "" : " × ") + size.name;
  if (!sizes.empty())
    fmt::print("\n  length = padded {}, in units of {} positions\n", sizes, spec.positions_per_unit);
  fmt::print("\n  {:>5} {:>7} {:>12} {:>12} {:>10}\n", "rows", "length", "peak", "grant", "time");
  for (const server::GridPoint& point : seen.grid) {
    fmt::print("  {:>5} {:>7} {:>12} {:>12} {:>8.1f}ms{}\n", point.shape.rows, point.shape.length,
               format_bytes(point.peak), format_bytes(point.grant), to_millis(point.time),
               point.fits ? "" : "  does not fit");
  }
  fmt::print("\n  largest admissible batch in a budget of {}:\n", format_bytes(seen.budget));
  for (const server::LargestBatch& largest : seen.largest)
    fmt::print("    length {:>5}: {} rows\n", largest.length, largest.rows);
  const Bytes missing = saturating_sub(seen.smallest.total(), seen.budget);
  fmt::print("\n  smallest budget {}{}\n", seen.smallest.to_string(),
             missing == Bytes() ? "" : fmt::format("; {} are missing", format_bytes(missing)));
  fmt::print("  {}\n", enforce_text(spec));
}

void append_tensors(std::string& out, const std::vector<model::TensorSpec>& tensors) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    out += fmt::format("{}{{\"name\":{},\"datatype\":\"{}\",\"dims\":{}}}", i > 0 ? "," : "",
                       json_string(tensors[i].name), tensor::datatype_name(tensors[i].type),
                       dims_text(tensors[i].dims));
  }
}

void print_json(const server::Inspection& seen) {
  const model::ModelSpec& spec = *seen.spec;
  std::string out = fmt::format(
      "{{\"name\":{},\"version\":{},\"route\":{},\"precision\":\"{}\",\"runtime\":{},\"inputs\":[",
      json_string(spec.name), json_string(spec.version), json_string(spec.route),
      model::precision_name(spec.precision), json_string(seen.loaded.runtime));
  append_tensors(out, spec.inputs);
  out += "],\"outputs\":[";
  append_tensors(out, spec.outputs);
  out += fmt::format(
      "],\"weights_bytes\":{},\"base_bytes\":{},\"budget_bytes\":{},\"cold_start_ms\":{:.1f},"
      "\"determinism\":\"{}\",\"margin\":{:.6f},\"enforcement\":\"{}\",\"metadata\":{{",
      seen.memory.weights.count(), seen.memory.base.count(), seen.budget.count(), to_millis(seen.cold_start),
      cost::determinism_name(seen.determinism), seen.margin, model::tier_name(spec.tier()));
  bool first = true;
  for (const auto& [key, value] : spec.metadata) {
    out += (first ? "" : ",") + json_string(key) + ":" + json_string(value);
    first = false;
  }
  out += "},\"accounts\":";
  if (const auto& memory = seen.memory.accounts) {
    out += fmt::format(
        "{{\"resident\":{},\"libraries\":{},\"weights\":{},\"tensors\":{},\"caches\":{},\"runtime\":{},"
        "\"remainder\":{}}}",
        memory->resident.count(), memory->libraries.count(), memory->weights.count(), memory->tensors.count(),
        memory->caches.count(), memory->runtime.count(), memory->remainder);
  } else {
    out += "null";
  }
  out += fmt::format(",\"retained_bytes_per_row\":{:.1f},\"grid\":[", seen.memory.retention.bytes_per_row);
  for (std::size_t i = 0; i < seen.grid.size(); ++i) {
    const server::GridPoint& point = seen.grid[i];
    out += fmt::format(
        "{}{{\"rows\":{},\"length\":{},\"peak_bytes\":{},\"grant_bytes\":{},\"time_ms\":{:.3f},\"fits\":{}}}",
        i > 0 ? "," : "", point.shape.rows, point.shape.length, point.peak.count(), point.grant.count(),
        to_millis(point.time), point.fits);
  }
  out += "],\"largest_batch\":[";
  for (std::size_t i = 0; i < seen.largest.size(); ++i) {
    out += fmt::format("{}{{\"length\":{},\"rows\":{}}}", i > 0 ? "," : "", seen.largest[i].length,
                       seen.largest[i].rows);
  }
  // safe_to_enforce: null is not known; a running server counts it.
  fmt::print("{}],\"smallest_budget_bytes\":{},\"enforce\":\"{}\",\"safe_to_enforce\":{}}}\n", out,
             seen.smallest.total().count(), model::enforce_name(spec.enforce),
             spec.enforce == model::Enforce::kOn ? "true" : "null");
}

}  // namespace

int run_inspect(const InspectOptions& options) {
  const auto seen = [&] {
    TerminalProgress progress("profiling");
    return server::inspect(server_options(options), progress.show());
  }();
  if (!seen.is_ok()) {
    fmt::print(stderr, "tonnage inspect: {}\n", seen.status().detail());
    return kExitFailed;
  }
  if (options.json) {
    print_json(*seen);
  } else {
    print_table(*seen);
  }
  return kExitOk;
}

}  // namespace tonnage::app
