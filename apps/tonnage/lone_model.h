// SPDX-License-Identifier: Apache-2.0
// What the tools that load one model have in common.
#pragma once

#include <string>

#include "options.h"
#include "server/inspect.h"

namespace tonnage::app {

server::ServerOptions server_options(const LoneModelOptions& options);

// "word  42 %" on a terminal, rewritten in place and gone at the end; nothing elsewhere.
class TerminalProgress {
 public:
  explicit TerminalProgress(std::string word);
  ~TerminalProgress();
  TerminalProgress(const TerminalProgress&) = delete;
  TerminalProgress& operator=(const TerminalProgress&) = delete;
  server::Progress show();

 private:
  std::string word_;
  bool is_terminal_;
};

}  // namespace tonnage::app
