#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`./dev bench NAME`: a bench is bench/NAME.py, or a program tonnage-bench-NAME by itself."""

import argparse
import importlib
import signal
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import harness  # noqa: E402

SCRIPTS = ("mix", "overhead", "faults", "predict", "routes", "longlane")


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that servers are stopped on the way out
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name")
    parser.add_argument("--build", type=Path, default=HERE.parent / "build/release")
    parser.add_argument("--json", action="store_true", help="only the last line: one JSON object")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--noisy", action="store_true", help="count void rounds too, and say so in the result")
    options, rest = parser.parse_known_args()
    if options.json:
        harness.say = harness.show = lambda text: None
    program = options.build.resolve() / "bin" / f"tonnage-bench-{options.name}"
    if options.name in SCRIPTS:
        options.rest = rest  # for programs that a script starts
        return importlib.import_module(options.name).main(options) or 0
    if program.exists():
        return harness.run_program([program, *rest], options.name)
    known = sorted({p.name.removeprefix("tonnage-bench-") for p in program.parent.glob("tonnage-bench-*")})
    print(f"no bench named '{options.name}'; there are {', '.join(SCRIPTS)} and the programs {', '.join(known)}",
          file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
