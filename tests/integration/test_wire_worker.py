# SPDX-License-Identifier: Apache-2.0
"""What a worker in another language costs: wire_worker.py, which wire_suite_test runs, stays short and alone."""

import ast
import sys
from pathlib import Path

WORKER = Path(__file__).with_name("wire_worker.py")
MOST_LINES, MOST_COLUMNS = 140, 120


def test_a_worker_is_written_from_the_page_in_at_most_140_lines():
    lines = WORKER.read_text(encoding="utf-8").splitlines()
    assert 0 < len(lines) <= MOST_LINES
    assert max(map(len, lines)) <= MOST_COLUMNS
    assert not [line for line in lines if ";" in line]  # shorter, not denser


def test_it_needs_nothing_but_the_standard_library():
    tree = ast.parse(WORKER.read_text(encoding="utf-8"))
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert names and names <= sys.stdlib_module_names
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
