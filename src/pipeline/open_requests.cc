// SPDX-License-Identifier: Apache-2.0
#include "pipeline/open_requests.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "request/pooling.h"

namespace tonnage::pipeline {
namespace {

request::RequestId id_of(std::uint64_t packed) {
  return {static_cast<std::uint32_t>(packed), static_cast<std::uint32_t>(packed >> 32U)};
}

}  // namespace

request::RequestId OpenRequests::open(request::Request request) {
  std::vector<std::string> names;
  names.reserve(request.model->outputs.size());
  for (const model::TensorSpec& output : request.model->outputs) names.push_back(output.name);
  request.assembly.emplace(request.rows, std::move(names));
  const TimePoint deadline = request.deadline;
  const request::RequestId id = table_.add(std::move(request));
  if (deadline != kNever) {
    deadlines_.insert(entry(deadline, id));
    arm();
  }
  return id;
}

void OpenRequests::put_row(request::RequestId id, std::uint32_t row,
                           std::span<const request::RowOutput> outputs) {
  request::Request* request = table_.find(id);
  if (request == nullptr || !request->assembly->is_row_open(row)) return;
  request->assembly->put(row, outputs);
  if (!request->assembly->is_complete()) return;
  Result<std::vector<request::OutputTensor>> tensors = request->assembly->finish();
  if (!tensors.is_ok()) return close(id, tensors.status());
  request::Answer answer;
  answer.outputs = std::move(tensors).value();
  if (!request->text_begins.empty()) {
    for (request::OutputTensor& output : answer.outputs) {
      Result<request::OutputTensor> pooled = request::pool_chunks(*request, output);
      if (!pooled.is_ok()) return close(id, pooled.status());
      output = std::move(pooled).value();
    }
  }
  answer.truncated_rows = request->truncated_rows;
  answer.chunked_rows = request->chunked_rows;
  answer.fallback_model = std::move(request->fallback_model);
  answer.envelope = std::move(request->envelope);
  close(id, std::move(answer));
}

void OpenRequests::fail(request::RequestId id, const Status& status) {
  if (table_.find(id) != nullptr) close(id, status);
}

void OpenRequests::fail_all(const Status& status) {
  for (const request::RequestId id : table_.ids()) fail(id, status);
}

void OpenRequests::close(request::RequestId id, Result<request::Answer> answer) {
  std::optional<request::Request> request = table_.remove(id);
  if (!request) return;
  if (request->deadline != kNever) deadlines_.erase(entry(request->deadline, id));
  on_closed_(id, *request);
  request->envelope.release();
  request->completion.answer(std::move(answer));
}

// The timer is only ever moved forward in time when it fires: re-arming on every request would cost
// more than a wake-up that finds nothing due.
void OpenRequests::arm() {
  if (deadlines_.empty()) return;
  const TimePoint earliest = deadlines_.begin()->first;
  if (timer_ && armed_for_ <= earliest) return;
  armed_for_ = earliest;
  timer_ = loop_.call_at(earliest, [this] { expire(); });
}

void OpenRequests::expire() {
  armed_for_ = kNever;
  timer_.reset();
  const TimePoint now = loop_.now();
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    const request::RequestId id = id_of(deadlines_.begin()->second);
    const request::Request* request = table_.find(id);
    const double waited = request == nullptr ? 0 : to_millis(now - request->arrived);
    fail(id, {Code::kDeadlineExceeded, "deadline",
              fmt::format("not answered within its deadline ({:.0f} ms after it arrived)", waited)});
  }
  arm();
}

}  // namespace tonnage::pipeline
