# SPDX-License-Identifier: Apache-2.0
"""ONNX, written by torch's exporter for any runtime that reads it; weights inside, rows and lengths free.

There is one precision: the CPU operators of ONNX Runtime compute in fp32 and have no bf16.
"""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from pathlib import Path
from typing import Callable, Sequence

import torch
from torch.export import Dim

from tonnage.description import Model
from tonnage.parity import ExportFailed

FILES = {"fp32": "model.onnx"}
OPSET = 18
PACKAGES = "the Python packages onnx, onnxscript and onnxruntime: tools/requirements.txt names them, ./dev setup " \
           "installs them"


def write(model: Model, path: Path, precision: str, example: Sequence[torch.Tensor], config: str) -> dict:
    try:
        import onnxscript  # noqa: F401  torch's exporter would fail later and say less
    except ImportError as error:
        raise ExportFailed(f"route onnx needs {PACKAGES} ({error})") from error
    try:
        with torch.no_grad(), _quietly():
            program = torch.onnx.export(
                model.module, tuple(example), dynamo=True, dynamic_shapes=_dynamic_shapes(model),
                input_names=[spec.name for spec in model.inputs], output_names=[spec.name for spec in model.outputs],
                opset_version=OPSET, verbose=False)
            program.model.metadata_props["config.json"] = config
            program.save(str(path), external_data=False)
    except Exception as error:  # torch.export and the exporter raise dozens of types
        reason = " ".join(str(error).split())
        raise ExportFailed(f"torch.onnx cannot export {type(model.module).__name__}: {reason[:600]}") from error
    return {"opset": OPSET}


@contextlib.contextmanager
def _quietly():
    """The exporter praises its steps on standard output and warns of packages that nobody asked for."""
    names = ("torch.onnx", "torch.onnx._internal.exporter")
    before = {name: logging.getLogger(name).level for name in names}
    for name in names:
        logging.getLogger(name).setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)


def _dynamic_shapes(model: Model) -> tuple:
    """By input: which axis is free."""
    most = {size.name: size.max for size in model.sizes} or {"length": model.max_length}
    dims = {name: Dim(name, min=1, max=limit) for name, limit in most.items() if limit}
    rows = Dim("rows", min=1)
    return tuple({0: rows, **{axis: dims[name] for axis, name in spec.free_axes().items()}} for spec in model.inputs)


def load(path: Path, precision: str) -> Callable[[Sequence[torch.Tensor]], list[torch.Tensor]]:
    try:
        import onnxruntime
    except ImportError as error:
        raise ExportFailed(f"checking {path.name} needs {PACKAGES} ({error})") from error
    try:
        session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    except Exception as error:  # its exceptions have no common base of their own
        raise ExportFailed(f"ONNX Runtime cannot load {path.name}: {error}") from error
    names = [entry.name for entry in session.get_inputs()]

    def run(inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        try:
            outputs = session.run(None, dict(zip(names, (value.numpy() for value in inputs))))
        except Exception as error:
            raise RuntimeError(str(error)) from error
        return [torch.from_numpy(value) for value in outputs]

    return run
