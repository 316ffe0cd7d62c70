// SPDX-License-Identifier: Apache-2.0
#include "base/bug.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>

namespace tonnage {
namespace {

// The only process-wide counters: a bug may be found where nothing else can be reached.
std::atomic<std::uint64_t> bugs{0};
std::atomic<int> expected{0};

void print(const char* kind, const char* file, int line, std::string_view text) {
  std::fprintf(stderr, "{\"event\":\"%s\",\"at\":\"%s:%d\",\"text\":\"%.*s\"}\n", kind, file, line,
               static_cast<int>(text.size()), text.data());
}

}  // namespace

void check_failed(const char* file, int line, std::string_view text) {
  print("check_failed", file, line, text);
  std::abort();
}

void report_bug(const char* file, int line, std::string_view text) {
  bugs.fetch_add(1, std::memory_order_relaxed);
  print("bug", file, line, text);
#ifdef TONNAGE_BUGS_ARE_FATAL
  if (expected.load(std::memory_order_relaxed) == 0) std::abort();
#endif
}

std::uint64_t bug_count() { return bugs.load(std::memory_order_relaxed); }

ExpectBugs::ExpectBugs() { expected.fetch_add(1, std::memory_order_relaxed); }
ExpectBugs::~ExpectBugs() { expected.fetch_sub(1, std::memory_order_relaxed); }

}  // namespace tonnage
