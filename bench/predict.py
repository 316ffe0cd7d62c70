# SPDX-License-Identifier: Apache-2.0
"""How well the memory of batches is known in advance: the real model on one route, and models whose peak is
not one polynomial. `--route`, `--precision`, `--only MODEL`, `--shapes`, `--toy-batches` and `--seed` go to
tonnage-bench-predict, which says what it measures in bench/predict/measure.h."""

import subprocess
import sys

import harness


def export_toys(folder):
    """False without a Python that has torch; the toys are then left out."""
    python = harness.ROOT / "build/venv/bin/python"
    if not python.exists():
        return False
    return subprocess.run([python, harness.ROOT / "workers/torch/testdata/toys.py", folder], check=False).returncode == 0


def main(options):
    toys = harness.ROOT / "build/bench/toys"
    arguments = [options.build.resolve() / "bin/tonnage-bench-predict", "--models", harness.ROOT / "build/models"]
    if export_toys(toys):
        arguments += ["--toys", toys]
    else:
        print("predict: the toys cannot be exported with build/venv (is torch there?) and are LEFT OUT", file=sys.stderr)
    return harness.run_program(arguments + options.rest, "predict")
