// SPDX-License-Identifier: Apache-2.0
// The flags of `tonnage inspect`, `profile` and `load`.
#include <utility>

#include "setting_kinds.h"

namespace tonnage::app {

namespace {

// What every tool that loads one model can be told.
Settings lone_model_settings(LoneModelOptions& options) {
  Settings settings;
  Setting model = text_setting({"model", "MODEL", "the folder of one model"}, options.model);
  model.is_positional = true;
  settings.push_back(std::move(model));
  settings.push_back(switch_setting({"json", "", "one JSON object instead of a table"}, options.json));
  settings.push_back(bytes_setting({"memory", "SIZE", "budget for the largest admissible batch; 0: detected"},
                                   options.memory));
  add_route(settings, options.route);
  settings.push_back(count_setting({"threads", "N", "of the worker; 0: what the model says, else all cores"},
                                   options.threads, 0, 1024));
  settings.push_back(
      text_setting({"state", "DIR", "profiles that are known already"}, options.state_directory));
  settings.push_back(
      text_setting({"worker-dir", "DIR", "where the worker programs are; default: beside this one"},
                   options.worker_directory));
  settings.push_back(text_setting({"python", "FILE", "interpreter of native workers"}, options.python));
  return settings;
}

}  // namespace

Settings inspect_settings(InspectOptions& options) { return lone_model_settings(options); }

Settings profile_settings(ProfileOptions& options) {
  Settings settings = lone_model_settings(options);
  settings.push_back(
      switch_setting({"refresh", "", "measure costs anew although they are known"}, options.refresh));
  settings.push_back(
      duration_setting({"for", "TIME", "for measuring the grid, small shapes first; the rest is predicted"},
                       options.duration));
  settings.push_back(
      text_setting({"out", "DIR", "where NAME-profile.json and NAME-profile.html go"}, options.out));
  return settings;
}

Settings load_settings(LoadOptions& options) {
  LoadOptions& o = options;
  Settings settings;
  settings.push_back(text_setting({"url", "URL", "of the server"}, o.url));
  settings.push_back(text_setting({"model", "NAME", "default: the only one that the server names"}, o.model));
  settings.push_back(
      number_setting({"rate", "N", "requests a second, open loop; 0: saturate"}, o.rate, 0, 1e6));
  settings.push_back(count_setting({"saturate", "N", "requests outstanding at once when no rate is given"},
                                   o.concurrency, 1, 65536));
  settings.push_back(
      text_setting({"mix", "A/B/C", "percent of short, medium and long texts, such as 80/15/5"}, o.mix));
  settings.push_back(word_setting({"spacing", "WORD", "of requests at a rate: poisson or fixed"}, o.spacing,
                                  {"poisson", "fixed"}));
  settings.push_back(
      text_setting({"texts", "FILE", "JSON lines: a string, or an object with text and tokens"}, o.texts));
  settings.push_back(duration_setting({"for", "TIME", "how long to send"}, o.duration));
  settings.push_back(count_setting({"requests", "N", "how many to send; 0: until --for"}, o.requests));
  settings.push_back(count_setting({"seed", "N", "the same seed sends the same requests"}, o.seed));
  settings.push_back(text_setting({"save", "FILE", "one JSON line per request"}, o.save));
  settings.push_back(switch_setting({"json", "", "the result as one JSON object"}, o.json));
  settings.push_back(word_setting({"dialect", "WORD", "v2 or sagemaker"}, o.dialect, {"v2", "sagemaker"}));
  settings.push_back(
      word_setting({"format", "WORD", "v2: json or binary; sagemaker: json, text, csv or jsonlines"},
                   o.format, {"json", "binary", "text", "csv", "jsonlines"}));
  Setting ids{"ids", "", "random token ids of the mix's lengths instead of texts", false, {}, {}};
  ids.set = [&o](std::string_view text) {
    TONNAGE_ASSIGN(const bool given, parse_switch(text));
    o.payload = given ? "ids" : "text";
    return Status::ok();
  };
  ids.show = [&o] { return std::string(o.payload == "ids" ? "true" : "false"); };
  settings.push_back(std::move(ids));
  settings.push_back(
      count_setting({"vocabulary", "N", "random ids are below it"}, o.vocabulary, 2, 1U << 30U));
  settings.push_back(
      count_setting({"max-length", "N", "longest row of random ids"}, o.max_length, 1, 1U << 20U));
  settings.push_back(
      number_setting({"deadline-ms", "N", "told to the server; 0: the server's own"}, o.deadline_ms, 0, 1e7));
  settings.push_back(duration_setting({"warmup", "TIME", "sent first and not counted"}, o.warmup));
  settings.push_back(count_setting({"rows", "N", "rows in each request"}, o.rows, 1, 4096));
  settings.push_back(count_setting({"connections", "N", "at most; 0: as many as needed"}, o.connections));
  return settings;
}

}  // namespace tonnage::app
