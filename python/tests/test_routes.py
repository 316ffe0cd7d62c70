# SPDX-License-Identifier: Apache-2.0
"""Artefacts per route and precision, and the rows that a worker proves itself with."""

import hashlib
import json

import pytest
import torch

import toy_models
from tonnage import export, held_out, parity, routes
from tonnage.description import Tensor


def run(tmp_path, factory, *arguments):
    return export.main([factory, "--out", str(tmp_path / "models"), *arguments])


def version_of(tmp_path):
    return tmp_path / "models" / "toy" / "1"


def test_a_file_serves_each_route_and_precision_and_is_recorded(tmp_path):
    assert run(tmp_path, "toy_models:good", "--routes", "trace,script", "--precisions", "bf16") == 0
    folder = version_of(tmp_path)
    record = json.loads((folder / "artefacts.json").read_text())
    assert record["torch"] == torch.__version__ and record["instruction_set"]
    made = {(a["route"], a["precision"]): a for a in record["artefacts"]}
    assert sorted(made) == [("script", "bf16"), ("script", "fp32"), ("trace", "bf16"), ("trace", "fp32")]
    for artefact in made.values():
        assert artefact["sha256"] == hashlib.sha256((folder / artefact["file"]).read_bytes()).hexdigest()
        shapes = artefact["checked_shapes"]
        assert [1, 1] in shapes and [1, 48] in shapes and len({rows for rows, _ in shapes}) >= 3
    assert made["trace", "fp32"]["file"] == "model.pt" and made["script", "bf16"]["file"] == "model.script.pt"
    assert made["trace", "fp32"]["worst_difference"] <= 1e-6
    assert 0 < made["trace", "bf16"]["worst_difference"] and 0.999 <= made["trace", "bf16"]["min_cosine"] < 1


def test_a_program_that_drifts_in_a_lower_precision_is_named(tmp_path):
    class Subtracts(toy_models.MaskedMean):
        def forward(self, input_ids, attention_mask):
            mean = super().forward(input_ids, attention_mask)
            return (mean + 4096.0) - 4096.0  # what bf16 cannot hold beside it is lost

    with pytest.raises(parity.ExportFailed, match=r"route trace, bf16: .*least cosine of a row is"):
        export.export_model(toy_models.model(Subtracts(), absolute_tolerance=1e-2), tmp_path, [10, 20],
                            wanted=routes.Wanted(["trace"], ["fp32", "bf16"]))


def test_a_module_that_cannot_be_scripted_fails_with_its_name_and_the_reason(tmp_path, capsys):
    assert run(tmp_path, "toy_models:cannot_be_scripted", "--routes", "trace,script") == 1
    message = capsys.readouterr().err
    assert "route script, fp32: torch.jit.script cannot compile CannotBeScripted: " in message
    assert not version_of(tmp_path).exists()


@pytest.mark.parametrize("arguments, expected", [
    (["--routes", "tensorflow"], "route 'tensorflow'; allowed: trace, script"),
    (["--precisions", "int4"], "precision 'int4'; allowed: fp32, bf16, fp16"),
])
def test_an_unknown_route_or_precision_is_explained(tmp_path, capsys, arguments, expected):
    assert run(tmp_path, "toy_models:good", *arguments) == 1
    assert expected in capsys.readouterr().err


def test_every_route_keeps_the_promises_of_the_package():
    for name in routes.available():
        route = routes.get(name)
        assert "fp32" in route.FILES and set(route.FILES) <= set(routes.PRECISIONS), name
        assert callable(route.write) and callable(route.load), name


def test_held_out_rows_have_mixed_lengths_and_the_answers_of_the_module(tmp_path):
    assert run(tmp_path, "toy_models:good") == 0
    document = json.loads((version_of(tmp_path) / "held_out.json").read_text())
    assert document["inputs"][0] == {"name": "input_ids", "datatype": "INT64", "dims": [-1, -1], "pad": 0}
    lengths = [row["length"] for row in document["rows"]]
    assert len(lengths) == held_out.ROWS and {1, 48} <= set(lengths) and len(set(lengths)) >= 4
    module = toy_models.MaskedMean().eval()
    for row in document["rows"]:
        ids = torch.tensor([row["inputs"]["input_ids"]])
        mask = torch.tensor([row["inputs"]["attention_mask"]])
        assert ids.shape == (1, row["length"]) and bool((mask == 1).all())
        assert torch.equal(module(ids, mask)[0], torch.tensor(row["outputs"]["mean"]))


def test_masks_are_padded_with_zero_whatever_their_pad_says():
    mask = Tensor("mask", "INT64", [-1, -1], source="mask", pad=7)
    model = toy_models.model(toy_models.MaskedMean(), inputs=[toy_models.INPUTS[0], mask])
    document = json.loads(held_out.make(model, [5], torch.Generator().manual_seed(0)))
    assert [spec["pad"] for spec in document["inputs"]] == [0, 0]


def test_one_value_per_row_is_judged_over_all_rows():
    want = torch.tensor([[1.0], [2.0], [3.0]])
    assert parity.row_cosines(want, want).tolist() == pytest.approx([1.0])
    assert parity.row_cosines(torch.tensor([[1.0], [1.0], [1.0]]), want).min() < 0.95
    assert parity.row_cosines(torch.zeros(2, 3), torch.zeros(2, 3)).tolist() == [1.0, 1.0]
    assert parity.row_cosines(torch.ones(1, 3), torch.zeros(1, 3)).tolist() == [0.0]


@pytest.mark.parametrize("change, expected", [
    (dict(inputs=[Tensor("input_ids", "INT64", [-1, -1]), toy_models.INPUTS[1]]), "'input_ids' is INT64 and has no range"),
    (dict(module=toy_models.ChangesItsInput()), "changes its input in place"),
])
def test_what_a_compiled_program_cannot_be_trusted_with_is_refused(tmp_path, change, expected):
    with pytest.raises(parity.ExportFailed, match=f"route aoti, fp32: .*{expected}"):
        export.export_model(toy_models.model(**{"module": toy_models.MaskedMean(), **change}), tmp_path, [10, 20],
                            wanted=routes.Wanted(["aoti"]))


def test_a_compiled_program_works_at_one_row_one_position_and_the_longest(tmp_path):
    assert run(tmp_path, "toy_models:good", "--routes", "aoti", "--precisions", "fp32,bf16") == 0
    folder = version_of(tmp_path)
    record = json.loads((folder / "artefacts.json").read_text())
    assert [a["file"] for a in record["artefacts"]] == ["model.pt2", "model.bf16.pt2"]
    for artefact in record["artefacts"]:
        assert artefact["limits"] == {"rows": [1, 256], "length": [1, 48]}
        assert [1, 1] in artefact["checked_shapes"] and [1, 48] in artefact["checked_shapes"]
