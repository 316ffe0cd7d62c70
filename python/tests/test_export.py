# SPDX-License-Identifier: Apache-2.0
import json
import tomllib

import pytest
import torch

import toy_models
from tonnage import checks, export, parity
from tonnage.description import DescriptionError, Tensor, Wordpiece
from tonnage.lengths import LengthFileError, draw, read_lengths


def run(tmp_path, factory, *arguments):
    return export.main([factory, "--out", str(tmp_path / "models"), *arguments])


def test_a_good_model_becomes_a_folder_the_server_can_read(tmp_path):
    assert run(tmp_path, "toy_models:good", "--arg", "name=mine") == 0
    folder = tmp_path / "models" / "mine"
    toml = tomllib.loads((folder / "model.toml").read_text(encoding="utf-8"))
    assert toml["route"] == "trace"
    assert toml["max_length"] == 48 and toml["too_long"] == "refuse"
    assert toml["labels"] == ["a", "b", "c", "d"]
    assert toml["input"][0] == {"name": "input_ids", "datatype": "INT64", "dims": [-1, -1], "range": [0, 99], "pad": 0}
    assert toml["input"][1]["source"] == "mask"
    assert toml["output"] == [{"name": "mean", "datatype": "FP32", "dims": [-1, 4]}]
    assert toml["batching"] == {"max_rows": 8, "policy": "dp"} and toml["workers"] == {"threads": 1}
    assert toml["metadata"]["note"] == 'with "quotes" and ümlauts'
    assert sorted(p.name for p in (tmp_path / "models").iterdir()) == ["mine"]  # no scratch left


def test_the_saved_program_computes_what_the_module_computes_and_carries_its_config(tmp_path):
    assert run(tmp_path, "toy_models:good") == 0
    extra = {"config.json": ""}
    program = torch.jit.load(str(tmp_path / "models" / "toy" / "1" / "model.pt"), _extra_files=extra)
    ids = torch.tensor([[5, 6, 7, 0], [8, 0, 0, 0]])
    mask = torch.tensor([[1, 1, 1, 0], [1, 0, 0, 0]])
    assert torch.allclose(program(ids, mask), toy_models.MaskedMean().eval()(ids, mask))
    config = json.loads(extra["config.json"])
    assert [t["name"] for t in config["inputs"]] == ["input_ids", "attention_mask"]
    assert config["facts"]["note"].startswith("with")


@pytest.mark.parametrize("factory", ["bakes_the_length", "notices_padding"])
def test_a_failed_check_fails_the_export_and_keeps_what_was_there(tmp_path, capsys, factory):
    assert run(tmp_path, "toy_models:good") == 0
    before = (tmp_path / "models" / "toy" / "1" / "model.pt").read_bytes()
    assert run(tmp_path, f"toy_models:{factory}") == 1
    assert "export failed: " in capsys.readouterr().err
    assert (tmp_path / "models" / "toy" / "1" / "model.pt").read_bytes() == before


def test_a_baked_length_is_found_and_the_message_names_shape_and_difference(tmp_path):
    expected = r"route trace, fp32: output 'mean' at shape \d+ × \d+: the largest difference is [\d.e+]+"
    with pytest.raises(parity.ExportFailed, match=expected):
        export.export_model(toy_models.model(toy_models.BakesTheLength()), tmp_path, [10, 20, 30])


def test_a_row_that_notices_its_neighbours_is_found(tmp_path):
    with pytest.raises(parity.ExportFailed, match=r"row of length \d+ alone against inside a batch of \[1, "):
        export.export_model(toy_models.model(toy_models.NoticesPadding()), tmp_path, [10, 20, 30])


def test_a_branch_on_the_number_of_rows_is_found(tmp_path):
    with pytest.raises(parity.ExportFailed, match="shape 1 ×"):
        export.export_model(toy_models.model(toy_models.BranchesOnRows()), tmp_path, [10, 20, 30])


def test_not_a_number_never_agrees(tmp_path):
    with pytest.raises(parity.ExportFailed):
        export.export_model(toy_models.model(toy_models.GivesNan()), tmp_path, [10, 20, 30])


def test_a_wrong_output_description_is_named(tmp_path):
    wrong = toy_models.model(toy_models.MaskedMean(), outputs=[Tensor("mean", "FP32", [-1, 5])])
    with pytest.raises(parity.ExportFailed, match=r"output 'mean'.*description says \[\d+, 5\]"):
        export.export_model(wrong, tmp_path, [10])


def test_the_vocabulary_is_copied_beside(tmp_path):
    vocab = tmp_path / "words.txt"
    vocab.write_text("[PAD]\n", encoding="utf-8")
    with_words = toy_models.model(toy_models.MaskedMean(), tokenizer=Wordpiece(vocab, lowercase=False))
    folder = export.export_model(with_words, tmp_path / "out", [10])
    assert (folder / "vocab.txt").read_text(encoding="utf-8") == "[PAD]\n"
    toml = tomllib.loads((folder / "model.toml").read_text(encoding="utf-8"))
    assert toml["tokenizer"] == {"kind": "wordpiece", "vocab": "vocab.txt", "lowercase": False}


@pytest.mark.parametrize("factory, expected", [
    ("toy_models", "write PACKAGE:FACTORY"),
    ("nowhere_at_all:model", "PYTHONPATH"),
    ("toy_models:missing", "no function 'missing'"),
    ("toy_models:not_a_model", "returned int"),
])
def test_a_wrong_factory_is_explained(tmp_path, capsys, factory, expected):
    assert run(tmp_path, factory) == 1
    assert expected in capsys.readouterr().err


def test_arguments_the_factory_does_not_take_are_explained(tmp_path, capsys):
    assert run(tmp_path, "toy_models:good", "--arg", "colour=red") == 1
    assert "colour" in capsys.readouterr().err


@pytest.mark.parametrize("changes, expected", [
    ({"max_length": 0}, "max_length"),
    ({"too_long": "cut"}, "refuse, truncate"),
    ({"labels": ["one"]}, "1 labels"),
    ({"outputs": [Tensor("embedding", "FP32", [-1, 4])]}, "sentence_embedding"),
    ({"outputs": [Tensor("x", "FP64", [-1, 4])]}, "FP64"),
    ({"outputs": [Tensor("x", "FP32", [4])]}, "first must be -1"),
    ({"outputs": [Tensor("input_ids", "FP32", [-1, 4])]}, "2 times"),
    ({"outputs": []}, "at least one"),
    ({"name": "../elsewhere"}, "model name"),
])
def test_a_contradictory_description_is_refused(changes, expected):
    with pytest.raises(DescriptionError, match=expected):
        checks.check_model(toy_models.model(toy_models.MaskedMean(), **changes))


def test_random_inputs_obey_range_pad_and_mask():
    specs = [Tensor("ids", "INT32", [-1, -1], range=(3, 5), pad=9), Tensor("mask", "INT64", [-1, -1], source="mask"),
             Tensor("weights", "FP32", [-1, 2, -1])]
    model = toy_models.model(toy_models.MaskedMean(), inputs=specs)
    ids, mask, weights = model.make_inputs([2, 4], torch.Generator().manual_seed(0))
    assert ids.dtype == torch.int32 and ids.shape == (2, 4) and weights.shape == (2, 2, 4)
    assert ids[0, 2:].tolist() == [9, 9] and set(ids[1].tolist()) <= {3, 4, 5}
    assert mask.tolist() == [[1, 1, 0, 0], [1, 1, 1, 1]]
    assert weights[0, :, 2:].abs().sum() == 0


def test_a_length_file_holds_integers_or_json_lines(tmp_path):
    file = tmp_path / "lengths"
    file.write_text('12\n\n{"text": "x", "tokens": 7}\n', encoding="utf-8")
    assert read_lengths(file) == [12, 7]
    assert set(draw([12, 700], 50, 64, torch.Generator().manual_seed(0))) == {12, 64}


@pytest.mark.parametrize("content", ["x\n", "0\n", "-3\n", "1.5\n", "true\n", '{"text": "x"}\n', "", "null\n"])
def test_a_bad_length_file_is_named(tmp_path, content):
    file = tmp_path / "lengths"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(LengthFileError, match=str(file)):
        read_lengths(file)
