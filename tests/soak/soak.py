#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`./dev soak NAME`: the same thing again and again, judged by what the kernel says is left of it.

A soak is tests/soak/NAME.py with run(options) that gives (passed, readings). The last line is one JSON object.
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
sys.path[:0] = [str(Path(__file__).resolve().parent), str(ROOT / "python")]

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


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that servers are stopped on the way out
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=SOAKS)
    parser.add_argument("--build", type=Path, default=ROOT / "build/release")
    parser.add_argument("--models", type=Path, default=ROOT / "build/models")
    parser.add_argument("--for", dest="seconds", type=duration, default=600.0, help="ends after this, done or not")
    parser.add_argument("--count", type=int, help="how often; each soak has its own default")
    parser.add_argument("--route", help="only this one")
    options = parser.parse_args()
    options.program = options.build.resolve() / "bin" / "tonnage"
    options.ends = time.monotonic() + options.seconds
    began = time.monotonic()
    passed, readings = importlib.import_module(options.name).run(options)
    print(json.dumps({"name": f"soak-{options.name}", "pass": passed, **readings,
                      "seconds": round(time.monotonic() - began, 1)}), flush=True)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
