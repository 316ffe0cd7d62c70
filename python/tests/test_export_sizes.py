# SPDX-License-Identifier: Apache-2.0
"""Models whose rows have several free dims, and models that cut long texts into chunks."""

import json
import tomllib

import pytest
import torch

import toy_models
from tonnage import checks, export, parity, row_sizes
from tonnage.description import DescriptionError, Size, Tensor, own_positions

VOCABULARY = "[PAD]\n[UNK]\n[CLS]\n[SEP]\ngood\n"


def seeded():
    return torch.Generator().manual_seed(0)


@pytest.fixture
def vocab(tmp_path):
    file = tmp_path / "words.txt"
    file.write_text(VOCABULARY, encoding="utf-8")
    return file


def test_rows_with_sizes_are_exported_checked_and_described(tmp_path):
    folder = export.export_model(toy_models.picture(), tmp_path / "out", [10])
    toml = tomllib.loads((folder / "model.toml").read_text(encoding="utf-8"))
    assert toml["size"] == [{"name": "height", "max": 40, "meet": "pad", "multiple": 8},
                            {"name": "width", "max": 48, "meet": "pad", "multiple": 16}]
    assert toml["input"][0]["sizes"] == toml["output"][1]["sizes"] == ["height", "width"]
    assert "sizes" not in toml["output"][0] and "max_length" not in toml and "too_long" not in toml
    record = json.loads((folder / "1" / "artefacts.json").read_text())
    shapes = record["artefacts"][0]["checked_shapes"]
    assert [1, 1, 1] in shapes and [1, 40, 48] in shapes and [1, 1, 48] in shapes and [1, 40, 1] in shapes
    assert record["artefacts"][0]["worst_padding_difference"] <= 1e-5
    rows = json.loads((folder / "1" / "held_out.json").read_text())["rows"]
    assert {len(row["inputs"]["image"]) for row in rows} == {3 * row["length"] ** 2 for row in rows}


def test_grouped_sizes_carry_no_multiple_and_meet_in_equal_sizes_only(tmp_path):
    model = toy_models.grouped_pictures()
    folder = export.export_model(model, tmp_path, [10])
    toml = tomllib.loads((folder / "model.toml").read_text(encoding="utf-8"))
    assert toml["size"][0] == {"name": "height", "max": 40, "meet": "group"}
    assert len({tuple(row.values()) for row in row_sizes.mixed(model, [10], seeded())}) == 1
    assert len({tuple(row.values()) for row in row_sizes.mixed(toy_models.picture(), [10], seeded())}) > 1


def test_a_row_that_notices_the_height_of_its_batch_is_found(tmp_path):
    with pytest.raises(parity.ExportFailed, match=r"row of length \d+ × \d+ alone against inside a batch of \["):
        export.export_model(toy_models.picture(toy_models.NoticesItsHeight), tmp_path, [10])


def test_random_rows_with_sizes_obey_pad_and_mask():
    spec = Tensor("x", "FP32", [-1, 2, -1, -1], sizes=["a", "b"], pad=7)
    rows = [{"a": 1, "b": 3}, {"a": 4, "b": 2}]
    assert own_positions(spec, rows).sum((1, 2, 3)).tolist() == [3, 8]
    model = toy_models.picture(inputs=[Tensor("x", "FP32", [-1, 2, -1, -1], sizes=["height", "width"], pad=7),
                                       Tensor("mask", "INT64", [-1, -1, -1], source="mask", sizes=["width", "height"])])
    x, mask = model.make_inputs([{"height": 1, "width": 3}, {"height": 4, "width": 2}], seeded())
    assert x.shape == (2, 2, 4, 3) and mask.shape == (2, 3, 4)
    assert x[0, :, 1:].eq(7).all() and x[1, :, :, 2].eq(7).all() and not x[1, :, :, :2].eq(7).any()
    assert mask.sum((1, 2)).tolist() == [3, 8] and mask[0, :, 0].tolist() == [1, 1, 1]


def test_a_route_that_cannot_bound_sizes_says_so(tmp_path):
    from tonnage import routes

    with pytest.raises(parity.ExportFailed, match="route aoti, fp32: .* has sizes"):
        export.export_model(toy_models.picture(), tmp_path, [10], wanted=routes.Wanted(["aoti"], ["fp32"]))


def test_a_model_that_cuts_texts_says_how_its_chunks_are_pooled(tmp_path, vocab):
    folder = export.export_model(toy_models.chunked(vocab), tmp_path, [10])
    toml = tomllib.loads((folder / "model.toml").read_text(encoding="utf-8"))
    assert {key: toml[key] for key in ("too_long", "chunk_pooling", "chunk_overlap", "max_chunks")} == {
        "too_long": "chunk", "chunk_pooling": "max", "chunk_overlap": 4, "max_chunks": 9}


@pytest.mark.parametrize("changes, expected", [
    ({"tokenizer": None}, "needs a tokenizer"),
    ({"chunk_pooling": "median"}, "mean, max, first"),
    ({"chunk_overlap": 46}, "a chunk of 48 tokens"),
    ({"max_chunks": 0}, "1 to 1024"),
    ({"too_long": "truncate"}, "are for too_long = chunk"),
    ({"outputs": [Tensor("states", "FP32", [-1, -1])]}, "do not follow the length"),
    ({"outputs": [Tensor("class", "INT64", [-1, 1])]}, "in FP32 only"),
])
def test_chunks_that_cannot_be_pooled_are_refused(vocab, changes, expected):
    model = toy_models.chunked(vocab)
    for name, value in changes.items():
        setattr(model, name, value)
    with pytest.raises(DescriptionError, match=expected):
        checks.check_model(model)


@pytest.mark.parametrize("changes, expected", [
    ({"max_length": 9}, "models with one length"),
    ({"too_long": "truncate"}, "models with one length"),
    ({"sizes": [Size("height", 40), Size("height", 48)]}, "names of their own"),
    ({"sizes": [Size(name, 4) for name in "abcd"]}, "allowed: 1 to 3"),
    ({"sizes": [Size("height", 0), Size("width", 48)]}, "the largest row must be known"),
    ({"sizes": [Size("height", 40, meet="cut"), Size("width", 48)]}, "allowed: pad, group"),
    ({"sizes": [Size("height", 40, meet="group", multiple=8), Size("width", 48)]}, "of meet = pad"),
    ({"sizes": [Size("height", 40), Size("width", 48), Size("depth", 4)]}, "'depth' is no dim"),
    ({"sizes": [Size("height", 40)]}, r"need 2 names, of the model's \['height'\]"),
    ({"sizes": ()}, "at most one dim"),
    ({"outputs": [Tensor("heat", "FP32", [-1, -1, -1])]}, "need 2 names"),
])
def test_sizes_that_contradict_each_other_are_refused(changes, expected):
    with pytest.raises(DescriptionError, match=expected):
        checks.check_model(toy_models.picture(**changes))
