#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every C++ file is as clang-format 14 leaves it; `./dev fmt` makes it so."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from source_tree import CPP, ROOT, files, report

FORMATTER = os.environ.get("TONNAGE_CLANG_FORMAT", "clang-format-14")


def misformatted(paths, root=ROOT):
    result = subprocess.run([FORMATTER, "--dry-run", "-Werror", "-ferror-limit=1", *paths], cwd=root,
                            capture_output=True, text=True)
    seen = [line.split(":")[0] for line in result.stderr.splitlines() if "clang-format-violations" in line]
    if result.returncode and not seen:
        return [result.stderr.strip()]
    return [f"{path} is not formatted: ./dev fmt --all" for path in dict.fromkeys(seen)]


def check(root=ROOT, jobs=2):
    paths = list(files(root, CPP))
    chunks = [paths[i : i + 20] for i in range(0, len(paths), 20)]
    with ThreadPoolExecutor(jobs) as pool:
        problems = [p for found in pool.map(lambda chunk: misformatted(chunk, root), chunks) for p in found]
    return problems, f"{len(paths)} files"


def main():
    return report("format", *check())


if __name__ == "__main__":
    sys.exit(main())
