# SPDX-License-Identifier: Apache-2.0
"""Load, ask, unload, again and again, for every route that is there: nothing of a model may be left."""

import os
import tempfile
import time
import urllib.request
from pathlib import Path

import models
from soak import run_cases
from stub_models import ONE_WORKER, stub_model
from tonnage.serving import Server

COUNT = 50
SECONDS = 3600
# Of the front, from the third cycle on: the first ones fill caches.
MAY_GROW = 4 << 20
NAME = "soaked"


def leftovers(server, scratch):
    """What can still be seen of an unloaded model; the server's profile of it is kept on purpose."""
    front = server.process.pid
    found = [f"process {pid}" for pid in server.pids()[1:]]
    found += [f"descriptor {link}" for link in models.descriptors(front) if NAME in link]
    found += [f"segment {segment}" for segment in models.shared_memory(front)]
    found += [f"file {file}" for file in scratch.iterdir()]
    status = server.status()
    accounts = {account["name"]: account for account in status["accounts"]["children"]}
    found += [f"account {child['name']}" for child in accounts.get("workers", {"children": []})["children"]]
    found += [f"{account} {accounts[account]['used']} bytes" for account in ("shared", "ingress", "envelopes", "rotation")
              if accounts.get(account, {"used": 0})["used"]]
    url = f"http://127.0.0.1:{server.ports['metrics']}/metrics"
    with urllib.request.urlopen(url, timeout=30) as reply:
        found += [f"series {line}" for line in reply.read().decode().splitlines() if f'"{NAME}' in line]
    return found


def cycle(server, scratch):
    """What went wrong, as text; empty: nothing."""
    status, body = models.call(server, f"/v2/repository/models/{NAME}/load")
    if status != 200:
        return f"load was answered {status}: {body}"
    status, body = models.call(server, f"/v2/models/{NAME}/infer", models.one_row(server, NAME))
    if status != 200:
        return f"infer was answered {status}: {body}"
    status, body = models.call(server, f"/v2/repository/models/{NAME}/unload")
    if status != 200:
        return f"unload was answered {status}: {body}"
    if not models.await_until(lambda: not leftovers(server, scratch), 20):
        return f"left behind: {leftovers(server, scratch)}"
    return ""


def soak(options, repository, flags, count):
    scratch = Path(repository).with_name("scratch")  # the workers' folders are made in it
    scratch.mkdir()
    readings = {"cycles": 0, "front_anonymous": [], "front_descriptors": []}
    arguments = ("--model-control", "explicit", "--load-models", "none", "--memory", "2GiB", *flags)
    with Server(options.program, repository, *arguments, environment={"TMPDIR": str(scratch)}) as server:
        while readings["cycles"] < count and time.monotonic() < options.ends:
            if wrong := cycle(server, scratch):
                return False, {**readings, "wrong": f"cycle {readings['cycles'] + 1}: {wrong}"}
            readings["cycles"] += 1
            readings["front_anonymous"].append(models.anonymous(server.process.pid))
            readings["front_descriptors"].append(models.descriptors_at_rest(server.process.pid))
    if readings["cycles"] < count:
        return False, {**readings, "wrong": "the time was over"}
    settled = min(2, count - 1)
    grown = readings["front_anonymous"][-1] - readings["front_anonymous"][settled]
    leaked = readings["front_descriptors"][-1] - readings["front_descriptors"][settled]
    readings.update(front_grown=grown, descriptors_leaked=leaked)
    for key in ("front_anonymous", "front_descriptors"):
        readings[key] = readings[key][-1]
    return grown <= MAY_GROW and leaked <= 0, readings


def soak_case(options, case):
    """`case` is None for the stub."""
    with tempfile.TemporaryDirectory(prefix="tonnage-soak-") as folder:
        repository = Path(folder, "models")
        repository.mkdir()
        if case is None:
            stub_model(repository, NAME, "quadratic", models.ANY_IDS + ONE_WORKER, weight_bytes="16MiB")
        else:
            os.symlink(case.folder, repository / NAME)
        return soak(options, repository, case.flags if case else (), options.count or COUNT)


def run(options):
    return run_cases(options, soak_case)
