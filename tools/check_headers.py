#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every header compiles alone. A verdict is kept beside the compiler cache, by the hash of what was read."""

import concurrent.futures
import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path

from source_tree import ROOT, files, report

FLAGS = ["-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Wno-pragma-once-outside-header", "-Werror", "-x", "c++"]
INCLUDE_DIRS = ["src", "workers", "apps/tonnage", "tests", "."]
QUOTED = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)


def torch_includes(root):
    found = sorted(Path(root, "build/venv/lib").glob("python3*/site-packages/torch/include"))
    return [str(found[0]), str(found[0] / "torch/csrc/api/include")] if found else []


def verdicts(root, name):
    """Folder of verdicts that hold as long as their key does; it travels with the compiler cache."""
    folder = Path(os.environ.get("CCACHE_DIR") or Path(root, "build/ccache")) / "verdicts" / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def resolve(root, header):
    for directory in INCLUDE_DIRS:
        path = Path(root, directory, header)
        if path.is_file():
            return path
    return None


def closure_hash(root, header):
    """Hash of the flags, of the header and of every header of ours that it reaches."""
    digest = hashlib.sha256(" ".join(FLAGS).encode())
    seen, todo = set(), [Path(root, header)]
    while todo:
        path = todo.pop()
        if path in seen:
            continue
        seen.add(path)
        text = path.read_text()
        digest.update(f"{path.relative_to(root)}\0{text}\0".encode())
        todo += sorted(p for p in (resolve(root, name) for name in QUOTED.findall(text)) if p)
    return digest.hexdigest()


def compile_alone(root, header, extra):
    """The compiler's first complaint, or None."""
    command = [os.environ.get("CXX", "g++"), *FLAGS]
    command += [f"-I{Path(root, d)}" for d in INCLUDE_DIRS]
    command += [f"-isystem{d}" for d in extra]
    # Included from a file of its own: a header as main file would warn about #pragma once.
    program = f'#include "{Path(root, header)}"\n'
    result = subprocess.run([*command, "-"], input=program, capture_output=True, text=True, cwd=root)
    if result.returncode == 0:
        return None
    complaint = [line for line in result.stderr.splitlines() if "error" in line] or result.stderr.splitlines()
    return f"{header} does not compile alone: {complaint[0] if complaint else 'no message'}"


def check(root=ROOT, jobs=2):
    root = Path(root)
    cache = verdicts(root, "headers")
    extra = torch_includes(root)
    headers = list(files(root, (".h",), under=("src", "workers", "apps", "tests", "bench")))
    skipped = [h for h in headers if h.startswith("workers/torch/") and not extra]
    fresh = {h: closure_hash(root, h) for h in headers if h not in skipped}
    todo = [h for h, key in fresh.items() if not (cache / key).exists()]
    problems = []
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for done, (header, problem) in enumerate(
            zip(todo, pool.map(lambda h: compile_alone(root, h, extra), todo)), 1
        ):
            if problem:
                problems.append(problem)
            else:
                (cache / fresh[header]).touch()
            if done % 25 == 0:
                print(f"headers: {done} of {len(todo)} compiled", flush=True)
    note = f", {len(skipped)} skipped: no torch in build/venv" if skipped else ""
    return problems, f"{len(headers)} headers, {len(todo)} compiled{note}"


def main():
    problems, summary = check()
    return report("headers", problems, summary)


if __name__ == "__main__":
    sys.exit(main())
