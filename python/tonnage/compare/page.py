# SPDX-License-Identifier: Apache-2.0
"""The comparison as one HTML page: tables and bars, nothing loaded from anywhere."""

from __future__ import annotations

from html import escape
from typing import Callable, Sequence

from tonnage.compare import report
from tonnage.compare.measure import Measured
from tonnage.compare.recommend import Advice

STYLE = """body{font:15px system-ui,sans-serif;margin:2rem;max-width:80rem;color:#222}
table{border-collapse:collapse;margin:1rem 0}td,th{padding:.25rem .7rem;text-align:left;border-bottom:1px solid #ccd;vertical-align:top}
tr.best td{font-weight:600;background:#eef6ee}figure{margin:1rem 0}figcaption{font-weight:600}svg{max-width:100%;height:auto}"""
WIDTH, LEFT, BAR = 760, 150, 22


def bars(title: str, measured: Sequence[Measured], value: Callable[[Measured], float], text: Callable[[float], str],
         best: str | None) -> str:
    shown = [m for m in measured if m.error is None]
    top = max((value(m) for m in shown), default=0) or 1
    parts = []
    for i, m in enumerate(shown):
        y, width = i * (BAR + 6), max(1, (WIDTH - LEFT - 120) * value(m) / top)
        colour = "#c0504d" if m.case.is_incident else "#2e7d32" if m.case.name == best else "#4f81bd"
        parts.append(f'<text x="{LEFT - 8}" y="{y + 16}" text-anchor="end">{escape(m.case.name)}</text>'
                     f'<rect x="{LEFT}" y="{y}" width="{width:.1f}" height="{BAR}" fill="{colour}"/>'
                     f'<text x="{LEFT + width + 6:.1f}" y="{y + 16}">{escape(text(value(m)))}</text>')
    height = max(1, len(shown)) * (BAR + 6)
    return (f"<figure><figcaption>{escape(title)}</figcaption><svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" "
            f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" font-size="13" font-family="system-ui,sans-serif">'
            f"<title>{escape(title)}</title>{''.join(parts)}</svg></figure>")


def _table(header: Sequence[str], rows: Sequence[Sequence[str]], best: str | None) -> str:
    def row(cells):
        mark = ' class="best"' if cells[0] == best else ""
        return f"<tr{mark}>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"

    return ("<table><tr>" + "".join(f"<th>{escape(name)}</th>" for name in header) + "</tr>"
            + "\n".join(row(cells) for cells in rows) + "</table>")


def render(model: str, how: str, measured: Sequence[Measured], advice: Advice, artefacts: dict) -> str:
    chosen = (f"<strong>{escape(advice.case)}</strong>: {escape(advice.reason)}." if advice.case
              else f"No recommendation: {escape(advice.reason)}.")
    return "\n".join([
        f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>{escape(model)}: loading routes</title>',
        f"<style>{STYLE}</style><h1>{escape(model)}: loading routes side by side</h1><p>{escape(how)}</p><p>{chosen}</p>",
        bars("Peak memory of the whole service", measured, lambda m: m.peak_bytes, report.mib, advice.case),
        bars("Requests per second, saturated", measured, lambda m: m.saturated_rps, lambda v: f"{v:.1f}/s", advice.case),
        bars("p99 with one client", measured, lambda m: m.p99_ms, lambda v: f"{v:.1f} ms", advice.case),
        _table(report.HEADER, [report.cells(m) for m in measured], advice.case),
        "<h2>What a choice ties you to</h2>",
        _table(report.TIE_HEADER, report.tie_rows(measured, artefacts), advice.case), "</html>\n",
    ])
