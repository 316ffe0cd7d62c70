# SPDX-License-Identifier: Apache-2.0
"""Proof that an exported program computes what the module computes, on shapes it was not traced with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, Sequence

import torch

from tonnage import row_sizes
from tonnage.description import DATATYPES, Model, RowSize, Tensor

Program = Callable[..., object]
# Of every row, in precisions below fp32.
MIN_COSINE = 0.999


class ExportFailed(RuntimeError):
    """A check failed; the message names the shape and the difference."""


@dataclass(frozen=True)
class Allowed:
    """How far an exported program may be from its module: a tolerance per value, or a cosine per row."""

    absolute: float = 0.0
    relative: float = 0.0
    cosine: float | None = None


def allowed_for(model: Model, precision: str) -> Allowed:
    if precision == "fp32":
        return Allowed(model.absolute_tolerance, model.relative_tolerance)
    return Allowed(cosine=MIN_COSINE)


@dataclass
class Agreement:
    """The worst of what was compared so far; integer outputs count as far as they must be equal."""

    worst_difference: float = 0.0
    min_cosine: float = 1.0

    def add(self, allowed: Allowed, got: torch.Tensor, want: torch.Tensor, where: str) -> None:
        difference, cosine = compare(allowed, got, want, where)
        self.worst_difference = max(self.worst_difference, difference)
        self.min_cosine = min(self.min_cosine, cosine)


def last_line(error: Exception) -> str:
    """TorchScript puts the reason last, behind a page of its own stack."""
    lines = str(error).strip().splitlines()
    return lines[-1] if lines else type(error).__name__


def run(program: Program, inputs: Sequence[torch.Tensor], what: str) -> list[torch.Tensor]:
    try:
        with torch.inference_mode():
            outputs = program(*inputs)
    except RuntimeError as error:
        shapes = ", ".join(str(list(value.shape)) for value in inputs)
        raise ExportFailed(f"{what} fails on inputs of shape {shapes}: {last_line(error)}") from error
    return [outputs] if isinstance(outputs, torch.Tensor) else list(outputs)


def row_cosines(got: torch.Tensor, want: torch.Tensor) -> torch.Tensor:
    """Per row; outputs of one value per row are one vector together, since a number alone has only a sign."""
    got, want = (value.reshape(len(value), -1).double() for value in (got, want))
    if got.shape[1] == 1:
        got, want = got.T, want.T
    norms = got.norm(dim=1) * want.norm(dim=1)
    equal = (got == want).all(dim=1).double()
    return torch.where(norms > 0, (got * want).sum(1) / norms, equal)


def compare(allowed: Allowed, got: torch.Tensor, want: torch.Tensor, where: str) -> tuple[float, float]:
    """The largest difference and the least cosine of a row; raises when they are not allowed."""
    if got.shape != want.shape or got.dtype != want.dtype:
        raise ExportFailed(
            f"{where}: {list(got.shape)} {got.dtype} where the module gives {list(want.shape)} {want.dtype}"
        )
    if not got.dtype.is_floating_point:
        # In a lower precision two classes that are nearly equal may change places.
        if allowed.cosine is None and not torch.equal(got, want):
            raise ExportFailed(f"{where}: {int((got != want).sum())} of {got.numel()} values differ")
        return 0.0, 1.0
    if got.numel() == 0:
        return 0.0, 1.0
    difference = (got - want).abs()
    largest, cosine = float(difference.max()), float(row_cosines(got, want).min())
    if allowed.cosine is not None:
        if not cosine >= allowed.cosine:  # also true for NaN
            raise ExportFailed(f"{where}: the least cosine of a row is {cosine:.5f}; allowed from {allowed.cosine} on")
    elif not bool((difference <= allowed.absolute + allowed.relative * want.abs()).all()):
        raise ExportFailed(
            f"{where}: the largest difference is {largest:.3g}; allowed are {allowed.absolute:g} "
            f"+ {allowed.relative:g} × |value|"
        )
    return largest, cosine


def check_outputs(model: Model, outputs: Sequence[torch.Tensor], rows: int, size: RowSize) -> None:
    if len(outputs) != len(model.outputs):
        raise ExportFailed(f"the module gives {len(outputs)} outputs, the description names {len(model.outputs)}")
    for spec, value in zip(model.outputs, outputs):
        want = spec.shape(rows, size)
        if list(value.shape) != want or value.dtype != DATATYPES[spec.datatype]:
            raise ExportFailed(
                f"output '{spec.name}' at {rows} rows × {row_sizes.text_of(size)}: {list(value.shape)} {value.dtype}, "
                f"the description says {want} {spec.datatype}"
            )


def check_shapes(model: Model, program: Program, allowed: Allowed, shapes: Sequence[tuple[int, RowSize]],
                 generator: torch.Generator) -> Agreement:
    """The program against the module, on these (rows, size)."""
    agreement = Agreement()
    for rows, size in shapes:
        inputs = model.make_inputs([size] * rows, generator)
        want = run(model.module, inputs, "the module")
        check_outputs(model, want, rows, size)
        got = run(program, inputs, "the exported program")
        check_outputs(model, got, rows, size)
        for spec, g, w in zip(model.outputs, got, want):
            agreement.add(allowed, g, w, f"output '{spec.name}' at shape {rows} × {row_sizes.text_of(size)}")
    return agreement


def check_padding(model: Model, program: Program, allowed: Allowed, lengths: Sequence[int],
                  generator: torch.Generator) -> Agreement:
    """A row must not notice its neighbours: alone and inside a padded, mixed batch it is the same."""
    mixed = row_sizes.mixed(model, lengths, generator)
    told = ", ".join(map(row_sizes.text_of, mixed))
    batch = model.make_inputs(mixed, generator)
    together = run(program, batch, "the exported program")
    agreement = Agreement()
    for row, size in enumerate(mixed):
        own = [own_part(spec, value, row, size) for spec, value in zip(model.inputs, batch)]
        alone = run(program, own, "the exported program")
        for spec, one, all_rows in zip(model.outputs, alone, together):
            where = (f"output '{spec.name}', row of length {row_sizes.text_of(size)} alone against inside a batch of "
                     f"[{told}]")
            agreement.add(allowed, own_part(spec, all_rows, row, size), one, where)
    return agreement


def own_part(spec: Tensor, value: torch.Tensor, row: int, size: RowSize) -> torch.Tensor:
    """One row of a padded batch, without the padding."""
    part = value[row : row + 1]
    for axis, extent in spec.extents(size).items():
        part = part.narrow(axis, 0, extent)
    return part.contiguous()
