# SPDX-License-Identifier: Apache-2.0
"""`tonnage compare` and `tonnage profile`, started for real on small models: what they write, and how they refuse."""

import json
import os
import re
import subprocess
import sys

import pytest

from serving import BIN, IDS_MODEL, SOURCE, stub_model

sys.path[:0] = [str(SOURCE / "tests/soak"), str(SOURCE / "python")]

import exported  # noqa: E402

NAMESPACE = 'xmlns="http://www.w3.org/2000/svg"'
ROUTES = "trace,script"
CASES = ["trace fp32", "script fp32"]


def tonnage(*arguments):
    environment = {**os.environ, "TONNAGE_PYTHON": sys.executable}
    return subprocess.run([str(BIN / "tonnage"), *map(str, arguments)], capture_output=True, text=True, check=False,
                          env=environment, timeout=300)


def assert_needs_no_network(html):
    assert html.startswith("<!doctype html>") and html.rstrip().endswith("</html>")
    loads = r"https?:|//\w|\bsrc=|\bhref=|@import|url\(|<script|<link|<iframe"
    assert not re.findall(loads, html.replace(NAMESPACE, ""))


@pytest.fixture(scope="module")
def tiny():
    if not (BIN / "tonnage-worker-torch").exists():
        pytest.skip(f"needs {BIN}/tonnage-worker-torch")
    try:
        return exported.make_tiny(BIN.parent / "soak-models") / "tiny"
    except exported.NoModels as error:
        pytest.skip(str(error).splitlines()[0])


@pytest.fixture(scope="module")
def compared(tiny, tmp_path_factory):
    out = tmp_path_factory.mktemp("compare") / "reports"
    done = tonnage("compare", tiny, "--routes", ROUTES, "--precision", "fp32", "--seconds", 0.5, "--mix", "100/0/0",
                   "--memory", "1GiB", "--out", out, "--json")
    assert done.returncode == 0, done.stderr
    return done, out


def test_compare_writes_markdown_json_and_one_page(compared):
    _, out = compared
    assert sorted(file.name for file in out.iterdir()) == [f"tiny-compare.{end}" for end in ("html", "json", "md")]


def test_compare_measures_every_case_and_recommends_one_of_them(compared):
    done, out = compared
    result = json.loads((out / "tiny-compare.json").read_text())
    assert json.loads(done.stdout.splitlines()[-1]) == result
    assert [case["case"] for case in result["cases"]] == CASES and result["recommended"] in CASES
    for case in result["cases"]:
        assert case["error"] is None and case["saturated_rps"] > 0 and case["peak_bytes"] > 10 << 20
        assert case["agreement"]["rows"] == 16 and case["agreement"]["min_cosine"] > 0.999
        assert case["ties"]["enforcement"] == "exact"


def test_compares_reports_show_what_was_measured(compared):
    _, out = compared
    result = json.loads((out / "tiny-compare.json").read_text())
    markdown, html = (out / "tiny-compare.md").read_text(), (out / "tiny-compare.html").read_text()
    for case in result["cases"]:
        for text in (case["case"], f"{case['saturated_rps']:.1f}/s", f"{case['p99_ms']:.1f} ms"):
            assert text in markdown and text in html
    assert f"**{result['recommended']}**" in markdown and f"<strong>{result['recommended']}</strong>" in html
    assert html.count("<svg") == 3 and html.count("<table") == 2
    assert_needs_no_network(html)


@pytest.mark.parametrize("arguments, status, expected", [
    (["--routes", "onnx,nowhere"], 1, "route 'nowhere' was not exported; there are trace, script"),
    (["--precision", "int4"], 1, "no artefact has precision int4"),
    (["--data", "/nowhere/texts.jsonl"], 1, "/nowhere/texts.jsonl"),
    (["--mix", "80/15"], 2, "'80/15': three shares"),
    (["--mix", "80/15/15"], 2, "add up to 100"),
    (["--seconds", "0"], 2, "'0' is not above zero"),
    (["--out", "/proc/nowhere"], 1, "/proc/nowhere"),
    (["--colour", "red"], 2, "--colour"),
])
def test_compare_refuses_bad_arguments_before_it_measures(tiny, arguments, status, expected):
    done = tonnage("compare", tiny, *arguments)
    assert (done.returncode, done.stdout) == (status, "")
    assert expected in done.stderr and "Traceback" not in done.stderr


def test_compare_refuses_a_folder_that_holds_no_export(tmp_path):
    done = tonnage("compare", tmp_path / "absent")
    assert done.returncode == 1 and f"{tmp_path / 'absent'} is not a folder" in done.stderr
    done = tonnage("compare", tmp_path)
    assert done.returncode == 1 and "artefacts.json is missing" in done.stderr


@pytest.fixture(scope="module")
def profiled(tmp_path_factory):
    """A row of the longest takes 16 MiB, so that a gigabyte buys many."""
    root = tmp_path_factory.mktemp("profile")
    folder = stub_model(root / "models", "costly", "quadratic", IDS_MODEL.format(max_length=64),
                        bytes_per_token="256KiB")
    (root / "out").mkdir()
    done = tonnage("profile", folder, "--for", "3s", "--memory", "256MiB", "--out", root / "out", "--state",
                   root / "state")
    assert done.returncode == 0, done.stderr
    return done, root / "out"


def test_profile_draws_two_heat_maps_that_need_no_network(profiled):
    _, out = profiled
    assert sorted(file.name for file in out.iterdir()) == ["costly-profile.html", "costly-profile.json"]
    html = (out / "costly-profile.html").read_text()
    assert re.findall(r"<title>(.*?)</title>", html)[1:] == ["Peak bytes of a batch", "Time of a batch"]
    assert html.count("<svg") == 2 and "MiB" in html and " ms" in html
    assert_needs_no_network(html)


def test_profile_says_the_largest_batch_and_what_one_more_gib_buys(profiled):
    done, out = profiled
    seen = json.loads((out / "costly-profile.json").read_text())
    longest = seen["largest_batch"][-1]
    assert longest["length"] == 64 and 1 <= longest["rows"] < longest["rows_with_one_more_gib"]
    assert "largest batch in a budget of 256.0 MiB, and with 1.0 GiB more" in done.stdout
    told = re.search(r"length\s+64:\s+(\d+)\s+(\d+)", done.stdout)
    assert told and [int(rows) for rows in told.groups()] == [longest["rows"], longest["rows_with_one_more_gib"]]
    html = (out / "costly-profile.html").read_text()
    assert f"<tr><td>64</td><td>{longest['rows']}</td><td>{longest['rows_with_one_more_gib']}" in html


def test_profile_measures_shapes_beside_their_predictions(profiled):
    _, out = profiled
    seen = json.loads((out / "costly-profile.json").read_text())
    measured = [point for point in seen["grid"] if "measured_peak_bytes" in point]
    assert len(measured) == seen["measured"] >= 4
    assert all(point["fits"] for point in measured) and not all(point["fits"] for point in seen["grid"])
    assert seen["peak_error_median"] < 0.05


@pytest.mark.parametrize("arguments, expected", [
    (["--memory", "much"], "--memory"),
    (["--for", "soon"], "--for"),
    (["--colour", "red"], "--colour"),
])
def test_profile_refuses_bad_arguments_and_names_them(tmp_path, arguments, expected):
    folder = stub_model(tmp_path / "models", "small", "quadratic", IDS_MODEL.format(max_length=8))
    done = tonnage("profile", folder, "--state", tmp_path / "state", *arguments)
    assert done.returncode != 0 and done.stdout == ""
    assert expected in done.stderr


def test_profile_refuses_a_folder_that_is_not_there(tmp_path):
    done = tonnage("profile", tmp_path / "absent", "--state", tmp_path / "state")
    assert done.returncode != 0 and str(tmp_path / "absent") in done.stderr
