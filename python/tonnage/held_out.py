# SPDX-License-Identifier: Apache-2.0
"""held_out.json: rows that no example was made of, with what the module answers in fp32. A worker runs
them after it has loaded and refuses to serve when its answers have another direction."""

from __future__ import annotations

import json
from typing import Sequence

import torch

from tonnage import parity, row_sizes
from tonnage.description import Model, Tensor

ROWS = 16


def make(model: Model, lengths: Sequence[int], generator: torch.Generator) -> str:
    rows = []
    for length in row_sizes.held_out(model, lengths, ROWS, generator):
        size = {size.name: length for size in model.sizes} if model.sizes else length
        inputs = model.make_inputs([size], generator)
        outputs = parity.run(model.module, inputs, "the module")
        parity.check_outputs(model, outputs, 1, size)
        rows.append({"length": length if model.max_length or model.sizes else 0,
                     "inputs": {spec.name: value.flatten().tolist() for spec, value in zip(model.inputs, inputs)},
                     "outputs": {spec.name: value.flatten().tolist() for spec, value in zip(model.outputs, outputs)}})
    return json.dumps({"inputs": [_describe(spec) | {"pad": _pad(spec)} for spec in model.inputs],
                       "outputs": [_describe(spec) for spec in model.outputs], "rows": rows}) + "\n"


def _pad(spec: Tensor) -> int:
    return 0 if spec.source == "mask" else spec.pad


def _describe(spec: Tensor) -> dict:
    return {"name": spec.name, "datatype": spec.datatype, "dims": list(spec.dims)}
