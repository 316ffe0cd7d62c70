# SPDX-License-Identifier: Apache-2.0
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))

import harness  # noqa: E402
import longlane  # noqa: E402
import mix  # noqa: E402
import routes  # noqa: E402


class Foreign:
    """Stands in for ForeignWatch: tells the given shares in turn."""

    def __init__(self, shares):
        self.foreign = iter(shares)

    def __call__(self):
        return self

    def shares(self):
        return next(self.foreign), 0.0


def test_a_round_with_foreign_cpu_is_void_and_repeated(monkeypatch, capsys):
    monkeypatch.setattr(harness, "ForeignWatch", Foreign([0.01, 0.2, 0.01]))
    values = iter([1, 99, 3])
    rounds = harness.run_rounds({"a": lambda: {"x": next(values)}}, rounds=2)
    assert rounds.values == {"a": [{"x": 1}, {"x": 3}]}
    assert rounds.void == 1
    assert "void" in capsys.readouterr().err


def test_a_machine_that_is_never_quiet_ends_the_bench(monkeypatch):
    monkeypatch.setattr(harness, "ForeignWatch", Foreign([0.5] * 9))
    with pytest.raises(SystemExit, match="too busy"):
        harness.run_rounds({"a": lambda: {"x": 1}}, rounds=1, max_void=3)


def test_noisy_counts_void_rounds_and_says_so(monkeypatch, capsys):
    monkeypatch.setattr(harness, "ForeignWatch", Foreign([0.5] * 9))
    rounds = harness.run_rounds({"a": lambda: {"x": 1}}, rounds=2, noisy=True)
    harness.emit("n", {"x": rounds.median("a", "x")}, rounds)
    assert '"noisy": true' in capsys.readouterr().out


def test_cases_are_interleaved(monkeypatch):
    monkeypatch.setattr(harness, "ForeignWatch", Foreign([0] * 9))
    order = []
    harness.run_rounds({n: lambda n=n: order.append(n) or {"x": 1} for n in "ab"}, rounds=2)
    assert order == ["a", "b", "a", "b"]


def test_ratios_are_taken_inside_a_round():
    rounds = harness.Rounds({"a": [{"x": 2}, {"x": 9}, {"x": 4}], "b": [{"x": 1}, {"x": 3}, {"x": 4}]})
    assert rounds.median_of(lambda r: r["a"]["x"] / r["b"]["x"]) == 2


@pytest.mark.parametrize("own, steal, foreign_ticks", [(100, 0, 0), (60, 0, 40), (100, 30, 30), (140, 0, 0)])
def test_foreign_is_what_the_machine_did_and_we_did_not(monkeypatch, own, steal, foreign_ticks):
    machine = iter([(1000, 10), (1100, 10 + steal)])
    mine = iter([500, 500 + own])
    clock = iter([50.0, 51.0])
    monkeypatch.setattr(harness, "machine_ticks", lambda: next(machine))
    monkeypatch.setattr(harness, "own_ticks", lambda: next(mine))
    monkeypatch.setattr(harness.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(harness.os, "cpu_count", lambda: 2)
    watch = harness.ForeignWatch(next(clock), harness.machine_ticks(), harness.own_ticks())
    assert sum(watch.shares()) == pytest.approx(foreign_ticks / harness.TICKS / 2)


def test_proc_lines_are_read_as_the_kernel_writes_them():
    assert harness.parse_cpu_line("cpu  10 1 5 100 3 7 7 4 0 0") == (16, 4)
    stat = "12 (a b) c) S 1 12 12 0 -1 4194304 100 0 0 0 11 12 13 14 20 0 1 0 100 0 0"
    assert harness.parse_process_ticks(stat) == 50


def test_a_model_variant_changes_only_what_it_names():
    text = 'route = "trace"\n[[input]]\nname = "x"\n[batching]\nmax_rows = 64\nwindow = 9\n[metadata]\na = "b"\n'
    changed = mix.with_settings(text, batching={"max_rows": 1, "max_queue_s": 600}, workers={"count": 1})
    assert "max_rows = 1\n" in changed and "window = 9" in changed and "max_queue_s = 600" in changed
    assert changed.endswith("[workers]\ncount = 1\n")


def layout(ratio, shorts=1.0, longs=1.0):
    return [{"ratio": ratio, "base_p99_ms": 50.0, "p99_ms": 50.0 * ratio, "shorts_answered": shorts,
             "longs_answered": longs}]


def test_the_best_layout_is_the_best_of_those_that_answered_shorts_and_longs():
    seen = longlane.summarize(harness.Rounds({
        "shared": layout(3.0, longs=0.96), "idle": layout(1.1, longs=0.9), "split": layout(1.0, shorts=0.9)}))
    assert (seen["best_layout"], seen["short_p99_ratio"], seen["base_p99_ms"], seen["longs_answered"]) == (
        "shared", 3.0, 50.0, 0.96)
    assert seen["layouts"]["split"]["shorts_answered"] == 0.9


def test_without_a_layout_that_answered_there_is_no_ratio():
    seen = longlane.summarize(harness.Rounds({"shared": layout(3.0, longs=0.5)}))
    assert (seen["best_layout"], seen["short_p99_ratio"]) == (None, None)


RECORDS = [{"route": route, "precision": precision, "min_cosine": 0.9999, "min_padding_cosine": 0.9995}
           for route, precision in (("trace", "fp32"), ("trace", "bf16"), ("aoti", "bf16"))]
ROUTES = {
    "trace fp32 server": [{"rps": 8, "peak_bytes": 500}, {"rps": 30, "peak_bytes": 700}],
    "trace fp32 offline": [{"rps": 10}, {"rps": 40}],
    "trace bf16 server": [{"rps": 20, "peak_bytes": 400}] * 2, "trace bf16 offline": [{"rps": 25}] * 2,
    "aoti bf16 server": [{"rps": 30, "peak_bytes": 300}] * 2, "aoti bf16 offline": [{"rps": 40}] * 2,
    "fifo": [{"rps": 2, "peak_bytes": 900}, {"rps": 6, "peak_bytes": 900}],
}


def test_each_route_is_told_with_its_share_of_the_engine_alone():
    seen = routes.summarize(RECORDS, harness.Rounds(ROUTES), True)
    assert seen["routes"]["trace fp32"] == {"offline_rps": 25, "server_rps": 19, "oracle": 0.775, "peak_bytes": 600,
                                            "min_cosine": 0.9995}
    assert (seen["best_bf16"], seen["best_bf16_over_fifo"]) == ("aoti bf16", 10.0)


@pytest.mark.parametrize("records, with_amx, why", [(RECORDS, False, "no AMX"), (RECORDS[:1], True, "exported in bf16")])
def test_a_comparison_that_cannot_be_made_is_null_and_said(capsys, records, with_amx, why):
    assert routes.summarize(records, harness.Rounds(ROUTES), with_amx)["best_bf16_over_fifo"] is None
    assert why in capsys.readouterr().err


def test_a_program_under_json_prints_its_last_line_alone(monkeypatch, capsys):
    program = [sys.executable, "-c", "print('progress'); print('{\"x\": 1}')"]
    assert harness.run_program(program, "n") == 0
    assert capsys.readouterr().out.startswith("progress\n{")
    monkeypatch.setattr(harness, "show", lambda text: None)
    assert harness.run_program(program, "n") == 0
    assert capsys.readouterr().out.startswith("{")
