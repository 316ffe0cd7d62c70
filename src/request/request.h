// SPDX-License-Identifier: Apache-2.0
// Request: what a client asked, proven and owned, with the one right to answer it.
//
// Promises:
//  1. Every input's bytes are rows × what the spec says for each row's length; value ranges hold.
//  2. The completion is answered exactly once; the envelope is given back with the Answer, after the
//     last byte went out.
//  3. A RequestId is never reused for another request: a stale id finds nothing.
// Threads: the loop (decoding and tokenising build Requests elsewhere before handing them over).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/completion.h"
#include "base/time.h"
#include "memory/budget.h"
#include "model/spec.h"
#include "request/assembly.h"
#include "tensor/buffer.h"

namespace tonnage::request {

struct RequestId {
  std::uint32_t index = 0;
  std::uint32_t generation = 0;
  bool operator==(const RequestId&) const = default;
};

// One input of all rows of a request, row after row, no padding between rows.
struct RowsTensor {
  tensor::Buffer data;
  std::uint64_t row_bytes = 0;         // rows of equal size; or
  std::vector<std::uint64_t> offsets;  // rows + 1 entries for rows of different size

  ByteView row(std::uint32_t i) const {
    if (offsets.empty()) return data.view().subspan(i * row_bytes, row_bytes);
    return data.view().subspan(offsets[i], offsets[i + 1] - offsets[i]);
  }
};

struct OutputSelection {
  std::string name;
  bool binary = false;
  std::uint32_t classification = 0;
};

// How the answer is to be written; kept beside the request, opaque to everything below api.
struct Answer {
  std::vector<OutputTensor> outputs;
  std::uint32_t truncated_rows = 0;
  std::uint32_t chunked_rows = 0;  // texts whose outputs were pooled from several rows
  std::string fallback_model;      // that answered for the one that was asked, or empty
  memory::Charge envelope;
};

struct Request {
  model::ModelHandle model;  // that runs it
  std::string id;            // the client's own, echoed
  std::uint32_t rows = 0;
  std::uint32_t length = 0;            // of every row, when `lengths` is empty
  std::vector<std::uint32_t> lengths;  // one per row
  std::vector<model::RowSize> sizes;   // of models with sizes: one for all rows, or one per row
  // Index = index of the input in the spec; a generated mask that the client did not send is empty.
  std::vector<std::optional<RowsTensor>> inputs;
  std::uint8_t priority = 0;  // 0 = default, 1 = highest
  std::uint32_t truncated_rows = 0;
  std::uint32_t chunked_rows = 0;
  // Where texts were cut into chunks: the first row of each text, and the number of rows behind the last.
  std::vector<std::uint32_t> text_begins;
  std::string fallback_model;  // name of `model`, where another one was asked
  TimePoint arrived{};
  TimePoint deadline = kNever;
  memory::Charge envelope;
  std::optional<Assembly> assembly;  // made at admission
  Completion<Answer> completion;

  // As many as the client sent; `rows` counts chunks.
  std::uint32_t client_rows() const {
    return text_begins.empty() ? rows : static_cast<std::uint32_t>(text_begins.size() - 1);
  }
  // What is scheduled; for a model with sizes the length of the padded size.
  std::uint32_t row_length(std::uint32_t row) const { return lengths.empty() ? length : lengths[row]; }
  // What was sent.
  model::RowSize row_size(std::uint32_t row) const {
    if (sizes.empty()) return row_length(row);
    return sizes.size() == 1 ? sizes[0] : sizes[row];
  }
  // In each dim the largest of all rows.
  model::RowSize largest_size() const;
};

}  // namespace tonnage::request
