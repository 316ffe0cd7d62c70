# SPDX-License-Identifier: Apache-2.0
"""AOTInductor: torch.export, then compiled to machine code; a file per precision.

The file is bound to this torch and to this CPU's instructions; both are written into it, and the worker
refuses another. The compiled program checks nothing: shapes, limits and ranges, which are in the file too,
are proven before every run.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Callable, Sequence

import torch
from torch import nn
from torch.export import Dim

from tonnage.description import DATATYPES, Model
from tonnage.parity import ExportFailed
from tonnage.routes.torchscript import DTYPES, cast

FILES = {"fp32": "model.pt2", "bf16": "model.bf16.pt2"}
MOST_ROWS = 256  # of one batch of the server
FLAGS = ("avx", "amx", "fma", "bmi", "f16c", "sse", "ssse", "gfni", "vaes", "vpclmul", "movbe", "abm", "popcnt", "adx")


class Cast(nn.Module):
    """The module with its weights in another precision, and with the inputs and outputs that it had before."""

    def __init__(self, module: nn.Module, dtype: torch.dtype) -> None:
        super().__init__()
        self.module = copy.deepcopy(module).to(dtype)
        self.dtype = dtype

    def forward(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        outputs = self.module(*(cast(value, torch.float32, self.dtype) for value in inputs))
        outputs = (outputs,) if isinstance(outputs, torch.Tensor) else tuple(outputs)
        return tuple(cast(value, self.dtype, torch.float32) for value in outputs)


def write(model: Model, path: Path, precision: str, example: Sequence[torch.Tensor], config: str) -> dict:
    if model.sizes:
        raise ExportFailed("a compiled program's limits are of rows and one length, and this model has sizes; the other "
                           "routes take it")
    limits = {"rows": [1, MOST_ROWS]} | ({"length": [1, model.max_length]} if model.max_length else {})
    for spec in model.inputs:
        if not DATATYPES[spec.datatype].is_floating_point and spec.allowed() is None:
            raise ExportFailed(f"input '{spec.name}' is {spec.datatype} and has no range: a compiled program reads "
                               "wrong memory on an id outside its table, so the allowed values must be known")
    module = Cast(model.module, DTYPES[precision])
    try:
        with torch.no_grad():
            # One entry for all of *inputs, which holds one per input.
            program = torch.export.export(module, tuple(example), dynamic_shapes=(_dynamic_shapes(model, limits),),
                                          strict=False)
            # Only a graph without in-place operations has a signature that names what is written to.
            if program.run_decompositions({}).graph_signature.user_inputs_to_mutate:
                raise ExportFailed("the module changes its input in place; copy it first")
            tag = _tagged(config, precision, limits)
            torch._inductor.aoti_compile_and_package(program, package_path=str(path),
                                                     inductor_configs={"aot_inductor.metadata": {"tonnage": tag}})
    except ExportFailed:
        raise
    except Exception as error:  # torch.export and inductor raise dozens of types
        reason = " ".join(str(error).split())
        raise ExportFailed(f"AOTInductor cannot compile {type(model.module).__name__}: {reason[:600]}") from error
    return {"limits": limits}


def _tagged(config: str, precision: str, limits: dict) -> str:
    """The config with what the worker must know of the file: workers/torch/compiled_limits.h reads it."""
    document = json.loads(config)
    document["facts"] |= {
        "compiled_for_torch": torch.__version__,
        "compiled_for_instruction_set": torch.backends.cpu.get_cpu_capability(),
        "compiled_for_cpu_flags": " ".join(_vector_flags()),
        "compiled_for_precision": precision,
        **{f"compiled_for_{name}": f"{low} {high}" for name, (low, high) in limits.items()},
    }
    return json.dumps(document)


def _vector_flags() -> list[str]:
    """Of this CPU, those that a compiler uses of itself under -march=native."""
    with open("/proc/cpuinfo", encoding="ascii") as lines:
        flags = next((line.split(":", 1)[1].split() for line in lines if line.startswith("flags")), [])
    return sorted(flag for flag in flags if flag.startswith(FLAGS))


def _dynamic_shapes(model: Model, limits: dict) -> tuple:
    """By input: which axis is free, and in which range."""
    dims = {name: Dim(name, min=low, max=high) for name, (low, high) in limits.items()}
    return tuple({0: dims["rows"], **{axis: dims[name] for axis, name in spec.free_axes().items()}}
                 for spec in model.inputs)


def load(path: Path, precision: str) -> Callable[[Sequence[torch.Tensor]], list[torch.Tensor]]:
    program = torch._inductor.aoti_load_package(str(path))

    def run(inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        outputs = program(*inputs)
        return [outputs] if isinstance(outputs, torch.Tensor) else list(outputs)

    return run
