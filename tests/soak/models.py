# SPDX-License-Identifier: Apache-2.0
"""What soaks share: the text of a stub model, calls, and the kernel's readings."""

import contextlib
import json
import os
import re
import select
import time
import urllib.error
import urllib.request
from pathlib import Path

# For tools/stub_models.py. Without a stated range, what warm-up sends are zeros and ones only.
ANY_IDS = """
max_length = 64
[[input]]
name = "ids"
datatype = "INT64"
dims = [-1, -1]
[[output]]
name = "sum"
datatype = "FP32"
dims = [-1, 1]
"""


def call(server, path, body=None, method="POST", timeout=300):
    """(status, decoded body): an error is an answer."""
    data = json.dumps(body or {}).encode() if method == "POST" else None
    request = urllib.request.Request(server.url + path, data, method=method)
    try:
        with urllib.request.urlopen(request, timeout=timeout) as reply:
            return reply.status, json.loads(reply.read() or b"null")
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read() or b"null")


def one_row(server, name):
    """A body that the model takes."""
    _, metadata = call(server, f"/v2/models/{name}", method="GET")
    inputs = []
    for tensor in metadata["inputs"]:
        if tensor["datatype"] == "BYTES":
            inputs.append({"name": tensor["name"], "shape": [1], "datatype": "BYTES", "data": ["a good one"]})
        else:
            inputs.append({"name": tensor["name"], "shape": [1, 8], "datatype": tensor["datatype"], "data": [1] * 8})
    return {"inputs": inputs}


def await_until(predicate, seconds):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if predicate():
            return True
        select.select([], [], [], 0.01)
    return False


def anonymous(pid):
    """RssAnon in bytes; zero for a process that is gone."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        match = re.search(r"^RssAnon:\s*(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.M)
        return int(match.group(1)) * 1024 if match else 0
    return 0


def descriptors_at_rest(pid):
    """How many are open when nothing is going on: the connections of our own calls close a moment later."""
    counts = []
    await_until(lambda: counts.append(len(descriptors(pid))), 0.5)
    return min(counts)


def shared_memory(pid):
    """Segments that a process holds open or mapped."""
    lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
    mapped = [line.split(maxsplit=5)[5] for line in lines if "/memfd:" in line]
    return [link for link in descriptors(pid) if link.startswith("/memfd:")] + mapped


def descriptors(pid):
    links = []
    for entry in os.scandir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            links.append(os.readlink(entry.path))
    return links
