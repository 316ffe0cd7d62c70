# SPDX-License-Identifier: Apache-2.0
import pytest

from tree import make_tree

import check_words

SPDX = "// SPDX-License-Identifier: Apache-2.0\n"


def words_of(path, text):
    return [word for word, _ in check_words.find_words(path, text)]


@pytest.mark.parametrize(
    "code, word",
    [
        ("auto* p = new Foo;", "new"),
        ("delete p;", "delete"),
        ("std::this_thread::sleep_for(x);", "sleep"),
        ("auto t = std::chrono::steady_clock::now();", "clock"),
        ('getenv("HOME")', "getenv"),
        ("throw 1;", "throw"),
        ("std::mutex m;", "mutex"),
        ("std::memcpy(a, b, c);", "memcpy"),
        ("reinterpret_cast<int*>(p)", "reinterpret_cast"),
        ("#ifdef WITH_GPU\n", "ifdef"),
        ("co_spawn(x, y, asio::detached);", "detach"),
        ("std::thread t(f);", "thread"),
        ("class RequestManager {};", "cupboard name"),
    ],
)
def test_finds_each_banned_word(code, word):
    assert words_of("src/lane/a.cc", code) == [word]


@pytest.mark.parametrize(
    "code",
    [
        "// a new thing; throw it\n",
        'log("delete");',
        'R"(new std::mutex)"',
        "Foo(const Foo&) = delete;",
        "#include <new>\n",
        "int renewed = 1'000; bool news;",
        "throw_if_cancelled(false);",
        "std::thread::hardware_concurrency();",
    ],
)
def test_lets_comments_strings_and_longer_words_pass(code):
    assert words_of("src/lane/a.cc", code) == []


def test_words_are_free_where_the_rule_says_so():
    assert words_of("src/base/spans.h", "reinterpret_cast<int*>(p)") == []
    assert words_of("src/tensor/a.cc", "std::memcpy(a, b, c);") == []
    assert words_of("workers/torch/a.cc", "throw 1;\n#ifdef X\n#endif") == []
    assert words_of("src/config/environment.cc", 'getenv("X")') == []


def problems_of(tmp_path, contents):
    return check_words.check(make_tree(tmp_path, contents))[0]


def allow(count, reason="one test needs it"):
    return {"tools/allowed_words.toml": f'[[allow]]\nroom = "src/lane"\nword = "throw"\ncount = {count}\nreason = "{reason}"\n'}


def test_an_entry_may_only_fall(tmp_path):
    twice = {"src/lane/a.cc": SPDX + "void f() { throw 1; throw 2; }\n"}
    assert problems_of(tmp_path, twice | allow(2)) == []
    assert "lower the entry" in problems_of(tmp_path, twice | allow(3))[0]
    assert len(problems_of(tmp_path, twice | allow(1))) == 2


def test_an_entry_needs_a_reason(tmp_path):
    once = {"src/lane/a.cc": SPDX + "void f() { throw 1; }\n"}
    assert "needs a reason" in problems_of(tmp_path, once | allow(1, ""))[0]


@pytest.mark.parametrize(
    "path, text, said",
    [
        ("src/lane/lane_util.h", SPDX, "cupboard name"),
        ("src/lane/common.cc", SPDX, "cupboard name"),
        ("src/lane/LaneThing.cc", SPDX, "snake_case"),
        ("src/lane/a.cc", "int x;\n", "no SPDX"),
        ("src/lane/a.cc", SPDX + "// TODO later\n", "TODO"),
        ("docs/a.md", "see /wo" + "rk/shared/design\n", "workplace"),
        ("tests/integration/test_a.py", "# " + SPDX[3:] + "time.sle" + "ep(1)\n", "sleep"),
    ],
)
def test_refuses_names_todos_and_paths_of_a_workplace(tmp_path, path, text, said):
    assert any(said in problem for problem in problems_of(tmp_path, {path: text}))
