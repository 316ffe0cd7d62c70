# SPDX-License-Identifier: Apache-2.0
"""The gate behind a load, as workers/kit/parity.h has it: the rows of held_out.json are run, each alone and the
shorter ones as one padded batch, and the answers must have the direction of those the module gave in fp32."""

from __future__ import annotations

import ctypes
import json
import math
from pathlib import Path
from typing import Any, Callable, Sequence

import torch

from tonnage.native import wire
from tonnage.native.spec import Spec
from tonnage.native.tensors import DTYPES

MIN_COSINE = "0.999"
MOST_TOKENS = 2048  # of the padded batch
Runner = Callable[[wire.Run, Sequence[memoryview]], Sequence[Any]]


def prove(options: dict[str, str], inputs: Sequence[Spec], outputs: Sequence[Spec], run: Runner) -> dict[str, str]:
    """The facts; {} where no rows were named. Raises LoadFailed: parity, bad_held_out, bad_load_doc."""
    if "held_out" not in options:
        return {}
    try:
        wanted = float(options.get("parity_min_cosine", MIN_COSINE))
    except ValueError as error:
        raise wire.LoadFailed("bad_load_doc", f"parity_min_cosine: {error}") from error
    document, worst_cosine, worst_difference, where = _read(options["held_out"], inputs, outputs), 1.0, 0.0, ""
    for place, got, want in _comparisons(document, (inputs, outputs), run):
        cosine, difference = _compare(got, want)
        # A NaN is worse than any number, and no later row makes up for it.
        if not math.isnan(worst_difference) and not difference <= worst_difference:
            worst_difference = difference
        if not math.isnan(worst_cosine) and not cosine >= worst_cosine:
            worst_cosine, where = cosine, place
    if not worst_cosine >= wanted:
        raise wire.LoadFailed("parity", f"the least cosine is {worst_cosine:.6f} at {where}, allowed is {wanted:g}; the "
                                        f"largest difference is {worst_difference:.3g}")
    return {"parity_rows": str(len(document["rows"])), "parity_min_cosine": f"{worst_cosine:.6f}", "parity_max_difference": f"{worst_difference:.3g}"}


def _read(path: str, inputs: Sequence[Spec], outputs: Sequence[Spec]) -> dict:
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
        document["pads"] = {tensor["name"]: tensor.get("pad", 0) for tensor in document["inputs"]}
        for row in document["rows"]:
            for spec in inputs:
                row["inputs"][spec.name] = torch.tensor(row["inputs"][spec.name], dtype=DTYPES[spec.datatype]).reshape(
                    _dims(spec, 1, row["length"]))
            for spec in outputs:
                if spec.datatype == "FP32":
                    row["outputs"][spec.name] = torch.tensor(row["outputs"][spec.name], dtype=torch.float32)
        if not document["rows"]:
            raise ValueError("no rows")
        return document
    except (OSError, ValueError, KeyError, TypeError, RuntimeError) as error:
        raise wire.LoadFailed("bad_held_out", f"{path}: {error!r}") from error


def _comparisons(document: dict, specs: tuple[Sequence[Spec], Sequence[Spec]], run: Runner):
    """(where, what came, what was expected). One value per row has no direction: all rows of it are one."""
    rows, singles = document["rows"], {}
    by_length = sorted(range(len(rows)), key=lambda i: rows[i]["length"])
    together = [i for count, i in enumerate(by_length, 1) if count * max(1, rows[i]["length"]) <= MOST_TOKENS]
    for batch in [*([i] for i in range(len(rows))), *([together] if len(together) > 1 else [])]:
        how = "alone" if len(batch) == 1 else "in a padded batch"
        for spec, index, got, want in _answers(document, batch, specs, run):
            if want.numel() == 1:
                singles.setdefault(f"output '{spec.name}' of all rows, {how}", []).append((got, want))
            else:
                yield f"output '{spec.name}' of row {index} (length {rows[index]['length']}), {how}", got, want
    for place, pairs in singles.items():
        yield place, torch.cat([got for got, _ in pairs]), torch.cat([want for _, want in pairs])


def _dims(spec: Spec, rows: int, length: int) -> list[int]:
    return [rows, *(length if dim < 0 else dim for dim in spec.dims[1:])]


def _answers(document: dict, batch: Sequence[int], specs: tuple[Sequence[Spec], Sequence[Spec]], run: Runner):
    """(output, row, what came, what was expected) of each FP32 output."""
    inputs, outputs = specs
    rows = [document["rows"][i] for i in batch]
    length = max(row["length"] for row in rows)
    tensors = [_gather([row["inputs"][spec.name] for row in rows], _dims(spec, len(rows), length),
                       document["pads"].get(spec.name, 0)) for spec in inputs]
    views = [memoryview(ctypes.string_at(t.data_ptr(), t.numel() * t.element_size())) for t in tensors]
    layouts = tuple(wire.Layout(spec.datatype, tuple(t.shape), 0, len(view))
                    for spec, t, view in zip(inputs, tensors, views))
    try:
        results = run(wire.Run(0, len(rows), length, (1 << 63), layouts), views)
    except wire.RunFailed as failed:
        raise wire.LoadFailed("parity", f"held-out rows {list(batch)} fail: {failed}") from failed
    for spec, result in zip(outputs, results):
        if list(result.dims) != _dims(spec, len(rows), length):
            raise wire.LoadFailed("parity", f"output '{spec.name}' has shape {list(result.dims)}, expected is "
                                            f"{_dims(spec, len(rows), length)}")
        if spec.datatype != "FP32":
            continue
        for position, index in enumerate(batch):
            own = result.value[position]
            for axis, dim in enumerate(spec.dims[1:]):
                own = own.narrow(axis, 0, document["rows"][index]["length"]) if dim < 0 else own
            yield spec, index, own.flatten(), document["rows"][index]["outputs"][spec.name]


def _gather(values: Sequence[torch.Tensor], dims: list[int], pad: float) -> torch.Tensor:
    batch = torch.full(dims, pad, dtype=values[0].dtype)
    for position, value in enumerate(values):
        batch[position][tuple(slice(size) for size in value.shape[1:])] = value[0]
    return batch


def _compare(got: torch.Tensor, want: torch.Tensor) -> tuple[float, float]:
    if got.shape != want.shape:
        return math.nan, math.nan
    if want.numel() == 0:
        return 1.0, 0.0
    a, b = got.double(), want.double()
    difference = float((a - b).abs().max())
    norms = float(a.norm() * b.norm())
    if norms == 0:
        return (1.0 if float(a.norm()) == float(b.norm()) else 0.0), difference
    return float(a @ b) / norms, difference
