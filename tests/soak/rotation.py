# SPDX-License-Identifier: Apache-2.0
"""Workers replaced under load: no request may be lost or run twice, and the budget holds both workers just so.

Route stub: 100 rotations at four fifths of what the model can do, in a budget of the old worker, the standby's charge
and a tenth of both. An exported model: five rotations.
"""

import collections
import json
import os
import tempfile
import time
from pathlib import Path

import models
from clients import Clients, Load
from soak import run_cases
from stub_models import ONE_WORKER, batching, stub_model
from tonnage.serving import Server

SECONDS = 1800
STUB_COUNT, EXPORTED_COUNT = 100, 5
BATCH_MS, SHARE = 20, 0.8
FIRST_ID = 1000  # below it are the values of warm-up and checks
CLIENTS = 8
EXPORTED_RATE = 10  # requests a second


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
        stub_model(repository, "rotated", "slow_load", models.ANY_IDS + ONE_WORKER + batching("max_rows = 1"), load_ms=20,
                   weight_bytes="64MiB", sleep_ms=BATCH_MS, bytes_per_token="64KiB", execution_log=str(executed))
        budget = measured_budget(options, repository, "rotated", str(Path(folder, "log.jsonl")))
        executed.write_text("")
        arguments = ("--model-control", "explicit", "--memory", budget, "--ingress", 1 << 20)
        with Server(options.program, repository, *arguments) as server:
            before = used(server)
            with Clients(server, "rotated", Load(CLIENTS, rate=SHARE * 1000 / BATCH_MS), ids_body) as clients:
                done, wrong = rotate(server, "rotated", count, options.ends)
            models.await_until(lambda: server.status()["open_requests"] == 0, 30)
            status = server.status()
        rows = collections.Counter(int(float(line.split()[-1])) for line in executed.read_text().splitlines() if line.strip())
        twice = sum(1 for value, times in rows.items() if value >= FIRST_ID and times > 1)
        lost = sum(1 for number in range(clients.sent) if FIRST_ID + number not in rows)
        readings = {"rotations": done, "sent": clients.sent, "answers": dict(clients.answers), "lost": lost, "twice": twice,
                    "budget": budget, "used_before": before, "used_after": status["used_bytes"], "bugs": status["bugs"]}
    wrong = "; ".join(filter(None, [wrong, clients.wrong()]))
    good = not (lost or twice or wrong or status["bugs"])
    return good, {**readings, **({"wrong": wrong} if wrong else {})}


def soak_exported(options, case, count):
    with tempfile.TemporaryDirectory(prefix="tonnage-soak-") as repository:
        os.symlink(case.folder, Path(repository, "rotated"))
        with Server(options.program, repository, "--model-control", "explicit", "--memory", "2GiB", *case.flags) as server:
            body = json.dumps(models.one_row(server, "rotated"))
            with Clients(server, "rotated", Load(CLIENTS, rate=EXPORTED_RATE), lambda _: body) as clients:
                resident = []
                done, wrong = 0, ""
                while done < count and not wrong:
                    one, wrong = rotate(server, "rotated", 1, options.ends)
                    done += one
                    resident.append(sum(models.anonymous(pid) for pid in server.pids()[1:]))
            bugs = server.status()["bugs"]
    wrong = "; ".join(filter(None, [wrong, clients.wrong()]))
    return not (wrong or bugs), {"rotations": done, "sent": clients.sent, "answers": dict(clients.answers), "bugs": bugs,
                                 "resident_after_each": resident, **({"wrong": wrong} if wrong else {})}


def soak_case(options, case):
    if case is None:
        return soak_stub(options, options.count or STUB_COUNT)
    return soak_exported(options, case, options.count or EXPORTED_COUNT)


def run(options):
    return run_cases(options, soak_case)
