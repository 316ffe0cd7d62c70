#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes src/text/golden: what the reference tokenizer (PyPI `tokenizers`) makes of texts.

  by_hand.h           hand-written texts with a small vocabulary of their own: ids in full
  code_points.h       every code point, alone and between combining marks: a hash of the words per block
  NAME.sha256         one line per text of build/models/texts/corpus/NAME.nul with MiniLM's vocabulary: the
                      first 8 hex digits of SHA-256 over the ids as little-endian int32, untruncated

The texts themselves are installed (`./dev setup --models`), never committed. Run in the repository root:
  PYTHONPATH=python build/venv/bin/python tools/make_golden_tokens.py
"""

import argparse
import hashlib
import struct
import sys
import tempfile
from pathlib import Path

from tonnage.texts import CORPUS
from tonnage.wordpiece import Wordpiece

BLOCK = 1024  # code points
DIGITS = 8

VOCABULARY = """[PAD] [UNK] [CLS] [SEP] [MASK] ! " # $ % & ' ( ) , - . / : ; = ? @ [ ] ` | … — “ ” ¿ 。 、 「 」
a b c d e f g h i j k l m n o p q r s t u v w x y z 0 1 2 3 4 5 6 7 8 9 ß ø ł æ α β σ ς ω д ж и ё й が か ᄀ ᅡ ᆨ 漢 字 豈 中
##a ##b ##c ##d ##e ##f ##g ##h ##i ##l ##n ##o ##r ##s ##t ##u ##x ##y ##z ##1 ##2 ##ß ##σ ##ς ##и ##ᅡ ##ᆨ
the this player is was good great bad un ##believ ##able ##ing ##ed ##est review dvd cafe naive uber straße
picture does not play unk cls sep mask el nino quick brown fox jump ##s ##er""".split()

TEXTS = [
    "",
    " \t\r\n ",
    "This DVD player is great!",
    "the review: un-believable, unbelievably GOOD...",
    "Café NAÏVE über Straße STRASSE",
    "El Niño; e\u0301 and \u00e9 are the same, o\u0308\u0304 too",
    "İstanbul ıI ǅ ﬁ Å Ω ℵ",
    "ΣΑΣ σας ΑΣ ως ΑΒΩ",
    "Джи йё Ё Й и\u0306",
    "漢字中a豈字 豈\uf900",
    "がか か\u3099 カ ｶ",
    "가 각 가가 \u1100\u1161\u11a8",
    "a\u0000b\u0001c\u007fd\ufffde\u200bf\u00adg\ufeffh\u2028i\u2029j\u0085k\u000bl\u000cm",
    "a\u00a0b\u2003c\u3000d\u1680e\u202ff\u205fg",
    "[CLS] [SEP] [UNK][MASK] [PAD] [cls] ##ing ## #",
    "a-b_c+d=e<f>g|h~i^j`k$l@m",
    "“quoted” — dash… ¿que? 「漢」、。",
    "\u037e \u1fef \u2260 \u226e \u00b4 \u0384 \u1fbd",
    "😀 a😀b 👩\u200d👩\u200d👧 🇩🇪",
    "x" * 99 + " " + "a" * 100 + " " + "a" * 101 + " b",
    "é" * 100 + " " + "e\u0301" * 101,
    "a" * 250 + "," + "b" * 99 + "ß" + " " + "\u4e2d" * 120,
    "a\u302e\u1b44b a\u1b44\u302eb a\u302e\u0300\u1b44b a\u302e\u093e\u1b44b",
    "a\u0c4d\u0c55 q\u0307\u0323 q\u0323\u0307 \u0344 \u0f73",
    "\u1c90\u10d0 \ua7dc \U00010d50 \U00016ea0 \u166d \u1734a \u1885 \ua9bd \U000111c9",
    "\U0010ffff \ue000a \U000e0001b \U0001f3fb \u0378",
    "jumps jumper jumpest quickest qquick",
    "0123456789 1,000.50 10% #1 @me a/b http://a.b/c?d=e&f",
    "<br /><br />The picture does not play.<br />",
]


def code_point_texts(first):
    """Two texts a code point: between letters, and between marks that must be put in order."""
    for code in range(first, first + BLOCK):
        if not 0xD800 <= code < 0xE000:
            yield f"a{chr(code)}b"
            yield f"a\u302e{chr(code)}\u1b44b"


def code_point_hash(tokenizer, first):
    digest = hashlib.sha256()
    for text in code_point_texts(first):
        normal = tokenizer.normalizer.normalize_str(text)
        words = [word for word, _ in tokenizer.pre_tokenizer.pre_tokenize_str(normal)]
        digest.update("".join(word + "\n" for word in words).encode() + b"\0")
    return digest.hexdigest()[:DIGITS]


def token_hash(ids):
    return hashlib.sha256(struct.pack(f"<{len(ids)}i", *ids)).hexdigest()[:DIGITS]


def literal(text):
    """A C++ string literal; octal escapes end after three digits, hexadecimal ones do not."""
    plain = {*range(0x20, 0x7F)} - {ord('"'), ord("\\"), ord("?")}
    return '"' + "".join(chr(b) if b in plain else f"\\{b:03o}" for b in text.encode()) + '"'


def header(what, includes, body):
    lines = ["// SPDX-License-Identifier: Apache-2.0", f"// {what}", "// Written by tools/make_golden_tokens.py; do not edit.",
             "// clang-format off", "#pragma once", "", *(f"#include <{i}>" for i in includes), "",
             "namespace tonnage::text::golden {", "", *body, "", "}  // namespace tonnage::text::golden"]
    return "\n".join(lines) + "\n"


def by_hand(vocab):
    tokenizer = Wordpiece(vocab)
    body = ["inline constexpr std::string_view kVocabulary ="]
    body += [f"    {literal(chr(10).join(VOCABULARY[i:i + 12]) + chr(10))}" for i in range(0, len(VOCABULARY), 12)]
    body += ["    ;", "", "struct ByHand {", "  std::string_view text;", "  std::vector<std::int64_t> ids;", "};",
             "inline const std::vector<ByHand> kByHand = {"]
    for text, ids in zip(TEXTS, tokenizer.encode(TEXTS)):
        size = len(text.encode())
        body.append(f"    {{std::string_view({literal(text)}, {size}), {{{', '.join(map(str, ids))}}}}},")
    return header("Hand-written texts and their ids.", ["cstdint", "string_view", "vector"], [*body, "};"])


def code_points(tokenizer):
    hashes = [f"0x{code_point_hash(tokenizer, first)}" for first in range(0, 0x110000, BLOCK)]
    body = [f"inline constexpr std::uint32_t kBlock = {BLOCK};  // code points",
            f"inline constexpr std::array<std::uint32_t, {len(hashes)}> kCodePoints = {{"]
    body += ["    " + ", ".join(hashes[i:i + 8]) + "," for i in range(0, len(hashes), 8)]
    return header("The words of every code point, a hash per block.", ["array", "cstdint"], [*body, "};"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=Path, default=Path("build/models"), help="as made by ./dev setup --models")
    parser.add_argument("--out", type=Path, default=Path("src/text/golden"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        vocab = Path(scratch) / "vocab.txt"
        vocab.write_text("\n".join(VOCABULARY) + "\n", encoding="utf-8")
        (options.out / "by_hand.h").write_text(by_hand(vocab), encoding="ascii")
    reference = Wordpiece(options.models / "reviews" / "vocab.txt")
    (options.out / "code_points.h").write_text(code_points(reference), encoding="ascii")
    for name in ["by_hand", *CORPUS]:
        texts = TEXTS
        if name != "by_hand":
            content = (options.models / "texts" / "corpus" / f"{name}.nul").read_bytes().decode()
            texts = content.split("\0")[:-1]
        hashes = [token_hash(ids) for ids in reference.encode(texts)]
        (options.out / f"{name}.sha256").write_text("".join(h + "\n" for h in hashes), encoding="ascii")
        print(f"{name}: {len(hashes):,} texts", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
