# SPDX-License-Identifier: Apache-2.0
"""Loads one model by every route it was exported for, serves the same traffic by each, and recommends one.

Writes NAME-compare.md, .json and .html. Includes the way in which services run out of memory: the native handler
as it is (gradients on), fed with batches of 64 padded to the longest text.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import sys
import tempfile
import time
from pathlib import Path

from tonnage.compare import page, report
from tonnage.compare.cases import Case, NoCase, find, read_artefacts
from tonnage.compare.measure import Measured, Setup, Traffic, measure
from tonnage.compare.recommend import advise

EXAMPLE = """example:
  tonnage compare build/models/reviews --data build/models/texts/reviews.jsonl --mix 80/15/5 --out /tmp
"""


def say(text: str) -> None:
    print(f"compare: {text}", file=sys.stderr, flush=True)


def words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def mix(text: str) -> str:
    shares = [int(part) if part.isdecimal() else -1 for part in text.split("/")]
    if len(shares) != 3 or min(shares) < 0 or sum(shares) != 100:
        raise argparse.ArgumentTypeError(f"'{text}': three shares that add up to 100, such as 80/15/5")
    return text


def seconds(text: str) -> float:
    with contextlib.suppress(ValueError):
        if 0 < float(text) < math.inf:
            return float(text)
    raise argparse.ArgumentTypeError(f"'{text}' is not above zero")


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tonnage compare", description=__doc__, epilog=EXAMPLE,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, metavar="MODEL_DIR", help="folder of one exported model")
    parser.add_argument("--routes", type=words, metavar="A,B", help="default: every exported one")
    parser.add_argument("--precision", type=words, metavar="A,B", help="default: every exported one")
    parser.add_argument("--data", type=Path, metavar="FILE", nargs="+", help="JSON lines of texts; default: random ids")
    parser.add_argument("--mix", type=mix, default="80/15/5", help="percent of short, medium and long texts (default 80/15/5)")
    parser.add_argument("--seconds", type=seconds, default=12, help="of each load, three per case (default 12)")
    parser.add_argument("--memory", default="8GiB", help="budget of each server (default 8GiB)")
    parser.add_argument("--out", type=Path, default=Path("."), metavar="DIR", help="where the reports go (default .)")
    parser.add_argument("--json", action="store_true", help="print the JSON object instead of the table")
    parser.add_argument("--programs", type=Path, required=True, help=argparse.SUPPRESS)  # the command line fills it in
    return parser.parse_args(argv)


def join_texts(files: list[Path], into: Path) -> Path:
    with open(into, "w", encoding="utf-8") as out:
        for file in files:
            out.write(file.read_text(encoding="utf-8").rstrip("\n") + "\n")
    return into


def run(cases: list[Case], options: argparse.Namespace, artefacts: dict, texts: Path | None,
        state: Path) -> list[Measured]:
    by_name = {(record["route"], record["precision"]): record for record in artefacts["artefacts"]}
    results, began = [], time.monotonic()
    setup = Setup(options.programs, Traffic(texts, options.mix, options.seconds), options.memory, state)
    for number, case in enumerate(cases, 1):
        say(f"{number} of {len(cases)}: {case.name}, {time.monotonic() - began:.0f} s")
        result = measure(case, options.model.resolve(), setup)
        result.artefact = by_name[case.route, case.precision]
        say(f"  {result.error}" if result.error else
            f"  {result.saturated_rps:.1f} requests/s, peak {report.mib(result.peak_bytes)}")
        results.append(result)
    return results


def describe(options: argparse.Namespace) -> str:
    data = ", ".join(file.name for file in options.data or []) or "random ids"
    return (f"Every case: a server of its own with {options.memory}, mix {options.mix} of {data}, one client and then 256 "
            f"outstanding requests, {options.seconds:g} s each; memory as the kernel counts it for the whole process tree.")


def main(argv: list[str] | None = None) -> int:
    options = parse(argv)
    with tempfile.TemporaryDirectory(prefix="tonnage-compare-state-") as state:
        try:  # whatever is missing is said before anything is measured
            artefacts = read_artefacts(options.model)
            cases = find(artefacts, options.routes, options.precision)
            texts = join_texts(options.data, Path(state, "texts.jsonl")) if options.data else None
            options.out.mkdir(parents=True, exist_ok=True)
        except (NoCase, OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
            print(f"tonnage compare: {error}", file=sys.stderr)
            return 1
        measured = run(cases, options, artefacts, texts, Path(state))
    advice = advise(measured)
    name, how = options.model.resolve().name, describe(options)
    result = report.as_json(name, measured, advice)
    for ending, text in ((".md", report.markdown(name, how, measured, advice, artefacts)),
                         (".json", json.dumps(result, indent=1, default=str) + "\n"),
                         (".html", page.render(name, how, measured, advice, artefacts))):
        file = options.out / f"{name}-compare{ending}"
        file.write_text(text, encoding="utf-8")
        say(f"wrote {file}")
    print(json.dumps(result, default=str) if options.json else report.markdown(name, how, measured, advice, artefacts))
    return 0 if advice.case else 1


if __name__ == "__main__":
    sys.exit(main())
