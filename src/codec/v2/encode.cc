// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>

#include "base/json_text.h"
#include "codec/elements.h"
#include "codec/v2/v2.h"
#include "tensor/strings.h"

namespace tonnage::codec::v2 {
namespace {

using request::OutputTensor;

// "0.982000:1:positive" for the `top` largest values of a row, largest first.
void append_classes(std::vector<std::byte>& out, const model::ModelSpec& spec, const OutputTensor& output,
                    std::pair<ByteView, std::uint32_t> row_and_top) {
  const ByteView row = row_and_top.first;
  const std::uint32_t top = row_and_top.second;
  const std::size_t count = row.size() / tensor::element_size(output.type);
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0U);
  const auto value = [&](std::uint32_t i) { return element_value(output.type, row, i); };
  const auto kept = static_cast<std::ptrdiff_t>(std::min<std::size_t>(top, count));
  std::partial_sort(order.begin(), order.begin() + kept, order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return value(a) != value(b) ? value(a) > value(b) : a < b;
  });
  const bool has_labels = !spec.outputs.empty() && spec.outputs[0].name == output.name;
  for (auto it = order.begin(); it != order.begin() + kept; ++it) {
    std::string text = fmt::format("{:f}:{}", value(*it), *it);
    if (has_labels && *it < spec.labels.size()) text += ':' + spec.labels[*it];
    tensor::append_string(out, text);
  }
}

Result<OutputTensor> classify(const model::ModelSpec& spec, const OutputTensor& output, std::uint32_t top) {
  const auto rows = static_cast<std::size_t>(output.shape.dim(0));
  const std::size_t row_bytes = output.data.size() / rows;
  const std::size_t columns = row_bytes / tensor::element_size(output.type);
  std::vector<std::byte> strings;
  for (std::size_t row = 0; row < rows; ++row) {
    append_classes(strings, spec, output, {output.data.view().subspan(row * row_bytes, row_bytes), top});
  }
  OutputTensor classes{output.name, tensor::DataType::kBytes, {}, tensor::Buffer(strings.size())};
  const std::int64_t dims[] = {output.shape.dim(0),
                               static_cast<std::int64_t>(std::min<std::size_t>(top, columns))};
  TONNAGE_ASSIGN(classes.shape, tensor::Shape::make(dims));
  std::ranges::copy(strings, classes.data.mutable_view().begin());
  return classes;
}

class Encoder {
 public:
  Encoder(const model::ModelSpec& spec, EncodedBody& out) : spec_(spec), out_(out) {}

  void begin(const request::Request& request, const request::Answer& answer) {
    std::string& body = out_.body;
    body += R"({"model_name":)";
    append_json_string(body, spec_.name);
    body += R"(,"model_version":)";
    append_json_string(body, spec_.version);
    if (!request.id.empty()) {
      body += R"(,"id":)";
      append_json_string(body, request.id);
    }
    append_parameters(answer);
    body += R"(,"outputs":[)";
  }

  Status add(const OutputTensor& output, bool is_binary) {
    std::string& body = out_.body;
    body += std::exchange(is_first_, false) ? R"({"name":)" : R"(,{"name":)";
    append_json_string(body, output.name);
    fmt::format_to(std::back_inserter(body), R"(,"datatype":"{}","shape":)",
                   tensor::datatype_name(output.type));
    append_shape(output.shape);
    if (is_binary) {
      fmt::format_to(std::back_inserter(body), R"(,"parameters":{{"binary_data_size":{}}}}})",
                     output.data.size());
      binary_.push_back(output.data.view());
      return Status::ok();
    }
    body += R"(,"data":[)";
    if (!is_json_type(output.type) || !append_flat(body, output.type, output.data.view())) {
      return invalid("not_in_json",
                     fmt::format("output '{}' ({}) holds what JSON cannot carry; ask for binary_data",
                                 output.name, tensor::datatype_name(output.type)));
    }
    body += "]}";
    return Status::ok();
  }

  void end() {
    out_.body += "]}";
    out_.content_type = binary_.empty() ? "application/json" : "application/octet-stream";
    if (binary_.empty()) return;
    out_.json_length = out_.body.size();
    std::size_t size = out_.body.size();
    for (const ByteView bytes : binary_) size += bytes.size();
    out_.body.reserve(size);
    for (const ByteView bytes : binary_) out_.body += as_text(bytes);
  }

 private:
  void append_parameters(const request::Answer& answer) {
    std::string& body = out_.body;
    bool is_first = true;
    const auto begin = [&](std::string_view key) {
      body += std::exchange(is_first, false) ? R"(,"parameters":{)" : ",";
      append_json_string(body, key);
      body += ':';
    };
    const auto append_count = [&](std::string_view key, std::uint32_t rows) {
      if (rows == 0) return;
      begin(key);
      body += std::to_string(rows);
    };
    append_count("truncated_rows", answer.truncated_rows);
    append_count("chunked_rows", answer.chunked_rows);
    if (!answer.fallback_model.empty()) {
      begin("fallback_model");
      append_json_string(body, answer.fallback_model);
    }
    if (!is_first) body += '}';
  }

  void append_shape(const tensor::Shape& shape) {
    out_.body += '[';
    for (std::size_t i = 0; i < shape.rank(); ++i) {
      if (i > 0) out_.body += ',';
      fmt::format_to(std::back_inserter(out_.body), "{}", shape.dim(i));
    }
    out_.body += ']';
  }

  const model::ModelSpec& spec_;
  EncodedBody& out_;
  std::vector<ByteView> binary_;
  bool is_first_ = true;
};

// Room for what JSON usually takes, so that the body is not copied while it grows.
std::size_t expected_size(const request::Answer& answer) {
  std::size_t size = 256;
  for (const OutputTensor& output : answer.outputs) {
    size +=
        64 + (output.type == tensor::DataType::kBytes ? output.data.size() : output.shape.elements() * 12);
  }
  return size;
}

}  // namespace

Result<EncodedBody> encode_infer(const model::ModelSpec& spec, const request::Request& request,
                                 const request::Answer& answer, const ReplyFormat& format) {
  EncodedBody encoded;
  if (!format.binary_by_default) encoded.body.reserve(expected_size(answer));
  Encoder encoder(spec, encoded);
  encoder.begin(request, answer);
  if (format.selections.empty()) {
    for (const OutputTensor& output : answer.outputs)
      TONNAGE_TRY(encoder.add(output, format.binary_by_default));
    encoder.end();
    return encoded;
  }
  std::vector<OutputTensor> classes;
  classes.reserve(format.selections.size());  // the encoder keeps views of them until end()
  for (const request::OutputSelection& selection : format.selections) {
    const auto found = std::ranges::find(answer.outputs, selection.name, &OutputTensor::name);
    if (found == answer.outputs.end()) {
      return internal("missing_output", fmt::format("output '{}' was not produced", selection.name));
    }
    const OutputTensor* output = &*found;
    if (selection.classification > 0) {
      TONNAGE_ASSIGN(OutputTensor top, classify(spec, *found, selection.classification));
      output = &classes.emplace_back(std::move(top));
    }
    TONNAGE_TRY(encoder.add(*output, selection.binary));
  }
  encoder.end();
  return encoded;
}

}  // namespace tonnage::codec::v2
