# SPDX-License-Identifier: Apache-2.0
"""Sends the held-out rows through the server, each alone and all in one request of mixed lengths, and compares
with what the module answered in fp32 when it was exported."""

from __future__ import annotations

import json
import math
import urllib.request
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Agreement:
    rows: int = 0
    max_difference: float = 0.0
    min_cosine: float = 1.0
    max_mixed_difference: float = 0.0  # the same rows inside mixed batches


def compare_rows(got: list[float], want: list[float]) -> tuple[float, float]:
    """(largest absolute difference, cosine) of two vectors."""
    differences = [abs(a - b) for a, b in zip(got, want, strict=True)]
    if not all(map(math.isfinite, differences)):
        return math.inf, -1.0  # a NaN would lose every comparison, and so pass
    difference = max(differences, default=0.0)
    dot = sum(a * b for a, b in zip(got, want))
    norms = math.sqrt(sum(a * a for a in got) * sum(b * b for b in want))
    return difference, dot / norms if norms else float(difference == 0.0)


def _body(held_out: dict, row: dict) -> bytes:
    inputs = []
    for spec in held_out["inputs"]:
        shape = [1] + [row["length"] if dim < 0 else dim for dim in spec["dims"][1:]]
        inputs.append({"name": spec["name"], "datatype": spec["datatype"], "shape": shape,
                       "data": row["inputs"][spec["name"]]})
    return json.dumps({"inputs": inputs}).encode()


def _infer(url: str, model: str, body: bytes) -> dict[str, list[float]]:
    request = urllib.request.Request(f"{url}/v2/models/{model}/infer", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=120) as reply:
        return {output["name"]: output["data"] for output in json.load(reply)["outputs"]}


def check(url: str, model: str, file: Path, in_parallel) -> Agreement | None:
    """None: the export wrote no held-out rows. `in_parallel(functions)` runs calls at once, so that rows meet in
    batches, and returns their results in order."""
    if not file.is_file():
        return None
    held_out = json.loads(file.read_text(encoding="utf-8"))
    bodies = [_body(held_out, row) for row in held_out["rows"]]
    alone = [_infer(url, model, body) for body in bodies]
    mixed = in_parallel([lambda body=body: _infer(url, model, body) for body in bodies])
    agreement = Agreement(rows=len(bodies))
    for row, one, many in zip(held_out["rows"], alone, mixed):
        for spec in held_out["outputs"]:
            want = row["outputs"][spec["name"]]
            difference, cosine = compare_rows(one[spec["name"]], want)
            in_batch, batch_cosine = compare_rows(many[spec["name"]], want)
            agreement.max_difference = max(agreement.max_difference, difference)
            agreement.max_mixed_difference = max(agreement.max_mixed_difference, in_batch)
            agreement.min_cosine = min(agreement.min_cosine, cosine, batch_cosine)
    return agreement
