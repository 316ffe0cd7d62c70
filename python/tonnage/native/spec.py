# SPDX-License-Identifier: Apache-2.0
"""What a tensor of the model must be: names, types and dims, from the load document or from the handler."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Sequence

from tonnage.native import wire

WIDTHS = dict(zip(wire.DATATYPES, (1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 4, 8, 0, 2)))


@dataclass(frozen=True)
class Spec:
    name: str
    datatype: str
    dims: tuple[int, ...]  # -1: free; the first is the rows
    range: tuple[int, int] | None = None  # allowed values, both ends included

    def document(self) -> dict:
        told = {"name": self.name, "datatype": self.datatype, "shape": list(self.dims)}
        return told | ({"range": list(self.range)} if self.range else {})

    def problem(self, datatype: str, dims: Sequence[int], rows: int) -> str:
        """How a tensor differs from this; empty where it fits."""
        if datatype != self.datatype:
            return f"has type {datatype}, expected {self.datatype}"
        if len(dims) != len(self.dims):
            return f"has rank {len(dims)} (shape {list(dims)}), expected {len(self.dims)}"
        if dims and dims[0] != rows:
            return f"has {dims[0]} rows, expected {rows}"
        for axis, (have, want) in enumerate(zip(dims, self.dims)):
            if want >= 0 and have != want:
                return f"has size {have} in dim {axis} (shape {list(dims)}), expected {want}"
        return ""


def parse(entries: Any, where: str) -> list[Spec]:
    """Raises LoadFailed: bad_load_doc."""
    if not isinstance(entries, (list, tuple)) or len(entries) > wire.MOST_TENSORS:
        raise wire.LoadFailed("bad_load_doc", f"{where} is not a list of at most {wire.MOST_TENSORS} tensors")
    specs = []
    for entry in entries:
        try:
            low_high = entry.get("range")
            spec = Spec(str(entry["name"]), entry["datatype"], tuple(int(d) for d in entry["shape"]),
                        (int(low_high[0]), int(low_high[1])) if low_high else None)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise wire.LoadFailed("bad_load_doc", f"{where}[{len(specs)}] needs name, datatype and shape: "
                                                  f"{error!r}") from error
        if spec.datatype not in wire.DATATYPES:
            raise wire.LoadFailed("bad_load_doc", f"{where} '{spec.name}': datatype '{spec.datatype}'; allowed: "
                                                  f"{', '.join(wire.DATATYPES)}")
        if not spec.dims or len(spec.dims) > 8 or min(spec.dims) < -1:
            raise wire.LoadFailed("bad_load_doc", f"{where} '{spec.name}': shape {list(spec.dims)}; one to eight "
                                                  "dims, each -1 or from 0 on")
        specs.append(spec)
    if len({spec.name for spec in specs}) < len(specs):
        raise wire.LoadFailed("bad_load_doc", f"{where} names a tensor twice")
    return specs


def find_inputs(run: wire.Run, slots: Sequence[memoryview], specs: Sequence[Spec]) -> list[memoryview]:
    """The bytes of each input, proven to lie inside the slot and to fit the model. Raises RunFailed."""

    def refuse(problem: str) -> None:
        raise wire.RunFailed(wire.ErrorKind.BAD_REQUEST, problem)

    if run.slot >= len(slots) or run.rows < 1:
        refuse(f"no slot {run.slot}, or no rows")
    if len(run.inputs) != len(specs):
        refuse(f"{len(run.inputs)} inputs where the model has {len(specs)}")
    slot = slots[run.slot]
    views = []
    for spec, layout in zip(specs, run.inputs):
        if layout.offset % wire.ALIGNMENT or layout.offset + layout.size > len(slot):
            refuse(f"input '{spec.name}': {layout.size} bytes at {layout.offset} are not aligned to "
                   f"{wire.ALIGNMENT}, or lie outside a slot of {len(slot)}")
        if problem := spec.problem(layout.datatype, layout.dims, run.rows):
            refuse(f"input '{spec.name}' {problem}")
        if layout.datatype != "BYTES" and layout.size != math.prod(layout.dims) * WIDTHS[layout.datatype]:
            refuse(f"input '{spec.name}': {layout.size} bytes are not those of {list(layout.dims)}")
        views.append(slot[layout.offset:layout.offset + layout.size])
    return views
