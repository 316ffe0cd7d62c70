# SPDX-License-Identifier: Apache-2.0
"""torch.jit.script: the module's source, compiled; for modules whose branches depend on the values."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Sequence

import torch

from tonnage.description import Model
from tonnage.parity import ExportFailed
from tonnage.routes import torchscript

FILES = {"fp32": "model.script.pt", "bf16": "model.script.pt", "fp16": "model.script.pt"}
load = torchscript.load


def write(model: Model, path: Path, precision: str, example: Sequence[torch.Tensor], config: str) -> dict:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            program = torch.jit.script(model.module)
    except (RuntimeError, TypeError, OSError) as error:  # the last: source that inspect cannot find
        reason = " ".join(str(error).split())
        raise ExportFailed(f"torch.jit.script cannot compile {type(model.module).__name__}: {reason[:400]}") from error
    torchscript.save(program, path, config)
    return {}
