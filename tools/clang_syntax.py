#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A second opinion: clang-14 reads every file that g++ builds, with the same warnings as errors.

A verdict is kept by the hash of the command and of all our headers that the file reaches.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

from check_headers import closure_hash, verdicts
from source_tree import ROOT, report

CLANG = os.environ.get("TONNAGE_CLANG", "clang++-14")
HEAVY = "workers/torch/"  # torch headers bring warnings of their own and 20 s a file
DROPPED_WITH_ARGUMENT = {"-o", "-MF", "-MT", "-MQ"}


def clang_command(entry):
    """The compile command of one entry, as clang's syntax check."""
    words = shlex.split(entry["command"])
    while words and not words[0].rpartition("/")[2].startswith(("g++", "c++", "clang++")):
        words.pop(0)
    kept, skip = [], True  # the compiler itself is replaced
    for word in words:
        if skip:
            skip = False
        elif word in DROPPED_WITH_ARGUMENT:
            skip = True
        elif word not in ("-c", "-MD", "-MMD"):
            kept.append(word)
    # Without -O, so fortify would only warn that it needs optimisation.
    return [CLANG, "-fsyntax-only", "-Werror", "-Wno-unknown-warning-option", *kept, "-U_FORTIFY_SOURCE"]


def judge(entry):
    result = subprocess.run(clang_command(entry), capture_output=True, text=True, cwd=entry["directory"])
    return result.stderr.strip() if result.returncode else None


def key_of(entry, root):
    command = " ".join(clang_command(entry))
    path = Path(entry["file"]).relative_to(root)
    return hashlib.sha256((command + closure_hash(root, path)).encode()).hexdigest()


def check(build, jobs, root=ROOT):
    database = json.loads((Path(build) / "compile_commands.json").read_text())
    entries = {e["file"]: e for e in database if Path(e["file"]).is_relative_to(root)}
    entries = {f: e for f, e in entries.items() if "/build/" not in f and HEAVY not in f}
    store = verdicts(root, "syntax")
    todo = [(e, store / key_of(e, root)) for e in entries.values()]
    todo = [(e, mark) for e, mark in todo if not mark.exists()]
    problems, last = [], time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for done, ((entry, mark), problem) in enumerate(zip(todo, pool.map(lambda t: judge(t[0]), todo)), 1):
            if problem:
                problems.append(problem)
            else:
                mark.touch()
            if time.monotonic() - last > 5:
                print(f"  … clang syntax: {done} of {len(todo)} files", flush=True)
                last = time.monotonic()
    return problems, f"{len(entries)} files, {len(todo)} read by {CLANG}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, default=ROOT / "build/dev")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    return report("clang syntax", *check(options.build, options.jobs))


if __name__ == "__main__":
    sys.exit(main())
