# SPDX-License-Identifier: Apache-2.0
from tree import make_tree

import check_format

TREE = {".clang-format": "BasedOnStyle: Google\n", "src/a/good.cc": "int f() { return 1; }\n"}


def test_names_each_file_that_is_not_formatted_once(tmp_path):
    tree = make_tree(tmp_path, TREE | {"src/a/bad.cc": "int  f( ) {return 1;}\nint  g( ) {return 1;}\n"})
    problems, _ = check_format.check(tree)
    assert problems == ["src/a/bad.cc is not formatted: ./dev fmt --all"]


def test_a_formatted_tree_passes(tmp_path):
    assert check_format.check(make_tree(tmp_path, TREE)) == ([], "1 files")


def test_a_formatter_that_cannot_run_is_a_problem(tmp_path):
    tree = make_tree(tmp_path, TREE | {".clang-format": "BasedOnStyle: Nonsense\n"})
    assert check_format.check(tree)[0] != []
