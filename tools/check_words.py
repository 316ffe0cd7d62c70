#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Refuses words that the house rules ban: in code (comments and strings do not count) and in names.

Exceptions are entries (room, word, count, reason) of tools/allowed_words.toml. The count must equal what is
found, so it can only fall; a new entry needs a line in an ADR.
"""

import collections
import re
import sys
import tomllib
from pathlib import Path

from source_tree import CPP, ROOT, bare_code, files, report

ALL = ("src", "workers", "apps", "bench", "tests", "fuzz")
SHIPPED = ("src", "workers", "apps")

# word → (pattern, folders that it is banned in, paths where it is free)
WORDS = {
    "new": (r"(?<!operator )(?<!include <)\bnew\b", SHIPPED, ()),
    "delete": (r"(?<![=\w])(?<!= )(?<!operator )\bdelete\b", SHIPPED, ()),
    "sleep": (r"\b(?:sleep_for|sleep_until|usleep|nanosleep|sleep)\s*\(", ALL, ()),
    "clock": (r"\b(?:\w+_clock::now|clock_gettime|gettimeofday|time\s*\(\s*(?:nullptr|NULL|0)\s*\))",
              ("src", "apps", "tests"), ("src/base/", "tests/testkit/await")),
    "getenv": (r"\b(?:secure_)?getenv\b|\bsetenv\b|\benviron\b", ("src", "apps"), ("src/config/",)),
    "throw": (r"\bthrow\b", ("src",), ()),
    "mutex": (r"\bstd::(?:recursive_|shared_|timed_)?mutex\b|\bpthread_mutex", ("src", "apps"), ("src/base/guarded.h",)),
    "memcpy": (r"\bmem(?:cpy|move)\b", ("src", "apps"), ("src/tensor/", "src/wire/", "src/batch/", "src/codec/")),
    "reinterpret_cast": (r"\breinterpret_cast\b", SHIPPED, ("src/base/spans.h",)),
    "const_cast": (r"\bconst_cast\b", SHIPPED, ()),
    "ifdef": (r"^[ \t]*#[ \t]*(?:if|ifdef|ifndef|elif)\b", ("src", "apps"), ()),
    "detach": (r"\bdetached\b|[.>]detach\s*\(", ("src", "apps"), ()),
    "thread": (r"\bstd::j?thread\b(?!::)", ("src", "apps"),
               ("src/base/", "src/supervisor/", "src/text/", "src/state/", "src/telemetry/", "src/server/")),
    "system": (r"\b(?:std::)?(?:system|popen)\s*\(", SHIPPED, ()),
    "rand": (r"\b(?:s?rand|random_device)\b\s*[({]?", ("src", "apps"), ()),
    "cupboard name": (r"\b(?:class|struct|enum class|namespace)\s+\w*(?:Manager|Helper|Util|Common|Misc)\w*", ALL, ()),
}
FREE_IN_TESTS = ("thread", "const_cast", "system")
FILE_NAME = re.compile(r"(?:^|[/_])(?:managers?|helpers?|utils?|common|misc|impl)(?:_\w+)?\.(?:h|cc|py|js)$", re.I)
SNAKE = re.compile(r"^[a-z0-9_]+\.(?:h|cc)$")
# Paths of a workplace have no business in a repository that others clone.
WORKPLACE = re.compile(r"/work/(?:shared|tmp|wt|main)\b|\bbash_jobs\b")
TODO = re.compile(r"\b(?:TODO|FIXME|XXX)\b(?!\(.+\): \S)")
TEXT = (*CPP, ".py", ".md", ".toml", ".txt", ".cmake", ".json", ".sh", "dev", "run")


def room_of(path):
    parts = path.split("/")
    return "/".join(parts[:2]) if len(parts) > 2 else parts[0]


def find_words(path, text):
    """(word, line) of every banned word in one C++ file."""
    code = bare_code(text)
    for word, (pattern, folders, free) in WORDS.items():
        if not path.startswith(tuple(f"{f}/" for f in folders)) or path.startswith(free or ("\0",)):
            continue
        if word in FREE_IN_TESTS and path.endswith("_test.cc"):
            continue
        for match in re.finditer(pattern, code, re.M):
            yield word, code.count("\n", 0, match.start()) + 1


def check_file(path, text):
    """Problems of one file that no entry can excuse."""
    if FILE_NAME.search(path):
        yield f"{path}: a cupboard name; say what it holds"
    if path.endswith(CPP) and not SNAKE.match(path.split("/")[-1]):
        yield f"{path}: file names are snake_case"
    if path.endswith((*CPP, ".py")) and "SPDX-License-Identifier: Apache-2.0" not in text[:200]:
        yield f"{path}:1: no SPDX line"
    for number, line in enumerate(text.splitlines(), 1):
        if WORKPLACE.search(line):
            yield f"{path}:{number}: a path of a workplace"
        if path.endswith((*CPP, ".py")) and not path.endswith("check_words.py") and TODO.search(line):
            yield f"{path}:{number}: a TODO names who and a way out: TODO(name): …"
        if path.startswith("tests/") and path.endswith(".py") and re.search(r"\btime\.sleep\(", line):
            yield f"{path}:{number}: sleep in a test; wait on a pidfd, a pipe or the port file"


def check(root=ROOT):
    allow_file = Path(root, "tools/allowed_words.toml")
    entries = tomllib.loads(allow_file.read_text()).get("allow", []) if allow_file.exists() else []
    allowed = {(e["room"], e["word"]): e for e in entries}
    problems, found, count = [], collections.defaultdict(list), 0
    for path in files(root, TEXT):
        text = Path(root, path).read_text(errors="replace")
        count += 1
        problems += check_file(path, text)
        if path.endswith(CPP):
            for word, line in find_words(path, text):
                found[room_of(path), word].append(f"{path}:{line}")
    for (room, word), places in sorted(found.items()):
        limit = allowed.get((room, word), {"count": 0})["count"]
        if len(places) > limit:
            problems += [f"{place}: '{word}' ({len(places)} in {room}, {limit} allowed)" for place in places]
    for (room, word), entry in sorted(allowed.items()):
        seen = len(found.get((room, word), []))
        if seen < entry["count"]:
            problems.append(f"tools/allowed_words.toml: {room} '{word}' fell to {seen}: lower the entry from {entry['count']}")
        if len(entry.get("reason", "")) < 10:
            problems.append(f"tools/allowed_words.toml: {room} '{word}' needs a reason")
    return problems, f"{count} files, {len(WORDS)} words, {len(allowed)} allowed"


def main():
    problems, summary = check()
    return report("words", problems, summary)


if __name__ == "__main__":
    sys.exit(main())
