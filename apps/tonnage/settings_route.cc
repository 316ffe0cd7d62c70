// SPDX-License-Identifier: Apache-2.0
// --route and --precision, which serve and inspect share.
#include <fmt/format.h>

#include "setting_kinds.h"

namespace tonnage::app {
namespace {

constexpr std::string_view kOwn = "model";  // each model's own

}  // namespace

void add_route(Settings& settings, model::RouteChoice& into) {
  Setting route{"route", "WORD", "how every model is loaded and run: a route, or model (each model's own)",
                false,   {},     {}};
  route.set = [&into](std::string_view text) {
    if (text != kOwn && model::find_route(text) == nullptr) {
      return invalid("bad_value", fmt::format("'{}' is not allowed; allowed: \"{}\", {}", text, kOwn,
                                              model::route_names()));
    }
    into.route = text == kOwn ? "" : text;
    return Status::ok();
  };
  route.show = [&into] { return into.route.empty() ? std::string(kOwn) : into.route; };
  settings.push_back(std::move(route));

  Setting precision{
      "precision", "WORD", "of every model's weights: fp32, bf16, fp16, or model (each model's own)",
      false,       {},     {}};
  precision.set = [&into](std::string_view text) {
    const auto found = model::find_precision(text);
    if (text != kOwn && !found) {
      return invalid("bad_value",
                     fmt::format("'{}' is not allowed; allowed: {}, fp32, bf16, fp16", text, kOwn));
    }
    into.precision = found;
    return Status::ok();
  };
  precision.show = [&into] {
    return std::string(into.precision ? model::precision_name(*into.precision) : kOwn);
  };
  settings.push_back(std::move(precision));
}

}  // namespace tonnage::app
