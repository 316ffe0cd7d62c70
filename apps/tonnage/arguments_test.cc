// SPDX-License-Identifier: Apache-2.0
#include "arguments.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "settings.h"

namespace tonnage::app {
namespace {

using Variables = std::map<std::string, std::string>;

Parsed parse(std::vector<const char*> words, const Variables& variables = {}) {
  words.insert(words.begin(), "tonnage");
  return parse_arguments(static_cast<int>(words.size()), words.data(), config::Environment(variables));
}

server::ServerOptions serve(std::vector<const char*> words, const Variables& variables = {}) {
  words.insert(words.begin(), {"serve", "--models", "m"});
  const Parsed parsed = parse(std::move(words), variables);
  if (const auto* leave = std::get_if<Leave>(&parsed)) {
    ADD_FAILURE() << leave->text;
    return {};
  }
  return std::get<ServeOptions>(parsed).server;
}

std::string mistake(std::vector<const char*> words, const Variables& variables = {}) {
  const Parsed parsed = parse(std::move(words), variables);
  const auto* leave = std::get_if<Leave>(&parsed);
  EXPECT_NE(leave, nullptr);
  if (leave == nullptr) return "";
  EXPECT_EQ(leave->exit_code, kExitUsage);
  return leave->text.substr(0, leave->text.find('\n'));
}

std::string temporary_file(std::string_view text) {
  std::string pattern = ::testing::TempDir() + "tonnage_config_XXXXXX";
  const std::filesystem::path folder = ::mkdtemp(pattern.data());
  std::ofstream(folder / "server.toml") << text;
  return (folder / "server.toml").string();
}

TEST(Arguments, ServeTakesItsFlags) {
  const auto options =
      serve({"--memory",       "600MiB",    "--http-port",       "0",   "--sagemaker-port", "8080",
             "--metrics-port", "off",       "--state",           "/s",  "--port-file",      "/p",
             "--host",         "127.0.0.1", "--overload-status", "429", "--policy",         "fifo",
             "--v2-deadline",  "900s",      "--threads",         "2"});
  EXPECT_EQ(options.models, "m");
  EXPECT_EQ(options.memory, mib(600));
  EXPECT_EQ(options.http_port, 0);
  EXPECT_EQ(options.sagemaker_port, 8080);
  EXPECT_FALSE(options.metrics_port.has_value());
  EXPECT_EQ(options.state_directory, "/s");
  EXPECT_EQ(options.port_file, "/p");
  EXPECT_EQ(options.host, "127.0.0.1");
  EXPECT_EQ(options.overload_status, 429);
  EXPECT_EQ(options.policy, model::Policy::kFifo);
  EXPECT_EQ(options.v2_deadline, seconds(900));
  EXPECT_EQ(options.threads, 2U);
}

TEST(Arguments, FlagsWinOverVariablesWinOverTheFile) {
  const std::string file =
      temporary_file("memory = \"1MiB\"\nhttp_port = 1\nthreads = 7\ntext_threads = 3\n");
  const auto options = serve({"--memory", "3MiB", "--config", file.c_str()},
                             {{"TONNAGE_MEMORY", "2MiB"}, {"TONNAGE_HTTP_PORT", "2"}});
  EXPECT_EQ(options.memory, mib(3));
  EXPECT_EQ(options.http_port, 2);
  EXPECT_EQ(options.threads, 7U);
  EXPECT_EQ(options.text_threads, 3U);
  EXPECT_EQ(options.metrics_port, 8002);
}

TEST(Arguments, PrintConfigTellsWhereEachValueCameFrom) {
  const std::string file = temporary_file("\nthreads = 7\n");
  const Parsed parsed = parse({"serve", "--print-config", "--config", file.c_str(), "--memory", "1KiB"},
                              {{"TONNAGE_HTTP_PORT", "2"}});
  const std::string text = std::get<ServeOptions>(parsed).config_text;
  EXPECT_NE(text.find("memory = \"1024\"  # --memory\n"), std::string::npos) << text;
  EXPECT_NE(text.find("http_port = \"2\"  # TONNAGE_HTTP_PORT\n"), std::string::npos) << text;
  EXPECT_NE(text.find("threads = \"7\"  # " + file + ":2\n"), std::string::npos) << text;
  EXPECT_NE(text.find("metrics_port = \"8002\"  # default\n"), std::string::npos) << text;
}

TEST(Arguments, WhatPrintConfigWritesCanBeReadAgain) {
  const Parsed first =
      parse({"serve", "--models", "m", "--memory", "5MiB", "--policy", "buckets", "--metrics-port", "off"});
  const std::string file = temporary_file(std::get<ServeOptions>(first).config_text);
  const Parsed second = parse({"serve", "--config", file.c_str()});
  ASSERT_TRUE(std::holds_alternative<ServeOptions>(second)) << std::get<Leave>(second).text;
  const auto& options = std::get<ServeOptions>(second).server;
  EXPECT_EQ(options.memory, mib(5));
  EXPECT_EQ(options.policy, model::Policy::kBuckets);
  EXPECT_FALSE(options.metrics_port.has_value());
  EXPECT_EQ(options.v2_deadline, seconds(60));
}

TEST(Arguments, MistakesNameTheNearestWord) {
  EXPECT_EQ(mistake({"sreve"}), "tonnage: unknown command 'sreve'; did you mean 'serve'?");
  EXPECT_EQ(mistake({"serve", "--memroy", "1GiB"}),
            "tonnage serve: unknown flag '--memroy'; did you mean '--memory'?");
  EXPECT_EQ(mistake({"serve", "--htp-port=80"}),
            "tonnage serve: unknown flag '--htp-port'; did you mean '--http-port'?");
  const std::string file = temporary_file("\nmemroy = 3\n");
  EXPECT_EQ(mistake({"serve", "--models", "m", "--config", file.c_str()}),
            "tonnage serve: " + file + ":2: unknown key 'memroy'; did you mean 'memory'?");
}

TEST(Arguments, WrongValuesSayWhereTheyCameFromAndWhatIsAllowed) {
  EXPECT_EQ(mistake({"serve", "--models", "m", "--http-port", "70000"}),
            "tonnage serve: --http-port: '70000' is not allowed; allowed: a port from 0 (any free one) to "
            "65535, or off");
  EXPECT_EQ(mistake({"serve", "--models", "m"}, {{"TONNAGE_THREADS", "-1"}}),
            "tonnage serve: TONNAGE_THREADS: '-1' is not allowed; allowed: a whole number from 0 to 1024");
  EXPECT_EQ(mistake({"serve", "--models", "m", "--policy", "lifo"}),
            "tonnage serve: --policy: 'lifo' is not allowed; allowed: model, dp, buckets, fifo");
  mistake({"serve", "--models", "m", "--memory", "lots"});
  mistake({"serve", "--models", "m", "--headroom", "1.5"});
  mistake({"serve", "--models", "m", "--drain", "-3s"});
  mistake({"serve", "--models"});
}

TEST(Arguments, RouteAndPrecisionAreWordsOfTheTableOfRoutes) {
  const auto options = serve({"--route", "script", "--precision", "bf16"});
  EXPECT_EQ(options.route.route, "script");
  EXPECT_EQ(options.route.precision, model::Precision::kBf16);
  EXPECT_TRUE(serve({"--route", "model"}).route.route.empty());
  EXPECT_FALSE(serve({"--precision", "model"}).route.precision.has_value());
  const std::string route = mistake({"serve", "--models", "m", "--route", "tensorflow"});
  EXPECT_NE(route.find("'tensorflow' is not allowed; allowed: \"model\", \"trace\""), std::string::npos)
      << route;
  const std::string precision = mistake({"serve", "--models", "m", "--precision", "int4"});
  EXPECT_NE(precision.find("'int4' is not allowed; allowed: model, fp32, bf16, fp16"), std::string::npos)
      << precision;
}

TEST(Arguments, WhatIsMissingIsAskedFor) {
  EXPECT_EQ(mistake({"serve"}), "tonnage serve: which models? Give --models DIR");
  EXPECT_EQ(mistake({"inspect"}), "tonnage inspect: which MODEL? Give its folder");
  mistake({});
}

TEST(Arguments, ServiceLinksOfKubernetesAreNotMeant) {
  EXPECT_EQ(serve({}, {{"TONNAGE_HTTP_PORT", "tcp://10.0.0.1:80"}}).http_port, 8000);
}

TEST(Arguments, SageMakerIsNoticed) {
  const Parsed parsed = parse({"serve"}, {{"SAGEMAKER_BIND_TO_PORT", "9000"}});
  const auto& options = std::get<ServeOptions>(parsed).server;
  EXPECT_EQ(options.sagemaker_port, 9000);
  EXPECT_EQ(options.models, "/opt/ml/model");
  EXPECT_EQ(serve({}, {{"SAGEMAKER_BATCH", "true"}}).sagemaker_port, 8080);
  EXPECT_FALSE(serve({}).sagemaker_port.has_value());
  EXPECT_EQ(serve({"--sagemaker-port", "7000"}, {{"SAGEMAKER_BATCH", "true"}}).sagemaker_port, 7000);
}

TEST(Arguments, LoadTakesItsFlags) {
  const Parsed parsed =
      parse({"load",          "--url",   "http://h:1", "--model", "m",          "--rate",   "12.5",
             "--mix",         "80/15/5", "--texts",    "t",       "--for",      "30s",      "--requests",
             "100",           "--seed",  "9",          "--json",  "--ids",      "--format", "json",
             "--deadline-ms", "250",     "--warmup",   "500ms",   "--saturate", "256"});
  ASSERT_TRUE(std::holds_alternative<LoadOptions>(parsed)) << std::get<Leave>(parsed).text;
  const auto& options = std::get<LoadOptions>(parsed);
  EXPECT_EQ(options.url, "http://h:1");
  EXPECT_EQ(options.rate, 12.5);
  EXPECT_EQ(options.concurrency, 256U);
  EXPECT_EQ(options.duration, seconds(30));
  EXPECT_EQ(options.requests, 100U);
  EXPECT_EQ(options.payload, "ids");
  EXPECT_EQ(options.format, "json");
  EXPECT_EQ(options.warmup, milliseconds(500));
  EXPECT_TRUE(options.json);
}

TEST(Arguments, InspectTakesAFolder) {
  const Parsed parsed = parse({"inspect", "models/a", "--json"});
  ASSERT_TRUE(std::holds_alternative<InspectOptions>(parsed));
  EXPECT_EQ(std::get<InspectOptions>(parsed).model, "models/a");
  EXPECT_TRUE(std::get<InspectOptions>(parsed).json);
  EXPECT_FALSE(std::get<InspectOptions>(parsed).worker_directory.empty());
}

TEST(Arguments, CompareKeepsItsWordsAsTheyAre) {
  const Parsed parsed = parse({"compare", "models/a", "--routes", "trace,onnx", "--help"});
  ASSERT_TRUE(std::holds_alternative<CompareOptions>(parsed));
  EXPECT_EQ(std::get<CompareOptions>(parsed).arguments,
            (std::vector<std::string>{"models/a", "--routes", "trace,onnx", "--help"}));
}

TEST(Arguments, HelpHasAnExampleAndEveryFlagWithItsVariable) {
  for (const char* command : {"serve", "inspect", "profile", "load"}) {
    const Parsed parsed = parse({command, "--help"});
    const auto& leave = std::get<Leave>(parsed);
    EXPECT_EQ(leave.exit_code, kExitOk);
    EXPECT_NE(leave.text.find("Example:"), std::string::npos) << leave.text;
  }
  const std::string help = std::get<Leave>(parse({"serve", "--help"})).text;
  ServeOptions options;
  for (const Setting& setting : serve_settings(options)) {
    EXPECT_NE(help.find("--" + setting.flag), std::string::npos) << setting.flag;
    EXPECT_NE(help.find(config::variable_name(setting.flag)), std::string::npos) << setting.flag;
  }
  EXPECT_EQ(std::get<Leave>(parse({"--version"})).text, std::string("tonnage ") + TONNAGE_VERSION + "\n");
  EXPECT_NE(std::get<Leave>(parse({"--help"})).text.find("inspect"), std::string::npos);
}

}  // namespace
}  // namespace tonnage::app
