// SPDX-License-Identifier: Apache-2.0
// The two upper tiers of failure. Untrusted bytes may reach neither.
//
//  TONNAGE_CHECK(cond, text)  would corrupt: ends the process, in release too.
//  TONNAGE_BUG(text)          should not happen, survivable: counted and reported; ends the process
//                             where TONNAGE_BUGS_ARE_FATAL is compiled in (all test builds).
// Threads: safe from any thread.
#pragma once

#include <cstdint>
#include <string_view>

namespace tonnage {

[[noreturn]] void check_failed(const char* file, int line, std::string_view text);
void report_bug(const char* file, int line, std::string_view text);
// How many bugs were reported since the process started; a metric, zero in a healthy server.
std::uint64_t bug_count();

// Tests that provoke a bug on purpose count it instead of dying.
class ExpectBugs {
 public:
  ExpectBugs();
  ~ExpectBugs();
  ExpectBugs(const ExpectBugs&) = delete;
  ExpectBugs& operator=(const ExpectBugs&) = delete;
};

}  // namespace tonnage

#define TONNAGE_CHECK(cond, text)                          \
  do {                                                     \
    if (!(cond)) [[unlikely]]                              \
      ::tonnage::check_failed(__FILE__, __LINE__, (text)); \
  } while (false)
#define TONNAGE_BUG(text) ::tonnage::report_bug(__FILE__, __LINE__, (text))
