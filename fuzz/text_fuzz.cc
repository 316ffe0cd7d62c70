// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>

#include "base/bug.h"
#include "cost/cost_model.h"
#include "fuzz/target.h"
#include "model/model_toml.h"
#include "text/tokenizer.h"

namespace tonnage::fuzz {
namespace {

constexpr std::uint32_t kMaxTokens = 32;

std::unique_ptr<text::Tokenizer> make_tokenizer() {
  const auto path = std::filesystem::temp_directory_path() / ("tonnage-fuzz-" + std::to_string(::getpid()));
  std::ofstream(path)
      << "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\nb\n##a\n##b\nab\n##ab\n,\n.\n1\n##1\n\u00e4\n\u4e2d\n";
  auto made = text::make_wordpiece(path.string(), true);
  std::filesystem::remove(path);
  return std::move(made).value();
}

cost::CostOptions options() {
  cost::CostOptions made;
  made.max_rows = 8;
  made.pad_multiple = 32;
  made.max_length = 128;
  return made;
}

}  // namespace

void run_tokenizer(ByteView input) {
  static const std::unique_ptr<text::Tokenizer> tokenizer = make_tokenizer();
  const std::string_view text = as_text(input);
  const auto whole = tokenizer->encode(text, kMaxTokens, model::TooLong::kRefuse);
  const auto cut = tokenizer->encode(text, kMaxTokens, model::TooLong::kTruncate);
  if (cut.is_ok()) TONNAGE_CHECK(cut->ids.size() <= kMaxTokens, "more tokens than the model reads");
  if (!whole.is_ok()) return;
  TONNAGE_CHECK(cut.is_ok() && !cut->truncated && cut->ids == whole->ids, "truncation changed what fits");
  for (const std::int64_t id : whole->ids) {
    TONNAGE_CHECK(id >= 0 && id < static_cast<std::int64_t>(tokenizer->vocabulary_size()),
                  "an id is unknown");
  }
}

std::vector<std::string> tokenizer_seeds() {
  return {"ab a, b.", "\u00c4b e\u0301 \u4e2d\u6587 1.1", "a\u200d\u0300\ufffd\t\r\n", "\xf0\x9f\x98\x80 ab"};
}

void run_model_toml(ByteView input) { (void)model::parse_model_toml(as_text(input), "m"); }

std::vector<std::string> model_toml_seeds() {
  return {R"(route = "stub"
max_length = 128
max_rows_per_request = 100
too_long = "truncate"
rows = "independent"
deadline_ms = 100
[[input]]
name = "ids"
datatype = "INT64"
dims = [-1, -1]
range = [0, 100]
[[input]]
name = "mask"
datatype = "INT64"
dims = [-1, -1]
source = "mask"
[[output]]
name = "sum"
datatype = "FP32"
dims = [-1, 1]
[tokenizer]
kind = "wordpiece"
vocab = "vocab.txt"
[batching]
policy = "buckets"
edges = [32, 64]
max_rows = 8
[workers]
count = 1
threads = 1
[stub]
model = "quadratic"
)"};
}

void run_profile(ByteView input) {
  const auto model = cost::CostModel::from_text(as_text(input), options());
  if (!model.is_ok()) return;
  const cost::Shape shape{8, 128};
  TONNAGE_CHECK(model->grant(shape) >= model->predict_peak(shape), "a grant is below its prediction");
  TONNAGE_CHECK(cost::CostModel::from_text(model->to_text(), options()).is_ok(),
                "a profile that was read cannot be read again");
}

std::vector<std::string> profile_seeds() {
  cost::CostModel model(options());
  for (const std::uint32_t rows : {1U, 4U, 8U}) {
    for (const std::uint32_t length : {32U, 64U, 128U}) {
      model.add_profile({{rows, length}, kib(rows * length), microseconds(rows * length)});
    }
  }
  TONNAGE_CHECK(model.fit().is_ok(), "the seed cannot be fitted");
  return {model.to_text()};
}

}  // namespace tonnage::fuzz
