# SPDX-License-Identifier: Apache-2.0
"""The rows that an export is made and checked with: of lengths as a file has them, or of several sizes by name."""

from __future__ import annotations

from typing import Sequence

import torch

from tonnage import lengths as length_files
from tonnage.description import Model, RowSize

# Padded positions of one check: enough to be a real batch, small enough for seconds on two cores.
MOST_TOKENS = 4096
MOST_POSITIONS = 1 << 16  # of a batch of rows with sizes; one of the largest rows is always checked


def text_of(size: RowSize) -> str:
    return str(size) if isinstance(size, int) else " × ".join(map(str, size.values()))


def as_list(rows: int, size: RowSize) -> list[int]:
    return [rows, size] if isinstance(size, int) else [rows, *size.values()]


def positions(size: RowSize) -> int:
    product = 1
    for extent in [size] if isinstance(size, int) else size.values():
        product *= extent
    return product


def draw(model: Model, lengths: Sequence[int], count: int, limit: int, generator: torch.Generator) -> list[RowSize]:
    """`count` rows that may meet in one batch, none above `limit` in any dim."""
    if not model.sizes:
        return length_files.draw(lengths, count, min(model.max_length or 1, limit), generator)
    drawn = {size.name: (torch.randint(0, min(size.max, limit), (count,), generator=generator) + 1).tolist()
             for size in model.sizes}
    grouped = {size.name for size in model.sizes if size.meet == "group"}
    return [{name: extents[0 if name in grouped else row] for name, extents in drawn.items()} for row in range(count)]


def example(model: Model, lengths: Sequence[int], generator: torch.Generator) -> list[RowSize]:
    """Of the batch that is traced."""
    rows = draw(model, lengths, 3, 256, generator)
    if not model.sizes:
        rows[0] = max(rows[0], min(model.max_length or 1, 11))  # a length of one invites the tracer to specialise
        return rows
    least = {size.name: min(size.max, 11) for size in model.sizes}
    return [{name: max(extent, least[name]) for name, extent in row.items()} for row in rows]


def mixed(model: Model, lengths: Sequence[int], generator: torch.Generator) -> list[RowSize]:
    """Of one padded batch in which rows are as different as they may be."""
    if model.sizes:
        return draw(model, lengths, 6, 256, generator)
    longest = model.max_length or 1
    return [1, *draw(model, lengths, max(1, min(6, MOST_TOKENS // longest - 2)), longest, generator), longest]


def untraced(model: Model, traced: tuple[int, RowSize]) -> list[tuple[int, RowSize]]:
    """(rows, size) of checks: one and the longest always among them."""
    if model.sizes:
        shapes = [(rows, size) for size in _corners(model) for rows in (1, 2, 5)
                  if rows == 1 or rows * positions(size) <= MOST_POSITIONS]
    elif model.max_length == 0:
        shapes = [(rows, 1) for rows in (1, 2, 3, 8, 17)]
    else:
        longest = model.max_length
        steps = sorted({n for n in (1, 2, 7, 33, longest // 3, longest - 1, longest) if 1 <= n <= longest})
        shapes = [(rows, length) for length in steps for rows in (1, 2, 5, 16) if rows * length <= MOST_TOKENS]
    return [shape for shape in shapes if shape != traced and (model.max_length or model.sizes or shape[0] != traced[0])]


def _corners(model: Model) -> list[RowSize]:
    """All small, all large, and between them each dim large where its neighbours are small."""
    steps = [sorted({min(size.max, n) for n in (1, 7, 32)} | {max(1, size.max // 3), size.max}) for size in model.sizes]
    most = max(map(len, steps))
    rows = []
    for at in range(most):
        for flipped in (False, True):
            extents = [own[-1 - min(at, len(own) - 1) if flipped and i % 2 else min(at, len(own) - 1)]
                       for i, own in enumerate(steps)]
            row = {size.name: extent for size, extent in zip(model.sizes, extents)}
            if row not in rows:
                rows.append(row)
    return rows


def held_out(model: Model, lengths: Sequence[int], count: int, generator: torch.Generator) -> list[int]:
    """Lengths of the rows that a worker proves itself with; with sizes each of them is that long."""
    if not model.sizes:
        ends = sorted({1, model.max_length or 1})
        return ends + draw(model, lengths, count - len(ends), model.max_length or 1, generator)
    # A thousand positions: the rows are written as text.
    longest = min(int(1024 ** (1 / len(model.sizes))), *(size.max for size in model.sizes))
    if any(size.meet == "group" for size in model.sizes):
        return [longest] * count
    return [1, longest, *(torch.randint(0, longest, (count - 2,), generator=generator) + 1).tolist()]
