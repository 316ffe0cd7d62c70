# SPDX-License-Identifier: Apache-2.0
"""What a worker holds beside its tensors reaches a plateau: batches of many shapes, on up to two exported routes.

Each route has its share of the time. Judged by the resident bytes that the front reads from the kernel: over the last
third of the run they may grow by one percent. What they consist of is printed beside it.
"""

import os
import random
import re
import tempfile
import threading
import time
from pathlib import Path

import models
from soak import say
from tonnage.serving import Server

ROUTES = 2
CLIENTS = 4
MOST_ROWS, MOST_TOKENS = 8, 1024  # of a request
PLATEAU = 0.01
ACCOUNTS = ("libraries", "weights", "tensors", "caches", "remainder")


def growth_of_last_third(series):
    """The mean of its last tenth over the mean of its first: malloc gives pages back when it likes."""
    last = series[-(len(series) // 3):]
    tenth = max(1, len(last) // 10)
    return sum(last[-tenth:]) / max(1, sum(last[:tenth])) - 1


def body(inputs, longest, number):
    draw = random.Random(number)
    length = draw.randint(1, longest - 2)  # a text gets two marks
    rows = draw.randint(1, max(1, min(MOST_ROWS, MOST_TOKENS // length)))

    def tensor(spec, is_first):
        if spec["datatype"] == "BYTES":
            return {"shape": [rows], "data": [" ".join(["good"] * length)] * rows}
        return {"shape": [rows, length], "data": [draw.randint(1, 1000) if is_first else 1 for _ in range(rows * length)]}

    return {"inputs": [{"name": spec["name"], "datatype": spec["datatype"], **tensor(spec, i == 0)}
                       for i, spec in enumerate(inputs)]}


class Load:
    """Clients that ask one request after the other until they are told to end."""

    def __init__(self, server, name, longest):
        self.server, self.path, self.longest = server, f"/v2/models/{name}/infer", longest
        _, metadata = models.call(server, f"/v2/models/{name}", method="GET")
        self.inputs = metadata["inputs"]
        self.failed, self.sent, self.ends, self.lock = 0, 0, threading.Event(), threading.Lock()
        self.threads = [threading.Thread(target=self.run) for _ in range(CLIENTS)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.ends.set()
        for thread in self.threads:
            thread.join()

    def run(self):
        while not self.ends.is_set():
            with self.lock:
                number, self.sent = self.sent, self.sent + 1
            status, _ = models.call(self.server, self.path, body(self.inputs, self.longest, number))
            if status != 200:
                with self.lock:
                    self.failed += 1


def soak_route(options, folder, seconds):
    accounts = []
    with tempfile.TemporaryDirectory(prefix="tonnage-soak-") as repository:
        os.symlink(folder.resolve(), Path(repository, "soaked"))
        with Server(options.program, repository, "--memory", "2GiB") as server:
            longest = int(re.search(r"^max_length\s*=\s*(\d+)", (folder / "model.toml").read_text(), re.M).group(1))
            ends = time.monotonic() + seconds
            with Load(server, "soaked", longest) as load:
                while time.monotonic() < ends:
                    load.ends.wait(1.0)
                    worker = server.status()["models"][0]["workers"][0]
                    if worker["accounts"]:
                        accounts.append(worker["accounts"])
    resident = [sum(seen[account] for account in ACCOUNTS) for seen in accounts]
    growth = growth_of_last_third(resident) if len(resident) >= 30 else 1.0
    passed = growth < PLATEAU and load.failed == 0
    return passed, {"requests": load.sent, "failed": load.failed, "growth_of_last_third": round(growth, 5),
                    "resident": resident[-1] if resident else 0, **(accounts[-1] if accounts else {})}


def run(options):
    found = {route: folder for route, folder in models.exported(options.models).items() if options.route in (None, route)}
    results = {}
    for route, folder in list(found.items())[:ROUTES]:
        seconds = options.seconds / min(ROUTES, len(found))
        say(f"{folder.name}, route {route}, {seconds:.0f} s of many shapes")
        results[route] = soak_route(options, folder, seconds)
    passed = bool(results) and all(ok for ok, _ in results.values())
    return passed, {"routes": {route: {"pass": ok, **readings} for route, (ok, readings) in results.items()}}
