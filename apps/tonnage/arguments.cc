// SPDX-License-Identifier: Apache-2.0
#include "arguments.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <map>
#include <optional>
#include <vector>

#include "config/nearest.h"
#include "config/table.h"
#include "settings.h"

namespace tonnage::app {
namespace {

// One subcommand while it is parsed: its table, and what CLI11 found on the command line.
struct Command {
  CLI::App* app = nullptr;
  Settings settings;
  std::map<std::string, std::string> values;
  std::map<std::string, bool> switches;
};

void add_settings(Command& command) {
  for (const Setting& setting : command.settings) {
    const std::string help = fmt::format("{} [{}]", setting.help, config::variable_name(setting.flag));
    const std::string name = setting.is_positional ? setting.flag : "--" + setting.flag;
    if (setting.value_name.empty()) {
      command.app->add_flag(name, command.switches[setting.flag], help);
    } else {
      command.app->add_option(name, command.values[setting.flag], help)->type_name(setting.value_name);
    }
  }
}

std::map<std::string, std::string> given_flags(const Command& command) {
  std::map<std::string, std::string> given;
  for (const Setting& setting : command.settings) {
    const std::string name = setting.is_positional ? setting.flag : "--" + setting.flag;
    if (command.app->count(name) == 0) continue;
    given[setting.flag] = setting.value_name.empty() ? "true" : command.values.at(setting.flag);
  }
  return given;
}

Leave usage_error(std::string_view where, std::string_view text) {
  return {kExitUsage, fmt::format("{}: {}\nTry '{} --help'.\n", where, text, where)};
}

// The first word that nobody expected, with the nearest that would have been.
Leave unexpected(const Command& command, const std::string& where) {
  std::vector<std::string> known;
  for (const Setting& setting : command.settings) known.push_back("--" + setting.flag);
  for (const std::string& word : command.app->remaining()) {
    const std::string flag = word.substr(0, word.find('='));
    if (flag.starts_with("--")) {
      const auto near = config::nearest_word(flag, known);
      return usage_error(where, near ? fmt::format("unknown flag '{}'; did you mean '{}'?", flag, *near)
                                     : fmt::format("unknown flag '{}'", flag));
    }
    return usage_error(where, fmt::format("unexpected argument '{}'", word));
  }
  return usage_error(where, "unexpected arguments");
}

Status resolve_into(Command& command, const config::Environment& environment, const config::Table* file,
                    Origins& origins) {
  Layers layers;
  layers.environment = &environment;
  layers.file = file;
  layers.flags = given_flags(command);
  TONNAGE_ASSIGN(origins, resolve(command.settings, layers));
  return Status::ok();
}

// What SageMaker and the system say where nothing else did.
void fill_defaults(ServeOptions& options, const Origins& origins, const config::Environment& environment) {
  server::ServerOptions& server = options.server;
  const bool on_sagemaker = environment.has_prefix("SAGEMAKER_");
  if (on_sagemaker && origins.at("sagemaker-port") == "default") {
    const auto port = environment.get("SAGEMAKER_BIND_TO_PORT");
    server.sagemaker_port =
        static_cast<std::uint16_t>(port ? std::strtoul(port->c_str(), nullptr, 10) : 8080);
  }
  if (on_sagemaker && server.models.empty()) server.models = "/opt/ml/model";
}

std::string default_state_directory(const config::Environment& environment) {
  if (::geteuid() == 0) return "/var/lib/tonnage";
  if (const auto state = environment.get("XDG_STATE_HOME"); state && !state->empty())
    return *state + "/tonnage";
  if (const auto home = environment.get("HOME"); home && !home->empty())
    return *home + "/.local/state/tonnage";
  return {};
}

std::string program_directory() {
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? std::string(".") : program.parent_path().string();
}

// `--config` is looked up before everything else, since it is a layer itself.
Result<std::optional<config::Table>> read_config_file(const std::string& flag,
                                                      const config::Environment& environment) {
  const std::string path = !flag.empty() ? flag : environment.get("TONNAGE_CONFIG").value_or("");
  if (path.empty()) return std::optional<config::Table>();
  TONNAGE_ASSIGN(config::Table table, config::parse_toml_file(path));
  return std::optional<config::Table>(std::move(table));
}

constexpr std::string_view kServeExample =
    R"(Order of values: flags, TONNAGE_… variables, --config FILE, defaults.
Example:
  tonnage serve --models build/models --memory 600MiB --http-port 8000)";
constexpr std::string_view kInspectExample = R"(Example:
  tonnage inspect build/models/reviews --json)";
constexpr std::string_view kProfileExample = R"(Example:
  tonnage profile build/models/reviews --for 60s --out /tmp)";
constexpr std::string_view kLoadExample = R"(Example:
  tonnage load --texts reviews.jsonl --mix 80/15/5 --rate 20 --for 30s)";

// Everything of one run of the parser; tables are bound to the options inside, so it does not move.
class CommandLine {
 public:
  CommandLine() {
    app_.require_subcommand(1);
    app_.set_version_flag("--version", std::string("tonnage ") + TONNAGE_VERSION);
    add("serve", "serve models under a memory budget", kServeExample, serve_settings(serve_));
    add("inspect", "what a model is, and what its batches will cost", kInspectExample,
        inspect_settings(inspect_));
    add("profile", "measure what each shape of batch costs, and draw it", kProfileExample,
        profile_settings(profile_));
    add("load", "send requests and measure what comes back", kLoadExample, load_settings(load_));
    // Its words, --help too, are its own.
    commands_["compare"].app = app_.add_subcommand("compare", "loading routes of one model side by side");
    commands_["compare"].app->prefix_command()->set_help_flag();
    CLI::App* serve = commands_.at("serve").app;
    serve->add_option("--config", config_file_, "a TOML file with the same keys, _ for - [TONNAGE_CONFIG]")
        ->type_name("FILE");
    serve->add_flag("--check", serve_.check, "say whether this would start, and leave");
    serve->add_flag("--print-config", serve_.print_config, "print every value with its origin, and leave");
  }

  Parsed parse(int argc, const char* const* argv, const config::Environment& environment) {
    if (auto leave = unknown_command(argc, argv)) return *leave;
    try {
      app_.parse(argc, argv);
    } catch (const CLI::Success&) {
      return Leave{kExitOk, help_or_version()};
    } catch (const CLI::ExtrasError&) {
      return unexpected(chosen(), where());
    } catch (const CLI::ParseError& error) {
      return usage_error(where(), error.what());
    }
    return options_of(environment);
  }

 private:
  void add(const std::string& name, const std::string& about, std::string_view example, Settings settings) {
    Command& command = commands_[name];
    command.app = app_.add_subcommand(name, about);
    command.app->footer(std::string(example));
    command.settings = std::move(settings);
    add_settings(command);
  }

  std::optional<Leave> unknown_command(int argc, const char* const* argv) const {
    if (argc < 2 || argv[1][0] == '-' || commands_.contains(argv[1])) return std::nullopt;
    std::vector<std::string> names;
    for (const auto& [name, command] : commands_) names.push_back(name);
    return usage_error("tonnage",
                       fmt::format("unknown command '{}'; {}", argv[1], config::suggestion(argv[1], names)));
  }

  // The subcommand that was reached; serve where none was.
  Command& chosen() {
    for (auto& [name, command] : commands_) {
      if (command.app->parsed()) return command;
    }
    return commands_.at("serve");
  }
  std::string where() {
    for (const auto& [name, command] : commands_) {
      if (command.app->parsed()) return "tonnage " + name;
    }
    return "tonnage";
  }
  std::string help_or_version() {
    if (app_.get_option("--version")->count() > 0) return std::string("tonnage ") + TONNAGE_VERSION + "\n";
    return app_.help();  // of the subcommand that was asked
  }

  Parsed options_of(const config::Environment& environment) {
    Command& command = chosen();
    if (commands_.at("compare").app->parsed()) return finish_compare(command, environment);
    Result<std::optional<config::Table>> file = std::optional<config::Table>();
    const bool is_serve = commands_.at("serve").app->parsed();
    if (is_serve) file = read_config_file(config_file_, environment);
    if (!file) return usage_error(where(), file.status().detail());
    Origins origins;
    const config::Table* table = file.value() ? &*file.value() : nullptr;
    const Status status = resolve_into(command, environment, table, origins);
    if (!status.is_ok()) return usage_error(where(), status.detail());
    if (is_serve) return finish_serve(origins, environment);
    if (commands_.at("load").app->parsed()) return load_;
    if (commands_.at("profile").app->parsed()) return finish_lone(profile_, environment);
    return finish_lone(inspect_, environment);
  }

  template <typename Options>
  Parsed finish_lone(Options& options, const config::Environment& environment) {
    if (options.model.empty()) return usage_error(where(), "which MODEL? Give its folder");
    if (options.state_directory.empty()) options.state_directory = default_state_directory(environment);
    if (options.worker_directory.empty()) options.worker_directory = program_directory();
    return options;
  }

  static Parsed finish_compare(const Command& command, const config::Environment& environment) {
    CompareOptions options;
    options.arguments = command.app->remaining();
    options.programs = program_directory();
    const std::string neighbour = options.programs + "/../../venv/bin/python";  // of a build folder
    options.python = environment.get("TONNAGE_PYTHON")
                         .value_or(std::filesystem::exists(neighbour) ? neighbour : "/usr/bin/python3");
    return options;
  }

  Parsed finish_serve(Origins& origins, const config::Environment& environment) {
    fill_defaults(serve_, origins, environment);
    server::ServerOptions& server = serve_.server;
    if (server.state_directory.empty()) server.state_directory = default_state_directory(environment);
    if (server.worker_directory.empty()) server.worker_directory = program_directory();
    serve_.config_text = config_text(commands_.at("serve").settings, origins);
    if (server.models.empty() && !serve_.print_config)
      return usage_error(where(), "which models? Give --models DIR");
    return serve_;
  }

  CLI::App app_{"tonnage: a model server that knows what it can carry", "tonnage"};
  ServeOptions serve_;
  InspectOptions inspect_;
  ProfileOptions profile_;
  LoadOptions load_;
  std::string config_file_;
  std::map<std::string, Command> commands_;
};

}  // namespace

Parsed parse_arguments(int argc, const char* const* argv, const config::Environment& environment) {
  CommandLine line;
  return line.parse(argc, argv, environment);
}

}  // namespace tonnage::app
