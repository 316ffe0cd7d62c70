# SPDX-License-Identifier: Apache-2.0
"""What a factory hands to the exporter: a module and everything the server must know about it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Sequence

import torch

DATATYPES = {
    "BOOL": torch.bool,
    "INT32": torch.int32,
    "INT64": torch.int64,
    "FP32": torch.float32,
}


class DescriptionError(ValueError):
    """The description contradicts itself; the message names the field and what is allowed."""


@dataclass(frozen=True)
class Tensor:
    """One input or output. The first dim is the row dim (-1); a further -1 is the row's length."""

    name: str
    datatype: str
    dims: Sequence[int]
    range: tuple[int, int] | None = None  # allowed values, both ends included
    pad: int = 0  # what padding positions hold
    source: str | None = None  # "mask": 1 for a row's own positions, made by the server

    def allowed(self) -> tuple[int, int] | None:
        """Both ends included; a mask has its own, also where none was written."""
        return (0, 1) if self.range is None and self.source == "mask" else self.range

    def has_length(self) -> bool:
        return any(d == -1 for d in list(self.dims)[1:])

    def shape(self, rows: int, length: int) -> list[int]:
        return [rows] + [length if d == -1 else d for d in list(self.dims)[1:]]


@dataclass(frozen=True)
class Wordpiece:
    """A BERT vocabulary file; it is copied beside model.toml."""

    vocab: Path
    lowercase: bool = True


# Row lengths and a generator → one padded batch: a tensor per input, in order.
ExampleInputs = Callable[[Sequence[int], torch.Generator], Sequence[torch.Tensor]]


@dataclass
class Model:
    name: str
    module: torch.nn.Module
    inputs: Sequence[Tensor]
    outputs: Sequence[Tensor]
    max_length: int = 0  # 0: no input has a length
    too_long: str = "refuse"
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

    def make_inputs(self, lengths: Sequence[int], generator: torch.Generator) -> list[torch.Tensor]:
        make = self.example_inputs or self._random_inputs
        return list(make(lengths, generator))

    def _random_inputs(self, lengths: Sequence[int], generator: torch.Generator) -> list[torch.Tensor]:
        longest = max(lengths)
        own = torch.arange(longest)[None, :] < torch.tensor(lengths)[:, None]
        return [self._random_input(spec, own, generator) for spec in self.inputs]

    @staticmethod
    def _random_input(spec: Tensor, own: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        rows, longest = own.shape
        dtype = DATATYPES[spec.datatype]
        shape = spec.shape(rows, longest)
        if spec.source == "mask":
            return own.to(dtype)
        if dtype.is_floating_point:
            values = torch.randn(shape, generator=generator, dtype=dtype)
        else:
            low, high = spec.range or (0, 1)
            values = torch.randint(low, high + 1, shape, generator=generator).to(dtype)
        if spec.has_length():
            axis = list(spec.dims).index(-1, 1)
            view = [rows] + [1] * (len(shape) - 1)
            view[axis] = longest
            values = torch.where(own.view(view), values, torch.tensor(spec.pad, dtype=dtype))
        return values

    def validate(self) -> None:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", self.name):
            raise DescriptionError(f"model name '{self.name}'; allowed: letters, digits, '.', '_', '-'")
        if not self.inputs or not self.outputs:
            raise DescriptionError(f"model '{self.name}': at least one input and one output are needed")
        names = [t.name for t in [*self.inputs, *self.outputs]]
        for spec in [*self.inputs, *self.outputs]:
            _validate_tensor(spec, names.count(spec.name))
        if any(t.has_length() for t in self.inputs) != (self.max_length > 0):
            raise DescriptionError(
                f"model '{self.name}': max_length is {self.max_length}; it must be positive exactly when "
                "an input has a second dim of -1"
            )
        if self.too_long not in ("refuse", "truncate", "chunk"):
            raise DescriptionError(f"model '{self.name}': too_long is '{self.too_long}'; allowed: refuse, truncate, chunk")
        if self.labels and list(self.outputs[0].dims)[-1] != len(self.labels):
            raise DescriptionError(
                f"model '{self.name}': {len(self.labels)} labels, but the first output '{self.outputs[0].name}' "
                f"has dims {list(self.outputs[0].dims)}"
            )


def _validate_tensor(spec: Tensor, count: int) -> None:
    if count > 1:
        raise DescriptionError(f"tensor '{spec.name}' is named {count} times; names must be unique")
    if spec.name == "embedding":
        raise DescriptionError("a tensor may not be called 'embedding' (ONNX export rejects it): 'sentence_embedding'")
    if spec.datatype not in DATATYPES:
        raise DescriptionError(f"tensor '{spec.name}': datatype '{spec.datatype}'; allowed: {', '.join(DATATYPES)}")
    dims = list(spec.dims)
    if not dims or dims[0] != -1 or any(d != -1 and d < 1 for d in dims) or dims[1:].count(-1) > 1:
        raise DescriptionError(
            f"tensor '{spec.name}': dims {dims}; the first must be -1 (rows), at most one other may be -1 (length)"
        )
