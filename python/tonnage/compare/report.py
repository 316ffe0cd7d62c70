# SPDX-License-Identifier: Apache-2.0
"""What was measured, as Markdown and as one JSON object."""

from __future__ import annotations

import dataclasses
from typing import Sequence

from tonnage.compare import ties
from tonnage.compare.measure import Measured
from tonnage.compare.recommend import Advice

HEADER = ("case", "ready after", "weights", "peak", "resident after", "growth / 1,000", "p50, one client",
          "p99, one client", "saturated", "refused", "largest difference", "least cosine", "enforcement")


def mib(count: float) -> str:
    return f"{count / 2**20:,.0f} MiB"


def cells(m: Measured) -> list[str]:
    if m.error:
        return [m.case.name, f"failed: {m.error}", *[""] * (len(HEADER) - 2)]
    agreement = m.agreement
    return [m.case.name, f"{m.load_s:.1f} s", mib(m.weights_bytes), mib(m.peak_bytes), mib(m.resident_after_bytes),
            mib(m.growth_per_1000), f"{m.p50_ms:.1f} ms", f"{m.p99_ms:.1f} ms", f"{m.saturated_rps:.1f}/s", str(m.refused),
            f"{max(agreement.max_difference, agreement.max_mixed_difference):.2g}" if agreement else "-",
            f"{agreement.min_cosine:.5f}" if agreement else "-", ties.of(m.case.route).enforcement]


def tie_rows(measured: Sequence[Measured], artefacts: dict) -> list[list[str]]:
    rows = []
    for m in measured:
        if m.case.is_incident:
            continue
        tie = ties.of(m.case.route)
        limits = m.artefact.get("limits")
        shapes = "any" if not limits else ", ".join(f"{key} {low}-{high}" for key, (low, high) in limits.items())
        rows.append([m.case.name, tie.needs, tie.upstream, tie.loses, shapes, mib(m.artefact.get("bytes", 0)),
                     f"torch {artefacts.get('torch', '?')}, {artefacts.get('instruction_set', '?')}"])
    return rows


TIE_HEADER = ("case", "needs", "upstream", "may lose of the original", "shapes", "artefact", "exported with")


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(header) + " |", "|" + " --- |" * len(header)]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def markdown(model: str, how: str, measured: Sequence[Measured], advice: Advice, artefacts: dict) -> str:
    chosen = f"**{advice.case}**: {advice.reason}." if advice.case else f"No recommendation: {advice.reason}."
    return "\n\n".join([
        f"# {model}: loading routes side by side", how, chosen, table(HEADER, [cells(m) for m in measured]),
        "## What a choice ties you to", table(TIE_HEADER, tie_rows(measured, artefacts)),
    ]) + "\n"


def as_json(model: str, measured: Sequence[Measured], advice: Advice) -> dict:
    def one(m: Measured) -> dict:
        return {"case": m.case.name, **{key: value for key, value in dataclasses.asdict(m).items()
                                        if key not in ("case", "artefact")}, "ties": dataclasses.asdict(ties.of(m.case.route))}

    return {"model": model, "recommended": advice.case, "reason": advice.reason,
            "peak_over_incident": advice.peak_over_incident, "cases": [one(m) for m in measured]}
