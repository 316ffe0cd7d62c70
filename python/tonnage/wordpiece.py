# SPDX-License-Identifier: Apache-2.0
"""The reference tokenizer: BERT WordPiece of PyPI `tokenizers`, no special tokens parsed in the text."""

from __future__ import annotations

from pathlib import Path
from typing import Sequence


class Wordpiece:
    def __init__(self, vocab: Path, lowercase: bool = True) -> None:
        from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

        with open(vocab, encoding="utf-8") as lines:
            ids = {line.rstrip("\r\n"): index for index, line in enumerate(lines)}
        self.start, self.end = ids["[CLS]"], ids["[SEP]"]
        words = models.WordPiece(ids, unk_token="[UNK]", max_input_chars_per_word=100)
        self._tokenizer = Tokenizer(words)
        self.normalizer = self._tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
        self.pre_tokenizer = self._tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """[CLS] … [SEP] per text, untruncated."""
        return [[self.start, *e.ids, self.end] for e in self._tokenizer.encode_batch_fast(list(texts))]


def truncate(ids: list[int], limit: int) -> list[int]:
    return ids if len(ids) <= limit else [*ids[: limit - 1], ids[-1]]
