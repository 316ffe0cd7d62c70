#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""All of CI in order, each step by its own ./dev command; ends with one line that sums up.

Later steps run even where an earlier one failed, so that one run tells everything.
"""

import re
import subprocess
import sys
import time

from source_tree import ROOT

# The rooms that read untrusted bytes.
UNTRUSTED = ("tensor", "memory", "wire", "codec", "text")
STEPS = [
    ("check", ["check"]),
    ("test", ["test"]),
    ("asan", ["asan", *UNTRUSTED]),
    ("clang", ["syntax"]),
    ("demo", ["demo", "--requests", "200"]),
]
SUM_LINE = re.compile(r"^\d+ passed, \d+ failed$|\d+ problem\(s\)|^clang syntax: ok.*|^\{.*\"answered\".*")


COUNTS = re.compile(r"^(\d+) passed, (\d+) failed$")


def summary_of(lines, seconds, status):
    """What the closing line says of one step."""
    said = [line for line in lines if SUM_LINE.search(line)]
    text = said[-1] if said else ("ok" if status == 0 else "no summary")
    answered = re.search(r'"answered":\s*(\d+)', text)
    refused = re.search(r'"refused":\s*(\d+)', text)
    if answered:
        text = f"{answered.group(1)} answered, {refused.group(1) if refused else '?'} refused"
    return f"{'' if status == 0 else 'FAILED '}{text} ({seconds:.0f} s)"


def counts_of(lines, status):
    """(passed, failed) of one step: what its tests said, or the step itself as one."""
    said = [COUNTS.match(line) for line in lines if COUNTS.match(line)]
    if not said:
        return (1, 0) if status == 0 else (0, 1)
    passed, failed = int(said[-1].group(1)), int(said[-1].group(2))
    return passed, max(failed, 1) if status != 0 else failed


def run(command):
    lines = []
    with subprocess.Popen(["./dev", *command], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace") as process:
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line.rstrip("\n"))
        return process.wait(), lines


def main():
    started, parts, failed, sums = time.monotonic(), [], 0, (0, 0)
    for name, command in STEPS:
        print(f"ci: ./dev {' '.join(command)}", flush=True)
        began = time.monotonic()
        status, lines = run(command)
        failed += status != 0
        sums = tuple(map(sum, zip(sums, counts_of(lines, status))))
        parts.append(f"{name}: {summary_of(lines, time.monotonic() - began, status)}")
    verdict = "ok" if failed == 0 else f"{failed} of {len(STEPS)} steps FAILED"
    print(f"ci {verdict} in {(time.monotonic() - started) / 60:.1f} min; " + "; ".join(parts))
    print(f"{sums[0]} passed, {sums[1]} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
