# SPDX-License-Identifier: Apache-2.0
import pytest

from tree import make_tree

import check_layers

CMAKE = """
tonnage_room(base   VENDOR fmt)
tonnage_room(lane   USES base)   # a comment (with parentheses)
tonnage_room(http   USES base lane VENDOR fmt boost)
"""


def problems_of(tmp_path, contents, cmake=CMAKE):
    return check_layers.check(make_tree(tmp_path, {"src/CMakeLists.txt": cmake, **contents}))[0]


@pytest.mark.parametrize(
    "path, include",
    [
        ("src/http/a.cc", '#include "lane/lane.h"'),
        ("src/http/a.cc", "#include <boost/asio.hpp>"),
        ("src/http/detail/a.cc", '#include "http/detail/b.h"'),
        ("src/base/a.cc", "#include <sys/socket.h>\n#include <vector>"),
        ("src/lane/a_test.cc", '#include <gtest/gtest.h>\n#include "testkit/manual_loop.h"'),
        ("workers/stub/main.cc", '#include "kit/session.h"\n#include "wire/channel.h"'),
    ],
)
def test_takes_what_a_room_names(tmp_path, path, include):
    assert problems_of(tmp_path, {path: include}) == []


@pytest.mark.parametrize(
    "path, include, said",
    [
        ("src/lane/a.cc", '#include "http/server.h"', "does not name http"),
        ("src/http/a.cc", '#include "lane/detail/b.h"', "inside another room"),
        ("src/lane/a.cc", '#include "lane.h"', "no room path"),
        ("src/lane/a.cc", "#include <boost/asio.hpp>", "not declared as VENDOR"),
        ("src/lane/a.cc", "#include <fmt/format.h>", "not declared as VENDOR"),
        ("src/lane/a.cc", "#include <gtest/gtest.h>", "not declared as VENDOR"),
        ("src/attic/a.cc", "", "not a room"),
        ("workers/stub/main.cc", '#include "lane/lane.h"', "does not name lane"),
        ("workers/kit/a.cc", "#include <torch/script.h>", "not declared as VENDOR"),
        ("src/http/a.cc", '#include "../lane/lane.h"', "climbs"),
    ],
)
def test_refuses_what_it_does_not_name(tmp_path, path, include, said):
    assert any(said in problem for problem in problems_of(tmp_path, {path: include}))


def test_refuses_a_room_that_uses_one_listed_below_it(tmp_path):
    assert "not listed above" in problems_of(tmp_path, {}, "tonnage_room(a USES b)\ntonnage_room(b)")[0]


def test_counts_the_files_that_include_a_heavy_header(tmp_path):
    two = {f"apps/tonnage/{n}.cc": "#include <CLI/CLI.hpp>" for n in "ab"}
    assert "costs minutes" in problems_of(tmp_path, two)[0]


def test_names_the_line(tmp_path):
    assert "src/lane/a.cc:3:" in problems_of(tmp_path, {"src/lane/a.cc": '\n\n#include "http/a.h"\n'})[0]
