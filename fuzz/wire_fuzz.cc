// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "base/bug.h"
#include "batch/split.h"
#include "fuzz/target.h"
#include "testkit/example_messages.h"
#include "testkit/model_specs.h"
#include "wire/load_doc.h"
#include "wire/messages.h"

namespace tonnage::fuzz {
namespace {

std::string text_of(ByteView bytes) { return std::string(as_text(bytes)); }

// ids [-1, -1] → a [-1, 2] FP32 and b [-1, -1] INT64, as long as the row.
const model::ModelSpec& spec() {
  static const model::ModelSpec made =
      testkit::model_spec("m", {testkit::tensor_spec("ids", tensor::DataType::kInt64, {-1, -1})},
                          {testkit::tensor_spec("a", tensor::DataType::kFp32, {-1, 2}),
                           testkit::tensor_spec("b", tensor::DataType::kInt64, {-1, -1})});
  return made;
}

const std::array<model::RowSize, 3> kLengths = {4, 1, 3};
constexpr std::uint32_t kPadded = 4;

}  // namespace

void run_message(ByteView input) {
  const Result<wire::Message> message = wire::decode(input);
  if (!message.is_ok()) return;
  const std::vector<std::byte> again = wire::encode(*message);
  const Result<wire::Message> same = wire::decode(again);
  TONNAGE_CHECK(same.is_ok() && wire::encode(*same) == again, "decode and encode are not inverse");
}

std::vector<std::string> message_seeds() {
  std::vector<std::string> seeds;
  for (const wire::Message& message : testkit::example_messages()) {
    seeds.push_back(text_of(wire::encode(message)));
  }
  return seeds;
}

void run_documents(ByteView input) {
  const std::string_view text = as_text(input);
  if (const auto load = wire::parse_load_doc(text); load.is_ok()) {
    const std::string again = to_json(*load);
    TONNAGE_CHECK(to_json(wire::parse_load_doc(again).value()) == again, "a LoadDoc changes when it is read");
  }
  if (const auto loaded = wire::parse_loaded_doc(text); loaded.is_ok()) {
    const std::string again = to_json(*loaded);
    TONNAGE_CHECK(to_json(wire::parse_loaded_doc(again).value()) == again,
                  "a LoadedDoc changes when it is read");
  }
}

std::vector<std::string> document_seeds() {
  wire::LoadDoc load;
  load.model = "reviews";
  load.version = "1";
  load.route = "script";
  load.path = "/models/reviews/1/model.pt";
  load.inputs = {{"ids", tensor::DataType::kInt64, {-1, -1}}};
  load.outputs = {{"scores", tensor::DataType::kFp32, {-1, 2}}};
  load.options = {{"freeze", "true"}};
  wire::LoadedDoc loaded;
  loaded.runtime = "libtorch";
  loaded.inputs = load.inputs;
  loaded.outputs = load.outputs;
  loaded.facts = {{"isa", "avx2"}};
  return {to_json(load), to_json(loaded)};
}

// One message, and behind it the output region.
void run_outputs(ByteView input) {
  if (input.size() < 2) return;
  const std::size_t length =
      std::to_integer<std::size_t>(input[0]) << 8U | std::to_integer<std::size_t>(input[1]);
  const ByteView rest = input.subspan(2);
  if (length > rest.size()) return;
  const Result<wire::Message> message = wire::decode(rest.first(length));
  if (!message.is_ok()) return;
  const auto* done = std::get_if<wire::Done>(&message->body);
  if (done == nullptr) return;
  // A copy of its own, so that the sanitizer sees a read behind the end, aligned as a region is.
  const ByteView tail = rest.subspan(length);
  tensor::Buffer region(tail.size());
  std::ranges::copy(tail, region.mutable_view().begin());
  const Status proven = batch::check_outputs(spec(), done->outputs, kLengths.size(), Bytes(region.size()));
  if (!proven.is_ok()) return;
  const batch::SplitBatch split{spec(), done->outputs, kLengths, kPadded, region.view()};
  std::vector<std::byte> scratch;
  for (std::uint32_t row = 0; row < kLengths.size(); ++row) {
    const auto outputs = batch::split_row(split, row, scratch);
    TONNAGE_CHECK(!outputs.is_ok() || outputs->size() == spec().outputs.size(), "an output is missing");
  }
}

std::vector<std::string> output_seeds() {
  wire::Done done;
  done.outputs = {{tensor::DataType::kFp32, testkit::shape_of({3, 2}), 0, 24},
                  {tensor::DataType::kInt64, testkit::shape_of({3, 4}), 64, 96}};
  const std::vector<std::byte> message = wire::encode({.ticket = 1, .body = done});
  std::string seed;
  seed += static_cast<char>(message.size() >> 8U);
  seed += static_cast<char>(message.size() & 0xffU);
  seed += text_of(message);
  seed.append(160, '\0');
  return {seed};
}

}  // namespace tonnage::fuzz
