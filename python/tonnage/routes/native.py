# SPDX-License-Identifier: Apache-2.0
"""The module itself, in Python: a script with model_fn, the file that builds the module, and its weights.

What is written needs torch and what the module's own file imports, and nothing of this package.
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Callable, Sequence

import torch

from tonnage.description import Model
from tonnage.native import handler, weights
from tonnage.native.wire import LoadFailed
from tonnage.parity import ExportFailed

FILES = {"fp32": "inference.py", "bf16": "inference.py", "fp16": "inference.py"}  # converted by the worker
MODULE = "native_module"
WEIGHTS = {"safetensors": "model.safetensors", "torch": "weights.pt"}

SCRIPT = '''\
"""The model '{name}': {module}.py builds it, {weights} holds its weights. Written by tonnage.export."""

from pathlib import Path

import torch
from {module} import {builder}


def model_fn(model_dir):
    model = {builder}()
    model.load_state_dict({read})
    return model.eval()
'''
READ = {"safetensors": "load_file(str(Path(model_dir) / \"model.safetensors\"))",
        "torch": "torch.load(Path(model_dir) / \"weights.pt\", weights_only=True)"}


def write(model: Model, path: Path, precision: str, example: Sequence[torch.Tensor], config: str) -> dict:
    builder = model.builder
    source = inspect.getsourcefile(builder) if builder is not None else None
    if builder is None or source is None or "." in builder.__qualname__:
        raise ExportFailed("route native ships Python: give the description a `builder`, a function at the top of a "
                           "file that makes the module without its weights")
    shutil.copyfile(source, path.with_name(f"{MODULE}.py"))
    form = _write_weights(model.module, path.parent)
    script = SCRIPT.format(name=model.name, module=MODULE, builder=builder.__name__, weights=WEIGHTS[form],
                           read=READ[form])
    if form == "safetensors":
        script = script.replace("import torch\n", "from safetensors.torch import load_file\n", 1)
    path.write_text(script, encoding="utf-8")
    _check_alone(path.parent, builder.__name__)
    file = path.with_name(WEIGHTS[form])
    return {"weights": file.name, "weights_bytes": file.stat().st_size,
            "weights_sha256": hashlib.sha256(file.read_bytes()).hexdigest()}


def _write_weights(module: torch.nn.Module, folder: Path) -> str:
    state = {key: value.contiguous() for key, value in module.state_dict().items()}
    try:
        from safetensors.torch import save

        # Its own save_file() makes a file that its owner alone may read.
        (folder / WEIGHTS["safetensors"]).write_bytes(save(state))
        return "safetensors"
    except (ImportError, RuntimeError):  # not installed; weights that share memory
        torch.save(module.state_dict(), folder / WEIGHTS["torch"])
        return "torch"


def _check_alone(folder: Path, builder: str) -> None:
    """As the worker imports it: without this package and without the folder that the export runs in."""
    code = f"import sys; sys.path.insert(0, {str(folder)!r}); from {MODULE} import {builder}"
    done = subprocess.run([sys.executable, "-I", "-B", "-c", code], cwd="/", capture_output=True, text=True, check=False)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        raise ExportFailed(f"the file of {builder}() cannot be imported alone: {lines[-1] if lines else 'no reason'}; "
                           "it may import installed packages only")


def load(path: Path, precision: str) -> Callable[[Sequence[torch.Tensor]], list[torch.Tensor]]:
    for name in (MODULE, path.stem):
        sys.modules.pop(name, None)  # of another model
    try:
        with weights.watched([]):
            loaded = handler.load(path, {"precision": precision})
    except LoadFailed as error:
        raise ExportFailed(f"the written script does not load: {error.args[1]}") from error
    finally:
        with contextlib.suppress(ValueError):  # not there when the folder was refused
            sys.path.remove(str(path.parent))

    def run(inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        outputs = loaded.predict(inputs, ())  # no function of the script asks for names
        return [outputs] if isinstance(outputs, torch.Tensor) else list(outputs)

    return run
