# SPDX-License-Identifier: Apache-2.0
import json

import pytest

import demo
import demo_labels


def test_shows_some_answered_reviews_of_every_class_once(tmp_path):
    saved = tmp_path / "saved.jsonl"
    rows = [
        {"class": "short", "tokens": 9, "status": 200, "text": 0, "scores": [0.2, 0.8]},
        {"class": "short", "tokens": 9, "status": 200, "text": 0, "scores": [0.2, 0.8]},
        {"class": "long", "tokens": 700, "status": 200, "text": 1, "scores": [0.9, 0.1]},
        {"class": "short", "tokens": 8, "status": 503, "text": 2},
    ]
    saved.write_text("\n".join(map(json.dumps, rows)) + "\n")
    texts = [{"text": "good"}, {"text": "bad and long"}, {"text": "never seen"}]
    assert demo.labelled_samples(saved, texts, ["negative", "positive"]) == [
        ("positive", 0.8, 9, "good"),
        ("negative", 0.9, 700, "bad and long"),
    ]


def test_long_texts_come_from_movie_reviews_and_short_ones_do_not(tmp_path):
    for name, tokens in (("snippets", [5]), ("reviews", [600]), ("movies", [100, 900])):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps({"text": name, "tokens": t}) + "\n" for t in tokens))
    texts = demo.collect_texts(tmp_path, tmp_path / "out.jsonl")
    assert [(t["text"], t["tokens"]) for t in texts] == [("snippets", 5), ("reviews", 600), ("movies", 900)]
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 3


def test_the_summary_holds_the_keys_that_scripts_read():
    load = {"answered": 2000, "refused": 0, "refused_by": {}, "truncated_rows": 9, "distinct_lengths": 300,
            "offered_rate": 30.0, "latency_ms": {"all": {"p50": 80, "p99": 400}}}
    model = {"name": "reviews", "fifo_would_need_bytes": 7, "real_tokens": 90, "padded_tokens": 100, "rows": 30,
             "batches": 10, "peak_error_median": 0.0, "peak_error_worst": 0.001, "worker_deaths": 0}
    result = demo.summarize(load, {"budget_bytes": 6, "models": [model]}, {"highest_use_bytes": 5, "cpu_share": 0.01}, 43)
    assert {"answered", "refused", "budget_bytes", "highest_use_bytes", "fifo_would_need_bytes", "padding_waste",
            "peak_error_median", "worker_deaths"} <= set(result)
    assert result["padding_waste"] == 0.1 and result["rows_per_batch"] == 3


def test_labels_are_compared_by_text_with_those_of_the_reference(tmp_path):
    def saved(name, scores):
        rows = [{"status": 200, "text": text, "scores": pair} for text, pair in scores.items()]
        (tmp_path / name).write_text("\n".join(map(json.dumps, [*rows, {"status": 503, "text": 9}])) + "\n")
        return tmp_path / name

    labels = demo_labels.Labels(tmp_path, tmp_path, (3, 2000))
    assert not labels.are_known()
    labels.keep(saved("reference", {1: [0.2, 0.8], 2: [0.9, 0.1], 3: [0.9, 0.1]}))
    again = demo_labels.Labels(tmp_path, tmp_path, (3, 2000))
    assert again.compare(saved("other", {1: [0.3, 0.7], 2: [0.4, 0.6], 8: [1.0, 0.0]})) == (1, 2)
    assert not demo_labels.Labels(tmp_path, tmp_path, (4, 2000)).are_known()


GOOD = {"highest_use_bytes": 5, "budget_bytes": 6, "worker_deaths": 0, "precision": "fp32", "labels_equal": 200,
        "labels_compared": 200}


def test_a_good_run_has_nothing_wrong():
    assert demo.judge_run(GOOD) == []
    assert demo.judge_run({**GOOD, "precision": "bf16", "labels_equal": 197}) == []


@pytest.mark.parametrize("changes, expected", [
    ({"labels_equal": 199}, "1 of 200 labels are not those of trace in fp32; in fp32 none may differ"),
    ({"labels_equal": 195, "precision": "bf16"}, "5 of 200 labels are not those of trace in fp32; in bf16 2% may differ"),
    ({"labels_equal": 0, "labels_compared": 0}, "no label could be compared"),
    ({"highest_use_bytes": 7}, "ABOVE the budget"),
    ({"worker_deaths": 2}, "2 workers DIED"),
])
def test_what_must_not_be_fails_the_demo_and_is_said(changes, expected):
    wrong = demo.judge_run({**GOOD, **changes})
    assert len(wrong) == 1 and expected in wrong[0]
