# SPDX-License-Identifier: Apache-2.0
import json
import subprocess
import sys

import pytest
import torch

import toy_models
import toy_module
from tonnage import export, parity, routes

RUN = """
import sys, torch
sys.path.insert(0, sys.argv[1])
import inference
model = inference.model_fn(sys.argv[1])
print(model(torch.tensor([[1, 2, 0]]), torch.tensor([[1, 1, 0]])).tolist())
assert "tonnage" not in sys.modules
"""


def written(tmp_path, **changes):
    model = toy_models.model(toy_module.build(), **{"builder": toy_module.build, **changes})
    return model, export.export_model(model, tmp_path, [10, 20, 30], wanted=routes.Wanted(("native",))) / "1"


def test_what_is_written_runs_in_a_python_that_does_not_know_this_package(tmp_path):
    model, folder = written(tmp_path)
    ran = subprocess.run([sys.executable, "-I", "-c", RUN, str(folder)], capture_output=True, text=True, check=True)
    want = model.module(torch.tensor([[1, 2, 0]]), torch.tensor([[1, 1, 0]]))
    assert torch.allclose(torch.tensor(json.loads(ran.stdout)), want)


def test_the_artefact_is_proven_and_names_its_weights(tmp_path):
    _, folder = written(tmp_path)
    (record,) = json.loads((folder / "artefacts.json").read_text(encoding="utf-8"))["artefacts"]
    assert record["route"] == "native" and record["file"] == "inference.py"
    weights = (folder / record["weights"]).stat()
    assert weights.st_size == record["weights_bytes"]
    assert weights.st_mode == (folder / "inference.py").stat().st_mode  # who serves may be another user
    assert record["worst_difference"] == 0.0


def test_a_model_without_a_builder_or_with_one_that_needs_more_is_refused(tmp_path):
    with pytest.raises(parity.ExportFailed, match="give the description a `builder`"):
        written(tmp_path, builder=None)
    with pytest.raises(parity.ExportFailed, match="cannot be imported alone: .*tonnage"):
        written(tmp_path, builder=toy_models.good)
