#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the C++ tests (ctest) and the Python tests (pytest) and adds them up.

Prints failures whole, skipped tests by name with their reason, and last `N passed, N failed`.
"""

import argparse
import os
import re
import subprocess
import sys
import time
import xml.etree.ElementTree as xml
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTEST_NEWS = re.compile(r"Error|FAILED|^E |^>|^SKIPPED|^_{4}|^\w+\S*:\d+:")
NO_TESTS_COLLECTED = 5  # pytest's exit code
PYTHON_TESTS = ("tools/tests", "python/tests", "tests/integration")


@dataclass
class Tally:
    passed: int = 0
    failed: list = field(default_factory=list)
    skipped: list = field(default_factory=list)

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped


def read_junit(path):
    """One Tally from a JUnit file of ctest, pytest or GoogleTest."""
    tally = Tally()
    for case in xml.parse(path).getroot().iter("testcase"):
        name = case.get("name")
        if case.get("classname") and case.get("classname") not in name:
            name = f"{case.get('classname')}.{name}"
        skip = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            tally.failed.append(name)
        elif skip is not None or case.get("status") in ("notrun", "disabled"):
            reason = (skip.get("message") or "") if skip is not None else case.get("status")
            said = re.search(r"Skipped\n(.*)", case.findtext("system-out") or "")
            tally.skipped.append(f"{name}: {said.group(1).strip() if said else reason.strip()}")
        else:
            tally.passed += 1
    return tally


def stream(command, name, env, keep):
    """Runs `command`, showing a line every two seconds; lines that `keep` picks are shown at once."""
    last, shown = time.monotonic(), 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT,
                          env=env, errors="replace") as process:
        for line in process.stdout:
            if keep(line):
                print(line, end="", flush=True)
            elif time.monotonic() - last > 2:
                print(f"  … {name}: {line.strip()[:100]}", flush=True)
                last = time.monotonic()
                shown += 1
        return process.wait()


def counted(name, junit, status):
    """The Tally of a finished run; a runner that failed without naming a test counts as one failure."""
    tally = read_junit(junit) if junit.exists() else Tally()
    if status != 0 and not tally.failed:
        tally.failed.append(f"{name} ended with exit code {status}")
    if not (tally.passed or tally.failed or tally.skipped):
        tally.failed.append(f"{name} found no tests")
    return tally


def run_ctest(build, pattern, env):
    junit = build / "ctest.xml"
    junit.unlink(missing_ok=True)
    command = ["ctest", "--test-dir", str(build), "-j", str(os.environ.get("JOBS", 2)), "--output-on-failure",
               "--no-tests=error", "--output-junit", str(junit)]
    if pattern:
        command += ["-R", pattern]
    in_failure = False

    def keep(line):
        # ctest prints a failed test's output between its own "Failed" line and the next "Start" line.
        nonlocal in_failure
        if re.match(r"\s*(Start\s+\d+:|\d+/\d+ Test\s+#)", line):
            in_failure = bool(re.search(r"\*\*\*(Failed|Timeout|Exception)", line))
        return in_failure

    return counted("ctest", junit, stream(command, "ctest", env, keep))


def run_programs(build, programs, env):
    """Test programs by themselves, for builds where the others do not exist."""
    total = Tally()
    for program in programs:
        junit = build / f"{program}.xml"
        junit.unlink(missing_ok=True)
        command = [str(build / "bin" / program), f"--gtest_output=xml:{junit}", "--gtest_brief=1"]
        status = stream(command, program, env, lambda line: True)
        tally = counted(program, junit, status)
        print(f"{program}: {tally.passed} passed, {len(tally.failed)} failed", flush=True)
        total.add(tally)
    return total


def run_pytest(folder, build, pattern, env):
    """One process per folder: their modules of the same name never meet."""
    name = folder.replace("/", "-")
    junit = build / f"pytest-{name}.xml"
    junit.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-v", "-rs", "--tb=short",
               f"--junitxml={junit}", folder]
    if pattern:
        command += ["-k", pattern]
    status = stream(command, folder, env, lambda line: bool(PYTEST_NEWS.search(line)))
    if pattern and status == NO_TESTS_COLLECTED:
        return Tally()
    return counted(folder, junit, status)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pattern", nargs="?", help="only tests whose name matches")
    parser.add_argument("--build", type=Path, default=ROOT / "build/dev")
    parser.add_argument("--ctest-only", action="store_true")
    parser.add_argument("--programs", nargs="*", help="run these test programs instead of ctest")
    options = parser.parse_args()
    build = options.build.resolve()
    # malloc may fail in a test, under a sanitizer too.
    env = dict(os.environ, TONNAGE_BIN=str(build / "bin"), TONNAGE_MODELS=str(ROOT / "build/models"),
               PYTHONPATH=str(ROOT / "python"), UBSAN_OPTIONS="print_stacktrace=1",
               ASAN_OPTIONS="allocator_may_return_null=1", TSAN_OPTIONS="allocator_may_return_null=1")

    total = Tally()
    if options.programs:
        total.add(run_programs(build, options.programs, env))
    else:
        total.add(run_ctest(build, options.pattern, env))
        if not options.ctest_only:
            for folder in PYTHON_TESTS:
                if any((ROOT / folder).glob("test_*.py")):
                    total.add(run_pytest(folder, build, options.pattern, env))
    for skipped in total.skipped:
        print(f"skipped: {skipped}")
    for failed in total.failed:
        print(f"FAILED: {failed}")
    print(f"{total.passed} passed, {len(total.failed)} failed")
    return 1 if total.failed or not total.passed else 0


if __name__ == "__main__":
    sys.exit(main())
