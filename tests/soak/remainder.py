# SPDX-License-Identifier: Apache-2.0
"""What a worker holds beside its tensors reaches a plateau: batches of many shapes, on two routes or precisions.

Each has half of the time and at most --count requests. Judged by what the front reads of the worker each second, in
two parts. What is in use (libraries, weights, tensors, the runtime's caches, the unexplained rest) may grow by less
than one percent over the last third of the run. Free pages that malloc keeps come and go by several MiB from reading
to reading: they grow where even the fewest of the last third are more than in three quarters of the third before.
"""

import json
import os
import random
import statistics
import tempfile
import time
import tomllib
from pathlib import Path

import models
from clients import Clients, Load
from soak import run_cases
from tonnage.serving import Server

SECONDS = 600
CASES = 2
PREFERRED = ("trace fp32", "aoti bf16")  # two routes, two precisions
NAME = "soaked"
CLIENTS = 16
BODIES = 1000  # different ones; made beforehand, since making them takes longer than small models do
READ_EVERY_S = 1.0  # so often the front reads the kernel
LEAST_READINGS = 12
MOST_ROWS, MOST_TOKENS = 4, 512  # of a request
MOST_ID = 999
PLATEAU = 0.01
ACCOUNTS = ("libraries", "weights", "tensors", "caches", "remainder")


def growth_of_last_third(series):
    """Of the line through its readings, over their mean: malloc gives pages back when it likes, so that two single
    readings say little."""
    last = series[-max(2, len(series) // 3):]
    middle, mean = (len(last) - 1) / 2, sum(last) / len(last)
    spread = sum((at - middle) ** 2 for at in range(len(last)))
    slope = sum((at - middle) * value for at, value in enumerate(last)) / spread
    return slope * (len(last) - 1) / max(1.0, mean)


def free_pages(seen):
    return seen["caches"] - seen["runtime"]


def in_use(seen):
    return sum(seen[account] for account in ACCOUNTS) - free_pages(seen)


def free_pages_grow(series):
    third = len(series) // 3
    return min(series[-third:]) > statistics.quantiles(series[-2 * third:-third], n=4)[2]


def body(inputs, longest, number):
    draw = random.Random(number)
    length = draw.randint(1, longest - 2)  # a text gets two marks
    rows = draw.randint(1, max(1, min(MOST_ROWS, MOST_TOKENS // length)))

    def tensor(spec, is_first):
        if spec["datatype"] == "BYTES":
            return {"shape": [rows], "data": [" ".join(["good"] * length)] * rows}
        return {"shape": [rows, length], "data": [draw.randint(1, MOST_ID) if is_first else 1 for _ in range(rows * length)]}

    return {"inputs": [{"name": spec["name"], "datatype": spec["datatype"], **tensor(spec, i == 0)}
                       for i, spec in enumerate(inputs)]}


def ask(options, server, body_of):
    """(clients, what the front read of the worker each second), until its share of the time is over or all is asked."""
    accounts = []
    ends = min(options.ends, time.monotonic() + options.seconds / options.cases)
    with Clients(server, NAME, Load(CLIENTS, most=options.count), body_of) as clients:
        while time.monotonic() < ends and not clients.wait(READ_EVERY_S):
            worker = server.model_status(NAME)["workers"][0]
            if worker["accounts"]:
                accounts.append(worker["accounts"])
    return clients, accounts


def soak_case(options, case):
    longest = tomllib.loads((case.folder / "model.toml").read_text())["max_length"]
    with tempfile.TemporaryDirectory(prefix="tonnage-soak-") as repository:
        os.symlink(case.folder, Path(repository, NAME))
        with Server(options.program, repository, "--memory", "2GiB", *case.flags) as server:
            _, metadata = models.call(server, f"/v2/models/{NAME}", method="GET")
            made = [json.dumps(body(metadata["inputs"], longest, number)) for number in range(BODIES)]
            clients, accounts = ask(options, server, lambda number: made[number % BODIES])
    wrong = [clients.wrong()] if clients.wrong() else []
    if options.count is not None and clients.sent < options.count:
        wrong.append(f"{clients.sent} of {options.count} requests when the time was over")
    if len(accounts) < LEAST_READINGS:
        wrong.append(f"{len(accounts)} readings are too few to see a plateau")
        return False, {"requests": clients.sent, "answers": dict(clients.answers), "readings": len(accounts),
                       "wrong": "; ".join(wrong)}
    growth = growth_of_last_third([in_use(seen) for seen in accounts])
    free = [free_pages(seen) for seen in accounts]
    if growth >= PLATEAU:
        wrong.append(f"what is in use grew by {growth:.2%} in the last third")
    if free_pages_grow(free):
        wrong.append(f"free pages grew, to {free[-1]} bytes")
    return not wrong, {
        "requests": clients.sent, "answers": dict(clients.answers), "readings": len(accounts),
        "growth_of_last_third": round(growth, 5), "in_use": in_use(accounts[-1]),
        "free_pages": [min(free), free[-1], max(free)], **accounts[-1],
        **({"wrong": "; ".join(wrong)} if wrong else {})}


def pick(cases):
    """As many as have a share of the time: PREFERRED where they are there, and never the stub, which keeps nothing."""
    real = [case for case in cases if case is not None]
    return sorted(real, key=lambda case: case.name not in PREFERRED)[:CASES]


def run(options):
    return run_cases(options, soak_case, pick)
