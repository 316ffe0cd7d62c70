# SPDX-License-Identifier: Apache-2.0
"""Proof that an exported program computes what the module computes, on shapes it was not traced with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, Sequence

import torch

from tonnage import lengths as length_files
from tonnage.description import DATATYPES, Model, Tensor

Program = Callable[..., object]
# Padded tokens of one check: enough to be a real batch, small enough for seconds on two cores.
MOST_TOKENS = 4096


class ExportFailed(RuntimeError):
    """A check failed; the message names the shape and the difference."""


@dataclass
class Report:
    shapes: list[tuple[int, int]]
    worst_difference: float  # exported against module, over all shapes
    worst_padding_difference: float  # a row alone against the row inside a padded batch


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


def untraced_shapes(model: Model, traced: tuple[int, int]) -> list[tuple[int, int]]:
    """(rows, length): one and the longest always among them."""
    if model.max_length == 0:
        return [(rows, 1) for rows in (1, 2, 3, 8, 17) if rows != traced[0]]
    longest = model.max_length
    steps = sorted({length for length in (1, 2, 7, 33, longest // 3, longest - 1, longest) if 1 <= length <= longest})
    shapes = [(rows, length) for length in steps for rows in (1, 2, 5, 16) if rows * length <= MOST_TOKENS]
    return [shape for shape in shapes if shape != traced]


def compare(model: Model, got: torch.Tensor, want: torch.Tensor, where: str) -> float:
    """The largest difference; raises when it exceeds the model's tolerance."""
    if got.shape != want.shape or got.dtype != want.dtype:
        raise ExportFailed(
            f"{where}: {list(got.shape)} {got.dtype} where the module gives {list(want.shape)} {want.dtype}"
        )
    if not got.dtype.is_floating_point:
        if not torch.equal(got, want):
            raise ExportFailed(f"{where}: {int((got != want).sum())} of {got.numel()} values differ")
        return 0.0
    difference = (got - want).abs()
    largest = float(difference.max()) if got.numel() else 0.0
    allowed = model.absolute_tolerance + model.relative_tolerance * want.abs()
    if not bool((difference <= allowed).all()):  # also false for NaN
        raise ExportFailed(
            f"{where}: the largest difference is {largest:.3g}; allowed are {model.absolute_tolerance:g} "
            f"+ {model.relative_tolerance:g} × |value|"
        )
    return largest


def check_outputs(model: Model, outputs: Sequence[torch.Tensor], rows: int, length: int) -> None:
    if len(outputs) != len(model.outputs):
        raise ExportFailed(f"the module gives {len(outputs)} outputs, the description names {len(model.outputs)}")
    for spec, value in zip(model.outputs, outputs):
        want = spec.shape(rows, length)
        if list(value.shape) != want or value.dtype != DATATYPES[spec.datatype]:
            raise ExportFailed(
                f"output '{spec.name}' at {rows} rows × {length}: {list(value.shape)} {value.dtype}, "
                f"the description says {want} {spec.datatype}"
            )


def check_shapes(model: Model, program: Program, traced: tuple[int, int], generator: torch.Generator) -> Report:
    report = Report(untraced_shapes(model, traced), 0.0, 0.0)
    for rows, length in report.shapes:
        inputs = model.make_inputs([length] * rows, generator)
        want = run(model.module, inputs, "the module")
        check_outputs(model, want, rows, length)
        got = run(program, inputs, "the exported program")
        for spec, g, w in zip(model.outputs, got, want):
            where = f"output '{spec.name}' at shape {rows} × {length} (traced at {traced[0]} × {traced[1]})"
            report.worst_difference = max(report.worst_difference, compare(model, g, w, where))
    return report


def check_padding(model: Model, program: Program, lengths: Sequence[int], generator: torch.Generator) -> float:
    """A row must not notice its neighbours: alone and inside a padded, mixed batch it is the same."""
    longest = model.max_length or 1
    drawn = length_files.draw(lengths, max(1, min(6, MOST_TOKENS // longest - 2)), longest, generator)
    mixed = [1, *drawn, longest]
    batch = model.make_inputs(mixed, generator)
    together = run(program, batch, "the exported program")
    worst = 0.0
    for row, length in enumerate(mixed):
        own = [_own(spec, value, row, length) for spec, value in zip(model.inputs, batch)]
        alone = run(program, own, "the exported program")
        for spec, one, all_rows in zip(model.outputs, alone, together):
            where = f"output '{spec.name}', row of length {length} alone against inside a batch of {mixed}"
            worst = max(worst, compare(model, _own(spec, all_rows, row, length), one, where))
    return worst


def _own(spec: Tensor, value: torch.Tensor, row: int, length: int) -> torch.Tensor:
    part = value[row : row + 1]
    if spec.has_length():
        part = part.narrow(list(spec.dims).index(-1, 1), 0, length)
    return part.contiguous()
