// SPDX-License-Identifier: Apache-2.0
// CsvReader: records of text/csv (RFC 4180): quoted cells, doubled quotes, LF or CRLF, an end of line
// behind the last record or not.
// Threads: one owner. Cells are views that live until the next record. Fails with: bad_csv.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace tonnage::codec::sagemaker {

struct CsvCell {
  std::string_view text;
  bool is_quoted = false;
};

class CsvReader {
 public:
  explicit CsvReader(std::string_view text) : rest_(text) {}

  // False at the end and on an error.
  bool next();
  const std::vector<CsvCell>& cells() const { return cells_; }
  std::string_view line() const { return line_; }  // the record as it was sent, without its end
  std::size_t number() const { return number_; }   // of the record, from 1
  const Status& status() const { return status_; }

 private:
  bool take_quoted();
  void take_plain();
  bool end_of_cell(bool& is_last);
  bool fail(std::string_view why);

  std::string_view rest_;
  std::string_view line_;
  std::vector<CsvCell> cells_;
  std::deque<std::string> unquoted_;
  std::size_t number_ = 0;
  Status status_;
};

void append_csv_cell(std::string& out, std::string_view text);

}  // namespace tonnage::codec::sagemaker
