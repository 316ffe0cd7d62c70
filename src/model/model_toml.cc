// SPDX-License-Identifier: Apache-2.0
#include "model/model_toml.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/device_name.h"
#include "config/reader.h"
#include "model/detail/consistency.h"
#include "model/detail/derive_length.h"
#include "model/route.h"

namespace tonnage::model {
namespace {

namespace fs = std::filesystem;
using config::Reader;

constexpr std::int64_t kMaxBatchRows = 256;  // planner::kMaxBatchRows
constexpr std::int64_t kMaxWindow = 512;     // planner::kMaxWindow
constexpr std::int64_t kMaxModelLength = 1 << 20;
constexpr std::int64_t kMaxRowsPerRequest = 1 << 20;
constexpr std::int64_t kMaxChunks = 1024;

void read_datatype(Reader& reader, TensorSpec& tensor) {
  std::string name;
  reader.text("datatype", name);
  if (!reader.is_ok()) return;
  const Result<tensor::DataType> type = tensor::parse_datatype(name);
  if (type) {
    tensor.type = *type;
  } else {
    reader.fail("datatype", reader.has("datatype") ? type.status().detail() : "is missing");
  }
}

void read_size(Reader& reader, ModelSpec& spec) {
  if (spec.sizes.size() == kMaxSizes) {
    return reader.fail("name", fmt::format("is one more than the {} sizes that a row may have", kMaxSizes));
  }
  SizeSpec size;
  reader.text("name", size.name);
  reader.integer("max", size.max, 1, kMaxModelLength);
  reader.choice("meet", size.meet, {{"pad", MeetRule::kPad}, {"group", MeetRule::kGroup}});
  if (size.meet == MeetRule::kGroup) size.multiple = 1;
  reader.integer("multiple", size.multiple, 1, 4096);
  if (reader.has("multiple") && size.meet == MeetRule::kGroup) {
    reader.fail("multiple", "is for meet = \"pad\"; a group is of equal sizes");
  }
  if (size.name.empty()) reader.fail("name", "is missing: tensors say by it which of their dims is free");
  if (size.max == 0) reader.fail("max", "is missing: the largest row must be known");
  spec.sizes.push_back(std::move(size));
}

// Which size each free dim after the row dim is, in their order.
void read_sizes_of(Reader& reader, const ModelSpec& spec, TensorSpec& tensor) {
  std::vector<std::string> names;
  reader.texts("sizes", names);
  if (!reader.is_ok() || (spec.sizes.empty() && !reader.has("sizes"))) return;
  tensor.sizes.assign(tensor.dims.size(), 0);
  std::size_t next = 0;
  for (std::size_t i = 1; i < tensor.dims.size(); ++i) {
    if (tensor.dims[i] >= 0) continue;
    const auto known = std::ranges::find_if(
        spec.sizes, [&](const SizeSpec& size) { return next < names.size() && size.name == names[next]; });
    if (next < names.size() && known == spec.sizes.end()) {
      return reader.fail("sizes", fmt::format("names '{}', which no [[size]] does", names[next]));
    }
    tensor.sizes[i] = static_cast<std::uint8_t>(known - spec.sizes.begin());
    ++next;
  }
  if (next != names.size()) {
    reader.fail("sizes", fmt::format("has {} names for {} free dims of [{}] after the row dim", names.size(),
                                     next, fmt::join(tensor.dims, ", ")));
  }
}

TensorSpec read_tensor(Reader& reader, const ModelSpec& spec) {
  TensorSpec tensor;
  reader.text("name", tensor.name);
  read_datatype(reader, tensor);
  reader.integers("dims", tensor.dims, -1, std::int64_t{1} << 40);
  read_sizes_of(reader, spec, tensor);
  return tensor;
}

void read_input(Reader& reader, ModelSpec& spec) {
  TensorSpec input = read_tensor(reader, spec);
  constexpr auto kMin = std::numeric_limits<std::int64_t>::min();
  constexpr auto kMax = std::numeric_limits<std::int64_t>::max();
  std::vector<std::int64_t> range;
  reader.integers("range", range, kMin, kMax);
  if (range.size() == 2) {
    input.range = ValueRange{range[0], range[1]};
  } else if (reader.has("range")) {
    reader.fail("range", "must be [lowest, highest]");
  }
  reader.integer("pad", input.pad_value, kMin, kMax);
  reader.choice("source", input.source, {{"client", InputSource::kClient}, {"mask", InputSource::kMask}});
  spec.inputs.push_back(std::move(input));
}

void read_tokenizer(Reader& reader, const std::string& directory, ModelSpec& spec) {
  TokenizerSpec tokenizer;
  reader.text("kind", tokenizer.kind);
  reader.text("vocab", tokenizer.vocab);
  reader.boolean("lowercase", tokenizer.lowercase);
  if (tokenizer.kind != "wordpiece") reader.fail("kind", "must be \"wordpiece\"");
  if (tokenizer.vocab.empty()) reader.fail("vocab", "is missing: the file with one token a line");
  if (!fs::path(tokenizer.vocab).is_absolute())
    tokenizer.vocab = (fs::path(directory) / tokenizer.vocab).string();
  spec.tokenizer = std::move(tokenizer);
}

void read_batching(Reader& reader, bool has_sizes, BatchingOptions& batching) {
  reader.integer("max_rows", batching.max_rows, 1, kMaxBatchRows);
  reader.integer("window", batching.window, 1, kMaxWindow);
  // A default follows what was written; a contradiction of two written values is an error later on.
  if (!reader.has("max_rows")) batching.max_rows = std::min(batching.max_rows, batching.window);
  reader.integer("pad_multiple", batching.pad_multiple, 1, 4096);
  for (const char* key : {"pad_multiple", "long_above", "edges"}) {
    if (has_sizes && reader.has(key))
      reader.fail(key, "is for models with one length; this one has [[size]]");
  }
  reader.choice("policy", batching.policy,
                {{"dp", Policy::kDp}, {"buckets", Policy::kBuckets}, {"fifo", Policy::kFifo}});
  reader.integers("edges", batching.edges, 1, kMaxModelLength);
  reader.integer("long_above", batching.long_above, 1, kMaxModelLength);
  reader.duration("max_wait_ms", milliseconds(1), batching.max_wait);
  reader.duration("max_batch_time_ms", milliseconds(1), batching.max_batch_time);
  reader.duration("max_batch_time_long_ms", milliseconds(1), batching.max_batch_time_long);
  reader.duration("max_queue_s", seconds(1), batching.max_queue);
  reader.integer("max_queue_rows", batching.max_queue_rows, 1, kMaxRowsPerRequest);
  for (const char* key : {"max_batch_time_ms", "max_batch_time_long_ms", "max_queue_s"}) {
    const Duration value = std::string_view(key) == "max_queue_s"         ? batching.max_queue
                           : std::string_view(key) == "max_batch_time_ms" ? batching.max_batch_time
                                                                          : batching.max_batch_time_long;
    if (value <= Duration::zero()) reader.fail(key, "must be above zero");
  }
}

void read_chunks(Reader& reader, ModelSpec& spec) {
  reader.choice(
      "chunk_pooling", spec.chunk_pooling,
      {{"mean", ChunkPooling::kMean}, {"max", ChunkPooling::kMax}, {"first", ChunkPooling::kFirst}});
  reader.integer("chunk_overlap", spec.chunk_overlap, 0, kMaxModelLength);
  reader.integer("max_chunks", spec.max_chunks, 1, kMaxChunks);
  for (const char* key : {"chunk_pooling", "chunk_overlap", "max_chunks"}) {
    if (reader.has(key) && spec.too_long != TooLong::kChunk) reader.fail(key, "is for too_long = \"chunk\"");
  }
}

void read_limits(Reader& reader, ModelSpec& spec) {
  reader.integer("max_length", spec.max_length, 1, kMaxModelLength);
  reader.choice("too_long", spec.too_long,
                {{"refuse", TooLong::kRefuse}, {"truncate", TooLong::kTruncate}, {"chunk", TooLong::kChunk}});
  read_chunks(reader, spec);
  reader.choice("rows", spec.rows, {{"spread", RowsRule::kSpread}, {"together", RowsRule::kTogether}});
  reader.choice("meet", spec.meet, {{"pad", MeetRule::kPad}, {"group", MeetRule::kGroup}});
  reader.boolean("idempotent", spec.idempotent);
  reader.boolean("freeze", spec.freeze);
  reader.number("parity_min_cosine", spec.parity_min_cosine, -1, 1);
  reader.duration("deadline_ms", milliseconds(1), spec.deadline);
  reader.table("batching", [&](Reader& r) { read_batching(r, !spec.sizes.empty(), spec.batching); });
  reader.integer("max_rows_per_request", spec.max_rows_per_request, 1, kMaxRowsPerRequest);
  if (!reader.has("max_rows_per_request")) {
    const std::uint32_t most =
        spec.rows == RowsRule::kTogether ? spec.batching.max_rows : spec.batching.max_queue_rows;
    spec.max_rows_per_request = std::min(spec.max_rows_per_request, most);
  }
}

// For the worker as texts; what is not written is the worker's default.
void read_native(Reader& reader, ModelSpec& spec) {
  for (const char* key : {"entry", "weights"}) {
    if (reader.has(key)) reader.text(key, spec.options[key]);
  }
  std::string mode = "guarded";
  reader.choice("mode", mode, {{"guarded", std::string("guarded")}, {"as-is", std::string("as-is")}});
  spec.options["mode"] = mode;
  std::vector<std::string> allowed;
  reader.texts("allow_missing", allowed);
  if (!allowed.empty()) spec.options["allow_missing"] = fmt::format("{}", fmt::join(allowed, "\n"));
}

// Keys about the one length of a row, which a model with sizes does not have.
void refuse_what_sizes_replace(Reader& reader) {
  for (const char* key : {"max_length", "too_long", "meet", "tokenizer"}) {
    if (reader.has(key)) reader.fail(key, "is for models with one length; this one has [[size]]");
  }
}

void read_rotation(Reader& reader, RotationOptions& rotation) {
  reader.bytes("resident_above", rotation.resident_above);
  reader.duration("max_age_s", seconds(1), rotation.max_age);
  reader.duration("retention_within_s", seconds(1), rotation.retention_within);
  reader.choice("when_tight", rotation.when_tight,
                {{"refuse", WhenTight::kRefuse}, {"drop-then-load", WhenTight::kDropThenLoad}});
}

void read_sharing(Reader& reader, ModelSpec& spec) {
  reader.number("weight", spec.weight, 0.01, 100);
  reader.text("fallback", spec.fallback);
  if (spec.fallback == spec.name) reader.fail("fallback", "is the model itself");
  reader.choice("enforce", spec.enforce, {{"on", Enforce::kOn}, {"observe", Enforce::kObserve}});
}

// "cuda:0"; "cpu" is the host, as is saying nothing.
void read_device(Reader& reader, ModelSpec& spec) {
  reader.text("device", spec.device);
  if (spec.device == "cpu") spec.device.clear();
  if (!spec.device.empty() && !cuda_index(spec.device))
    reader.fail("device", fmt::format("is \"{}\"; allowed: \"cpu\", \"cuda:0\", \"cuda:1\", …", spec.device));
}

void read_route(Reader& reader, ModelSpec& spec) {
  reader.text("route", spec.route);
  reader.choice("precision", spec.precision,
                {{"fp32", Precision::kFp32}, {"bf16", Precision::kBf16}, {"fp16", Precision::kFp16}});
  read_device(reader, spec);
  reader.free_table("stub", spec.options);
  reader.table("native", [&](Reader& r) { read_native(r, spec); });
  if (spec.route.empty() && reader.has("native")) spec.route = "native";
  if (spec.route.empty() && reader.has("stub")) spec.route = "stub";
  if (reader.has("stub") && spec.route != "stub") {
    reader.fail("stub", fmt::format("is for route = \"stub\"; the route is \"{}\"", spec.route));
  }
  if (!spec.route.empty() && find_route(spec.route) == nullptr) {
    reader.fail("route", fmt::format("is \"{}\"; allowed: {}", spec.route, route_names()));
  }
}

}  // namespace

std::string model_name(const std::string& directory) {
  const fs::path folder = fs::absolute(directory).lexically_normal();
  return (folder.has_filename() ? folder : folder.parent_path()).filename().string();
}

Result<ModelSpec> parse_model_toml(std::string_view text, const std::string& directory) {
  const std::string file = (fs::path(directory) / "model.toml").string();
  TONNAGE_ASSIGN(const config::Table table, config::parse_toml(text, file));

  ModelSpec spec;
  spec.name = model_name(directory);
  spec.directory = directory;
  Reader reader(table);
  read_route(reader, spec);
  reader.tables("size", [&](Reader& r) { read_size(r, spec); });
  reader.tables("input", [&](Reader& r) { read_input(r, spec); });
  reader.tables("output", [&](Reader& r) { spec.outputs.push_back(read_tensor(r, spec)); });
  read_limits(reader, spec);
  reader.table("tokenizer", [&](Reader& r) { read_tokenizer(r, directory, spec); });
  reader.texts("labels", spec.labels);
  reader.free_table("metadata", spec.metadata);
  reader.table("workers", [&](Reader& r) {
    r.integer("count", spec.workers, 1, 64);
    r.integer("long_count", spec.long_executor.count, 0, 64);
    r.integer("long_threads", spec.long_executor.threads, 1, 1024);
    r.choice("long_priority", spec.long_executor.is_idle_priority, {{"idle", true}, {"normal", false}});
    r.integer("threads", spec.threads, 0, 1024);
  });
  if (!spec.sizes.empty()) refuse_what_sizes_replace(reader);
  reader.table("rotation", [&](Reader& r) { read_rotation(r, spec.rotation); });
  read_sharing(reader, spec);
  TONNAGE_TRY(reader.finish());
  derive_length(spec);
  TONNAGE_TRY(check_consistency(spec, file));
  return spec;
}

}  // namespace tonnage::model
