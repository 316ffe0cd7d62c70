// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/json_text.h"
#include "codec/elements.h"
#include "codec/sagemaker/csv.h"
#include "codec/sagemaker/media.h"
#include "codec/sagemaker/sagemaker.h"
#include "codec/v2/v2.h"
#include "tensor/strings.h"

namespace tonnage::codec::sagemaker {
namespace {

using request::OutputTensor;

ByteView row_of(const OutputTensor& output, std::size_t row) {
  const std::size_t size = output.data.size() / static_cast<std::size_t>(output.shape.dim(0));
  return output.data.view().subspan(row * size, size);
}

struct Label {
  std::string name;
  float score = 0;
};

// The largest value of a row; softmax first where the model's metadata says that its scores are logits.
Label label_of(const model::ModelSpec& spec, const OutputTensor& scores, std::size_t row) {
  const ByteView bytes = row_of(scores, row);
  std::vector<double> values(bytes.size() / tensor::element_size(scores.type));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = element_value(scores.type, bytes, i);
  const auto best = std::ranges::max_element(values);
  const auto index = static_cast<std::size_t>(best - values.begin());
  double score = *best;
  if (const auto rule = spec.metadata.find("scores");
      rule != spec.metadata.end() && rule->second == "logits") {
    double sum = 0;
    for (const double value : values) sum += std::exp(value - *best);
    score = 1 / sum;
  }
  return {index < spec.labels.size() ? spec.labels[index] : fmt::to_string(index), static_cast<float>(score)};
}

bool has_labels(const model::ModelSpec& spec, const OutputTensor& scores) {
  return !spec.labels.empty() && scores.type != tensor::DataType::kBytes && scores.shape.elements() > 0;
}

// Strings lie behind each other, so their rows are found by walking.
std::vector<std::string> string_rows(const OutputTensor& output, bool as_csv) {
  std::vector<std::string> rows;
  ByteView rest = output.data.view();
  const auto count = static_cast<std::size_t>(output.shape.dim(0));
  const std::size_t per_row = output.shape.elements() / count;
  for (std::size_t row = 0; row < count; ++row) {
    std::string text = as_csv ? "" : "[";
    for (std::size_t i = 0; i < per_row; ++i) {
      if (i > 0) text += ',';
      const std::string_view element = tensor::take_string(rest).value_or("");
      as_csv ? append_csv_cell(text, element) : append_json_string(text, element);
    }
    rows.push_back(as_csv ? text : text + "]");
  }
  return rows;
}

// Record `row` of the reply: its label, or the values of the first output.
class RecordWriter {
 public:
  RecordWriter(const model::ModelSpec& spec, const OutputTensor& output, bool as_csv)
      : spec_(spec), output_(output), as_csv_(as_csv) {
    if (output.type == tensor::DataType::kBytes) strings_ = string_rows(output, as_csv);
  }

  void append(std::string& out, std::size_t row) const {
    if (has_labels(spec_, output_)) return append_label(out, label_of(spec_, output_, row));
    if (output_.type == tensor::DataType::kBytes) {
      out += strings_[row];
    } else if (as_csv_) {
      append_flat(out, output_.type, row_of(output_, row));
    } else {
      append_nested(out, output_.type, {row_of(output_, row), output_.shape.dims().subspan(1)});
    }
  }

 private:
  void append_label(std::string& out, const Label& label) const {
    if (as_csv_) {
      append_csv_cell(out, label.name);
      out += ',';
      return append_number(out, label.score);
    }
    out += R"({"label":)";
    append_json_string(out, label.name);
    out += R"(,"score":)";
    append_number(out, label.score);
    out += '}';
  }

  const model::ModelSpec& spec_;
  const OutputTensor& output_;
  bool as_csv_;
  std::vector<std::string> strings_;
};

}  // namespace

Result<EncodedBody> encode_invocation(const model::ModelSpec& spec, const request::Request& request,
                                      const request::Answer& answer, const ReplyFormat& format) {
  if (format.form == BodyForm::kV2) return v2::encode_infer(spec, request, answer, format);
  if (answer.outputs.empty()) return internal("missing_output", "the model produced no output");
  const OutputTensor& output = answer.outputs[0];
  const RecordWriter records(spec, output, format.form == BodyForm::kCsv);
  EncodedBody encoded{std::string(media_type(format.form)), std::nullopt, ""};
  std::string& body = encoded.body;
  body.reserve(64 + output.data.size() * 3);
  const bool is_json = format.form == BodyForm::kJson;
  if (is_json) body += R"({"predictions":[)";
  for (std::size_t row = 0; row < static_cast<std::size_t>(output.shape.dim(0)); ++row) {
    if (is_json && row > 0) body += ',';
    records.append(body, row);
    if (!is_json) body += '\n';
  }
  if (is_json) body += "]}";
  return encoded;
}

}  // namespace tonnage::codec::sagemaker
