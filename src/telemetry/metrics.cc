// SPDX-License-Identifier: Apache-2.0
#include "telemetry/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "base/bug.h"
#include "base/guarded.h"
#include "telemetry/metric_names.h"

namespace tonnage::telemetry {
namespace {

// One time series: exactly one of the three is set.
struct Series {
  std::unique_ptr<Counter> counter;
  std::unique_ptr<Gauge> gauge;
  std::unique_ptr<Histogram> histogram;
};
// By label text, so that the written order is stable.
using Family = std::map<std::string, Series>;

void append_label_value(std::string& out, std::string_view value) {
  for (const char c : value) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
}

// model="a",version="1" without braces.
std::string label_text(const Labels& labels) {
  std::string text;
  for (const auto& [key, value] : labels) {
    if (!text.empty()) text += ',';
    text.append(key).append("=\"");
    append_label_value(text, value);
    text += '"';
  }
  return text;
}

// Never an exponent: perf_analyzer's reader of Triton's metrics takes digits and a dot only.
void append_value(std::string& out, double value) {
  if (std::isnan(value)) {
    out += "NaN";
  } else if (std::isinf(value)) {
    out += value > 0 ? "+Inf" : "-Inf";
  } else if (value == std::floor(value) || std::fabs(value) >= 1e15) {
    fmt::format_to(std::back_inserter(out), "{:.0f}", value);
  } else {
    std::string text = fmt::format("{:.9f}", value);
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
    out += text;
  }
}

void append_sample(std::string& out, std::string_view name, std::string_view labels, double value) {
  out += name;
  if (!labels.empty()) out.append("{").append(labels).append("}");
  out += ' ';
  append_value(out, value);
  out += '\n';
}

void append_histogram(std::string& out, std::string_view name, const std::string& labels,
                      const Histogram& histogram) {
  const std::string prefix = labels.empty() ? "" : labels + ',';
  const std::string bucket_name = std::string(name) + "_bucket";
  std::uint64_t below = 0;
  const auto bounds = histogram.bounds();
  for (std::size_t i = 0; i <= bounds.size(); ++i) {
    below += histogram.bucket(i);
    std::string bound;
    append_value(bound, i < bounds.size() ? bounds[i] : std::numeric_limits<double>::infinity());
    append_sample(out, bucket_name, fmt::format("{}le=\"{}\"", prefix, bound), static_cast<double>(below));
  }
  append_sample(out, std::string(name) + "_sum", labels, histogram.sum());
  append_sample(out, std::string(name) + "_count", labels, static_cast<double>(below));
}

}  // namespace

Histogram::Histogram(std::span<const double> bounds)
    : bounds_(bounds.begin(), bounds.end()),
      counts_(std::make_unique<std::atomic<std::uint64_t>[]>(bounds.size() + 1)) {}

void Histogram::observe(double v) {
  const auto at = std::lower_bound(bounds_.begin(), bounds_.end(), v);
  counts_[static_cast<std::size_t>(at - bounds_.begin())].fetch_add(1, std::memory_order_relaxed);
  sum_.fetch_add(v, std::memory_order_relaxed);
}

struct Registry::State {
  struct Families {
    std::map<std::string, Family, std::less<>> listed;
    Family unlisted;  // kept apart and never written: references must stay valid
  };
  Guarded<Families> families;

  // Runs `make` on the series of (name, labels) and returns what it gives, under the lock.
  template <typename Make>
  auto& series(std::string_view name, const Labels& labels, MetricType type, Make make) {
    const MetricInfo* info = find_metric(name);
    const bool known = info != nullptr && info->type == type;
    if (!known)
      TONNAGE_BUG(fmt::format("metric '{}' is not in telemetry/metric_names.h with this type", name));
    auto lock = families.lock();
    Family& family = known ? lock->listed[std::string(name)] : lock->unlisted;
    const std::string key = known ? label_text(labels) : fmt::format("{}{{{}}}", name, label_text(labels));
    return make(family[key], known ? info->buckets : Buckets::kNone);
  }
};

Registry::Registry() : state_(std::make_unique<State>()) {}
Registry::~Registry() = default;

Counter& Registry::counter(std::string_view name, const Labels& labels) {
  return state_->series(name, labels, MetricType::kCounter, [](Series& s, Buckets) -> Counter& {
    if (!s.counter) s.counter = std::make_unique<Counter>();
    return *s.counter;
  });
}

Gauge& Registry::gauge(std::string_view name, const Labels& labels) {
  return state_->series(name, labels, MetricType::kGauge, [](Series& s, Buckets) -> Gauge& {
    if (!s.gauge) s.gauge = std::make_unique<Gauge>();
    return *s.gauge;
  });
}

Histogram& Registry::histogram(std::string_view name, const Labels& labels) {
  return state_->series(name, labels, MetricType::kHistogram, [](Series& s, Buckets b) -> Histogram& {
    if (!s.histogram) s.histogram = std::make_unique<Histogram>(bucket_bounds(b));
    return *s.histogram;
  });
}

void Registry::forget(std::string_view label, std::string_view value) {
  const std::string wanted = label_text({{std::string(label), std::string(value)}});
  // A label's text begins the line or follows a comma, and ends it or is followed by one.
  const auto carries = [&](const std::string& labels) {
    for (std::size_t at = labels.find(wanted); at != std::string::npos; at = labels.find(wanted, at + 1)) {
      const std::size_t end = at + wanted.size();
      if ((at == 0 || labels[at - 1] == ',') && (end == labels.size() || labels[end] == ',')) return true;
    }
    return false;
  };
  auto lock = state_->families.lock();
  for (auto& [name, family] : lock->listed) {
    std::erase_if(family, [&](const auto& entry) { return carries(entry.first); });
  }
}

void Registry::forget_all(std::string_view name) {
  auto lock = state_->families.lock();
  if (const auto found = lock->listed.find(name); found != lock->listed.end()) lock->listed.erase(found);
}

std::string Registry::prometheus_text() const {
  std::string out;
  auto lock = state_->families.lock();
  for (const MetricInfo& info : metric_table()) {
    const auto family = lock->listed.find(info.name);
    if (family == lock->listed.end()) continue;
    fmt::format_to(std::back_inserter(out), "# HELP {} {}\n# TYPE {} {}\n", info.name, info.help, info.name,
                   metric_type_name(info.type));
    for (const auto& [labels, series] : family->second) {
      if (series.counter) {
        append_sample(out, info.name, labels, static_cast<double>(series.counter->value()));
      } else if (series.gauge) {
        append_sample(out, info.name, labels, series.gauge->value());
      } else if (series.histogram) {
        append_histogram(out, info.name, labels, *series.histogram);
      }
    }
  }
  return out;
}

}  // namespace tonnage::telemetry
