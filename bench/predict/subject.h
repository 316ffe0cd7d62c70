// SPDX-License-Identifier: Apache-2.0
// A model that the predict bench drives: where it comes from, and how a batch of it is filled.
//
// Every subject takes INT64 ids [-1, -1] first; each further input is a mask. Threads: values.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "base/random.h"
#include "base/status.h"
#include "cost/table.h"
#include "kit/blocking_front.h"

namespace tonnage::bench {

struct Subject {
  std::string name;
  std::string program;
  wire::LoadDoc doc;
  std::int64_t vocabulary = 0;
  std::uint32_t max_length = 1024;
  std::uint64_t batches = 0;  // after the unseen shapes, of shapes that were seen, mostly small
};

// `route`, `precision`: empty is what the model's own model.toml says.
Result<Subject> exported_model(const std::string& bin, const std::string& directory, const std::string& route,
                               const std::string& precision);
// A TorchScript file with `ids` of 1,000 values; `mask` where it takes one.
Subject toy(const std::string& bin, const std::string& folder, const std::string& name);
Subject stub(const std::string& bin, const std::string& model);

Result<kit::BlockingFront> start(const Subject& subject);
// Random ids and masks of ones, written into the worker's slot.
wire::Run fill(kit::BlockingFront& front, const Subject& subject, cost::Shape shape, Random& random,
               Bytes grant);

constexpr std::uint32_t kMaxRows = 64;

// Shapes that were never run before, of any whole length from that to which the shortest rows are padded:
// four of five with rows × length ≤ 512 (they take the least time), the others ≤ 2,048, and one of fifty
// beyond, up to 4,096.
class ShapeSource {
 public:
  ShapeSource(std::uint32_t max_length, std::uint64_t seed) : max_length_(max_length), random_(seed) {}
  void was_seen(cost::Shape shape) { seen_.insert({shape.rows, shape.length}); }
  std::size_t seen() const { return seen_.size(); }
  cost::Shape unseen();

 private:
  cost::Shape draw(std::uint64_t most_tokens);

  std::uint32_t max_length_;
  Random random_;
  std::uint64_t drawn_ = 0;
  std::set<std::pair<std::uint32_t, std::uint32_t>> seen_;
};

}  // namespace tonnage::bench
