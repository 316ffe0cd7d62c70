# SPDX-License-Identifier: Apache-2.0
"""What there is to soak: each route and precision that a model was exported and a worker is built for."""

import contextlib
import fcntl
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tonnage import routes
from tonnage.compare.cases import NoCase, read_artefacts

HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parents[1] / "python"
WORKERS = {"trace": ("tonnage-worker-torch",), "script": ("tonnage-worker-torch",), "aoti": ("tonnage-worker-torch",),
           "onnx": ("tonnage-worker-onnx",), "native": ("tonnage-worker-native", "libtonnage_torch_allocator.so")}
# Name, routes and precisions: compiling each precision of route aoti takes longest, and one of them is enough.
TINY = (("tiny", "all", "fp32"), ("tiny-bf16", "trace", "fp32,bf16"))


class NoModels(RuntimeError):
    """There is nothing to soak; the message says what is missing."""


@dataclass(frozen=True)
class Case:
    route: str
    precision: str
    folder: Path  # of the model

    @property
    def name(self):
        return f"{self.route} {self.precision}"

    @property
    def flags(self):
        return "--route", self.route, "--precision", self.precision


def find(models, programs):
    """(cases, route → why it is skipped); of several models with a case the smallest folder."""
    found = {}
    for toml in sorted(models.glob("*/model.toml")):
        folder = toml.parent
        size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
        with contextlib.suppress(NoCase):  # of another exporter
            for record in read_artefacts(folder)["artefacts"]:
                key = (record["route"], record["precision"])
                if key not in found or size < found[key][0]:
                    found[key] = (size, folder)
    cases, skipped = [], {}
    for route in routes.NAMES:
        absent = [name for name in WORKERS[route] if not (programs / name).exists()]
        there = [Case(route, precision, found[route, precision][1].resolve())
                 for precision in routes.PRECISIONS if (route, precision) in found]
        if absent:
            skipped[route] = f"{absent[0]} is not built"
        elif not there:
            skipped[route] = f"no model in {models} is exported for it"
        else:
            cases += there
    return cases, skipped


def recipe_of_tiny():
    exporter = PACKAGE / "tonnage"
    files = [HERE / "tiny.py", HERE / "exported.py", *sorted(exporter.glob("*.py")),
             *sorted(exporter.glob("routes/*.py"))]
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in files))
    return f"{digest.hexdigest()} torch {importlib.metadata.version('torch')}"


def make_tiny(folder):
    """Exports tiny.py into `folder`, unless what is there was made of the same sources."""
    if importlib.util.find_spec("torch") is None:
        raise NoModels(f"{sys.executable} has no torch, with which small models are exported: ./dev setup")
    recipe = recipe_of_tiny()
    stamp = folder / ".recipe"
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / ".lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if stamp.exists() and stamp.read_text(encoding="ascii") == recipe:
            return folder
        stamp.unlink(missing_ok=True)
        for name, wanted, precisions in TINY:
            export(folder, name, wanted, precisions)
        stamp.write_text(recipe, encoding="ascii")
    return folder


def export(folder, name, wanted, precisions):
    command = [sys.executable, "-m", "tonnage.export", "tiny:model", "--arg", f"name={name}", "--out", str(folder),
               "--routes", wanted, "--precisions", precisions]
    environment = {**os.environ, "PYTHONPATH": f"{PACKAGE}:{HERE}", "OMP_WAIT_POLICY": "passive"}
    done = subprocess.run(command, env=environment, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True)
    if done.returncode != 0:
        raise NoModels(f"exporting tests/soak/tiny.py failed:\n{done.stdout}")
