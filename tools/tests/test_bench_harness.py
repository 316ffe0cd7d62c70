# SPDX-License-Identifier: Apache-2.0
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))

import harness  # noqa: E402
import mix  # noqa: E402


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
