// SPDX-License-Identifier: Apache-2.0
#include "codec/sagemaker/rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "codec/elements.h"
#include "codec/inputs.h"
#include "codec/v2/parameters.h"
#include "tensor/block.h"
#include "tensor/strings.h"

namespace tonnage::codec::sagemaker {
namespace {

using tensor::DataType;

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

std::vector<std::int64_t> row_dims(const model::TensorSpec& input, std::uint64_t length) {
  std::vector<std::int64_t> dims(input.dims.begin() + 1, input.dims.end());
  std::ranges::replace_if(
      dims, [](std::int64_t dim) { return dim < 0; }, static_cast<std::int64_t>(length));
  return dims;
}

}  // namespace

RowCollector::RowCollector(const model::ModelSpec& spec, std::string_view body)
    : spec_(spec),
      most_elements_(
          1 + static_cast<std::uint64_t>(std::ranges::count(body, ',') + std::ranges::count(body, '\n'))) {}

std::string_view RowCollector::name() const { return takes_text() ? v2::text_input().name : input_->name; }

std::uint64_t RowCollector::fixed_elements() const {
  std::uint64_t elements = 1;
  for (std::size_t i = 1; i < input_->dims.size(); ++i) {
    if (input_->dims[i] >= 0) elements *= static_cast<std::uint64_t>(input_->dims[i]);
  }
  return elements;
}

// Rows without names can only be those of a model with one input.
Status RowCollector::find_input() {
  if (input_ != nullptr) return Status::ok();
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < spec_.inputs.size(); ++i) {
    if (spec_.inputs[i].source == model::InputSource::kMask) continue;
    if (names.empty()) index_ = i;
    names.push_back(spec_.inputs[i].name);
  }
  if (names.size() != 1) {
    return invalid("several_inputs",
                   fmt::format("the model '{}' has the inputs {}; send a V2 request object as "
                               "application/json",
                               spec_.name, fmt::join(names, ", ")));
  }
  input_ = &spec_.inputs[index_];
  if (input_->type != DataType::kBytes) bytes_.reserve(most_elements_ * tensor::element_size(input_->type));
  return Status::ok();
}

bool RowCollector::is_row_of(JsonKind element) const {
  if (element == JsonKind::kArray || element == JsonKind::kObject || element == JsonKind::kNothing)
    return false;
  if (takes_text() && element == JsonKind::kString) return false;
  for (const model::TensorSpec& input : spec_.inputs) {
    if (input.source == model::InputSource::kClient) {
      return std::any_of(input.dims.begin() + (input.dims.empty() ? 0 : 1), input.dims.end(),
                         [](std::int64_t dim) { return dim != 1; });
    }
  }
  return false;
}

Status RowCollector::add_text(std::string_view text) {
  if (input_ != nullptr)
    return invalid("text_and_ids", fmt::format("record {}: text among rows of numbers", row() + 1));
  TONNAGE_TRY(check_row_count(spec_, texts_.size() + 1));
  texts_.emplace_back(text);
  return Status::ok();
}

Status RowCollector::add_json(JsonReader& reader) {
  if (reader.peek() == JsonKind::kString && takes_text()) {
    std::string_view text;
    return reader.read_string(text) ? add_text(text) : reader.status();
  }
  if (reader.peek() != JsonKind::kObject) return add_row(reader);
  if (!takes_text()) TONNAGE_TRY(find_input());
  (void)reader.enter_object();
  std::string_view key;
  if (!reader.next_key(key) || key != name()) {
    if (!reader.is_ok()) return reader.status();
    return invalid("bad_record", fmt::format("record {}: an object has the one key '{}'",
                                             row() + texts_.size() + 1, name()));
  }
  if (takes_text() && reader.peek() != JsonKind::kString) {
    return invalid("bad_record", fmt::format("record {}: '{}' must be a string", texts_.size() + 1, name()));
  }
  TONNAGE_TRY(add_json(reader));
  if (!reader.next_key(key)) return reader.status();
  return invalid("bad_record",
                 fmt::format("record {}: an object has the one key '{}'", row() + texts_.size(), name()));
}

Status RowCollector::begin_row() {
  if (!texts_.empty())
    return invalid("text_and_ids", fmt::format("record {}: numbers among texts", texts_.size() + 1));
  TONNAGE_TRY(find_input());
  size_ = {};
  return check_row_count(spec_, row() + 1);
}

Status RowCollector::add_row(JsonReader& reader) {
  TONNAGE_TRY(begin_row());
  const bool is_single = fixed_elements() == 1 && !input_->has_length() && reader.peek() != JsonKind::kArray;
  TONNAGE_TRY(is_single ? read_one(reader) : read_level(reader, 1));
  return end_row();
}

// Recursion ends at the rank of the input, which is at most eight.
Status RowCollector::read_level(JsonReader& reader, std::size_t level) {
  if (level >= input_->dims.size()) return read_one(reader);
  if (reader.peek() != JsonKind::kArray) {
    if (!reader.is_ok()) return reader.status();
    return invalid("bad_record",
                   fmt::format("record {}: a list is expected, rows of input '{}' are [{}]", row() + 1,
                               input_->name, fmt::join(input_->dims.begin() + 1, input_->dims.end(), ",")));
  }
  if (!reader.enter_array()) return reader.status();
  std::uint64_t count = 0;
  for (; reader.next_element(); ++count) TONNAGE_TRY(read_level(reader, level + 1));
  if (!reader.is_ok()) return reader.status();
  const std::int64_t dim = input_->dims[level];
  std::uint64_t wanted = static_cast<std::uint64_t>(dim);
  if (dim < 0) {
    auto& size = size_.at(input_->size_of(level));
    wanted = size.value_or(count);
    size = wanted;
  }
  if (count == wanted) return Status::ok();
  return invalid("element_count", fmt::format("record {}: {} values in a list, input '{}' takes {}",
                                              row() + 1, count, input_->name, wanted));
}

Status RowCollector::read_one(JsonReader& reader) {
  Status why;
  if (input_->type == DataType::kBytes) {
    std::string_view text;
    if (read_string_element(reader, text, why)) tensor::append_string(bytes_, text);
  } else if (!is_json_type(input_->type)) {
    why = invalid("not_in_json", fmt::format("{} has no text form", tensor::datatype_name(input_->type)));
  } else {
    const std::size_t at = bytes_.size();
    bytes_.resize(at + tensor::element_size(input_->type));
    (void)read_element(reader, input_->type, MutableByteView(bytes_).subspan(at), why);
  }
  if (why.is_ok()) return why;
  return invalid(why.reason(), fmt::format("record {}: {}", row() + 1, why.detail()));
}

Status RowCollector::add_csv(const CsvReader& record) {
  if (takes_text()) {
    const std::vector<CsvCell>& cells = record.cells();
    if (record.line().empty()) return invalid("bad_cell", fmt::format("row {} is empty", record.number()));
    if (!cells[0].is_quoted) return add_text(record.line());
    if (cells.size() == 1) return add_text(cells[0].text);
    return invalid("bad_record", fmt::format("row {}: a record is one text, this one has {} cells",
                                             record.number(), cells.size()));
  }
  TONNAGE_TRY(begin_row());
  const std::uint64_t fixed = fixed_elements();
  const std::size_t count = record.cells().size();
  std::size_t free_dims = 0;
  for (std::size_t i = 1; i < input_->dims.size(); ++i) free_dims += input_->dims[i] < 0 ? 1U : 0U;
  for (std::size_t column = 0; column < count; ++column) TONNAGE_TRY(read_cell(record, column));
  if (free_dims > 1 || fixed == 0 || (free_dims == 0 ? count != fixed : count % fixed != 0)) {
    return invalid("element_count",
                   fmt::format("row {}: {} columns, rows of input '{}' are [{}]", record.number(), count,
                               input_->name, fmt::join(input_->dims.begin() + 1, input_->dims.end(), ",")));
  }
  for (std::size_t i = 1; free_dims == 1 && i < input_->dims.size(); ++i) {
    if (input_->dims[i] < 0) size_.at(input_->size_of(i)) = count / fixed;
  }
  return end_row();
}

Status RowCollector::read_cell(const CsvReader& record, std::size_t column) {
  const auto bad_cell = [&](std::string_view why) {
    return invalid("bad_cell", fmt::format("row {}, column {}: {}", record.number(), column + 1, why));
  };
  const CsvCell& cell = record.cells()[column];
  if (input_->type == DataType::kBytes) {
    tensor::append_string(bytes_, cell.text);
    return Status::ok();
  }
  const std::string_view token = trimmed(cell.text);
  if (token.empty()) return bad_cell("the cell is empty");
  const std::size_t at = bytes_.size();
  bytes_.resize(at + tensor::element_size(input_->type));
  const MutableByteView out = MutableByteView(bytes_).subspan(at);
  if (input_->type == DataType::kBool) {
    if (token != "0" && token != "1" && token != "true" && token != "false")
      return bad_cell("a BOOL is 0, 1, true or false");
    out[0] = static_cast<std::byte>(token == "1" || token == "true");
    return Status::ok();
  }
  if (!is_json_type(input_->type))
    return bad_cell(fmt::format("{} has no text form", tensor::datatype_name(input_->type)));
  const Parsed parsed = parse_number(input_->type, token, out);
  return parsed == Parsed::kOk ? Status::ok() : bad_cell(describe(parsed, input_->type, token));
}

Status RowCollector::end_row() {
  if (input_->has_length()) {
    for (std::size_t i = 0; i < std::max<std::size_t>(spec_.sizes.size(), 1); ++i) {
      const Status status = check_size(spec_, *input_, i, size_.at(i).value_or(0));
      if (status.is_ok()) continue;
      return {status.code(), status.reason(), fmt::format("record {}: {}", row() + 1, status.detail())};
    }
    if (spec_.sizes.empty() && *size_[0] > spec_.max_length) cut_row();
    const model::RowSize size = row_size(size_);
    if (!spec_.sizes.empty()) sizes_.push_back(size);
    lengths_.push_back(scheduled_length(spec_, size));
  }
  ends_.push_back(bytes_.size());
  return Status::ok();
}

void RowCollector::cut_row() {
  const std::size_t begin = ends_.empty() ? 0 : ends_.back();
  const std::vector<std::int64_t> sent = row_dims(*input_, *size_[0]);
  const std::vector<std::int64_t> kept = row_dims(*input_, spec_.max_length);
  const std::vector<std::byte> row(bytes_.begin() + static_cast<std::ptrdiff_t>(begin), bytes_.end());
  if (input_->type == DataType::kBytes) {
    const auto cut = tensor::reshape_strings({row, sent}, kept);
    TONNAGE_CHECK(cut.has_value(), "strings were written by this collector");
    bytes_.resize(begin);
    bytes_.insert(bytes_.end(), cut->begin(), cut->end());
  } else {
    const std::size_t element = tensor::element_size(input_->type);
    bytes_.resize(begin + row.size() / *size_[0] * spec_.max_length);
    tensor::copy_block({row, sent}, {MutableByteView(bytes_).subspan(begin), kept}, element);
  }
  size_[0] = spec_.max_length;
  ++truncated_rows_;
}

// Rows that run in one batch have to be able to meet there.
Status RowCollector::check_groups() const {
  if (spec_.rows != model::RowsRule::kTogether) return Status::ok();
  for (std::size_t i = 1; i < sizes_.size(); ++i) {
    if (spec_.group_of(sizes_[i]) == spec_.group_of(sizes_[0])) continue;
    return invalid("sizes_differ", fmt::format("records 1 and {} have sizes that cannot be in one batch, in "
                                               "which model '{}' runs a request",
                                               i + 1, spec_.name));
  }
  return Status::ok();
}

Status RowCollector::finish(Decoded& decoded) {
  request::Request& request = decoded.request;
  TONNAGE_TRY(check_row_count(spec_, texts_.size() + row()));
  request.rows = static_cast<std::uint32_t>(texts_.size() + row());
  request.truncated_rows = truncated_rows_;
  decoded.texts = std::move(texts_);
  if (input_ == nullptr) return Status::ok();
  request::RowsTensor tensor;
  tensor.data = tensor::Buffer(bytes_.size());
  if (!bytes_.empty()) std::memcpy(tensor.data.mutable_view().data(), bytes_.data(), bytes_.size());
  const bool are_equal = std::ranges::adjacent_find(lengths_, std::not_equal_to()) == lengths_.end() &&
                         std::ranges::adjacent_find(sizes_, std::not_equal_to()) == sizes_.end();
  TONNAGE_TRY(check_groups());
  if (are_equal && !lengths_.empty()) request.length = lengths_[0];
  if (!are_equal) request.lengths = std::move(lengths_);
  if (are_equal && !sizes_.empty()) sizes_.resize(1);
  request.sizes = std::move(sizes_);
  if (are_equal && input_->type != DataType::kBytes) {
    tensor.row_bytes = bytes_.size() / request.rows;
  } else {
    tensor.offsets = std::move(ends_);
    tensor.offsets.insert(tensor.offsets.begin(), 0);
  }
  request.inputs.resize(spec_.inputs.size());
  request.inputs[index_] = std::move(tensor);
  return check_ranges(spec_, request);
}

}  // namespace tonnage::codec::sagemaker
