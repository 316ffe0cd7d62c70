// SPDX-License-Identifier: Apache-2.0
// Whether this is a build under a sanitizer: its malloc maps and keeps what it likes, and its runtime calls
// dlopen in a program's place, so what a test says of resident bytes, limits of the kernel and search paths
// is not so there.
#pragma once

#if defined(__has_feature)
#define TONNAGE_CLANG_TSAN __has_feature(thread_sanitizer)
#else
#define TONNAGE_CLANG_TSAN 0
#endif

namespace tonnage::testkit {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || TONNAGE_CLANG_TSAN
inline constexpr bool kIsSanitized = true;
#else
inline constexpr bool kIsSanitized = false;
#endif

}  // namespace tonnage::testkit
