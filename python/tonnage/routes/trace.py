# SPDX-License-Identifier: Apache-2.0
"""torch.jit.trace: one run of the module, recorded. Branches and numbers of the traced shape are baked in,
which is why the checks run other shapes."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Sequence

import torch

from tonnage.description import Model
from tonnage.parity import ExportFailed, last_line
from tonnage.routes import torchscript

FILES = {"fp32": "model.pt", "bf16": "model.pt", "fp16": "model.pt"}
load = torchscript.load


def write(model: Model, path: Path, precision: str, example: Sequence[torch.Tensor], config: str) -> dict:
    with warnings.catch_warnings(record=True) as caught, torch.no_grad():
        warnings.simplefilter("always")
        try:
            program = torch.jit.trace(model.module, tuple(example), check_trace=True,
                                      check_tolerance=model.relative_tolerance)
        except (RuntimeError, torch.jit.TracingCheckError) as error:
            raise ExportFailed(f"tracing failed: {last_line(error)}") from error
    for warning in caught:
        if issubclass(warning.category, torch.jit.TracerWarning):
            print(f"  tracer: {str(warning.message).splitlines()[0]}", flush=True)
    torchscript.save(program, path, config)
    return {}
