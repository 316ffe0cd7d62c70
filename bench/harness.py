# SPDX-License-Identifier: Apache-2.0
"""Rounds that can be believed: cases interleaved, foreign CPU watched, medians of what is left.

Foreign CPU is what ran outside this bench's process tree (server, generator and bench are all below it), plus
what the hypervisor took, as a share of all CPUs. A round above the limit is void: printed and repeated.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tools")]

from tonnage.serving import process_tree  # noqa: E402

FOREIGN_LIMIT = 0.05
TICKS = os.sysconf("SC_CLK_TCK")


def say(text):
    print(text, file=sys.stderr, flush=True)


def show(text):
    """A line of a program that is a bench; nothing under --json."""
    print(text, flush=True)


def parse_cpu_line(line):
    """(busy, stolen) ticks of the first line of /proc/stat. Interrupts belong to nobody and are left out."""
    user, nice, system, _idle, _iowait, _irq, _softirq, steal = map(int, line.split()[1:9])
    return user + nice + system, steal


def parse_process_ticks(stat):
    """Ticks of one process and of its reaped children from /proc/PID/stat."""
    fields = stat.rpartition(")")[2].split()
    return sum(map(int, fields[11:15]))


def machine_ticks():
    with open("/proc/stat", encoding="ascii") as file:
        return parse_cpu_line(file.readline())


def own_ticks():
    total = 0
    for pid in process_tree(os.getpid()):
        try:
            total += parse_process_ticks(Path(f"/proc/{pid}/stat").read_text(errors="replace"))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return total


@dataclass
class ForeignWatch:
    """Measures the share of foreign CPU between two looks."""

    began: float = field(default_factory=time.monotonic)
    machine: tuple = field(default_factory=machine_ticks)
    own: int = field(default_factory=own_ticks)

    def shares(self):
        """(other processes, stolen by the hypervisor), each of all CPUs."""
        busy, steal = machine_ticks()
        own = own_ticks()
        elapsed = max(time.monotonic() - self.began, 1e-3)
        foreign = max(0, (busy - self.machine[0]) - (own - self.own))
        return tuple(ticks / TICKS / (elapsed * os.cpu_count()) for ticks in (foreign, steal - self.machine[1]))


@dataclass
class Rounds:
    """What the good rounds measured, by case, and how many were void."""

    values: dict
    void: int = 0
    noisy: bool = False  # void rounds were counted because the caller allowed it

    def median(self, case, key):
        return statistics.median(v[key] for v in self.values[case])

    def median_of(self, compute):
        """Median over rounds of compute(round), where a round maps cases to their values."""
        count = min(len(v) for v in self.values.values())
        return statistics.median(compute({c: v[i] for c, v in self.values.items()}) for i in range(count))


def run_rounds(cases, rounds=5, max_void=10, noisy=False, limit=FOREIGN_LIMIT):
    """Runs every case once per round, in turn. `cases`: name → function that returns a dict of numbers."""
    result = Rounds({name: [] for name in cases}, noisy=noisy)
    done = 0
    while done < rounds:
        watch, measured = ForeignWatch(), {}
        for name, measure in cases.items():
            measured[name] = measure()
        foreign, steal = watch.shares()
        seen = f"foreign CPU {foreign:.1%}, stolen {steal:.1%}"
        if foreign + steal > limit:
            result.void += 1
            say(f"round void: {seen} (limit {limit:.0%}): {_brief(measured)}")
            if not noisy and result.void > max_void:
                raise SystemExit(f"{result.void} rounds were void: this machine is too busy to measure on "
                                 "(--noisy counts void rounds and says so in the result)")
            if not noisy:
                continue
        done += 1
        say(f"round {done} of {rounds}: {seen}: {_brief(measured)}")
        for name, value in measured.items():
            result.values[name].append(value)
    return result


def _brief(measured):
    return "; ".join(
        f"{name} " + " ".join(f"{k}={v:.4g}" for k, v in value.items() if isinstance(v, (int, float)))
        for name, value in measured.items()
    )


def commit():
    def git(*words):
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True).stdout.strip()

    changed = "-dirty" if git("status", "--porcelain", "--untracked-files=no") else ""
    return (git("rev-parse", "--short=12", "HEAD") or "unknown") + changed


def cpu():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return f"{line.partition(':')[2].strip()} × {os.cpu_count()}"
    return f"unknown × {os.cpu_count()}"


def emit(name, keys, rounds=None):
    """The last line of every bench."""
    result = {"name": name, **keys, "commit": commit(), "cpu": cpu()}
    if rounds is not None:
        result["void_rounds"] = rounds.void
        if rounds.noisy:
            result["noisy"] = True
    print(json.dumps(result, ensure_ascii=False), flush=True)


def call(*command, timeout=900, env=None):
    """Runs a program and returns the JSON of its last line."""
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, text=True, timeout=timeout,
                          env=env, check=False)
    if done.returncode != 0 or not done.stdout.strip():
        raise SystemExit(f"{Path(str(command[0])).name} failed with {done.returncode}")
    return parse_last(done.stdout)


def parse_last(text):
    """The JSON object of the last line."""
    return json.loads(text.strip().splitlines()[-1])


def run_program(command, name):
    """A program that is a bench: its last line gets name, commit and cpu where it lacks them."""
    with subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, text=True) as process:
        last = ""
        for line in process.stdout:
            if last:
                show(last)
            last = line.rstrip("\n")
        status = process.wait()
    if status != 0 or not last.startswith("{"):
        print(last)
        return status or 1
    emit(name, {key: value for key, value in json.loads(last).items() if key != "name"})
    return 0
