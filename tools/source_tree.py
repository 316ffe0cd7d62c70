# SPDX-License-Identifier: Apache-2.0
"""What the check scripts share: which files are ours, and C++ text without its comments and strings."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CPP = (".h", ".cc")

_CPP_TOKEN = re.compile(
    r"""//[^\n]*                        # a comment to the end of the line
      | /\*.*?\*/                       # a comment over several lines
      | R"(?P<raw>[^\s()\\]{0,16})\(.*?\)(?P=raw)"
      | "(?:\\.|[^"\\\n])*"
      | (?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'   # not the separator of 1'000
    """,
    re.S | re.X,
)


def files(root=ROOT, suffixes=None, under=()):
    """Tracked and new files of `root`, as posix paths relative to it; ignored ones are not ours."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=root, capture_output=True, check=True
    ).stdout.decode()
    for path in sorted(set(listed.split("\0")) - {""}):
        if suffixes and not path.endswith(tuple(suffixes)):
            continue
        if under and not path.startswith(tuple(f"{u}/" for u in under)):
            continue
        if (Path(root) / path).is_file():
            yield path


def bare_code(text):
    """C++ text with comments blanked and strings emptied; line numbers stay."""

    def blank(match):
        token = match.group(0)
        quote = '""' if token[0] in "\"R'" else ""
        return quote + "\n" * token.count("\n")

    return _CPP_TOKEN.sub(blank, text)


def report(name, problems, checked):
    """Prints the problems and returns the exit code."""
    for problem in problems:
        print(problem)
    verdict = f"{len(problems)} problem(s)" if problems else "ok"
    print(f"{name}: {verdict} ({checked})")
    return 1 if problems else 0
