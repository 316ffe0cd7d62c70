// SPDX-License-Identifier: Apache-2.0
// Metrics: counters, gauges and histograms, written as Prometheus text (no exponents: some scrapers
// of Triton's names cannot read them).
//
// Promises:
//  1. The names are those of one table (telemetry/metric_names.h); docs/metrics.md is tested against it.
//  2. A Counter, Gauge or Histogram reference stays valid as long as the Registry.
// Threads: updating is wait-free (atomics); registering and writing take a lock.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tonnage::telemetry {

using Labels = std::vector<std::pair<std::string, std::string>>;

class Counter {
 public:
  void add(std::uint64_t n = 1) { value_.fetch_add(n, std::memory_order_relaxed); }
  std::uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

class Gauge {
 public:
  void set(double v) { value_.store(v, std::memory_order_relaxed); }
  double value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<double> value_{0};
};

// Fixed upper bounds in the metric's own unit; the last bucket is +Inf.
class Histogram {
 public:
  explicit Histogram(std::span<const double> bounds);
  void observe(double v);
  std::span<const double> bounds() const { return bounds_; }
  std::uint64_t bucket(std::size_t i) const { return counts_[i].load(std::memory_order_relaxed); }
  double sum() const { return sum_.load(std::memory_order_relaxed); }

 private:
  std::vector<double> bounds_;
  std::unique_ptr<std::atomic<std::uint64_t>[]> counts_;
  std::atomic<double> sum_{0};
};

class Registry {
 public:
  Registry();
  ~Registry();
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  // The same (name, labels) gives the same object. An unlisted name is a TONNAGE_BUG.
  Counter& counter(std::string_view name, const Labels& labels = {});
  Gauge& gauge(std::string_view name, const Labels& labels = {});
  Histogram& histogram(std::string_view name, const Labels& labels = {});

  // Drops every series that carries this label; references to them are void. Also all of one name: gauges
  // that are written anew each time lose what is gone.
  void forget(std::string_view label, std::string_view value);
  void forget_all(std::string_view name);

  std::string prometheus_text() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tonnage::telemetry
