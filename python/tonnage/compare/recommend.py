# SPDX-License-Identifier: Apache-2.0
"""Which route to take, and why: pure, from what was measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Sequence

from tonnage.compare.measure import Measured

MIN_COSINE = 0.999  # the gate that a worker holds, too
CLOSE = 0.95        # of the best throughput counts as equally fast


@dataclass
class Advice:
    case: str | None
    reason: str
    peak_over_incident: float | None = None  # peak memory ÷ that of the incident's way of serving


def is_candidate(measured: Measured) -> bool:
    agrees = measured.agreement is None or measured.agreement.min_cosine >= MIN_COSINE
    return measured.error is None and not measured.case.is_incident and agrees and measured.refused == 0


def advise(all_measured: Sequence[Measured]) -> Advice:
    """The fastest that keeps the answers; among those within 5 % of it, the one that needs least memory."""
    candidates = [m for m in all_measured if is_candidate(m)]
    if not candidates:
        return Advice(None, "no route served everything with the answers of the original")
    fastest = max(candidates, key=lambda m: m.saturated_rps)
    close = [m for m in candidates if m.saturated_rps >= CLOSE * fastest.saturated_rps]
    best = min(close, key=lambda m: m.peak_bytes)
    reason = f"{best.saturated_rps:.1f} requests/s"
    slower = [m for m in candidates if m is not best]
    if slower:
        second = max(slower, key=lambda m: m.saturated_rps)
        reason += f" ({best.saturated_rps / second.saturated_rps:.2f} × {second.case.name})"
    reason += f", peak {best.peak_bytes / 2**20:.0f} MiB"
    if best is not fastest:
        reason += f"; {fastest.case.name} is no more than 5 % faster and needs {fastest.peak_bytes / 2**20:.0f} MiB"
    if best.agreement:
        reason += f"; answers as the original (cosine ≥ {best.agreement.min_cosine:.5f})"
    incident = next((m for m in all_measured if m.case.is_incident and m.peak_bytes), None)
    ratio = best.peak_bytes / incident.peak_bytes if incident else None
    if ratio is not None:
        reason += f"; {ratio:.0%} of the peak memory of {incident.case.name} on the same traffic"
    return Advice(best.case.name, reason, ratio)
