// SPDX-License-Identifier: Apache-2.0
#include "model/detail/consistency.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

#include "tensor/shape.h"

namespace tonnage::model {
namespace {

template <typename... Args>
Status bad(const std::string& where, fmt::format_string<Args...> text, Args&&... args) {
  return invalid("bad_config", where + ": " + fmt::format(text, std::forward<Args>(args)...));
}

constexpr std::uint32_t kSpecialTokens = 2;  // [CLS] and [SEP] around each chunk

std::string dims_text(const TensorSpec& tensor) { return fmt::format("[{}]", fmt::join(tensor.dims, ", ")); }

// What an integer type can hold; a range or a pad value outside of it is a typing error.
ValueRange range_of(tensor::DataType type) {
  using enum tensor::DataType;
  constexpr auto kMax64 = std::numeric_limits<std::int64_t>::max();
  switch (type) {
    case kBool: return {0, 1};
    case kUint8: return {0, 0xff};
    case kUint16: return {0, 0xffff};
    case kUint32: return {0, 0xffffffff};
    case kUint64: return {0, kMax64};
    case kInt8: return {-0x80, 0x7f};
    case kInt16: return {-0x8000, 0x7fff};
    case kInt32: return {std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max()};
    default: return {std::numeric_limits<std::int64_t>::min(), kMax64};
  }
}

Status check_dims(const TensorSpec& tensor, std::string_view kind, const std::string& where) {
  if (tensor.dims.empty() || tensor.dims.size() > tensor::kMaxRank) {
    return bad(where, "{} '{}' has {} dims; allowed: 1 to {}", kind, tensor.name, tensor.dims.size(),
               tensor::kMaxRank);
  }
  if (tensor.dims[0] != -1) {
    return bad(where, "{} '{}' has dims {}; the first is the row dim and must be -1", kind, tensor.name,
               dims_text(tensor));
  }
  for (const std::int64_t dim : tensor.dims) {
    if (dim == 0 || dim < -1) {
      return bad(where, "{} '{}' has dims {}; each must be -1 (free) or above zero", kind, tensor.name,
                 dims_text(tensor));
    }
  }
  return Status::ok();
}

Status check_input(const TensorSpec& input, const std::string& where) {
  const auto free = std::count(input.dims.begin() + 1, input.dims.end(), std::int64_t{-1});
  if (free > 1 && input.sizes.empty()) {
    return bad(where,
               "input '{}' has dims {}; only one dim after the row dim may be free, unless all are named by "
               "'sizes' and [[size]]",
               input.name, dims_text(input));
  }
  const ValueRange type_range = range_of(input.type);
  if (input.range) {
    if (!tensor::is_integer(input.type)) {
      return bad(where, "input '{}' is {}; a range is for integer types", input.name,
                 tensor::datatype_name(input.type));
    }
    if (input.range->min > input.range->max || input.range->min < type_range.min ||
        input.range->max > type_range.max) {
      return bad(where, "input '{}' has range [{}, {}]; it must be ascending and inside [{}, {}] ({})",
                 input.name, input.range->min, input.range->max, type_range.min, type_range.max,
                 tensor::datatype_name(input.type));
    }
  }
  const ValueRange pad_range = input.range.value_or(type_range);
  if (input.has_length() && (input.pad_value < pad_range.min || input.pad_value > pad_range.max)) {
    return bad(where, "input '{}' is padded with {}, which is outside its range [{}, {}]", input.name,
               input.pad_value, pad_range.min, pad_range.max);
  }
  if (input.source == InputSource::kMask && (!input.has_length() || input.type == tensor::DataType::kBytes)) {
    return bad(where, "input '{}' has source = \"mask\"; a mask needs a free dim and a numeric type",
               input.name);
  }
  return Status::ok();
}

Status check_names(const std::vector<TensorSpec>& tensors, std::string_view kind, const std::string& where) {
  std::set<std::string_view> names;
  for (const TensorSpec& tensor : tensors) {
    if (tensor.name.empty()) return bad(where, "an {} has no name", kind);
    if (!names.insert(tensor.name).second) return bad(where, "{} '{}' is there twice", kind, tensor.name);
    TONNAGE_TRY(check_dims(tensor, kind, where));
  }
  return Status::ok();
}

Status check_length(const ModelSpec& spec, const std::string& where) {
  if (spec.inputs.empty()) return Status::ok();
  const bool any =
      std::any_of(spec.inputs.begin(), spec.inputs.end(), [](const auto& t) { return t.has_length(); });
  if (any && spec.max_length == 0) {
    return bad(where, "'max_length' is missing: an input has a free dim, so the longest row must be known");
  }
  if (!any && spec.max_length > 0) {
    return bad(where, "'max_length' is {}, but no input has a free dim after the row dim", spec.max_length);
  }
  const bool length_is_sent = std::any_of(spec.inputs.begin(), spec.inputs.end(), [](const TensorSpec& t) {
    return t.has_length() && t.source == InputSource::kClient;
  });
  if (any && !length_is_sent) {
    return bad(where, "every input with a free dim is a generated mask; one must come from the client");
  }
  return Status::ok();
}

bool has_size(const TensorSpec& tensor, std::size_t size) {
  for (std::size_t i = 1; i < tensor.dims.size(); ++i) {
    if (tensor.dims[i] < 0 && tensor.size_of(i) == size) return true;
  }
  return false;
}

Status check_named_sizes(const ModelSpec& spec, const std::string& where) {
  if (spec.sizes.empty()) return Status::ok();
  if (spec.batching.policy == Policy::kBuckets) {
    return bad(where, "policy \"buckets\" has edges of one length; a model with [[size]] takes dp or fifo");
  }
  std::uint64_t groups = 1;
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < spec.sizes.size(); ++i) {
    const SizeSpec& size = spec.sizes[i];
    if (!names.insert(size.name).second) return bad(where, "[[size]] '{}' is there twice", size.name);
    const bool is_sent = std::ranges::any_of(spec.inputs, [&](const TensorSpec& input) {
      return input.source == InputSource::kClient && has_size(input, i);
    });
    if (!spec.inputs.empty() && !is_sent) {
      return bad(where, "[[size]] '{}' is no dim of an input that the client sends", size.name);
    }
    groups *= (size.max + size.multiple - 1) / size.multiple + 1;
    if (groups > std::numeric_limits<std::uint32_t>::max()) {
      return bad(where, "the sizes can be combined in more than 2^32 ways; raise 'multiple' or lower 'max'");
    }
  }
  for (const auto* tensors : {&spec.inputs, &spec.outputs}) {
    for (const TensorSpec& tensor : *tensors) {
      if (!tensor.has_length() || !tensor.sizes.empty()) continue;
      return bad(where, "'{}' has dims {}; 'sizes' must name each free dim after the row dim", tensor.name,
                 dims_text(tensor));
    }
  }
  return Status::ok();
}

// A gigabyte for one row is a typing error, and small enough that no later product wraps.
Status check_sizes(const ModelSpec& spec, const std::string& where) {
  const Bytes limit = gib(1);
  std::string largest;
  for (std::size_t i = 0; i < std::max<std::size_t>(spec.sizes.size(), 1); ++i) {
    largest += fmt::format("{}{} {}", i > 0 ? ", " : "", spec.size_name(i), spec.largest(i));
  }
  for (std::size_t i = 0; i < spec.inputs.size(); ++i) {
    const Bytes bytes = spec.input_row_bytes(i, spec.largest_size());
    if (bytes > limit) {
      return bad(where, "the largest row of input '{}' is {} ({}); allowed: {}", spec.inputs[i].name,
                 format_bytes(bytes), largest, format_bytes(limit));
    }
  }
  const Bytes bytes = spec.output_row_bytes(spec.largest_size());
  if (bytes > limit) {
    return bad(where, "the outputs of the largest row are {} ({}); allowed: {}", format_bytes(bytes), largest,
               format_bytes(limit));
  }
  return Status::ok();
}

Status check_text(const ModelSpec& spec, const std::string& where) {
  if (spec.tokenizer && !spec.inputs.empty()) {
    const bool takes_ids = std::any_of(spec.inputs.begin(), spec.inputs.end(), [](const TensorSpec& t) {
      return t.has_length() && t.source == InputSource::kClient &&
             (t.type == tensor::DataType::kInt64 || t.type == tensor::DataType::kInt32);
    });
    if (!takes_ids)
      return bad(where, "[tokenizer] needs an INT64 or INT32 input with a free dim for the ids");
  }
  if (!spec.labels.empty() && !spec.outputs.empty()) {
    const TensorSpec& scores = spec.outputs.front();
    const std::int64_t last = scores.dims.back();
    if (scores.dims.size() < 2 || (last > 0 && last != static_cast<std::int64_t>(spec.labels.size()))) {
      return bad(where, "there are {} labels, but the first output '{}' has dims {}", spec.labels.size(),
                 scores.name, dims_text(scores));
    }
  }
  return Status::ok();
}

// Only what has the same size for every chunk can be pooled.
Status check_chunks(const ModelSpec& spec, const std::string& where) {
  if (spec.too_long != TooLong::kChunk) return Status::ok();
  if (!spec.tokenizer) {
    return bad(where, "too_long = \"chunk\" cuts texts into rows of tokens; it needs a [tokenizer]");
  }
  if (spec.max_length > 0 && spec.chunk_overlap + kSpecialTokens >= spec.max_length) {
    return bad(where, "'chunk_overlap' is {}; a chunk of {} tokens must also bring tokens of its own",
               spec.chunk_overlap, spec.max_length);
  }
  for (const TensorSpec& output : spec.outputs) {
    if (output.has_length()) {
      return bad(where,
                 "too_long = \"chunk\", but output '{}' has dims {}; an output that follows the length has "
                 "nothing to pool",
                 output.name, dims_text(output));
    }
    const bool is_real = output.type == tensor::DataType::kFp32 || output.type == tensor::DataType::kFp64;
    if (!is_real && spec.chunk_pooling != ChunkPooling::kFirst) {
      return bad(where, "output '{}' is {}; chunks are pooled by mean or max in FP32 and FP64 only",
                 output.name, tensor::datatype_name(output.type));
    }
  }
  return Status::ok();
}

Status check_batching(const ModelSpec& spec, const std::string& where) {
  const BatchingOptions& batching = spec.batching;
  if (spec.long_executor.count > 0 && spec.max_length > 0 && spec.max_length <= batching.long_above) {
    return bad(where, "'workers.long_count' is {}, but no row is longer than 'batching.long_above' ({})",
               spec.long_executor.count, batching.long_above);
  }
  if (batching.window < batching.max_rows) {
    return bad(where, "'batching.window' is {} and 'batching.max_rows' {}; the window must hold one batch",
               batching.window, batching.max_rows);
  }
  if (spec.max_rows_per_request > batching.max_queue_rows) {
    return bad(
        where,
        "'max_rows_per_request' is {} and 'batching.max_queue_rows' {}; such a request could never wait",
        spec.max_rows_per_request, batching.max_queue_rows);
  }
  if (spec.rows == RowsRule::kTogether && spec.max_rows_per_request > batching.max_rows) {
    return bad(where, "rows = \"together\" and 'max_rows_per_request' is {}; it must fit one batch of {}",
               spec.max_rows_per_request, batching.max_rows);
  }
  if (batching.edges.empty() || !std::is_sorted(batching.edges.begin(), batching.edges.end()) ||
      std::adjacent_find(batching.edges.begin(), batching.edges.end()) != batching.edges.end()) {
    return bad(where, "'batching.edges' must ascend and not be empty");
  }
  return Status::ok();
}

}  // namespace

Status check_consistency(const ModelSpec& spec, const std::string& where) {
  TONNAGE_TRY(check_names(spec.inputs, "input", where));
  TONNAGE_TRY(check_names(spec.outputs, "output", where));
  for (const TensorSpec& input : spec.inputs) TONNAGE_TRY(check_input(input, where));
  TONNAGE_TRY(check_named_sizes(spec, where));
  TONNAGE_TRY(check_length(spec, where));
  TONNAGE_TRY(check_sizes(spec, where));
  TONNAGE_TRY(check_text(spec, where));
  TONNAGE_TRY(check_chunks(spec, where));
  return check_batching(spec, where);
}

}  // namespace tonnage::model
