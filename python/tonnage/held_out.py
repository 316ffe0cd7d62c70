# SPDX-License-Identifier: Apache-2.0
"""held_out.json: rows that no example was made of, with what the module answers in fp32. A worker runs
them after it has loaded and refuses to serve when its answers have another direction."""

from __future__ import annotations

import json
from typing import Sequence

import torch

from tonnage import lengths as length_files
from tonnage import parity
from tonnage.description import Model, Tensor

ROWS = 16


def choose_lengths(model: Model, lengths: Sequence[int], generator: torch.Generator) -> list[int]:
    longest = model.max_length or 1
    return sorted({1, longest}) + length_files.draw(lengths, ROWS - len({1, longest}), longest, generator)


def make(model: Model, lengths: Sequence[int], generator: torch.Generator) -> str:
    rows = []
    for length in choose_lengths(model, lengths, generator):
        inputs = model.make_inputs([length], generator)
        outputs = parity.run(model.module, inputs, "the module")
        parity.check_outputs(model, outputs, 1, length)
        rows.append({"length": length if model.max_length else 0,
                     "inputs": {spec.name: value.flatten().tolist() for spec, value in zip(model.inputs, inputs)},
                     "outputs": {spec.name: value.flatten().tolist() for spec, value in zip(model.outputs, outputs)}})
    return json.dumps({"inputs": [_describe(spec) | {"pad": _pad(spec)} for spec in model.inputs],
                       "outputs": [_describe(spec) for spec in model.outputs], "rows": rows}) + "\n"


def _pad(spec: Tensor) -> int:
    return 0 if spec.source == "mask" else spec.pad


def _describe(spec: Tensor) -> dict:
    return {"name": spec.name, "datatype": spec.datatype, "dims": list(spec.dims)}
