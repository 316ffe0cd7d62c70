// SPDX-License-Identifier: Apache-2.0
#include "model/model_toml.h"

#include <gtest/gtest.h>

namespace tonnage::model {
namespace {

constexpr std::string_view kFull = R"(
route = "trace"
max_length = 512
too_long = "truncate"
rows = "spread"
meet = "pad"
labels = ["negative", "positive"]
deadline_ms = 1500
max_rows_per_request = 100
idempotent = false
weight = 3
fallback = "small"
enforce = "observe"
[[input]]
name = "input_ids"
datatype = "INT64"
dims = [-1, -1]
range = [0, 30521]
pad = 0
[[input]]
name = "attention_mask"
datatype = "INT64"
dims = [-1, -1]
pad = 0
source = "mask"
[[output]]
name = "scores"
datatype = "FP32"
dims = [-1, 2]
[tokenizer]
kind = "wordpiece"
vocab = "vocab.txt"
lowercase = false
[batching]
max_rows = 32
window = 128
pad_multiple = 16
policy = "buckets"
edges = [64, 512]
long_above = 256
max_wait_ms = 2.5
max_batch_time_ms = 100
max_batch_time_long_ms = 200
max_queue_s = 5
max_queue_rows = 1000
[workers]
count = 2
threads = 1
[metadata]
held_out_accuracy = 0.86
)";

constexpr std::string_view kTensors = R"(
[[input]]
name = "x"
datatype = "FP32"
dims = [-1, 4]
[[output]]
name = "y"
datatype = "FP32"
dims = [-1, 4]
)";

std::string with_length(std::string_view head) {
  return std::string(head) + "\n[[input]]\nname = \"ids\"\ndatatype = \"INT32\"\ndims = [-1, -1]\n";
}

std::string error_of(std::string_view text) {
  const Result<ModelSpec> spec = parse_model_toml(text, "models/reviews");
  EXPECT_FALSE(spec.is_ok()) << text;
  if (spec.is_ok()) return "";
  EXPECT_EQ(spec.status().code(), Code::kInvalidArgument);
  EXPECT_EQ(spec.status().reason(), "bad_config");
  return spec.status().detail();
}

TEST(ModelToml, ReadsEveryKey) {
  const Result<ModelSpec> parsed = parse_model_toml(kFull, "models/reviews");
  ASSERT_TRUE(parsed.is_ok()) << parsed.status().to_string();
  const ModelSpec& spec = *parsed;
  EXPECT_EQ(spec.name, "reviews");
  EXPECT_EQ(spec.route, "trace");
  EXPECT_EQ(spec.max_length, 512U);
  EXPECT_EQ(spec.too_long, TooLong::kTruncate);
  EXPECT_EQ(spec.labels, (std::vector<std::string>{"negative", "positive"}));
  EXPECT_EQ(spec.deadline, milliseconds(1500));
  EXPECT_EQ(spec.max_rows_per_request, 100U);
  EXPECT_FALSE(spec.idempotent);
  ASSERT_EQ(spec.inputs.size(), 2U);
  EXPECT_EQ(spec.inputs[0].type, tensor::DataType::kInt64);
  EXPECT_EQ(spec.inputs[0].range->max, 30521);
  EXPECT_EQ(spec.inputs[1].source, InputSource::kMask);
  EXPECT_EQ(spec.outputs[0].dims, (std::vector<std::int64_t>{-1, 2}));
  EXPECT_EQ(spec.tokenizer->vocab, "models/reviews/vocab.txt");
  EXPECT_FALSE(spec.tokenizer->lowercase);
  EXPECT_EQ(spec.batching.max_rows, 32U);
  EXPECT_EQ(spec.batching.window, 128U);
  EXPECT_EQ(spec.batching.pad_multiple, 16U);
  EXPECT_EQ(spec.batching.policy, Policy::kBuckets);
  EXPECT_EQ(spec.batching.edges, (std::vector<std::uint32_t>{64, 512}));
  EXPECT_EQ(spec.batching.long_above, 256U);
  EXPECT_EQ(spec.batching.max_wait, microseconds(2500));
  EXPECT_EQ(spec.batching.max_batch_time, milliseconds(100));
  EXPECT_EQ(spec.batching.max_batch_time_long, milliseconds(200));
  EXPECT_EQ(spec.batching.max_queue, seconds(5));
  EXPECT_EQ(spec.batching.max_queue_rows, 1000U);
  EXPECT_EQ(spec.workers, 2U);
  EXPECT_EQ(spec.threads, 1U);
  EXPECT_EQ(spec.metadata.at("held_out_accuracy"), "0.86");
}

TEST(ModelToml, AnEmptyFileMeansTheDefaults) {
  const Result<ModelSpec> parsed = parse_model_toml("", "/models/a/");
  ASSERT_TRUE(parsed.is_ok()) << parsed.status().to_string();
  EXPECT_EQ(parsed->name, "a");
  EXPECT_EQ(parsed->batching.max_rows, 64U);
  EXPECT_EQ(parsed->batching.window, 256U);
  EXPECT_EQ(parsed->batching.max_queue, seconds(30));
  EXPECT_EQ(parsed->max_rows_per_request, 4096U);
  EXPECT_EQ(parsed->too_long, TooLong::kRefuse);
  EXPECT_EQ(parsed->workers, 1U);
}

TEST(ModelToml, AStubTableIsTheStubRouteAndItsKeysAreTheWorkersBusiness) {
  const Result<ModelSpec> parsed =
      parse_model_toml(std::string(kTensors) + "[stub]\nmodel = \"sleepy\"\nms = 12\nexact = true\n", "m");
  ASSERT_TRUE(parsed.is_ok()) << parsed.status().to_string();
  EXPECT_EQ(parsed->route, "stub");
  EXPECT_EQ(parsed->options,
            (std::map<std::string, std::string>{{"exact", "true"}, {"model", "sleepy"}, {"ms", "12"}}));
}

TEST(ModelToml, ANativeTableIsTheNativeRouteAndGuardedWhereItSaysNothing) {
  const Result<ModelSpec> parsed = parse_model_toml(
      std::string(kTensors) + "[native]\nentry = \"net.py:Net\"\nallow_missing = [\"head.*\", \"bias\"]\n",
      "m");
  ASSERT_TRUE(parsed.is_ok()) << parsed.status().to_string();
  EXPECT_EQ(parsed->route, "native");
  EXPECT_EQ(parsed->options,
            (std::map<std::string, std::string>{
                {"allow_missing", "head.*\nbias"}, {"entry", "net.py:Net"}, {"mode", "guarded"}}));
  error_of("[native]\nmode = \"unguarded\"");
}

TEST(ModelToml, LongRowsMayHaveWorkersOfTheirOwnWhereThereAreLongRows) {
  const Result<ModelSpec> parsed =
      parse_model_toml("[workers]\nlong_count = 1\nlong_threads = 2\nlong_priority = \"normal\"\n", "m");
  ASSERT_TRUE(parsed.is_ok()) << parsed.status().to_string();
  EXPECT_EQ(parsed->long_executor.count, 1U);
  EXPECT_EQ(parsed->long_executor.threads, 2U);
  EXPECT_FALSE(parsed->long_executor.is_idle_priority);
  error_of("[workers]\nlong_priority = \"high\"");
  EXPECT_NE(error_of("max_length = 512\n[[input]]\nname = \"ids\"\ndatatype = \"INT64\"\ndims = [-1, -1]\n"
                     "[workers]\nlong_count = 1")
                .find("long_above"),
            std::string::npos);
}

TEST(ModelToml, DefaultsFollowWhatWasWritten) {
  const Result<ModelSpec> parsed = parse_model_toml("[batching]\nwindow = 16\nmax_queue_rows = 50\n", "m");
  ASSERT_TRUE(parsed.is_ok()) << parsed.status().to_string();
  EXPECT_EQ(parsed->batching.max_rows, 16U);
  EXPECT_EQ(parsed->max_rows_per_request, 50U);
  const Result<ModelSpec> together = parse_model_toml("rows = \"together\"", "m");
  ASSERT_TRUE(together.is_ok());
  EXPECT_EQ(together->max_rows_per_request, 64U);
}

TEST(ModelToml, AnUnknownKeyNamesTheNearest) {
  EXPECT_EQ(error_of("max_lenght = 5"),
            "models/reviews/model.toml:1: unknown key 'max_lenght'; did you mean 'max_length'?");
  EXPECT_EQ(error_of("[batching]\nmax_row = 5"),
            "models/reviews/model.toml:2: unknown key 'batching.max_row'; did you mean 'max_rows'?");
}

TEST(ModelToml, RefusesWhatIsOutOfRange) {
  EXPECT_EQ(error_of("[batching]\nmax_rows = 257"),
            "models/reviews/model.toml:2: 'batching.max_rows' is 257; allowed: 1 to 256");
  error_of("[batching]\nwindow = 513");
  error_of("[batching]\nmax_queue_s = 0");
  error_of("[batching]\nmax_batch_time_ms = 0");
  error_of("[batching]\nedges = [64, 64]");
  error_of("[batching]\nedges = []");
  error_of("max_length = 0");
  error_of("deadline_ms = -1");
  error_of("[workers]\ncount = 0");
  error_of("route = \"tensorflow\"");
  error_of("route = \"trace\"\n[stub]\nmodel = \"echo\"\n");
  error_of("[tokenizer]\nkind = \"bpe\"\nvocab = \"v\"");
  error_of("[tokenizer]\nkind = \"wordpiece\"");
}

TEST(ModelToml, RefusesContradictionsOfWrittenValues) {
  error_of("[batching]\nmax_rows = 64\nwindow = 32");
  error_of("max_rows_per_request = 200\n[batching]\nmax_queue_rows = 100");
  error_of("rows = \"together\"\nmax_rows_per_request = 65");
  error_of(with_length(""));
  error_of("max_length = 5" + std::string(kTensors));
  error_of("labels = [\"a\", \"b\"]" + std::string(kTensors));
  error_of("[tokenizer]\nkind = \"wordpiece\"\nvocab = \"v\"" + std::string(kTensors));
}

// Two sizes, an input and an output of both.
std::string sized(std::string_view head, std::string_view of_sizes = "sizes = [\"height\", \"width\"]\n") {
  return std::string(head) +
         "[[size]]\nname = \"height\"\nmax = 300\nmeet = \"group\"\n"
         "[[size]]\nname = \"width\"\nmax = 1000\nmultiple = 64\n"
         "[[input]]\nname = \"image\"\ndatatype = \"FP32\"\ndims = [-1, 3, -1, -1]\n" +
         std::string(of_sizes) +
         "[[output]]\nname = \"map\"\ndatatype = \"FP32\"\ndims = [-1, -1]\nsizes = [\"width\"]\n";
}

TEST(ModelToml, ReadsNamedSizesAndDerivesTheLength) {
  const Result<ModelSpec> parsed = parse_model_toml(sized(""), "m");
  ASSERT_TRUE(parsed.is_ok()) << parsed.status().to_string();
  ASSERT_EQ(parsed->sizes.size(), 2U);
  EXPECT_EQ(parsed->sizes[0].multiple, 1U);
  EXPECT_EQ(parsed->sizes[1].multiple, 64U);
  EXPECT_EQ(parsed->inputs[0].size_of(2), 0U);
  EXPECT_EQ(parsed->inputs[0].size_of(3), 1U);
  EXPECT_EQ(parsed->outputs[0].size_of(1), 1U);
  EXPECT_EQ(parsed->positions_per_unit, 5U) << "300,000 positions in at most 65,536 units";
  EXPECT_EQ(parsed->max_length, 60'000U);
  EXPECT_EQ(parsed->largest_size().at[1], 1000U);
}

TEST(ModelToml, RefusesSizesThatCannotBe) {
  const auto has = [](const std::string& text, std::string_view what) {
    const std::string error = error_of(text);
    EXPECT_NE(error.find(what), std::string::npos) << error;
  };
  has(sized("", ""), "has 0 names for 2 free dims");
  has(sized("", "sizes = [\"height\"]\n"), "has 1 names for 2 free dims");
  has(sized("", "sizes = [\"height\", \"widht\"]\n"), "'widht'");
  has(sized("", "sizes = [\"height\", \"height\"]\n"), "'width' is no dim of an input");
  has(sized("max_length = 9\n"), "models with one length");
  has(sized("meet = \"group\"\n"), "models with one length");
  has(sized("too_long = \"truncate\"\n"), "models with one length");
  has(sized("") + "[batching]\npad_multiple = 8\n", "models with one length");
  has(sized("") + "[batching]\npolicy = \"buckets\"\n", "edges of one length");
  has(sized("[[size]]\nname = \"depth\"\nmax = 4\n"), "'depth' is no dim of an input");
  has(sized("[[size]]\nname = \"width\"\nmax = 4\n"), "there twice");
  has(sized("[[size]]\nname = \"depth\"\n"), "'size[0].max' is missing");
  has(sized("[[size]]\nname = \"a\"\nmax = 4\n[[size]]\nname = \"b\"\nmax = 4\n"), "the 3 sizes");
  has(sized("[[size]]\nname = \"d\"\nmax = 4\nmeet = \"group\"\nmultiple = 2\n"), "equal sizes");
  has("[[input]]\nname = \"x\"\ndatatype = \"FP32\"\ndims = [-1, -1, -1]\n", "named by 'sizes'");
  std::string large = sized("");
  large.replace(large.find("max = 300"), 9, "max = 900000");
  has(large, "the largest row of input 'image'");
}

std::string chunking(std::string_view keys, std::string_view output) {
  return "max_length = 8\ntoo_long = \"chunk\"\n" + std::string(keys) +
         "[tokenizer]\nkind = \"wordpiece\"\nvocab = \"v\"\n" + with_length("") +
         "[[output]]\nname = \"y\"\n" + std::string(output);
}

TEST(ModelToml, ReadsHowLongTextsAreChunked) {
  const Result<ModelSpec> parsed =
      parse_model_toml(chunking("chunk_pooling = \"max\"\nchunk_overlap = 3\nmax_chunks = 5\n",
                                "datatype = \"FP32\"\ndims = [-1, 2]\n"),
                       "m");
  ASSERT_TRUE(parsed.is_ok()) << parsed.status().to_string();
  EXPECT_EQ(parsed->too_long, TooLong::kChunk);
  EXPECT_EQ(parsed->chunk_pooling, ChunkPooling::kMax);
  EXPECT_EQ(parsed->chunk_overlap, 3U);
  EXPECT_EQ(parsed->max_chunks, 5U);
}

TEST(ModelToml, RefusesChunksThatCouldNotBePooled) {
  const auto has = [](const std::string& text, std::string_view what) {
    const std::string error = error_of(text);
    EXPECT_NE(error.find(what), std::string::npos) << error;
  };
  const std::string scores = "datatype = \"FP32\"\ndims = [-1, 2]\n";
  has(chunking("", "datatype = \"FP32\"\ndims = [-1, -1]\n"), "follows the length");
  has(chunking("", "datatype = \"INT64\"\ndims = [-1, 2]\n"), "FP32 and FP64");
  has(chunking("chunk_overlap = 6\n", scores), "tokens of its own");
  has(chunking("max_chunks = 0\n", scores), "1 to 1024");
  has("max_length = 8\ntoo_long = \"chunk\"\n" + with_length(""), "[tokenizer]");
  has("max_length = 8\nmax_chunks = 2\n" + with_length(""), "too_long = \"chunk\"");
}

TEST(ModelToml, RefusesTensorsThatCannotBe) {
  const auto input = [](std::string_view lines) {
    return error_of("max_length = 8\n[[input]]\nname = \"ids\"\n" + std::string(lines));
  };
  EXPECT_EQ(
      input("datatype = \"INT64\"\ndims = [2, -1]"),
      "models/reviews/model.toml: input 'ids' has dims [2, -1]; the first is the row dim and must be -1");
  input("dims = [-1, -1]");
  input("datatype = \"INT65\"\ndims = [-1, -1]");
  input("datatype = \"INT64\"");
  input("datatype = \"INT64\"\ndims = [-1, 0]");
  input("datatype = \"INT64\"\ndims = [-1, -2]");
  input("datatype = \"INT64\"\ndims = [-1, -1, -1]");
  input("datatype = \"INT64\"\ndims = [-1,1,1,1,1,1,1,1,1]");
  input("datatype = \"INT64\"\ndims = [-1, 1099511627776]");
  input("datatype = \"INT64\"\ndims = [-1, -1]\nrange = [5, 1]");
  input("datatype = \"INT64\"\ndims = [-1, -1]\nrange = [5]");
  input("datatype = \"INT64\"\ndims = [-1, -1]\nrange = [5, 9]\npad = 0");
  input("datatype = \"UINT8\"\ndims = [-1, -1]\nrange = [0, 256]");
  input("datatype = \"FP32\"\ndims = [-1, -1]\nrange = [0, 1]");
  input("datatype = \"INT64\"\ndims = [-1, -1]\nsource = \"mask\"");
  input(
      "datatype = \"INT64\"\ndims = [-1, -1]\n[[input]]\nname = \"ids\"\ndatatype = \"INT64\"\ndims = [-1, "
      "-1]");
}

TEST(MergeLoaded, FillsInWhatWasNotWritten) {
  ModelSpec spec;
  spec.name = "m";
  wire::LoadedDoc loaded;
  loaded.inputs = {{"x", tensor::DataType::kFp32, {-1, 4}}};
  loaded.outputs = {{"y", tensor::DataType::kFp32, {-1, 2}}};
  loaded.facts = {{"isa", "avx512"}};
  const Result<ModelSpec> merged = merge_loaded(spec, loaded);
  ASSERT_TRUE(merged.is_ok()) << merged.status().to_string();
  EXPECT_EQ(merged->inputs.at(0).name, "x");
  EXPECT_EQ(merged->outputs.at(0).dims, (std::vector<std::int64_t>{-1, 2}));
  EXPECT_EQ(merged->metadata.at("isa"), "avx512");
}

TEST(MergeLoaded, KeepsWhatWasWrittenAndRefusesContradictions) {
  const ModelSpec spec = *parse_model_toml(kTensors, "m");
  wire::LoadedDoc loaded;
  EXPECT_TRUE(merge_loaded(spec, loaded).is_ok());
  loaded.inputs = {{"x", tensor::DataType::kFp32, {-1, -1}}};
  EXPECT_TRUE(merge_loaded(spec, loaded).is_ok());
  loaded.inputs = {{"x", tensor::DataType::kFp32, {-1, 5}}};
  EXPECT_EQ(merge_loaded(spec, loaded).status().reason(), "bad_config");
  loaded.inputs = {{"x", tensor::DataType::kInt64, {-1, 4}}};
  EXPECT_EQ(merge_loaded(spec, loaded).status().reason(), "bad_config");
  loaded.inputs = {{"z", tensor::DataType::kFp32, {-1, 4}}};
  EXPECT_EQ(merge_loaded(spec, loaded).status().reason(), "bad_config");
}

TEST(MergeLoaded, RefusesAModelWhoseTensorsNobodyNames) {
  EXPECT_EQ(merge_loaded(ModelSpec(), wire::LoadedDoc()).status().reason(), "bad_config");
}

TEST(MergeLoaded, ChecksWhatTheModelFileSaysAsWell) {
  ModelSpec spec;  // no max_length
  wire::LoadedDoc loaded;
  loaded.inputs = {{"ids", tensor::DataType::kInt64, {-1, -1}}};
  loaded.outputs = {{"y", tensor::DataType::kFp32, {-1, 2}}};
  EXPECT_EQ(merge_loaded(spec, loaded).status().reason(), "bad_config");
}

TEST(LoadDoc, CarriesWhatTheWorkerNeeds) {
  ModelSpec spec = *parse_model_toml(kFull, "models/reviews");
  spec.path = "models/reviews/1/model.pt";
  const wire::LoadDoc doc = to_load_doc(spec);
  EXPECT_EQ(doc.model, "reviews");
  EXPECT_EQ(doc.route, "trace");
  EXPECT_EQ(doc.path, spec.path);
  EXPECT_EQ(doc.threads, 1U);
  ASSERT_EQ(doc.inputs.size(), 2U);
  EXPECT_EQ(doc.inputs[1].name, "attention_mask");
  EXPECT_EQ(doc.outputs[0].dims, (std::vector<std::int64_t>{-1, 2}));
}

TEST(ModelToml, ADeviceIsTheHostOrACudaDeviceWithItsNumber) {
  const auto device_of = [](const std::string& word) {
    return parse_model_toml("device = \"" + word + "\"\n", "models/m");
  };
  EXPECT_EQ("", device_of("cpu")->device);
  EXPECT_EQ("cuda:12", device_of("cuda:12")->device);
  for (const char* word : {"cuda", "cuda:", "cuda:x", "gpu:0", "cuda:-1", "cuda:12345"}) {
    const Status status = device_of(word).status();
    EXPECT_NE(std::string::npos, status.detail().find("allowed: \"cpu\", \"cuda:0\""))
        << word << ": " << status.detail();
  }
}

TEST(ModelToml, TheDeviceIsToldToTheWorkerAndChangesWhatWasLearned) {
  ModelSpec spec = *parse_model_toml("device = \"cuda:1\"\n", "models/m");
  EXPECT_EQ("cuda:1", to_load_doc(spec).options.at("device"));
  const auto there = fingerprint(spec, "stub");
  spec.device.clear();
  EXPECT_FALSE(to_load_doc(spec).options.contains("device"));
  EXPECT_NE(*there, *fingerprint(spec, "stub"));
}

}  // namespace
}  // namespace tonnage::model
