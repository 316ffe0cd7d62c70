// SPDX-License-Identifier: Apache-2.0
#include "text/detail/characters.h"

#include <unicode/uchar.h>
#include <unicode/unorm2.h>

namespace tonnage::text::detail {

namespace {

UChar32 as_icu(char32_t code) { return static_cast<UChar32>(code); }

// The Unicode version that a character came with; 0 when it has none yet.
int age_of(char32_t code) {
  UVersionInfo age{};
  u_charAge(as_icu(code), age);
  return age[0];
}

// The reference mixes three Unicode versions. Categories are those of 8.0: what is newer is a letter,
// and six characters were moved since. Decomposition and the order of marks are those of 9.0.
constexpr int kCategories = 8;
constexpr int kNormalization = 9;

std::uint32_t category_mask(char32_t code) {
  switch (code) {
    case 0x166D:
    case 0x111C9: return U_GC_PO_MASK;
    case 0x1734: return U_GC_MN_MASK;
    case 0x1885:
    case 0x1886: return U_GC_LO_MASK;
    case 0xA9BD: return U_GC_MC_MASK;
    default: break;
  }
  return age_of(code) > kCategories ? U_GC_CN_MASK : U_GET_GC_MASK(as_icu(code));
}

// Lower case is that of Unicode 17. What ICU 72 does not know yet:
struct CaseRange {
  char32_t first;
  char32_t last;
  std::int32_t distance;
  std::int32_t step;
};
constexpr CaseRange kNewerCase[] = {
    {0x1C89, 0x1C89, 1, 1},      {0xA7CB, 0xA7CB, 0x0264 - 0xA7CB, 1},
    {0xA7CC, 0xA7CE, 1, 2},      {0xA7D2, 0xA7D4, 1, 2},
    {0xA7DA, 0xA7DA, 1, 1},      {0xA7DC, 0xA7DC, 0x019B - 0xA7DC, 1},
    {0x10D50, 0x10D65, 0x20, 1}, {0x16EA0, 0x16EB8, 0x1B, 1},
};

// One to one: the only longer lower case, that of U+0130, cannot follow a decomposition.
char32_t lower(char32_t code) {
  for (const CaseRange& range : kNewerCase) {
    const auto offset = static_cast<std::int32_t>(code) - static_cast<std::int32_t>(range.first);
    if (offset >= 0 && code <= range.last && offset % range.step == 0) {
      return static_cast<char32_t>(static_cast<std::int32_t>(code) + range.distance);
    }
  }
  return static_cast<char32_t>(u_tolower(as_icu(code)));
}

bool is_ascii_punctuation(char32_t code) {
  return (code >= U'!' && code <= U'/') || (code >= U':' && code <= U'@') || (code >= U'[' && code <= U'`') ||
         (code >= U'{' && code <= U'~');
}

bool is_punctuation(char32_t code) {
  return code < 0x80 ? is_ascii_punctuation(code) : (category_mask(code) & U_GC_P_MASK) != 0;
}

// The blocks that BERT calls Chinese: ideographs, not kana and not hangul.
bool is_ideograph(char32_t code) {
  return (code >= 0x4E00 && code <= 0x9FFF) || (code >= 0x3400 && code <= 0x4DBF) ||
         (code >= 0x20000 && code <= 0x2A6DF) || (code >= 0x2A700 && code <= 0x2B73F) ||
         (code >= 0x2B740 && code <= 0x2B81F) || (code >= 0x2B920 && code <= 0x2CEAF) ||
         (code >= 0xF900 && code <= 0xFAFF) || (code >= 0x2F800 && code <= 0x2FA1F);
}

Kind unicode_kind(char32_t code) {
  if (code == 0 || code == 0xFFFD) return Kind::kDropped;
  if (code == U'\t' || code == U'\n' || code == U'\r') return Kind::kSpace;
  constexpr std::uint32_t kOther = U_GC_CC_MASK | U_GC_CF_MASK | U_GC_CO_MASK;
  if ((category_mask(code) & kOther) != 0) return Kind::kDropped;
  if (u_isUWhiteSpace(as_icu(code))) return Kind::kSpace;
  if (is_ideograph(code)) return Kind::kIdeograph;
  return is_punctuation(code) ? Kind::kPunctuation : Kind::kLetter;
}

std::array<Kind, 128> ascii_kinds() {
  std::array<Kind, 128> kinds{};
  for (std::size_t i = 0; i < kinds.size(); ++i) kinds[i] = unicode_kind(static_cast<char32_t>(i));
  return kinds;
}

constexpr std::int32_t kMostUnits = 18;  // no canonical decomposition is longer
using Units = std::array<UChar, kMostUnits>;

// How many units; 0 when it does not decompose.
std::int32_t decompose(char32_t code, Units& units) {
  if (age_of(code) > kNormalization) return 0;
  UErrorCode error = U_ZERO_ERROR;
  const UNormalizer2* nfd = unorm2_getNFDInstance(&error);
  if (U_FAILURE(error)) return 0;
  const std::int32_t length = unorm2_getDecomposition(nfd, as_icu(code), units.data(), kMostUnits, &error);
  return length < 0 || U_FAILURE(error) ? 0 : length;
}

// ICU hands out well-formed UTF-16.
char32_t next_utf16(const Units& units, std::int32_t& at) {
  const std::uint32_t unit = units[static_cast<std::size_t>(at++)];
  if (unit < 0xD800 || unit > 0xDBFF) return static_cast<char32_t>(unit);
  const std::uint32_t low = units[static_cast<std::size_t>(at++)];
  return static_cast<char32_t>(0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00));
}

Folded::Part part_of(char32_t code) {
  Folded::Part part;
  part.is_accent = category_mask(code) == U_GC_MN_MASK;
  part.order = age_of(code) > kNormalization ? std::uint8_t{0} : u_getCombiningClass(as_icu(code));
  part.code = lower(code);
  part.is_punctuation = is_punctuation(part.code);
  return part;
}

}  // namespace

Kind kind_of(char32_t code) {
  static const std::array<Kind, 128> kAscii = ascii_kinds();
  return code < kAscii.size() ? kAscii[code] : unicode_kind(code);
}

Folded fold(char32_t code, bool fold) {
  Folded result;
  if (!fold) {
    result.parts[0].code = code;
    result.parts[0].is_punctuation = is_punctuation(code);
    result.count = 1;
    return result;
  }
  Units units{};
  const std::int32_t length = decompose(code, units);
  if (length == 0) {
    result.parts[0] = part_of(code);
    result.count = 1;
    return result;
  }
  for (std::int32_t at = 0; at < length;) {
    result.parts[result.count++] = part_of(next_utf16(units, at));
  }
  return result;
}

}  // namespace tonnage::text::detail
