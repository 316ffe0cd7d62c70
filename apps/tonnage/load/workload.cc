// SPDX-License-Identifier: Apache-2.0
#include "load/workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/json_text.h"
#include "load/tensor_text.h"

namespace tonnage::load {
namespace {

Status bad(std::string detail) { return invalid("bad_workload", std::move(detail)); }

Status check_text(const WorkloadOptions& options, const ModelInfo& model, const Texts& texts) {
  const auto is_text = [](const InputInfo& input) { return input.is_text(); };
  if (std::none_of(model.inputs.begin(), model.inputs.end(), is_text)) {
    return bad(fmt::format("model '{}' has no text input: send tensors (--ids)", model.name));
  }
  if (texts.all.empty()) return bad("texts are to be sent, but no --texts FILE was given");
  for (std::size_t i = 0; options.mix && i < kClasses; ++i) {
    if (options.mix->share.at(i) > 0 && texts.of_class.at(i).empty()) {
      return bad(fmt::format("the mix asks for {} texts ({} tokens), but the file has none",
                             kClassNames.at(i), kClassRanges.at(i)));
    }
  }
  return Status::ok();
}

Status check_tensors(const WorkloadOptions& options, const ModelInfo& model) {
  if (options.format != Format::kV2Json && options.format != Format::kV2Binary) {
    return bad("tensors are sent in the V2 protocol only: --dialect v2");
  }
  if (model.inputs.empty())
    return bad(fmt::format("model '{}' takes only text: give --texts FILE", model.name));
  return Status::ok();
}

// RFC 4180: quoted whatever is inside, quotes doubled.
void append_quoted_cell(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  out += '"';
}

}  // namespace

Result<Workload> Workload::make(WorkloadOptions options, ModelInfo model, Texts texts) {
  if (options.rows == 0) return bad("a request has at least one row");
  if (options.payload == Payload::kText) {
    TONNAGE_TRY(check_text(options, model, texts));
  } else {
    std::erase_if(model.inputs, [](const InputInfo& input) { return input.is_text(); });
    TONNAGE_TRY(check_tensors(options, model));
    if (!options.mix) options.mix = Mix{{0.80, 0.15, 0.05}};
  }
  return Workload(options, std::move(model), std::move(texts));
}

Shot Workload::next() {
  Shot shot;
  shot.seed = random_.next();
  const bool is_text = options_.payload == Payload::kText;
  if (options_.mix) shot.length_class = options_.mix->draw(random_);
  for (std::uint32_t i = 0; i < options_.rows; ++i) {
    if (!is_text) {
      // All rows of one tensor have one length.
      if (i == 0) shot.tokens = Mix::draw_length(shot.length_class, options_.max_length, random_);
      shot.rows.push_back(shot.tokens);
      continue;
    }
    const auto& pool = texts_.of_class.at(static_cast<std::size_t>(shot.length_class));
    const auto pick = options_.mix ? pool.at(random_.below(pool.size()))
                                   : static_cast<std::uint32_t>(random_.below(texts_.all.size()));
    shot.rows.push_back(pick);
    shot.tokens = std::max(shot.tokens, texts_.all.at(pick).tokens);
  }
  shot.length_class = class_of(shot.tokens);
  return shot;
}

std::string Workload::closing(bool binary) const {
  std::string text = "]";
  if (!model_.outputs.empty()) {
    // One output is enough to know that the work was done, and it is the one with the labels.
    text += R"(,"outputs":[{"name":)";
    append_json_string(text, model_.outputs.front());
    if (binary) text += R"(,"parameters":{"binary_data":true})";
    text += "}]";
  }
  if (options_.deadline > Duration(0)) {
    text += fmt::format(R"(,"parameters":{{"timeout":{}}})", options_.deadline / microseconds(1));
  }
  return text + "}";
}

Workload::Body Workload::v2_text_json(const Shot& shot) const {
  std::string json = fmt::format(R"({{"inputs":[{{"name":"text","shape":[{}],"datatype":"BYTES","data":[)",
                                 shot.rows.size());
  for (std::size_t i = 0; i < shot.rows.size(); ++i) {
    if (i > 0) json += ',';
    append_json_string(json, texts_.all.at(shot.rows[i]).text);
  }
  return {json + "]}" + closing(false), "application/json", std::nullopt};
}

Workload::Body Workload::v2_text_binary(const Shot& shot) const {
  std::string data;
  for (const std::uint32_t row : shot.rows) {
    const std::string& text = texts_.all.at(row).text;
    append_little_endian(data, static_cast<std::uint32_t>(text.size()), 4);
    data += text;
  }
  std::string json = fmt::format(
      R"({{"inputs":[{{"name":"text","shape":[{}],"datatype":"BYTES","parameters":{{"binary_data_size":{}}}}})",
      shot.rows.size(), data.size());
  json += closing(true);
  const std::size_t length = json.size();
  return {json + data, "application/octet-stream", length};
}

Workload::Body Workload::v2_tensors(const Shot& shot, bool binary) const {
  Random random(shot.seed);
  std::string json = R"({"inputs":[)";
  std::string data;
  for (const InputInfo& input : model_.inputs) {
    const TensorText tensor =
        make_tensor(input, {shot.rows.size(), shot.tokens, options_.vocabulary}, random);
    if (&input != &model_.inputs.front()) json += ',';
    json += R"({"name":)" + json_string(input.name) + R"(,"shape":)" + tensor.shape + R"(,"datatype":")" +
            input.datatype + '"';
    if (binary) {
      json += fmt::format(R"(,"parameters":{{"binary_data_size":{}}}}})", tensor.bytes.size());
      data += tensor.bytes;
    } else {
      json += R"(,"data":)" + tensor.json() + "}";
    }
  }
  json += closing(binary);
  const std::size_t length = json.size();
  if (!binary) return {std::move(json), "application/json", std::nullopt};
  return {json + data, "application/octet-stream", length};
}

Workload::Body Workload::sagemaker_text(const Shot& shot) const {
  if (options_.format == Format::kSageMakerText) {
    return {texts_.all.at(shot.rows.front()).text, "text/plain", std::nullopt};
  }
  std::string body;
  for (const std::uint32_t row : shot.rows) {
    const std::string& text = texts_.all.at(row).text;
    if (options_.format == Format::kSageMakerCsv) {
      append_quoted_cell(body, text);
      body += "\r\n";
    } else {
      append_json_string(body, text);
      body += options_.format == Format::kSageMakerJsonLines ? '\n' : ',';
    }
  }
  if (options_.format == Format::kSageMakerCsv) return {std::move(body), "text/csv", std::nullopt};
  if (options_.format == Format::kSageMakerJsonLines) {
    return {std::move(body), "application/jsonlines", std::nullopt};
  }
  body.pop_back();  // the last comma
  return {R"({"instances":[)" + body + "]}", "application/json", std::nullopt};
}

Workload::Body Workload::body_of(const Shot& shot) const {
  const bool is_text = options_.payload == Payload::kText;
  switch (options_.format) {
    case Format::kV2Json: return is_text ? v2_text_json(shot) : v2_tensors(shot, false);
    case Format::kV2Binary: return is_text ? v2_text_binary(shot) : v2_tensors(shot, true);
    case Format::kSageMakerJson:
    case Format::kSageMakerText:
    case Format::kSageMakerCsv:
    case Format::kSageMakerJsonLines: return sagemaker_text(shot);
  }
  return {};
}

std::string Workload::http_request(const Shot& shot, std::string_view host, std::string_view prefix) const {
  const Body body = body_of(shot);
  const bool is_v2 = options_.format == Format::kV2Json || options_.format == Format::kV2Binary;
  std::string text;
  text.reserve(body.bytes.size() + 300);
  auto out = std::back_inserter(text);
  if (is_v2) {
    fmt::format_to(out, "POST {}/v2/models/{}/infer HTTP/1.1\r\n", prefix, model_.name);
  } else {
    fmt::format_to(out, "POST {}/invocations HTTP/1.1\r\n", prefix);
  }
  fmt::format_to(out, "Host: {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n", host, body.content_type,
                 body.bytes.size());
  if (body.json_length) fmt::format_to(out, "Inference-Header-Content-Length: {}\r\n", *body.json_length);
  text += "\r\n";
  text += body.bytes;
  return text;
}

}  // namespace tonnage::load
