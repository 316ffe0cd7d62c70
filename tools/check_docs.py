#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Docs that a script can hold: links resolve, every room has a short README and a line in the map, and
docs/metrics.md names exactly what the code's table names (docs/config.md: config_docs_test.cc)."""

import re
import sys
from pathlib import Path

from check_layers import parse_rooms
from source_tree import ROOT, files, report

LINK = re.compile(r"(?<!!)\[[^\]\n]*\]\(([^)\s]+)\)")
README_LINES = 40
METRIC = re.compile(r"\b(?:tonnage|nv)_[a-z0-9_]+\b")


def anchors(text):
    """GitHub's anchor of every heading."""
    for heading in re.findall(r"^#+\s+(.*)$", text, re.M):
        plain = re.sub(r"[`*]|\[|\]\([^)]*\)", "", heading).strip().lower()
        yield re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")


def check_links(root, path):
    text = Path(root, path).read_text()
    prose = re.sub(r"```.*?```", lambda m: "\n" * m.group(0).count("\n"), text, flags=re.S)
    for match in LINK.finditer(prose):
        target = match.group(1)
        if re.match(r"[a-z]+:", target):
            continue
        line = prose.count("\n", 0, match.start()) + 1
        name, _, anchor = target.partition("#")
        file = (Path(root, path).parent / name).resolve() if name else Path(root, path)
        if not file.exists():
            yield f"{path}:{line}: link to {target} leads nowhere"
        elif anchor and file.suffix == ".md" and anchor not in set(anchors(file.read_text())):
            yield f"{path}:{line}: {name or path} has no heading #{anchor}"


def check_rooms(root):
    rooms, _ = parse_rooms(Path(root, "src/CMakeLists.txt").read_text())
    map_file = Path(root, "docs/rooms.md")
    map_text = map_file.read_text() if map_file.exists() else ""
    for room in rooms:
        readme = Path(root, "src", room, "README.md")
        if not readme.exists():
            yield f"src/{room}: no README.md"
        elif readme.read_text().count("\n") > README_LINES:
            yield f"src/{room}/README.md: more than {README_LINES} lines"
        if f"`{room}`" not in map_text:
            yield f"docs/rooms.md: does not name `{room}`"


def check_same(doc, doc_names, code, code_names):
    """Both tables name the same things."""
    for name in sorted(code_names - doc_names):
        yield f"{doc}: does not name `{name}` ({code} does)"
    for name in sorted(doc_names - code_names):
        yield f"{doc}: names `{name}`, which {code} does not"


def check_metrics(root):
    doc, code = Path(root, "docs/metrics.md"), Path(root, "src/telemetry/metric_names.h")
    if not code.exists():
        return
    if not doc.exists():
        yield "docs/metrics.md is missing"
        return
    in_code = set(re.findall(r'"((?:tonnage|nv)_[a-z0-9_]+)"', code.read_text()))
    in_doc = set(METRIC.findall("\n".join(re.findall(r"^\|.*", doc.read_text(), re.M))))
    yield from check_same("docs/metrics.md", in_doc, "src/telemetry/metric_names.h", in_code)


def check(root=ROOT):
    pages = list(files(root, (".md",)))
    problems = [problem for page in pages for problem in check_links(root, page)]
    problems += [*check_rooms(root), *check_metrics(root)]
    return problems, f"{len(pages)} pages"


def main():
    problems, summary = check()
    return report("docs", problems, summary)


if __name__ == "__main__":
    sys.exit(main())
