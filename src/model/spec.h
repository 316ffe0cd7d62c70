// SPDX-License-Identifier: Apache-2.0
// ModelSpec: everything the front knows about one version of one model; immutable once loaded.
//
// Promises: a spec that exists was checked (model/model_toml.h): names are unique, dims agree, limits
// are consistent. Everybody else may rely on it.
// Threads: shared as ModelHandle, an immutable snapshot.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "model/route.h"
#include "tensor/datatype.h"

namespace tonnage::model {

struct ValueRange {
  std::int64_t min = 0;
  std::int64_t max = 0;  // inclusive
};

enum class InputSource : std::uint8_t {
  kClient,  // the request carries it
  kMask,    // generated: 1 for a row's own positions, 0 for padding; a client may still send it
};

inline constexpr std::size_t kMaxSizes = 3;

// How large a row is: its length, or one entry for each of the model's named sizes. Unused ones are 0.
struct RowSize {
  std::array<std::uint32_t, kMaxSizes> at{};
  RowSize() = default;
  RowSize(std::uint32_t length) : at{length} {}  // NOLINT(google-explicit-constructor): a length is a size
  bool operator==(const RowSize&) const = default;
};

struct TensorSpec {
  std::string name;
  tensor::DataType type = tensor::DataType::kFp32;
  // The first dim is the row dim and −1. A further −1 is free: it is the row's length, or in a model with
  // sizes the one that `sizes` says (one entry per dim).
  std::vector<std::int64_t> dims;
  std::vector<std::uint8_t> sizes;
  std::optional<ValueRange> range;  // inputs of integer type
  std::int64_t pad_value = 0;       // what padding positions hold
  InputSource source = InputSource::kClient;

  bool has_length() const {
    for (std::size_t i = 1; i < dims.size(); ++i) {
      if (dims[i] < 0) return true;
    }
    return false;
  }
  std::size_t size_of(std::size_t dim) const { return sizes.empty() ? 0 : sizes[dim]; }
  std::int64_t dim_for(std::size_t dim, const RowSize& row) const {
    return dims[dim] < 0 ? std::int64_t{row.at[size_of(dim)]} : dims[dim];
  }
};

enum class RowsRule : std::uint8_t { kSpread, kTogether };
enum class TooLong : std::uint8_t { kRefuse, kTruncate, kChunk };
// How the outputs of a text's chunks become one: mean weighted by their lengths, largest element, or
// those of the first chunk, which then is the only one that runs.
enum class ChunkPooling : std::uint8_t { kMean, kMax, kFirst };
enum class MeetRule : std::uint8_t { kPad, kGroup };  // rows of different length: pad, or equal sizes only
enum class Policy : std::uint8_t { kDp, kBuckets, kFifo };
enum class Enforce : std::uint8_t { kOn, kObserve };  // observe: what prediction would refuse is run

// A named free dim of a model that has several.
struct SizeSpec {
  std::string name;
  std::uint32_t max = 0;
  MeetRule meet = MeetRule::kPad;
  std::uint32_t multiple = 32;  // what it is padded to a multiple of; 1 where only equals meet
};

// Defaults: docs/config.md gives unit and reason of each.
struct BatchingOptions {
  Policy policy = Policy::kDp;
  std::uint32_t max_rows = 64;
  std::uint32_t window = 256;
  std::uint32_t pad_multiple = 32;
  std::vector<std::uint32_t> edges = {32, 64, 128, 256, 512};  // policy buckets
  std::uint32_t long_above = 512;                              // long class
  Duration max_wait{0};
  Duration max_batch_time = milliseconds(250);
  Duration max_batch_time_long = milliseconds(500);
  Duration max_queue = seconds(30);
  std::uint32_t max_queue_rows = 4096;
};

enum class WhenTight : std::uint8_t { kRefuse, kDropThenLoad };

// When a worker is replaced while the model serves; zero: not for this reason.
struct RotationOptions {
  Bytes resident_above;
  Duration max_age{0};
  Duration retention_within = seconds(300);
  WhenTight when_tight = WhenTight::kRefuse;
};

struct TokenizerSpec {
  std::string kind;   // "wordpiece"
  std::string vocab;  // path
  bool lowercase = true;
};

// Workers that take long rows alone; then the others take none.
struct LongExecutor {
  std::uint32_t count = 0;  // 0: every worker takes both classes
  std::uint32_t threads = 1;
  bool is_idle_priority = true;  // runs on what the others leave, and holds no compute token
};

struct ModelSpec {
  std::string name;
  std::string version = "1";
  std::string route;  // a name of the table of routes
  Precision precision = Precision::kFp32;
  std::string device;     // "cuda:0"; empty: the host
  std::string directory;  // of the version
  std::string path;       // model file; empty for the stub
  std::string held_out;   // rows with known answers, run after each load; empty: none
  std::vector<TensorSpec> inputs;
  std::vector<TensorSpec> outputs;

  RowsRule rows = RowsRule::kSpread;
  MeetRule meet = MeetRule::kPad;
  TooLong too_long = TooLong::kRefuse;
  ChunkPooling chunk_pooling = ChunkPooling::kMean;
  std::uint32_t chunk_overlap = 0;  // tokens that a chunk repeats of the one before it
  std::uint32_t max_chunks = 16;    // of one text
  std::uint32_t max_length = 0;     // 0: no input has a free dim
  // Instead of a length: the free dims by name. A row's length then is its padded positions, the product
  // of its padded sizes, in units of `positions_per_unit`; max_length follows from the largest sizes.
  std::vector<SizeSpec> sizes;
  std::uint64_t positions_per_unit = 1;
  std::uint32_t max_rows_per_request = 4096;
  BatchingOptions batching;
  RotationOptions rotation;

  std::optional<TokenizerSpec> tokenizer;       // then requests may carry one BYTES input `text`
  std::vector<std::string> labels;              // SageMaker replies: label and score of the first output
  std::map<std::string, std::string> metadata;  // shown by inspect and GET /v2/models/NAME

  std::uint32_t workers = 1;
  std::uint32_t threads = 0;         // 0: all cores
  bool freeze = false;               // TorchScript: weights inlined while loading
  double parity_min_cosine = 0.999;  // of every held-out row, or the model does not load
  LongExecutor long_executor;
  double weight = 1;     // of its share of the device
  std::string fallback;  // who runs its requests while it cannot; empty: nobody
  Enforce enforce = Enforce::kOn;
  bool idempotent = true;
  Duration deadline{0};                        // 0: the port's default
  std::map<std::string, std::string> options;  // to the worker: [stub] or [native] table, precision, …

  // How far its grants are held: of the route, but capped on a device, whose allocator takes whole segments.
  Tier tier() const;
  // Length that rows of this length are padded to: multiples of pad_multiple, clipped to max_length. With
  // sizes a length is padded already.
  std::uint32_t padded(std::uint32_t length) const;
  bool has_length() const { return max_length > 0; }
  // What the following say for a model without sizes: the size is the length.
  RowSize largest_size() const;
  RowSize padded_size(const RowSize& row) const;
  std::uint32_t length_of(const RowSize& row) const;  // of a padded size: the length that is scheduled
  // Rows of one group may meet; inside it the longest row is the largest in every dim.
  std::uint32_t group_of(const RowSize& row) const;
  // The largest padded size of at most this length in the proportions of the largest one; the smallest
  // where nothing is as short.
  RowSize size_of_length(std::uint32_t length) const;
  std::string_view size_name(std::size_t size) const;
  std::uint32_t largest(std::size_t size) const { return largest_size().at.at(size); }

  // Bytes of one row of input i; saturates.
  Bytes input_row_bytes(std::size_t i, const RowSize& row) const;
  // Upper bound of one row's outputs; saturates.
  Bytes output_row_bytes(const RowSize& row) const;
  std::optional<std::size_t> find_input(std::string_view input) const;
};

std::string_view enforce_name(Enforce enforce);

using ModelHandle = std::shared_ptr<const ModelSpec>;

}  // namespace tonnage::model
