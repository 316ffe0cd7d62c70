// SPDX-License-Identifier: Apache-2.0
#include "lone_model.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

namespace tonnage::app {

server::ServerOptions server_options(const LoneModelOptions& options) {
  server::ServerOptions server;
  server.models = options.model;
  server.memory = options.memory;
  server.route = options.route;
  server.threads = options.threads;
  server.state_directory = options.state_directory;
  server.worker_directory = options.worker_directory;
  server.python = options.python;
  return server;
}

TerminalProgress::TerminalProgress(std::string word)
    : word_(std::move(word)), is_terminal_(::isatty(STDERR_FILENO) != 0) {}

TerminalProgress::~TerminalProgress() {
  if (is_terminal_) fmt::print(stderr, "\r{:{}}\r", "", word_.size() + 8);
}

server::Progress TerminalProgress::show() {
  return [this](double part) {
    if (is_terminal_) fmt::print(stderr, "\r{} {:3.0f} %", word_, part * 100);
  };
}

}  // namespace tonnage::app
