# SPDX-License-Identifier: Apache-2.0
"""What a factory hands to the exporter: a module and everything the server must know about it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Mapping, Sequence, Union

import torch

DATATYPES = {
    "BOOL": torch.bool,
    "INT32": torch.int32,
    "INT64": torch.int64,
    "FP32": torch.float32,
}


# The free dims of one row: its length, or its sizes by name.
RowSize = Union[int, Mapping[str, int]]


class DescriptionError(ValueError):
    """The description contradicts itself; the message names the field and what is allowed."""


@dataclass(frozen=True)
class Size:
    """A free dim that tensors name, of a model whose rows have several: [[size]] of model.toml."""

    name: str
    max: int
    meet: str = "pad"  # group: rows of one batch have the same
    multiple: int | None = None  # that pad fills up to; None: the server's default


@dataclass(frozen=True)
class Tensor:
    """One input or output. The first dim is the row dim (-1); a further -1 is the row's length, or what `sizes`
    names."""

    name: str
    datatype: str
    dims: Sequence[int]
    range: tuple[int, int] | None = None  # allowed values, both ends included
    pad: int = 0  # what padding positions hold
    source: str | None = None  # "mask": 1 for a row's own positions, made by the server
    sizes: Sequence[str] = ()  # of each -1 after the first dim, where the model has sizes

    def allowed(self) -> tuple[int, int] | None:
        """Both ends included; a mask has its own, also where none was written."""
        return (0, 1) if self.range is None and self.source == "mask" else self.range

    def has_length(self) -> bool:
        return any(d == -1 for d in list(self.dims)[1:])

    def free_axes(self) -> dict[int, str]:
        """Axis → the name of its size, of each free dim after the row dim."""
        axes = [axis for axis, dim in enumerate(self.dims) if axis > 0 and dim == -1]
        return dict(zip(axes, self.sizes or ["length"] * len(axes)))

    def extents(self, size: RowSize) -> dict[int, int]:
        """Axis → how far a row of that size reaches, of each free dim after the row dim."""
        return {axis: size if isinstance(size, int) else size[name] for axis, name in self.free_axes().items()}

    def shape(self, rows: int, size: RowSize) -> list[int]:
        extents = self.extents(size)
        return [rows, *(extents.get(axis, dim) for axis, dim in enumerate(self.dims) if axis > 0)]


@dataclass(frozen=True)
class Wordpiece:
    """A BERT vocabulary file; it is copied beside model.toml."""

    vocab: Path
    lowercase: bool = True


# Rows and a generator → one padded batch: a tensor per input, in order.
ExampleInputs = Callable[[Sequence[RowSize], torch.Generator], Sequence[torch.Tensor]]


@dataclass
class Model:
    name: str
    module: torch.nn.Module
    inputs: Sequence[Tensor]
    outputs: Sequence[Tensor]
    max_length: int = 0  # 0: no input has a length
    sizes: Sequence[Size] = ()  # instead of max_length, where rows have several free dims
    too_long: str = "refuse"
    chunk_pooling: str = "mean"  # this and the next two: of too_long = "chunk"
    chunk_overlap: int = 0
    max_chunks: int = 16
    labels: Sequence[str] = ()
    tokenizer: Wordpiece | None = None
    metadata: dict[str, str] = field(default_factory=dict)
    batching: dict[str, Any] = field(default_factory=dict)
    workers: dict[str, Any] = field(default_factory=dict)
    # For route native: makes the module without its weights; its file is shipped and imports installed packages only.
    builder: Callable[[], torch.nn.Module] | None = None
    example_inputs: ExampleInputs | None = None  # None: random values that obey the specs
    # A row alone and the same row inside a padded batch sum in another order.
    absolute_tolerance: float = 1e-5
    relative_tolerance: float = 1e-4

    def make_inputs(self, rows: Sequence[RowSize], generator: torch.Generator) -> list[torch.Tensor]:
        make = self.example_inputs or self._random_inputs
        return list(make(rows, generator))

    def _random_inputs(self, rows: Sequence[RowSize], generator: torch.Generator) -> list[torch.Tensor]:
        return [_random_input(spec, rows, generator) for spec in self.inputs]


def largest(rows: Sequence[RowSize]) -> RowSize:
    """What a batch of these rows is padded to."""
    first = rows[0]
    if isinstance(first, int):
        return max(rows)
    return {name: max(row[name] for row in rows) for name in first}


def own_positions(spec: Tensor, rows: Sequence[RowSize]) -> torch.Tensor:
    """Of a padded batch of the tensor: true where a row's own values are. Dims that are not free have extent 1."""
    shape = [1] * len(spec.dims)
    own = torch.ones([len(rows), *shape[1:]], dtype=torch.bool)
    for axis in spec.free_axes():
        extents = torch.tensor([spec.extents(row)[axis] for row in rows])
        positions = torch.arange(int(extents.max())).view([*shape[:axis], -1, *shape[axis + 1:]])
        own = own & (positions < extents.view([-1, *shape[1:]]))
    return own


def _random_input(spec: Tensor, rows: Sequence[RowSize], generator: torch.Generator) -> torch.Tensor:
    dtype, own = DATATYPES[spec.datatype], own_positions(spec, rows)
    shape = spec.shape(len(rows), largest(rows))
    if spec.source == "mask":
        return own.expand(shape).to(dtype).contiguous()
    if dtype.is_floating_point:
        values = torch.randn(shape, generator=generator, dtype=dtype)
    else:
        low, high = spec.range or (0, 1)
        values = torch.randint(low, high + 1, shape, generator=generator).to(dtype)
    return torch.where(own, values, torch.tensor(spec.pad, dtype=dtype)) if spec.has_length() else values
