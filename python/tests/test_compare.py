# SPDX-License-Identifier: Apache-2.0
"""What `tonnage compare` decides and prints, without a server."""

import json

import pytest

from tonnage.compare import answers, cases, measure, page, recommend, report
from tonnage.compare.cases import Case

MIB = 2**20


def measured(route, rps, peak, precision="fp32", cosine=1.0, **more):
    return measure.Measured(Case(route, precision), saturated_rps=rps, peak_bytes=peak * MIB,
                            agreement=answers.Agreement(rows=16, min_cosine=cosine), **more)


INCIDENT = measure.Measured(Case("native", "fp32", is_incident=True), saturated_rps=99, peak_bytes=3000 * MIB)


def artefacts(*pairs):
    return {"torch": "2.13.0", "instruction_set": "AVX512",
            "artefacts": [{"route": route, "precision": precision, "bytes": MIB} for route, precision in pairs]}


def test_the_fastest_route_that_keeps_the_answers_is_recommended():
    advice = recommend.advise([measured("trace", 40, 600), measured("aoti", 50, 700), INCIDENT])
    assert advice.case == "aoti fp32"
    assert "1.25 × trace fp32" in advice.reason
    assert advice.peak_over_incident == pytest.approx(700 / 3000)


def test_among_equally_fast_routes_the_one_that_needs_less_memory_is_recommended():
    advice = recommend.advise([measured("trace", 98, 500), measured("aoti", 100, 900)])
    assert advice.case == "trace fp32"
    assert "no more than 5 % faster" in advice.reason


def test_a_route_whose_answers_differ_is_never_recommended():
    drifting = measured("aoti", 90, 300, "bf16", cosine=0.99)
    assert recommend.advise([measured("trace", 40, 600), drifting]).case == "trace fp32"


def test_the_incidents_way_is_never_recommended_and_neither_is_a_route_that_failed_or_refused():
    broken = measured("aoti", 90, 100)
    broken.error = "the worker died"
    advice = recommend.advise([INCIDENT, broken, measured("onnx", 80, 100, refused=3)])
    assert advice.case is None
    assert advice.reason == "no route served everything with the answers of the original"
    assert f"No recommendation: {advice.reason}." in report.markdown("m", "", [broken], advice, artefacts())
    assert f"No recommendation: {advice.reason}." in page.render("m", "", [broken], advice, artefacts())


def test_every_exported_artefact_is_a_case_and_the_incident_comes_last():
    found = cases.find(artefacts(("trace", "fp32"), ("trace", "bf16"), ("native", "fp32")), None, None)
    assert [case.name for case in found] == ["trace fp32", "trace bf16", "native fp32", "native as-is"]
    assert found[-1].server_flags[-2:] == ["--policy", "fifo"]


def test_a_route_that_was_not_exported_is_an_error_that_names_those_that_were(tmp_path):
    with pytest.raises(cases.NoCase, match="'onnx' was not exported; there are trace, aoti"):
        cases.find(artefacts(("trace", "fp32"), ("aoti", "fp32")), ["onnx"], None)
    with pytest.raises(cases.NoCase, match="artefacts.json is missing"):
        cases.read_artefacts(tmp_path)
    with pytest.raises(cases.NoCase, match="is not a folder"):
        cases.read_artefacts(tmp_path / "absent")


@pytest.mark.parametrize("text", ['route = "trace"\n', '[native]\nmode = "guarded"\nentry = "a.py"\n'])
def test_the_incident_runs_as_is_whatever_the_model_says(text):
    assert measure.tomllib.loads(measure.as_is(text))["native"]["mode"] == "as-is"


def test_as_is_changes_the_native_table_alone():
    text = '[tensors]\nmode = "x"\n[native]  # the script\nmode = "guarded"\nmodel = "m.pt"\n[limits]\nmode = "y"\n'
    document = measure.tomllib.loads(measure.as_is(text))
    assert document == {"tensors": {"mode": "x"}, "native": {"mode": "as-is", "model": "m.pt"}, "limits": {"mode": "y"}}


def test_a_variant_links_the_model_and_changes_nothing_of_it(tmp_path):
    model = tmp_path / "m"
    (model / "1").mkdir(parents=True)
    (model / "1" / "model.pt").write_bytes(b"x")
    (model / "model.toml").write_text('route = "trace"\n')
    measure.variant(model, Case("native", "fp32", is_incident=True), tmp_path / "out")
    assert (tmp_path / "out" / "m" / "1" / "model.pt").read_bytes() == b"x"
    assert (model / "model.toml").read_text() == 'route = "trace"\n'


def test_random_ids_are_those_that_the_model_takes(tmp_path):
    (tmp_path / "model.toml").write_text(
        'max_length = 128\n[[input]]\nname = "ids"\nrange = [0, 999]\n'
        '[[input]]\nname = "mask"\nsource = "mask"\nrange = [0, 1]\n')
    flags = measure.Traffic(None, "100/0/0", 1.0).flags(tmp_path)
    assert flags[flags.index("--vocabulary") + 1] == "1000" and flags[flags.index("--max-length") + 1] == "128"
    assert "--vocabulary" not in measure.Traffic(tmp_path / "texts", "100/0/0", 1.0).flags(tmp_path)
    (tmp_path / "model.toml").write_text("")
    assert measure.Traffic(None, "100/0/0", 1.0).flags(tmp_path)[:5] == ["--ids", "--format", "binary", "--mix", "100/0/0"]


def test_rows_are_compared_by_difference_and_direction():
    assert answers.compare_rows([1.0, 0.0], [1.0, 0.5]) == (0.5, pytest.approx(0.8944, abs=1e-4))
    assert answers.compare_rows([0.0], [0.0]) == (0.0, 1.0)
    assert answers.compare_rows([float("nan"), 1.0], [1.0, 1.0]) == (float("inf"), -1.0)


def test_reports_show_every_case_the_advice_and_no_markup_of_others():
    all_measured = [measured("trace", 40, 600), INCIDENT]
    all_measured[0].artefact = {"bytes": 90 * MIB, "limits": {"rows": [1, 64]}}
    advice = recommend.advise(all_measured)
    text = report.markdown("m<b>", "how", all_measured, advice, artefacts())
    html = page.render("m<b>", "how", all_measured, advice, artefacts())
    for word in ("trace fp32", "native as-is", "rows 1-64", "20%", "600 MiB", "3,000 MiB", "40.0/s", "99.0/s"):
        assert word in text and word in html
    assert "# m<b>: loading routes side by side" in text and "**trace fp32**" in text
    assert "<h1>m&lt;b&gt;: loading routes side by side</h1>" in html and "<b>" not in html
    assert html.count("<svg") == 3 and html.count("<rect") == 3 * 2 and '<tr class="best"><td>trace fp32</td>' in html
    assert "src=" not in html and "href=" not in html
    assert json.loads(json.dumps(report.as_json("m", all_measured, advice), default=str))["recommended"] == "trace fp32"


def test_a_case_that_failed_says_why_in_its_row():
    failed = measure.Measured(Case("onnx", "fp32"), error="no worker program")
    advice = recommend.advise([failed])
    row = "| onnx fp32 | failed: no worker program |"
    assert row in report.markdown("m", "", [failed], advice, artefacts())
    assert "<td>onnx fp32</td><td>failed: no worker program</td>" in page.render("m", "", [failed], advice, artefacts())
    assert report.as_json("m", [failed], advice)["cases"][0]["error"] == "no worker program"
