# SPDX-License-Identifier: Apache-2.0
"""Texts, the split and the head, on data made here; the real packages are not needed."""

import io
import json
import tarfile
import zipfile

import pytest
import torch

from tonnage import head, routes, setup_models, sources, texts

SNIPPETS = [("1_1", -0.9, "no picture"), ("1_2", 0.4, "works now"), ("2_1", 0.0, "a box"), ("10_1", 2.5, "great"),
            ("2_2", -1.0, "bad")]


class FakeTokenizer:
    def encode(self, all_texts):
        return [[2, *[7] * len(text.split()), 3] for text in all_texts]


def archive_with(path, name, content):
    inner = io.BytesIO()
    with tarfile.open(fileobj=inner, mode="w:gz") as tar:
        info = tarfile.TarInfo(f"hutto_ICWSM_2014/{name}_GroundTruth.txt")
        info.size = len(content)
        tar.addfile(info, io.BytesIO(content))
    with zipfile.ZipFile(path, "w") as outer:
        outer.writestr(f"vaderSentiment-0.5/{sources.VADER_DATA}", inner.getvalue())
    return path


DEFAULT = routes.Wanted()


def all_current(out, wanted=DEFAULT):
    for part in setup_models.PARTS:
        (out / part).mkdir(exist_ok=True)
        setup_models.finish(out, part, wanted)


def test_the_source_archive_is_read_with_its_line_ends_and_accents(tmp_path):
    archive = archive_with(tmp_path / "v.zip", "tweets", "1_1\t-0.9\tno picture\r\n1_2\t2.25\tcafé\r\n".encode())
    assert sources.read_vader(archive, "tweets") == [("1_1", -0.9, "no picture"), ("1_2", 2.25, "café")]


def test_an_archive_without_the_file_is_named(tmp_path):
    archive = archive_with(tmp_path / "v.zip", "tweets", b"")
    with pytest.raises(sources.SourceError, match="amazonReviewSnippets"):
        sources.read_vader(archive, "amazonReviewSnippets")


def test_snippets_are_joined_by_review_in_order():
    assert texts.whole_reviews(SNIPPETS) == ["no picture works now", "a box bad", "great"]


def test_text_lines_hold_text_and_tokens(tmp_path):
    texts.write_jsonl(tmp_path / "t.jsonl", ['say "hé"\n', "one"], FakeTokenizer())
    lines = (tmp_path / "t.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in lines] == [{"text": 'say "hé"\n', "tokens": 4}, {"text": "one", "tokens": 3}]


def test_a_corpus_ends_each_text_with_nul_and_refuses_one_inside(tmp_path):
    texts.write_nul(tmp_path / "c.nul", ["a\nb", ""])
    assert (tmp_path / "c.nul").read_bytes() == b"a\nb\0\0"
    with pytest.raises(sources.SourceError, match="NUL"):
        texts.write_nul(tmp_path / "c.nul", ["a\0b"])


def test_the_label_is_the_ratings_sign_and_zero_has_none():
    rated = head.rated_snippets(SNIPPETS)
    assert [(r.review, r.label) for r in rated] == [("1", 0), ("1", 1), ("10", 1), ("2", 0)]


def test_no_review_is_on_both_sides_of_the_split():
    rated = [head.Rated(str(i % 50), f"text {i}", i % 2) for i in range(500)]
    training, held_out = head.split_by_review(rated)
    assert len(training) + len(held_out) == 500 and len(held_out) == 100
    assert not {r.review for r in training} & {r.review for r in held_out}
    assert head.split_by_review(list(reversed(rated)))[1][::-1] == held_out  # the file's order does not matter


def test_the_head_learns_what_can_be_separated():
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(0, 2, (400,), generator=generator)
    features = torch.randn(400, 8, generator=generator) + 2.0 * labels[:, None]
    fitted = head.fit(features, labels)
    assert float((fitted(features).argmax(1) == labels).float().mean()) > 0.95
    assert not any(p.requires_grad for p in fitted.parameters())


def test_setup_does_nothing_when_every_recipe_is_current(tmp_path, monkeypatch, capsys):
    all_current(tmp_path)
    monkeypatch.setattr(sources, "install_packages", lambda say: pytest.fail("nothing was stale"))
    assert setup_models.main(["--out", str(tmp_path)]) == 0
    assert "up to date" in capsys.readouterr().out


def test_setup_makes_only_what_is_stale_and_stamps_it_last(tmp_path, monkeypatch):
    all_current(tmp_path)
    (tmp_path / "reviews" / ".recipe").write_text("old\n", encoding="ascii")
    made = []
    monkeypatch.setattr(sources, "install_packages", lambda say: None)
    monkeypatch.setattr(sources, "fetch_vader", lambda folder, say: folder / "v.zip")
    monkeypatch.setattr(setup_models, "export", lambda out, factory, *rest: made.append(factory))
    assert setup_models.main(["--out", str(tmp_path)]) == 0
    assert made == ["tonnage.zoo:reviews"]
    assert setup_models.is_current(tmp_path, "reviews", DEFAULT)


def test_routes_beyond_those_wanted_do_not_make_a_part_stale_but_missing_ones_do(tmp_path):
    both = routes.Wanted(("trace", "script"), ("fp32", "bf16"))
    all_current(tmp_path, both)
    assert setup_models.is_current(tmp_path, "reviews", DEFAULT)
    all_current(tmp_path, DEFAULT)
    assert not setup_models.is_current(tmp_path, "reviews", both)
    assert setup_models.is_current(tmp_path, "texts", both)


def test_a_route_that_there_is_not_is_explained(tmp_path, capsys):
    assert setup_models.main(["--out", str(tmp_path), "--routes", "tensorflow"]) == 1
    assert "route 'tensorflow'; allowed: trace, script" in capsys.readouterr().err


def test_a_failed_part_stays_stale_and_fails_the_setup(tmp_path, monkeypatch, capsys):
    def fail(*_):
        raise sources.SourceError("no network")

    monkeypatch.setattr(sources, "install_packages", fail)
    assert setup_models.main(["--out", str(tmp_path)]) == 1
    assert "no network" in capsys.readouterr().err
    assert not any(setup_models.is_current(tmp_path, part, DEFAULT) for part in setup_models.PARTS)
