# SPDX-License-Identifier: Apache-2.0
import pytest

from tree import make_tree

import check_headers


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("CCACHE_DIR", str(tmp_path_factory.mktemp("ccache")))


TREE = {
    ".gitignore": "/build/\n",
    "src/base/a.h": "#pragma once\n#include <vector>\nusing A = std::vector<int>;\n",
    "src/lane/b.h": '#pragma once\n#include "base/a.h"\ninline A empty() { return {}; }\n',
}


def test_a_header_that_leans_on_its_includer_is_named(tmp_path):
    tree = make_tree(tmp_path, TREE | {"src/lane/c.h": "#pragma once\nstd::string f();\n"})
    problems, _ = check_headers.check(tree)
    assert len(problems) == 1 and "src/lane/c.h" in problems[0]


def test_the_second_run_compiles_nothing(tmp_path):
    tree = make_tree(tmp_path, TREE)
    assert check_headers.check(tree) == ([], "2 headers, 2 compiled")
    assert check_headers.check(tree) == ([], "2 headers, 0 compiled")


def test_a_change_is_felt_by_every_header_above_it(tmp_path):
    tree = make_tree(tmp_path, TREE)
    check_headers.check(tree)
    (tree / "src/base/a.h").write_text("#pragma once\n#include <list>\nusing A = std::list<int>;\n")
    assert check_headers.check(tree) == ([], "2 headers, 2 compiled")


def test_a_failure_is_not_remembered_as_a_success(tmp_path):
    tree = make_tree(tmp_path, TREE | {"src/lane/c.h": "#pragma once\nstd::string f();\n"})
    check_headers.check(tree)
    problems, _ = check_headers.check(tree)
    assert len(problems) == 1
