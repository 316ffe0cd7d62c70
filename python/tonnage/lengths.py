# SPDX-License-Identifier: Apache-2.0
"""Length files: one integer a line, or JSON lines with the key "tokens" (as tonnage.texts writes)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Sequence

import torch

# Used when no file is given: the spread of product reviews, short to long.
FALLBACK = (5, 9, 14, 20, 28, 44, 80, 150, 184, 320, 550, 900)


class LengthFileError(ValueError):
    """Names file, line, what was found and what is allowed."""


def read_lengths(path: Path | None) -> list[int]:
    if path is None:
        return list(FALLBACK)
    lengths = []
    with open(path, encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            if line.strip():
                lengths.append(_length_of(line, f"{path}:{number}"))
    if not lengths:
        raise LengthFileError(f"{path}: no lengths in it; one integer or {{\"tokens\": n}} a line")
    return lengths


def _length_of(line: str, where: str) -> int:
    try:
        value = json.loads(line)
    except json.JSONDecodeError:
        value = line.strip()
    if isinstance(value, dict):
        value = value.get("tokens")
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise LengthFileError(f"{where}: {line.strip()[:60]!r} is no length; one positive integer or {{\"tokens\": n}} a line")
    return value


def draw(lengths: Sequence[int], count: int, limit: int, generator: torch.Generator) -> list[int]:
    """`count` lengths as they occur in the file, cut to `limit`."""
    picks = torch.randint(0, len(lengths), (count,), generator=generator)
    return [min(lengths[int(i)], limit) for i in picks]
