// SPDX-License-Identifier: Apache-2.0
#include "model/fallback.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "model/detail/content_hash.h"

namespace tonnage::model {
namespace {

Status differ(const ModelSpec& spec, const std::string& what) {
  return invalid("bad_config",
                 fmt::format("model '{}' cannot fall back to '{}': {}", spec.name, spec.fallback, what));
}

std::string text_of(const TensorSpec& tensor) {
  std::string text = fmt::format("'{}' {} [{}]", tensor.name, tensor::datatype_name(tensor.type),
                                 fmt::join(tensor.dims, ", "));
  if (tensor.source == InputSource::kMask) text += " (generated mask)";
  return text;
}

std::string range_text(const std::optional<ValueRange>& range) {
  return range ? fmt::format("[{}, {}]", range->min, range->max) : "any value";
}

bool takes_all_of(const std::optional<ValueRange>& range, const std::optional<ValueRange>& other) {
  if (!range) return true;
  return other && range->min <= other->min && range->max >= other->max;
}

Status check_tensors(const ModelSpec& spec, const ModelSpec& fallback, std::string_view kind) {
  const auto& ours = kind == "input" ? spec.inputs : spec.outputs;
  const auto& theirs = kind == "input" ? fallback.inputs : fallback.outputs;
  if (ours.size() != theirs.size()) {
    return differ(spec, fmt::format("it has {} {}s and the fallback {}", ours.size(), kind, theirs.size()));
  }
  for (std::size_t i = 0; i < ours.size(); ++i) {
    if (text_of(ours[i]) != text_of(theirs[i])) {
      return differ(spec, fmt::format("{} {} is {} here and {} there", kind, i + 1, text_of(ours[i]),
                                      text_of(theirs[i])));
    }
    if (!takes_all_of(theirs[i].range, ours[i].range)) {
      return differ(spec, fmt::format("input '{}' may hold {} here and {} there", ours[i].name,
                                      range_text(ours[i].range), range_text(theirs[i].range)));
    }
  }
  return Status::ok();
}

Status check_limits(const ModelSpec& spec, const ModelSpec& fallback) {
  if (fallback.max_length < spec.max_length) {
    return differ(spec, fmt::format("its rows may have length {} and the fallback's {}", spec.max_length,
                                    fallback.max_length));
  }
  if (spec.too_long == TooLong::kChunk && fallback.chunk_pooling != spec.chunk_pooling) {
    return differ(spec, "it cuts long texts into chunks, and the fallback pools chunks in another way");
  }
  if (fallback.rows != spec.rows) return differ(spec, "'rows' is \"together\" in one of the two only");
  if (spec.rows == RowsRule::kTogether && fallback.batching.max_rows < spec.max_rows_per_request) {
    return differ(spec, fmt::format("its requests may have {} rows, which stay together, and the fallback's "
                                    "batches {}",
                                    spec.max_rows_per_request, fallback.batching.max_rows));
  }
  return Status::ok();
}

Result<std::string> hash_of(const TokenizerSpec& tokenizer) {
  ContentHash hash;
  hash.add_field(tokenizer.kind);
  hash.add_field(tokenizer.lowercase ? "lower" : "as it is");
  TONNAGE_TRY(add_file(hash, tokenizer.vocab));
  return hash.hex();
}

// Texts become ids before anybody knows which of the two will run them.
Status check_vocabulary(const ModelSpec& spec, const ModelSpec& fallback) {
  if (!spec.tokenizer || !fallback.tokenizer) return Status::ok();
  TONNAGE_ASSIGN(const std::string ours, hash_of(*spec.tokenizer));
  TONNAGE_ASSIGN(const std::string theirs, hash_of(*fallback.tokenizer));
  return ours == theirs ? Status::ok() : differ(spec, "their tokenizers are not the same");
}

}  // namespace

bool falls_back_to(const ModelSpec& spec, std::string_view name, const FindSpec& find) {
  std::set<std::string_view> seen;
  for (const ModelSpec* at = &spec; at != nullptr && !at->fallback.empty(); at = find(at->fallback)) {
    if (at->fallback == name) return true;
    if (!seen.insert(at->fallback).second) return false;
  }
  return false;
}

Status check_fallbacks(const ModelSpec& spec, const FindSpec& find) {
  std::set<std::string_view> seen{spec.name};
  std::string path = spec.name;
  for (const ModelSpec* at = &spec; !at->fallback.empty();) {
    path += " -> " + at->fallback;
    if (!seen.insert(at->fallback).second) {
      return differ(*at, fmt::format("the chain {} comes back to itself", path));
    }
    const ModelSpec* next = find(at->fallback);
    if (next == nullptr) {
      return {Code::kNotFound, "no_model", differ(*at, "there is no such model").detail()};
    }
    TONNAGE_TRY(check_tensors(*at, *next, "input"));
    TONNAGE_TRY(check_tensors(*at, *next, "output"));
    TONNAGE_TRY(check_limits(*at, *next));
    TONNAGE_TRY(check_vocabulary(*at, *next));
    at = next;
  }
  return Status::ok();
}

}  // namespace tonnage::model
