# SPDX-License-Identifier: Apache-2.0
from tree import make_tree

import check_docs

GOOD = {
    "src/CMakeLists.txt": "tonnage_room(base)\n",
    "src/base/README.md": "# base\n",
    "docs/rooms.md": "| `base` | values |\n",
}


def problems_of(tmp_path, contents):
    return check_docs.check(make_tree(tmp_path, GOOD | contents))[0]


def test_a_complete_tree_passes(tmp_path):
    page = {"docs/a.md": "[room](rooms.md) [self](#a-heading) [out](https://example.org)\n\n## A `heading`\n"}
    assert problems_of(tmp_path, page) == []


def test_refuses_links_that_lead_nowhere(tmp_path):
    problems = problems_of(tmp_path, {"docs/a.md": "x\n[gone](gone.md) and [part](rooms.md#gone)\n"})
    assert len(problems) == 2 and problems[0].startswith("docs/a.md:2:")


def test_links_in_examples_do_not_count(tmp_path):
    assert problems_of(tmp_path, {"docs/a.md": "```\n[x](gone.md)\n```\n"}) == []


def test_refuses_a_room_without_readme_or_outside_the_map(tmp_path):
    problems = problems_of(tmp_path, {"src/CMakeLists.txt": "tonnage_room(base)\ntonnage_room(lane USES base)\n"})
    assert problems == ["src/lane: no README.md", "docs/rooms.md: does not name `lane`"]


def test_refuses_a_long_readme(tmp_path):
    assert "more than 40" in problems_of(tmp_path, {"src/base/README.md": "x\n" * 41})[0]


def test_metrics_of_code_and_page_must_agree(tmp_path):
    problems = problems_of(tmp_path, {
        "src/telemetry/metric_names.h": '{"tonnage_rows_total", "nv_inference_count"}',
        "docs/metrics.md": "| `tonnage_rows_total` | rows |\n| `tonnage_gone` | |\n",
    })
    assert len(problems) == 2
