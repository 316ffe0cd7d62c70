// SPDX-License-Identifier: Apache-2.0
#include "telemetry/log.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <map>
#include <optional>

#include "base/guarded.h"
#include "base/json_text.h"
#include "telemetry/detail/log_sink.h"

namespace tonnage::telemetry {
namespace {

using WallTime = std::chrono::system_clock::time_point;

std::string_view level_name(Level level) {
  switch (level) {
    case Level::kDebug: return "debug";
    case Level::kInfo: return "info";
    case Level::kWarning: return "warning";
    case Level::kError: return "error";
  }
  return "unknown";
}

void append_value(std::string& out, const Field& field) {
  struct Visitor {
    std::string& out;
    void operator()(std::string_view v) const { append_json_string(out, v); }
    void operator()(std::int64_t v) const { fmt::format_to(std::back_inserter(out), "{}", v); }
    void operator()(std::uint64_t v) const { fmt::format_to(std::back_inserter(out), "{}", v); }
    void operator()(double v) const { append_json_number(out, v); }
    void operator()(bool v) const { out += v ? "true" : "false"; }
  };
  std::visit(Visitor{out}, field.value);
}

std::string time_text(WallTime now) {
  const auto whole = std::chrono::floor<std::chrono::seconds>(now);
  const auto millis = std::chrono::duration_cast<std::chrono::milliseconds>(now - whole).count();
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(std::chrono::system_clock::to_time_t(whole)),
                     millis);
}

// Which warnings may be written now. Event words are few and literal, so the map stays small.
class WarningLimit {
 public:
  // How many were left out since the last one, or nothing when this one is left out too.
  std::optional<std::uint64_t> admit(std::string_view event, WallTime now) {
    auto lock = sites_.lock();
    const auto found = lock->find(event);
    if (found == lock->end()) {
      lock->emplace(std::string(event), Site{now, 0});
      return 0;
    }
    Site& site = found->second;
    // A clock that was set back must not silence a site for long.
    if (now >= site.last && now - site.last < std::chrono::seconds(1)) {
      ++site.suppressed;
      return std::nullopt;
    }
    site.last = now;
    return std::exchange(site.suppressed, 0);
  }

 private:
  struct Site {
    WallTime last;
    std::uint64_t suppressed = 0;
  };
  Guarded<std::map<std::string, Site, std::less<>>> sites_;
};

class JsonLog final : public Log {
 public:
  explicit JsonLog(const LogOptions& options)
      : level_(options.level), clock_(options.clock), sink_(options.file, options.rotate_bytes) {
    if (!clock_) clock_ = [] { return std::chrono::system_clock::now(); };
  }

  void write(Level level, std::string_view event, std::initializer_list<Field> fields) override {
    if (level < level_) return;
    const WallTime now = clock_();
    std::uint64_t suppressed = 0;
    if (level == Level::kWarning) {
      const auto admitted = warnings_.admit(event, now);
      if (!admitted) return;
      suppressed = *admitted;
    }
    std::string line =
        fmt::format(R"({{"time":"{}","level":"{}","event":)", time_text(now), level_name(level));
    append_json_string(line, event);
    for (const Field& field : fields) {
      line += ',';
      append_json_string(line, field.key);
      line += ':';
      append_value(line, field);
    }
    if (suppressed > 0) fmt::format_to(std::back_inserter(line), ",\"suppressed\":{}", suppressed);
    line += "}\n";
    sink_.push(std::move(line));
  }

 private:
  Level level_;
  std::function<WallTime()> clock_;
  WarningLimit warnings_;
  LogSink sink_;
};

class NullLog final : public Log {
 public:
  void write(Level, std::string_view, std::initializer_list<Field>) override {}
};

}  // namespace

std::unique_ptr<Log> make_log(const LogOptions& options) { return std::make_unique<JsonLog>(options); }
std::unique_ptr<Log> make_null_log() { return std::make_unique<NullLog>(); }

}  // namespace tonnage::telemetry
