# SPDX-License-Identifier: Apache-2.0
"""What the routes trace and script share. One fp32 file serves every precision: the worker converts the
weights when it loads, casts float inputs on the way in and float outputs back on the way out."""

from __future__ import annotations

from pathlib import Path
from typing import Callable, Sequence

import torch

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def save(program: torch.jit.ScriptModule, path: Path, config: str) -> None:
    torch.jit.save(program, str(path), _extra_files={"config.json": config})


def load(path: Path, precision: str) -> Callable[[Sequence[torch.Tensor]], list[torch.Tensor]]:
    program = torch.jit.load(str(path)).eval()
    dtype = DTYPES[precision]
    if precision != "fp32":
        program.to(dtype)

    def run(inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        outputs = program(*(cast(value, torch.float32, dtype) for value in inputs))
        outputs = [outputs] if isinstance(outputs, torch.Tensor) else list(outputs)
        return [cast(value, dtype, torch.float32) for value in outputs]

    return run


def cast(value: torch.Tensor, when: torch.dtype, to: torch.dtype) -> torch.Tensor:
    return value.to(to) if value.dtype == when else value
