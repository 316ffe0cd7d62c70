#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the size limits of files, functions, parameter lists and folders.

Exceptions are entries of tools/allowed_sizes.toml with a reason; each must equal what is measured, so
an entry can only shrink or go.
"""

import ast
import collections
import re
import sys
import tomllib
from pathlib import Path

from source_tree import CPP, ROOT, bare_code, files, report

FOLDERS = ("src", "workers", "apps", "bench", "tests", "tools", "python", "fuzz")
SOURCE, HEADER, FUNCTION, PARAMETERS, IN_FOLDER = 500, 250, 70, 5, 15
SOFT_SOURCE, SOFT_FUNCTION = 300, 40
CHECK_SCRIPT = 150

TYPE_HEAD = re.compile(r"\b(class|struct|union|enum)\b(?![^<]*>\s*\w+\s*\()")


def matching_paren(text, start):
    depth = 0
    for at in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if depth == 0:
            return at
    return len(text)


def parameter_count(head):
    """Parameters of the first parenthesis of a function's head."""
    start = head.find("(")
    if "operator()" in head:
        start = head.find("(", head.find("operator()") + 10)
    inner = head[start + 1 : matching_paren(head, start)]
    depth, count = 0, 1 if inner.strip() not in ("", "void") else 0
    for char in inner:
        depth += {"(": 1, "<": 1, "{": 1, "[": 1, ")": -1, ">": -1, "}": -1, "]": -1}.get(char, 0)
        count += char == "," and depth == 0
    return count


def kind_of(head, parent):
    """namespace, type, function or other: what the brace after `head` opens."""
    if parent not in ("namespace", "type"):
        return "other"
    if re.search(r"\bnamespace\b|^\s*extern\s+\"\"\s*$", head):
        return "namespace"
    before_paren = head.split("(")[0]
    if TYPE_HEAD.search(before_paren) and "(" not in re.sub(r"\balignas\([^)]*\)|\brequires\s*\(.*?\)", "", head):
        return "type"
    if "(" in head and not before_paren.rstrip().endswith("="):
        return "function"
    return "other"


def cpp_functions(text):
    """(name, first line, lines, parameters) of every function with a body."""
    code = re.sub(r"^\s*#[^\n]*(?:\\\n[^\n]*)*", lambda m: "\n" * m.group(0).count("\n"), bare_code(text), flags=re.M)
    stack, head_start = [("namespace", "", 0)], 0
    for at, char in enumerate(code):
        if char == "{":
            head = code[head_start:at]
            first = head_start + len(head) - len(head.lstrip())
            stack.append((kind_of(head, stack[-1][0]), head, first))
        elif char == "}" and len(stack) > 1:
            kind, head, first = stack.pop()
            if kind == "function":
                name = re.search(r"([\w~:]+|operator\S+)\s*\(", head)
                line = code.count("\n", 0, first) + 1
                lines = code.count("\n", first, at) + 1
                yield (name.group(1) if name else "?"), line, lines, parameter_count(head)
        if char in "{};" or (char == ":" and code[head_start:at].strip() in ("public", "private", "protected")):
            head_start = at + 1


def python_functions(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            arguments = [a for a in node.args.posonlyargs + node.args.args if a.arg not in ("self", "cls")]
            yield node.name, node.lineno, node.end_lineno - node.lineno + 1, len(arguments)


def measure_file(path, text):
    """Findings as (key, value, hard limit, sentence)."""
    lines = text.count("\n")
    limit = HEADER if path.endswith(".h") else SOURCE
    if re.match(r"tools/check_\w+\.py$", path):
        limit = CHECK_SCRIPT
    yield path, lines, limit, f"{path}: {lines} lines, {limit} allowed"
    functions = python_functions(text) if path.endswith(".py") else cpp_functions(text)
    for name, line, length, parameters in functions:
        where = f"{path}:{line}: {name}"
        yield f"{path}#{name}", length, FUNCTION, f"{where} has {length} lines, {FUNCTION} allowed"
        yield f"{path}#{name}()", parameters, PARAMETERS, f"{where} takes {parameters} parameters, {PARAMETERS} allowed"


def check(root=ROOT):
    allow_file = Path(root, "tools/allowed_sizes.toml")
    allowed = {e["what"]: e for e in tomllib.loads(allow_file.read_text()).get("allow", [])} if allow_file.exists() else {}
    problems, soft, lengths, used = [], 0, [], set()
    folders = collections.Counter()
    findings = []
    for path in files(root, (*CPP, ".py"), under=FOLDERS):
        text = Path(root, path).read_text()
        lengths.append(text.count("\n"))
        soft += lengths[-1] > SOFT_SOURCE
        folders[str(Path(path).parent)] += path.endswith(".cc") and not re.search(r"_(test|bench|fuzz)\.cc$", path)
        found = list(measure_file(path, text))
        soft += sum(SOFT_FUNCTION < value <= FUNCTION for key, value, limit, _ in found if limit == FUNCTION)
        findings += found
    findings += [(f, n, IN_FOLDER, f"{f}: {n} source files, {IN_FOLDER} allowed") for f, n in folders.items()]
    for key, value, limit, sentence in findings:
        if value <= limit:
            continue
        entry = allowed.get(key)
        used.add(key)
        if entry is None or value > entry["size"]:
            problems.append(sentence)
        elif value < entry["size"]:
            problems.append(f"tools/allowed_sizes.toml: {key} fell to {value}: lower its entry from {entry['size']}")
    problems += [f"tools/allowed_sizes.toml: {key} is no longer needed" for key in sorted(set(allowed) - used)]
    median = sorted(lengths)[len(lengths) // 2] if lengths else 0
    return problems, f"{len(lengths)} files, median {median} lines, {soft} above a soft limit, {len(allowed)} allowed"


def main():
    problems, summary = check()
    return report("sizes", problems, summary)


if __name__ == "__main__":
    sys.exit(main())
