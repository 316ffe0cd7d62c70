// SPDX-License-Identifier: Apache-2.0
// Runs of a worker program through kit::BlockingFront, and what came of them.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <numeric>
#include <variant>
#include <vector>

#include "base/spans.h"
#include "kit/blocking_front.h"
#include "testkit/example_messages.h"

namespace tonnage::testkit {

constexpr Bytes kPlenty = gib(1);

struct IdsRun {
  std::uint32_t rows = 1;
  std::uint32_t length = 1;
  Bytes grant = kPlenty;
  std::int64_t vocabulary = 1;
  std::int64_t id = -1;  // below zero: a spread of valid ones
};

// rows × length ids and a mask without padding.
inline wire::Run write_ids(kit::BlockingFront& front, const IdsRun& run) {
  const std::size_t count = std::size_t{run.rows} * run.length;
  const auto slot = as_elements<std::int64_t>(front.slot());
  const std::size_t second = (count + 7) / 8 * 8;
  for (std::size_t i = 0; i < count; ++i) {
    slot[i] = run.id < 0 ? static_cast<std::int64_t>(i * 37) % run.vocabulary : run.id;
  }
  for (std::size_t i = 0; i < count; ++i) slot[second + i] = 1;
  const auto shape = shape_of({run.rows, run.length});
  return {.slot = 0,
          .rows = run.rows,
          .length = run.length,
          .grant = run.grant,
          .inputs = {{tensor::DataType::kInt64, shape, 0, count * 8},
                     {tensor::DataType::kInt64, shape, second * 8, count * 8}}};
}

// 0, 1, 2, … in rows of `width`.
inline wire::Run write_floats(kit::BlockingFront& front, std::uint32_t rows, std::uint32_t width) {
  const auto slot = as_elements<float>(front.slot());
  std::iota(slot.begin(), slot.begin() + rows * width, 0.0F);
  return {.slot = 0,
          .rows = rows,
          .length = 0,
          .grant = kPlenty,
          .inputs = {{tensor::DataType::kFp32, shape_of({rows, width}), 0, std::uint64_t{rows} * width * 4}}};
}

inline wire::Done done_of(const Result<kit::FrontOutcome>& outcome) {
  EXPECT_TRUE(outcome.is_ok()) << outcome.status().to_string();
  const auto* done = outcome.is_ok() ? std::get_if<wire::Done>(&*outcome) : nullptr;
  EXPECT_NE(nullptr, done) << (outcome.is_ok() ? std::get<wire::Error>(*outcome).text : "");
  return done == nullptr ? wire::Done{} : *done;
}

inline wire::Error error_of(const Result<kit::FrontOutcome>& outcome) {
  EXPECT_TRUE(outcome.is_ok()) << outcome.status().to_string();
  const auto* error = outcome.is_ok() ? std::get_if<wire::Error>(&*outcome) : nullptr;
  EXPECT_NE(nullptr, error) << "the run succeeded";
  return error == nullptr ? wire::Error{} : *error;
}

inline std::vector<float> as_floats(const void* bytes, std::size_t size) {
  std::vector<float> values(size / sizeof(float));
  std::memcpy(values.data(), bytes, size);
  return values;
}

inline std::vector<float> floats_of(const kit::BlockingFront& front, const wire::TensorLayout& layout) {
  const auto bytes = front.output(layout);
  EXPECT_TRUE(bytes.is_ok());
  return as_floats(bytes->data(), bytes->size());
}

}  // namespace tonnage::testkit
