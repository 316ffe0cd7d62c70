# SPDX-License-Identifier: Apache-2.0
"""Workers replaced under load: no request may be lost or run twice, and the budget holds both workers just so.

Route stub: 100 rotations at four fifths of what the model can do, in a budget of the old worker, the standby's charge
and a tenth of both. An exported model: five rotations.
"""

import collections
import http.client
import json
import os
import tempfile
import threading
import time
from pathlib import Path

import models
from soak import say
from tonnage.serving import Server

STUB_COUNT, EXPORTED_COUNT = 100, 5
BATCH_MS, SHARE = 20, 0.8
FIRST_ID = 1000  # below it are the values of warm-up and checks
CLIENTS = 8


class Traffic:
    """Requests at a steady pace, each with a body of its own number; counts how they were answered."""

    def __init__(self, server, name, rate, body_of):
        self.server, self.path, self.pause, self.body_of = server, f"/v2/models/{name}/infer", 1 / rate, body_of
        self.answers, self.sent, self.lock, self.ends = collections.Counter(), 0, threading.Lock(), False
        self.threads = [threading.Thread(target=self.run) for _ in range(CLIENTS)]

    def __enter__(self):
        self.began = time.monotonic()
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.ends = True
        for thread in self.threads:
            thread.join()

    def run(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.ports["http"], timeout=60)
        while not self.ends:
            with self.lock:
                number, self.sent = self.sent, self.sent + 1
            threading.Event().wait(max(0.0, self.began + number * self.pause - time.monotonic()))
            connection.request("POST", self.path, self.body_of(number))
            reply = connection.getresponse()
            reply.read()
            with self.lock:
                self.answers[reply.status] += 1


def ids_body(number):
    return json.dumps({"inputs": [{"name": "ids", "shape": [1, 2], "datatype": "INT64", "data": [FIRST_ID + number, 1]}]})


def rotate(server, name, count, ends):
    """Rotates until `count`, one after the other; (done, what went wrong)."""
    for done in range(count):
        if time.monotonic() > ends:
            return done, "the time was over"
        status, body = models.call(server, f"/v2/repository/models/{name}/rotate", timeout=600)
        if status != 200:
            return done, f"rotation {done + 1} was answered {status}: {body}"
    return count, ""


def used(server):
    return server.status()["used_bytes"] - next(
        (a["used"] for a in server.status()["accounts"]["children"] if a["name"] == "front"), 0)


def measured_budget(options, folder, name, log):
    """Old worker + what the standby is charged + a tenth of both, and what the front itself has."""
    with Server(options.program, folder, "--model-control", "explicit", "--memory", "1GiB", "--log-file", log) as server:
        for number in range(50):
            models.call(server, f"/v2/models/{name}/infer", json.loads(ids_body(number)))
        held, front = used(server), server.status()["used_bytes"] - used(server)
        rotate(server, name, 1, options.ends)
    begun = [json.loads(line) for line in Path(log).read_text().splitlines() if '"rotation_begun"' in line]
    # The front's own base may grow a little under load; it is no part of what is judged here.
    return int(1.1 * (held + begun[0]["charge_bytes"])) + front + (16 << 20)


def soak_stub(options, count):
    with tempfile.TemporaryDirectory(prefix="tonnage-soak-") as folder:
        repository, executed = Path(folder, "models"), Path(folder, "executed.txt")
        models.stub_model(repository, "rotated", {
            "model": "slow_load", "load_ms": 20, "weight_bytes": "64MiB", "sleep_ms": BATCH_MS,
            "bytes_per_token": "64KiB", "execution_log": str(executed)}, "[batching]\nmax_rows = 1")
        budget = measured_budget(options, repository, "rotated", str(Path(folder, "log.jsonl")))
        executed.write_text("")
        arguments = ("--model-control", "explicit", "--memory", budget, "--ingress", 1 << 20)
        with Server(options.program, repository, *arguments) as server:
            before = used(server)
            with Traffic(server, "rotated", SHARE * 1000 / BATCH_MS, ids_body) as traffic:
                done, wrong = rotate(server, "rotated", count, options.ends)
            models.await_until(lambda: server.status()["open_requests"] == 0, 30)
            status = server.status()
        rows = collections.Counter(int(float(line.split()[-1])) for line in executed.read_text().splitlines() if line.strip())
        twice = sum(1 for value, times in rows.items() if value >= FIRST_ID and times > 1)
        lost = sum(1 for number in range(traffic.sent) if FIRST_ID + number not in rows)
        readings = {"rotations": done, "sent": traffic.sent, "answers": dict(traffic.answers), "lost": lost, "twice": twice,
                    "budget": budget, "used_before": before, "used_after": status["used_bytes"], "bugs": status["bugs"]}
    good = set(traffic.answers) == {200} and not (lost or twice or wrong or status["bugs"])
    return good, {**readings, **({"wrong": wrong} if wrong else {})}


def soak_exported(options, folder, count):
    with tempfile.TemporaryDirectory(prefix="tonnage-soak-") as repository:
        os.symlink(folder.resolve(), Path(repository, "rotated"))
        with Server(options.program, repository, "--model-control", "explicit", "--memory", "2GiB") as server:
            body = json.dumps(models.one_row(server, "rotated"))
            with Traffic(server, "rotated", 10, lambda _: body) as traffic:
                resident = []
                done, wrong = 0, ""
                while done < count and not wrong:
                    one, wrong = rotate(server, "rotated", 1, options.ends)
                    done += one
                    resident.append(sum(models.anonymous(pid) for pid in server.pids()[1:]))
            bugs = server.status()["bugs"]
    good = set(traffic.answers) == {200} and sum(traffic.answers.values()) == traffic.sent and not (wrong or bugs)
    return good, {"rotations": done, "sent": traffic.sent, "answers": dict(traffic.answers),
                  "resident_after_each": resident, **({"wrong": wrong} if wrong else {})}


def run(options):
    results = {}
    if options.route in (None, "stub"):
        say("rotations of a stub")
        results["stub"] = soak_stub(options, options.count or STUB_COUNT)
    for route, folder in models.exported(options.models).items():
        if options.route in (None, route):
            say(f"rotations of {folder.name}, route {route}")
            results[route] = soak_exported(options, folder, options.count or EXPORTED_COUNT)
    passed = bool(results) and all(ok for ok, _ in results.values())
    return passed, {"routes": {route: {"pass": ok, **readings} for route, (ok, readings) in results.items()}}
