// SPDX-License-Identifier: Apache-2.0
#include "kit/parity.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <numeric>
#include <system_error>
#include <utility>

#include "kit/checks.h"
#include "tensor/block.h"

namespace tonnage::kit {
namespace {

// Padded tokens of the batch: a real one, and no more memory than a small batch of the server takes.
constexpr std::uint64_t kMostTokens = 2048;

// The shortest rows that fit one padded batch; empty when fewer than two do.
std::vector<std::size_t> batch_of(const HeldOut& held_out) {
  std::vector<std::size_t> rows(held_out.rows.size());
  std::iota(rows.begin(), rows.end(), std::size_t{0});
  std::ranges::stable_sort(rows, {}, [&](std::size_t row) { return held_out.rows[row].length; });
  std::size_t fitting = 0;
  while (fitting < rows.size() &&
         (fitting + 1) * std::max<std::uint64_t>(held_out.rows[rows[fitting]].length, 1) <= kMostTokens)
    ++fitting;
  rows.resize(fitting < 2 ? 0 : fitting);
  return rows;
}

// What a run gave for row `index` of it, without the padding.
std::vector<float> own_part(const Tensor& output, const HeldOutTensor& tensor, std::size_t index,
                            std::uint32_t length) {
  const auto own = tensor.dims_at(1, length);
  std::vector<std::int64_t> row(output.shape.dims().begin(), output.shape.dims().end());
  row[0] = 1;
  const std::size_t stride = output.data.size() / static_cast<std::size_t>(output.shape.dim(0));
  std::vector<float> part(tensor::Shape::make(own).value().elements());
  tensor::copy_block({output.data.subspan(index * stride, stride), row},
                     {std::as_writable_bytes(std::span(part)), own}, sizeof(float));
  return part;
}

class Comparison {
 public:
  explicit Comparison(const HeldOut& held_out) : held_out_(held_out) {}

  void add(std::span<const Tensor> outputs, std::span<const std::size_t> rows, std::string_view how) {
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      if (held_out_.outputs[o].type != tensor::DataType::kFp32) continue;
      for (std::size_t i = 0; i < rows.size(); ++i) {
        const HeldOutRow& row = held_out_.rows[rows[i]];
        const std::vector<float> got = own_part(outputs[o], held_out_.outputs[o], i, row.length);
        const std::vector<float>& want = row.outputs[o];
        note_difference(got, want);
        if (want.size() == 1) {
          single_[{o, std::string(how)}].add(got[0], want[0]);
          continue;
        }
        note_cosine(cosine(got, want), fmt::format("output '{}' of row {} (length {}), {}",
                                                   held_out_.outputs[o].name, rows[i], row.length, how));
      }
    }
  }

  Parity take() {
    for (const auto& [key, values] : single_) {
      note_cosine(cosine(values.got, values.want),
                  fmt::format("output '{}' of {} rows, {}", held_out_.outputs[key.first].name,
                              values.got.size(), key.second));
    }
    return std::move(parity_);
  }

 private:
  void note_difference(std::span<const float> got, std::span<const float> want) {
    for (std::size_t i = 0; i < want.size(); ++i) {
      const double difference = std::abs(double{got[i]} - double{want[i]});
      // A NaN stays: it is worse than any number.
      if (difference <= parity_.max_difference || std::isnan(parity_.max_difference)) continue;
      parity_.max_difference = difference;
    }
  }
  void note_cosine(double value, std::string where) {
    if (value >= parity_.min_cosine || std::isnan(parity_.min_cosine)) return;
    parity_.min_cosine = value;
    parity_.worst_at = std::move(where);
  }

  // A number alone has only a sign, so those of all rows that ran the same way are one vector.
  struct Values {
    std::vector<float> got{};
    std::vector<float> want{};
    void add(float g, float w) {
      got.push_back(g);
      want.push_back(w);
    }
  };

  const HeldOut& held_out_;
  Parity parity_;
  std::map<std::pair<std::size_t, std::string>, Values> single_;  // by output and how it ran
};

std::vector<wire::TensorDoc> docs_of(const std::vector<HeldOutTensor>& tensors) {
  std::vector<wire::TensorDoc> docs;
  for (const HeldOutTensor& tensor : tensors)
    docs.push_back({tensor.name, tensor.type, tensor.dims, tensor.range});
  return docs;
}

// Every output as long as the batch was padded to, so that cutting a row out of it is safe.
Status check_lengths(std::span<const Tensor> outputs, const HeldOut& held_out, std::uint32_t rows,
                     std::uint32_t length) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const auto wanted = held_out.outputs[i].dims_at(rows, length);
    if (!std::ranges::equal(outputs[i].shape.dims(), wanted)) {
      return internal(
          "parity", fmt::format("output '{}' has shape {} where [{}] was expected", held_out.outputs[i].name,
                                outputs[i].shape.to_string(), fmt::join(wanted, ",")));
    }
  }
  return Status::ok();
}

Status run_rows(Runtime& runtime, const HeldOut& held_out, std::span<const std::size_t> rows, Bytes grant,
                Comparison& comparison) {
  std::uint32_t length = 0;
  for (const std::size_t row : rows) length = std::max(length, held_out.rows[row].length);
  const auto count = static_cast<std::uint32_t>(rows.size());
  const std::string how = count == 1 ? "alone" : fmt::format("in a batch of {} × {}", count, length);
  std::vector<tensor::Buffer> storage;
  const std::vector<Tensor> inputs = gather(held_out, rows, length, storage);
  // As those of a front are: no runtime looks at them again.
  if (Status status = check_inputs(inputs, count, docs_of(held_out.inputs)); !status.is_ok())
    return internal("parity", fmt::format("held-out rows, {}: {}", how, status.detail()));
  const RunResult result = runtime.run({.inputs = inputs, .rows = count, .length = length, .grant = grant});
  if (const auto* error = std::get_if<RunError>(&result)) {
    return internal("parity", fmt::format("held-out row {} (length {}), {}, cannot be run: {}", rows.back(),
                                          held_out.rows[rows.back()].length, how, error->text));
  }
  const auto& outputs = std::get<RunOutputs>(result).outputs;
  const auto docs = docs_of(held_out.outputs);
  if (Status status = check_outputs(outputs, count, docs); !status.is_ok())
    return internal("parity", fmt::format("held-out rows, {}: {}", how, status.detail()));
  TONNAGE_TRY(check_lengths(outputs, held_out, count, length));
  comparison.add(outputs, rows, how);
  return Status::ok();
}

}  // namespace

double cosine(std::span<const float> got, std::span<const float> want) {
  double dot = 0;
  double got_squared = 0;
  double want_squared = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    dot += double{got[i]} * want[i];
    got_squared += double{got[i]} * got[i];
    want_squared += double{want[i]} * want[i];
  }
  if (got_squared == 0 || want_squared == 0) return got_squared == want_squared ? 1 : 0;
  return dot / (std::sqrt(got_squared) * std::sqrt(want_squared));
}

Result<ParityRule> parity_rule(const wire::LoadDoc& doc, Bytes live) {
  ParityRule rule;
  if (doc.load_limit > Bytes()) rule.grant = saturating_sub(doc.load_limit, live);
  const auto said = doc.options.find("parity_min_cosine");
  if (said == doc.options.end()) return rule;
  const std::string& text = said->second;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rule.min_cosine);
  if (error != std::errc() || end != text.data() + text.size() || !(rule.min_cosine <= 1)) {
    return invalid("bad_load_doc",
                   fmt::format("parity_min_cosine is '{}'; allowed is a number up to 1", text));
  }
  return rule;
}

Result<Parity> measure_parity(Runtime& runtime, const HeldOut& held_out, Bytes grant) {
  Comparison comparison(held_out);
  for (std::size_t i = 0; i < held_out.rows.size(); ++i) {
    const std::array<std::size_t, 1> alone = {i};
    const Status status = run_rows(runtime, held_out, alone, grant, comparison);
    runtime.release_outputs();
    TONNAGE_TRY(status);
  }
  if (const auto batch = batch_of(held_out); !batch.empty()) {
    const Status status = run_rows(runtime, held_out, batch, grant, comparison);
    runtime.release_outputs();
    TONNAGE_TRY(status);
  }
  return comparison.take();
}

Result<Parity> prove_parity(Runtime& runtime, const HeldOut& held_out, const ParityRule& rule) {
  TONNAGE_ASSIGN(Parity parity, measure_parity(runtime, held_out, rule.grant));
  if (parity.min_cosine >= rule.min_cosine) return parity;
  return internal("parity",
                  fmt::format("the least cosine is {:.6f} ({}); allowed from {} on. The largest "
                              "difference is {:.3g}",
                              parity.min_cosine, parity.worst_at, rule.min_cosine, parity.max_difference));
}

}  // namespace tonnage::kit
