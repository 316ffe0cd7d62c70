// SPDX-License-Identifier: Apache-2.0
// RowCollector: rows of a model's one input, or texts of a tokenizer model, record by record. Rows may
// differ in length where the input has a free dim.
//
// Promises: as check_shape and settle (codec/inputs.h) for a request that grows row by row.
// Threads: one owner. Fails with: invalid_argument/{several_inputs, bad_record, text_and_ids, …}.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "codec/decoded.h"
#include "codec/inputs.h"
#include "codec/json/reader.h"
#include "codec/sagemaker/csv.h"

namespace tonnage::codec::sagemaker {

class RowCollector {
 public:
  // `body`: bounds how many elements can come.
  RowCollector(const model::ModelSpec& spec, std::string_view body);

  bool takes_text() const { return spec_.tokenizer.has_value(); }
  // True when a bare list of this kind of values is one row, not a list of rows.
  bool is_row_of(JsonKind element) const;

  Status add_text(std::string_view text);
  // The value in front of the reader: a row, a text, or {"input": row}.
  Status add_json(JsonReader& reader);
  Status add_csv(const CsvReader& record);
  // Moves everything into `decoded` and proves it.
  Status finish(Decoded& decoded);

 private:
  Status find_input();
  Status add_row(JsonReader& reader);
  Status read_level(JsonReader& reader, std::size_t level);
  Status read_one(JsonReader& reader);
  Status read_cell(const CsvReader& record, std::size_t column);
  Status begin_row();
  Status end_row();
  void cut_row();
  Status check_groups() const;
  std::uint64_t fixed_elements() const;
  std::string_view name() const;
  std::size_t row() const { return ends_.size(); }

  const model::ModelSpec& spec_;
  std::size_t index_ = 0;
  const model::TensorSpec* input_ = nullptr;  // found with the first row
  std::vector<std::byte> bytes_;
  std::vector<std::uint64_t> ends_;
  std::vector<std::uint32_t> lengths_;
  std::vector<model::RowSize> sizes_;  // of models with sizes
  SentSize size_;                      // of the row being read
  std::uint64_t most_elements_;
  std::uint32_t truncated_rows_ = 0;
  std::vector<std::string> texts_;
};

}  // namespace tonnage::codec::sagemaker
