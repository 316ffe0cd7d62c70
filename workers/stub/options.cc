// SPDX-License-Identifier: Apache-2.0
#include "stub/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <string_view>
#include <vector>

namespace tonnage::stub {
namespace {

struct Preset {
  std::string_view name;
  void (*apply)(Options&);
};

void set_sum(Options& o) { o.computation = Computation::kSum; }

constexpr Preset kPresets[] = {
    {"echo", [](Options&) {}},
    {"masked_mean", [](Options& o) { o.computation = Computation::kMaskedMean; }},
    {"quadratic",
     [](Options& o) {
       set_sum(o);
       o.bytes_per_token = kib(4);
       o.bytes_per_token_squared = Bytes(64);
     }},
    {"sleepy",
     [](Options& o) {
       set_sum(o);
       o.sleep = milliseconds(100);
     }},
    {"thrower",
     [](Options& o) {
       set_sum(o);
       o.throw_on = 999;
     }},
    {"hoarder",
     [](Options& o) {
       set_sum(o);
       o.keep_bytes_per_call = mib(1);
     }},
    {"slow_load",
     [](Options& o) {
       set_sum(o);
       o.weights = mib(16);
       o.load_time = seconds(2);
     }},
    {"bad_load",
     [](Options& o) {
       set_sum(o);
       o.weights = mib(16);
       o.fails_to_load = true;
     }},
    {"aborter",
     [](Options& o) {
       set_sum(o);
       o.abort_on = 666;
     }},
    {"branch",
     [](Options& o) {
       set_sum(o);
       o.bytes_per_token = kib(4);
       o.branch_on = 7;
       o.branch_factor = 4;
     }},
    {"shape_cache",
     [](Options& o) {
       set_sum(o);
       o.bytes_per_token = kib(4);
       o.cache_bytes_per_token = kib(1);
     }},
    {"malicious", [](Options& o) { o.mode = "garbage"; }},
};

template <typename T>
bool parse_number(std::string_view text, T& into) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into);
  return error == std::errc() && end == text.data() + text.size();
}

bool set_value(std::string_view text, std::string& into) {
  into = text;
  return true;
}
bool set_value(std::string_view text, std::uint64_t& into) { return parse_number(text, into); }
bool set_value(std::string_view text, double& into) { return parse_number(text, into) && into >= 0; }
bool set_value(std::string_view text, std::optional<std::int64_t>& into) {
  return parse_number(text, into.emplace());
}
bool set_value(std::string_view text, bool& into) {
  into = text == "true";
  return into || text == "false";
}
bool set_value(std::string_view text, Bytes& into) {
  const auto parsed = parse_bytes(text);
  if (parsed.is_ok()) into = *parsed;
  return parsed.is_ok();
}
bool set_value(std::string_view text, ThrowAs& into) {
  constexpr std::string_view kWords[] = {"value", "oom", "oom_words", "sticky"};
  for (std::uint8_t i = 0; i < std::size(kWords); ++i) {
    if (text == kWords[i]) {
      into = static_cast<ThrowAs>(i);
      return true;
    }
  }
  return false;
}
// A number of Unit, at most an hour.
template <typename Unit>
bool set_duration(std::string_view text, Duration& into) {
  std::uint64_t count = 0;
  if (!parse_number(text, count)) return false;
  constexpr auto kMost =
      static_cast<std::uint64_t>(std::chrono::duration_cast<Unit>(std::chrono::hours(1)).count());
  if (count > kMost) return false;
  into = Unit(static_cast<std::int64_t>(count));
  return true;
}

struct Key {
  std::string_view name;
  std::string_view allowed;
  bool (*set)(Options&, std::string_view);
};

#define TONNAGE_STUB_KEY(key, allowed, member)                                                  \
  Key {                                                                                         \
#key, allowed, [](Options & o, std::string_view text) { return set_value(text, o.member); } \
  }

constexpr std::string_view kAmount = "an amount such as 4096 or 4KiB";
constexpr std::string_view kWhole = "a whole number";

constexpr Key kKeys[] = {
    TONNAGE_STUB_KEY(bytes_per_row, kAmount, bytes_per_row),
    TONNAGE_STUB_KEY(bytes_per_token, kAmount, bytes_per_token),
    TONNAGE_STUB_KEY(bytes_per_token_squared, kAmount, bytes_per_token_squared),
    TONNAGE_STUB_KEY(branch_on, kWhole, branch_on),
    TONNAGE_STUB_KEY(branch_factor, "a number from 0 on", branch_factor),
    TONNAGE_STUB_KEY(lie_factor, "a number from 0 on", lie_factor),
    TONNAGE_STUB_KEY(lie_after, kWhole, lie_after),
    TONNAGE_STUB_KEY(cache_bytes_per_token, kAmount, cache_bytes_per_token),
    TONNAGE_STUB_KEY(keep_bytes_per_call, kAmount, keep_bytes_per_call),
    Key{"sleep_ms", "0 to 3600000",
        [](Options& o, std::string_view text) { return set_duration<milliseconds>(text, o.sleep); }},
    Key{"sleep_us_per_token", "0 to 3600000000",
        [](Options& o, std::string_view text) {
          return set_duration<microseconds>(text, o.sleep_per_token);
        }},
    TONNAGE_STUB_KEY(throw_on, kWhole, throw_on),
    TONNAGE_STUB_KEY(throw_as, "value, oom, oom_words or sticky", throw_as),
    TONNAGE_STUB_KEY(abort_on, kWhole, abort_on),
    TONNAGE_STUB_KEY(weight_bytes, kAmount, weights),
    Key{"load_ms", "0 to 3600000",
        [](Options& o, std::string_view text) { return set_duration<milliseconds>(text, o.load_time); }},
    TONNAGE_STUB_KEY(fail_load, "true or false", fails_to_load),
    TONNAGE_STUB_KEY(device, "a name", device),
    TONNAGE_STUB_KEY(execution_log, "a path", execution_log),
    TONNAGE_STUB_KEY(mode, "a mode of malicious", mode),
};

template <typename Rows>
std::string names_of(const Rows& rows) {
  std::vector<std::string_view> names;
  for (const auto& row : rows) names.push_back(row.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

Status apply_preset(const std::string& name, Options& options) {
  for (const Preset& preset : kPresets) {
    if (preset.name != name) continue;
    options.model = name;
    preset.apply(options);
    return Status::ok();
  }
  return invalid("bad_option",
                 fmt::format("model '{}' is not a stub model; known are {}", name, names_of(kPresets)));
}

Status apply_key(const std::string& name, const std::string& value, Options& options) {
  for (const Key& key : kKeys) {
    if (key.name != name) continue;
    if (key.set(options, value)) return Status::ok();
    return invalid("bad_option", fmt::format("{} = '{}': it must be {}", name, value, key.allowed));
  }
  return invalid("bad_option", fmt::format("'{}' is not an option of the stub; known are model, {}", name,
                                           names_of(kKeys)));
}

}  // namespace

Result<Options> parse_options(const std::map<std::string, std::string>& texts) {
  Options options;
  if (const auto model = texts.find("model"); model != texts.end()) {
    TONNAGE_TRY(apply_preset(model->second, options));
  }
  for (const auto& [name, value] : texts) {
    if (name != "model") TONNAGE_TRY(apply_key(name, value, options));
  }
  return options;
}

}  // namespace tonnage::stub
