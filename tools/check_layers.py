#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the layering rule: a room includes only the rooms and the third-party headers that it names.

The truth is src/CMakeLists.txt for rooms and the two tables below for what lies outside src/.
"""

import re
import sys
from pathlib import Path

from source_tree import CPP, ROOT, files, report

# Outside src/: folder → (rooms and sibling folders it may include, third-party words).
WORKER_ROOMS = {"base", "tensor", "wire"}
OUTSIDE = {
    "workers/kit": (WORKER_ROOMS | {"kit"}, {"fmt", "jemalloc", "nlohmann"}),
    "workers/native": (WORKER_ROOMS | {"kit"}, {"fmt"}),
    "workers/stub": (WORKER_ROOMS | {"kit", "stub"}, {"fmt"}),
    "workers/onnx": (WORKER_ROOMS | {"kit", "onnx"}, {"fmt", "onnxruntime_c_api"}),
    "workers/torch": (WORKER_ROOMS | {"kit", "torch"}, {"fmt", "torch", "ATen", "c10", "caffe2", "jemalloc", "cuda_runtime_api.h"}),
}
# Headers that cost tens of seconds: in how many source files each may be included.
HEAVY = {"CLI/": 1, "toml++/": 2, "boost/beast": 4, "torch/script.h": 2}

ROOM = re.compile(r"tonnage_room\((\w+)([^)]*)\)")
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]', re.M)
SYSTEM = re.compile(
    r"^(sys|linux|netinet|arpa|net|asm|bits)/|^(dirent|dlfcn|errno|fcntl|malloc|netdb|poll|pthread|pwd|sched|signal|"
    r"spawn|stddef|stdint|stdio|stdlib|string|syscall|termios|time|ucontext|unistd|wait|link|elf|ftw|glob|"
    r"immintrin|mntent|execinfo|cxxabi|sysexits|syslog|fenv|getopt|limits|grp|utime|numa|cpuid)\.h$"
)


def parse_rooms(cmake_text):
    """name → (rooms used, vendor words), and the problems of the list itself."""
    rooms, problems = {}, []
    for name, rest in ROOM.findall(re.sub(r"#[^\n]*", "", cmake_text)):
        words = {"USES": [], "VENDOR": []}
        key = None
        for word in rest.split():
            key = word if word in words else key
            if key and word != key:
                words[key].append(word)
        for used in words["USES"]:
            if used not in rooms:
                problems.append(f"src/CMakeLists.txt: room '{name}' uses '{used}', which is not listed above it")
        rooms[name] = (set(words["USES"]), set(words["VENDOR"]))
    return rooms, problems


def is_third_party(header):
    return ("." in header or "/" in header) and not SYSTEM.match(header)


def vendor_declared(header, vendor):
    first = header.split("/")[0]
    return first in vendor or first.removesuffix(".h") in vendor


def judge(path, style, header, owner):
    """The problem with one include line, or None."""
    room, allowed, vendor = owner
    is_test = path.endswith(("_test.cc", "_fixture.h", "_bench.cc", "_fuzz.cc"))
    if style == "<":
        if is_third_party(header) and not vendor_declared(header, vendor | ({"gtest"} if is_test else set())):
            return f"<{header}> is third-party and not declared as VENDOR of {room}"
        return None
    if "/" not in header:
        return f'"{header}" has no room path: write "{room.split("/")[-1]}/{header}"'
    target = header.split("/")[0]
    if is_test and target == "testkit":
        return None
    if target not in allowed:
        return f'{room} may not include "{header}": it does not name {target}'
    if "/detail/" in header and target != room.split("/")[-1]:
        return f'"{header}" is inside another room'
    return None


def owner_of(path, rooms):
    """(room, allowed, vendor) of a path, or None where this script has no rule."""
    parts = path.split("/")
    if parts[0] == "src" and len(parts) > 2:
        if parts[1] not in rooms:
            return parts[1], None, None
        uses, vendor = rooms[parts[1]]
        return parts[1], uses | {parts[1]}, vendor
    folder = "/".join(parts[:2])
    if folder in OUTSIDE:
        return folder, *OUTSIDE[folder]
    return None


def check(root=ROOT):
    cmake = Path(root, "src/CMakeLists.txt").read_text()
    rooms, problems = parse_rooms(cmake)
    heavy = {prefix: [] for prefix in HEAVY}
    paths = list(files(root, CPP, under=("src", "workers", "apps", "bench", "tests", "fuzz")))
    for path in paths:
        text = Path(root, path).read_text()
        owner = owner_of(path, rooms)
        if owner and owner[1] is None:
            problems.append(f"{path}: folder '{owner[0]}' is not a room of src/CMakeLists.txt")
            continue
        for match in INCLUDE.finditer(text):
            style, header = match.groups()
            for prefix in HEAVY:
                if header.startswith(prefix):
                    heavy[prefix].append(path)
            problem = judge(path, style, header, owner) if owner else None
            if problem:
                line = text.count("\n", 0, match.start(2)) + 1
                problems.append(f"{path}:{line}: {problem}")
        if re.search(r"\.\./", " ".join(h for _, h in INCLUDE.findall(text))):
            problems.append(f"{path}: an include climbs with ../")
    for prefix, users in heavy.items():
        if len(set(users)) > HEAVY[prefix]:
            problems.append(f"<{prefix}…> costs minutes: {len(set(users))} files include it, {HEAVY[prefix]} may: "
                            + ", ".join(sorted(set(users))))
    return problems, len(paths)


def main():
    problems, count = check()
    return report("layers", problems, f"{count} files")


if __name__ == "__main__":
    sys.exit(main())
