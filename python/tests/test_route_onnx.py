# SPDX-License-Identifier: Apache-2.0
"""The ONNX file of a model, as its exporter and its runtime see it."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import toy_models
from tonnage import export, parity, routes
from tonnage.routes import onnx as route

onnx = pytest.importorskip("onnx", reason="needs PyPI onnx, onnxscript and onnxruntime: ./dev setup")


def run(tmp_path, factory, *arguments):
    return export.main([factory, "--out", str(tmp_path / "models"), "--routes", "onnx", *arguments])


def version_of(tmp_path):
    return tmp_path / "models" / "toy" / "1"


def test_rows_and_lengths_are_free_and_the_file_says_what_it_is(tmp_path):
    assert run(tmp_path, "toy_models:good") == 0
    model = onnx.load(str(version_of(tmp_path) / "model.onnx"))
    onnx.checker.check_model(model)
    assert [(entry.domain, entry.version) for entry in model.opset_import] == [("", route.OPSET)]
    dims = [dim.dim_param for dim in model.graph.input[0].type.tensor_type.shape.dim]
    assert [entry.name for entry in model.graph.input] == ["input_ids", "attention_mask"] and all(dims)
    config = json.loads({entry.key: entry.value for entry in model.metadata_props}["config.json"])
    assert config["name"] == "toy"
    record = json.loads((version_of(tmp_path) / "artefacts.json").read_text())["artefacts"][0]
    assert record["file"] == "model.onnx" and record["worst_difference"] <= 1e-5
    assert [1, 1] in record["checked_shapes"] and [1, 48] in record["checked_shapes"]


def test_weights_are_inside_the_file(tmp_path):
    assert run(tmp_path, "toy_models:good") == 0
    assert [path.name for path in version_of(tmp_path).glob("*.onnx*")] == ["model.onnx"]


def test_a_precision_that_the_runtime_lacks_is_left_out_aloud(tmp_path, capsys):
    assert run(tmp_path, "toy_models:good", "--precisions", "fp32,bf16") == 0
    assert "route onnx has no precision bf16" in capsys.readouterr().out


def test_a_module_that_cannot_be_exported_fails_with_its_name(tmp_path):
    class AsksItsValues(toy_models.MaskedMean):
        def forward(self, input_ids, attention_mask):
            if int(input_ids.sum()) > 10:  # a branch on values, which no graph can hold
                return super().forward(input_ids, attention_mask)
            return super().forward(input_ids * 2, attention_mask)

    with pytest.raises(parity.ExportFailed, match="torch.onnx cannot export AsksItsValues: "):
        export.export_model(toy_models.model(AsksItsValues()), tmp_path, [10, 20], wanted=routes.Wanted(["onnx"]))


def test_a_file_that_is_no_model_is_named(tmp_path):
    (tmp_path / "model.onnx").write_bytes(b"no model")
    with pytest.raises(parity.ExportFailed, match="cannot load model.onnx"):
        route.load(tmp_path / "model.onnx", "fp32")


def test_a_failing_run_is_an_ordinary_error(tmp_path):
    assert run(tmp_path, "toy_models:good") == 0
    program = route.load(version_of(tmp_path) / "model.onnx", "fp32")
    with pytest.raises(RuntimeError, match="out of data bounds"):
        program([torch.full((1, 3), 10**6), torch.ones(1, 3, dtype=torch.int64)])


def test_the_small_models_in_the_tree_are_what_their_script_makes(tmp_path):
    folder = Path(__file__).resolve().parents[2] / "workers" / "onnx" / "testdata"
    subprocess.run([sys.executable, str(folder / "make_models.py"), str(tmp_path)], check=True)
    made = sorted(path.name for path in tmp_path.iterdir())
    assert made == sorted(path.name for path in folder.iterdir() if path.suffix != ".py")
    for name in made:
        ours, theirs = (tmp_path / name).read_bytes(), (folder / name).read_bytes()
        if name.endswith(".f32"):  # sums, whose last bits depend on the CPU's vector width
            alike = np.allclose(np.frombuffer(ours, "<f4"), np.frombuffer(theirs, "<f4"), rtol=1e-5, atol=1e-6)
        else:
            alike = ours == theirs
        assert alike, f"{name}: run make_models.py again"
