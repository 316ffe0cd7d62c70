// SPDX-License-Identifier: Apache-2.0
#include "torch/compiled_limits.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <utility>

namespace tonnage::torch_worker {
namespace {

using Facts = std::map<std::string, std::string>;

Result<std::string> fact(const Facts& facts, const char* key) {
  const auto found = facts.find(key);
  if (found != facts.end()) return found->second;
  return invalid("bad_model_file", fmt::format("the file does not say '{}'; export it again", key));
}

Result<wire::ValueRange> range_fact(const Facts& facts, const char* key) {
  TONNAGE_ASSIGN(const std::string text, fact(facts, key));
  std::istringstream in(text);
  wire::ValueRange range;
  if (in >> range.min >> range.max && range.min >= 1 && range.min <= range.max) return range;
  return invalid("bad_model_file", fmt::format("'{}' is '{}', not a lowest and a highest number", key, text));
}

// "2.13.0+cpu" and "libtorch 2.13.0" → "2.13.0"
std::string_view version_of(std::string_view text) {
  const std::size_t space = text.rfind(' ');
  if (space != std::string_view::npos) text.remove_prefix(space + 1);
  return text.substr(0, text.find('+'));
}

std::set<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

Status outside(std::string_view what, std::int64_t value, const wire::ValueRange& range) {
  return invalid("bad_input", fmt::format("{} of {} where the program was compiled for {} to {}", what, value,
                                          range.min, range.max));
}

bool is_inside(std::int64_t value, const wire::ValueRange& range) {
  return value >= range.min && value <= range.max;
}

Status wrong_machine(std::string detail) {
  return {Code::kUnavailable, "wrong_machine", std::move(detail) + "; export it again there"};
}

}  // namespace

std::string cpu_flags() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("flags")) return line.substr(line.find(':') + 1);
  }
  return {};
}

Status check_machine(const Facts& facts, const Machine& machine) {
  TONNAGE_ASSIGN(const std::string torch, fact(facts, kFactTorch));
  TONNAGE_ASSIGN(const std::string isa, fact(facts, kFactIsa));
  TONNAGE_ASSIGN(const std::string flags, fact(facts, kFactFlags));
  if (version_of(torch) != version_of(machine.runtime)) {
    return wrong_machine(
        fmt::format("the file was compiled for torch {}, this worker runs {}", torch, machine.runtime));
  }
  if (isa != machine.instruction_set) {
    return wrong_machine(fmt::format("the file was compiled for the instruction set {}, this machine has {}",
                                     isa, machine.instruction_set));
  }
  const std::set<std::string> there = words_of(machine.flags);
  std::string missing;
  for (const std::string& flag : words_of(flags)) {
    if (!there.contains(flag)) missing += (missing.empty() ? "" : ", ") + flag;
  }
  if (missing.empty()) return Status::ok();
  return wrong_machine(fmt::format("the file was compiled for a CPU with {}, which this one lacks", missing));
}

Result<CompiledLimits> CompiledLimits::from(const wire::LoadedDoc& said) {
  CompiledLimits limits;
  TONNAGE_ASSIGN(limits.rows_, range_fact(said.facts, kFactRows));
  limits.inputs_ = said.inputs;
  if (said.inputs.empty()) return invalid("bad_model_file", "the file names no inputs; export it again");
  bool has_length = false;
  for (const wire::TensorDoc& input : said.inputs) {
    has_length |= std::ranges::count(input.dims, -1) > 1;
    if (tensor::is_integer(input.type) && !input.range) {
      return invalid(
          "bad_model_file",
          fmt::format("the file does not say which values of '{}' are allowed; export it again", input.name));
    }
  }
  if (has_length) {
    TONNAGE_ASSIGN(limits.length_, range_fact(said.facts, kFactLength));
  }
  return limits;
}

Status CompiledLimits::check_agreement(std::span<const wire::TensorDoc> inputs) const {
  if (inputs.empty()) return Status::ok();
  const auto same = [](const wire::TensorDoc& a, const wire::TensorDoc& b) {
    return a.name == b.name && a.type == b.type && a.dims == b.dims;
  };
  if (std::ranges::equal(inputs, inputs_, same)) return Status::ok();
  std::string names;
  for (const wire::TensorDoc& input : inputs_)
    names += fmt::format("{}{} {} [{}]", names.empty() ? "" : ", ", input.name,
                         tensor::datatype_name(input.type), fmt::join(input.dims, ","));
  return invalid(
      "wrong_inputs",
      fmt::format("the compiled program takes, in this order: {}; model.toml says otherwise", names));
}

Status CompiledLimits::check(const kit::RunView& view) const {
  if (!is_inside(view.rows, rows_)) return outside("a batch", view.rows, rows_);
  if (length_ && !is_inside(view.length, *length_)) return outside("a length", view.length, *length_);
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    for (std::size_t axis = 1; axis < inputs_[i].dims.size(); ++axis) {
      const std::int64_t size = view.inputs[i].shape.dim(axis);
      if (inputs_[i].dims[axis] < 0 && size != std::int64_t{view.length}) {
        return invalid("bad_input", fmt::format("'{}' has {} in dim {}, the batch is padded to {}",
                                                inputs_[i].name, size, axis, view.length));
      }
    }
  }
  return Status::ok();
}

}  // namespace tonnage::torch_worker
