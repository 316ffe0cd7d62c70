// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <optional>

#include "codec/json/reader.h"
#include "codec/sagemaker/csv.h"
#include "codec/sagemaker/media.h"
#include "codec/sagemaker/rows.h"
#include "codec/sagemaker/sagemaker.h"
#include "codec/v2/v2.h"

namespace tonnage::codec::sagemaker {
namespace {

// Reads the list in front of the reader, one row per element.
Status read_rows(JsonReader& reader, RowCollector& rows) {
  if (!reader.enter_array()) return reader.status();
  while (reader.next_element()) TONNAGE_TRY(rows.add_json(reader));
  return reader.status();
}

Status read_list(JsonReader& reader, RowCollector& rows) {
  const JsonReader::Bookmark begin = reader.bookmark();
  (void)reader.enter_array();
  const bool is_row = reader.next_element() && rows.is_row_of(reader.peek());
  if (!reader.is_ok()) return reader.status();
  reader.go_to(begin);
  return is_row ? rows.add_json(reader) : read_rows(reader, rows);
}

// True when the object is a V2 request and nothing was read.
Result<bool> read_object(JsonReader& reader, RowCollector& rows) {
  (void)reader.enter_object();
  bool has_instances = false;
  for (std::string_view key; reader.next_key(key);) {
    if (key == "inputs" && !has_instances) return true;
    if (key != "instances") {
      if (!reader.skip_value()) return reader.status();
      continue;
    }
    if (has_instances) return invalid("duplicate_key", "'instances' is there twice");
    has_instances = true;
    if (reader.peek() != JsonKind::kArray) return invalid("bad_request", "'instances' must be a list");
    TONNAGE_TRY(read_rows(reader, rows));
  }
  if (!reader.is_ok()) return reader.status();
  if (!has_instances) {
    return invalid("bad_request", "the JSON object has neither 'instances' nor, as a V2 request, 'inputs'");
  }
  return false;
}

// True when the body is a V2 request.
Result<bool> read_json(std::string_view body, RowCollector& rows) {
  JsonReader reader(body);
  switch (reader.peek()) {
    case JsonKind::kObject: {
      TONNAGE_ASSIGN(const bool is_v2, read_object(reader, rows));
      if (is_v2) return true;
      break;
    }
    case JsonKind::kArray: TONNAGE_TRY(read_list(reader, rows)); break;
    case JsonKind::kString: TONNAGE_TRY(rows.add_json(reader)); break;
    default:
      if (!reader.is_ok()) return reader.status();
      return invalid("bad_request",
                     "the body must be a JSON list, {\"instances\": […]} or a V2 request object");
  }
  if (!reader.finish()) return reader.status();
  return false;
}

Status read_json_lines(std::string_view body, RowCollector& rows) {
  for (std::size_t number = 1; !body.empty(); ++number) {
    const std::size_t end = body.find('\n');
    const std::string_view line = body.substr(0, end);
    body = end == std::string_view::npos ? std::string_view() : body.substr(end + 1);
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) {
      // Blank lines end a file; between records they would shift the answers.
      if (body.find_first_not_of(" \t\r\n") == std::string_view::npos) return Status::ok();
      return invalid("bad_record", fmt::format("line {} is empty", number));
    }
    JsonReader reader(line);
    TONNAGE_TRY(rows.add_json(reader));
    if (!reader.finish()) {
      return invalid(reader.status().reason(), fmt::format("line {}: {}", number, reader.status().detail()));
    }
  }
  return Status::ok();
}

Status read_csv(std::string_view body, RowCollector& rows) {
  CsvReader reader(body);
  while (reader.next()) TONNAGE_TRY(rows.add_csv(reader));
  return reader.status();
}

}  // namespace

Result<Decoded> decode_invocation(const model::ModelSpec& spec, std::string& body,
                                  std::string_view content_type, std::string_view accept) {
  TONNAGE_ASSIGN(const BodyForm form, body_form(content_type, spec.tokenizer.has_value()));
  Decoded decoded;
  TONNAGE_ASSIGN(decoded.format.form, reply_form(accept, form));
  RowCollector rows(spec, body);
  switch (form) {
    case BodyForm::kCsv: TONNAGE_TRY(read_csv(body, rows)); break;
    case BodyForm::kJsonLines: TONNAGE_TRY(read_json_lines(body, rows)); break;
    case BodyForm::kText:
      if (!body.empty()) TONNAGE_TRY(rows.add_text(body));
      break;
    default: {
      TONNAGE_ASSIGN(const bool is_v2, read_json(body, rows));
      if (!is_v2) break;
      if (decoded.format.form != BodyForm::kJson) {
        return Status(Code::kNotAcceptable, "accept", "a V2 request is answered as application/json");
      }
      return v2::decode_infer(spec, body, std::nullopt);
    }
  }
  TONNAGE_TRY(rows.finish(decoded));
  return decoded;
}

}  // namespace tonnage::codec::sagemaker
