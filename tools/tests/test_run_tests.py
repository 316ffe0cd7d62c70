# SPDX-License-Identifier: Apache-2.0
import ci
import clang_syntax
import run_tests


def junit(tmp_path, cases):
    path = tmp_path / "junit.xml"
    path.write_text(f"<testsuites><testsuite>{cases}</testsuite></testsuites>")
    return path


def test_counts_passed_failed_and_skipped_apart(tmp_path):
    tally = run_tests.read_junit(junit(tmp_path, """
        <testcase name="A.One" classname="A.One" status="run"/>
        <testcase name="two" classname="test_b"><failure message="no"/></testcase>
        <testcase name="three" classname="test_b"><error message="no"/></testcase>
        <testcase name="four" classname="test_b"><skipped message="no GPU here"/></testcase>"""))
    assert tally.passed == 1
    assert tally.failed == ["test_b.two", "test_b.three"]
    assert tally.skipped == ["test_b.four: no GPU here"]


def test_a_runner_that_dies_without_a_word_is_a_failure(tmp_path):
    assert run_tests.counted("ctest", tmp_path / "none.xml", 8).failed == ["ctest ended with exit code 8"]
    assert run_tests.counted("ctest", tmp_path / "none.xml", 0).failed == ["ctest found no tests"]


def test_the_closing_line_of_ci_repeats_the_sums():
    assert ci.summary_of(["x", "12 passed, 0 failed"], 3.2, 0) == "12 passed, 0 failed (3 s)"
    assert ci.summary_of(['{"answered": 200, "refused": 0}'], 1, 0) == "200 answered, 0 refused (1 s)"
    assert ci.summary_of([], 1, 1) == "FAILED no summary (1 s)"


def test_clang_reads_a_file_with_the_flags_of_its_build():
    entry = {"command": "/usr/bin/ccache /usr/bin/c++ -DX -Isrc -Wall -std=c++20 -MD -MF a.d -o a.o -c a.cc"}
    command = clang_syntax.clang_command(entry)
    assert command[1:4] == ["-fsyntax-only", "-Werror", "-Wno-unknown-warning-option"]
    assert command[4:] == ["-DX", "-Isrc", "-Wall", "-std=c++20", "a.cc", "-U_FORTIFY_SOURCE"]
