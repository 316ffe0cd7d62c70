#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`./dev soak NAME`: the same thing again and again, judged by what the kernel says is left of it.

A soak is tests/soak/NAME.py with SECONDS, its usual bound, and run(options) that gives (passed, readings). It covers
the stub and every route and precision that a model is exported and a worker built for; what it skips it says. The
last line is one JSON object.
"""

import argparse
import importlib
import json
import re
import signal
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(Path(__file__).resolve().parent), str(ROOT / "python"), str(ROOT / "tools")]

import exported  # noqa: E402

SOAKS = ("cycles", "rotation", "remainder")
UNITS = {"": 1, "s": 1, "m": 60, "h": 3600}


def duration(text):
    """30, 30s, 10m or 1h as seconds."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", text)
    if not match:
        raise argparse.ArgumentTypeError(f"'{text}' is not a time such as 30s, 10m or 1h")
    return float(match.group(1)) * UNITS[match.group(2)]


def say(text):
    print(f"soak: {text}", file=sys.stderr, flush=True)


def chosen_cases(options):
    """([the stub as None, and cases], route → why it is skipped), as --route and --precision choose."""
    cases, skipped = exported.find(options.models, options.program.parent)
    wanted = [case for case in cases
              if options.route in (None, case.route) and options.precision in (None, case.precision)]
    skipped = {route: why for route, why in skipped.items() if options.route in (None, route)}
    for route, why in skipped.items():
        say(f"SKIPPED route {route}: {why}")
    stub = [None] if options.route in (None, "stub") and options.precision is None else []
    return [*stub, *wanted], skipped


def run_cases(options, soak_case, pick=lambda cases: cases):
    """(passed, readings) of soak_case(options, case) → (passed, readings) over every case that `pick` leaves."""
    cases, skipped = chosen_cases(options)
    cases, results = pick(cases), {}
    options.cases = max(1, len(cases))
    for case in cases:
        name = case.name if case else "stub"
        say(f"{options.name}: {name}{f', model {case.folder.name}' if case else ''}")
        ok, readings = soak_case(options, case)
        results[name] = {"pass": ok, **readings}
        say(f"{options.name}: {name}: {'passed' if ok else 'FAILED'}: {json.dumps(readings)}")
    passed = bool(results) and all(readings["pass"] for readings in results.values())
    return passed, {"cases": results, "skipped": skipped}


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=SOAKS)
    parser.add_argument("--build", type=Path, default=ROOT / "build/release")
    parser.add_argument("--models", type=Path, default=ROOT / "build/models")
    parser.add_argument("--tiny", action="store_true", help="a model of two narrow layers, exported here, instead")
    parser.add_argument("--for", dest="seconds", type=duration, help="ends after this, done or not")
    parser.add_argument("--count", type=int, help="how often (remainder: requests); each soak has its own default")
    parser.add_argument("--route", help="only this one, or stub")
    parser.add_argument("--precision", help="only this one")
    return parser.parse_args()


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that servers are stopped on the way out
    options = parse()
    options.program = options.build.resolve() / "bin" / "tonnage"
    soak = importlib.import_module(options.name)
    try:
        if options.tiny:
            options.models = exported.make_tiny(options.build.resolve() / "soak-models")
        options.seconds = options.seconds or soak.SECONDS
        began = time.monotonic()
        options.ends = began + options.seconds
        passed, readings = soak.run(options)
    except exported.NoModels as error:
        say(str(error))
        return 1
    print(json.dumps({"name": f"soak-{options.name}", "pass": passed, **readings,
                      "seconds": round(time.monotonic() - began, 1)}), flush=True)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
