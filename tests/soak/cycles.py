# SPDX-License-Identifier: Apache-2.0
"""Load, ask, unload, again and again, for every route that is there: nothing of a model may be left."""

import os
import tempfile
import time
import urllib.request
from pathlib import Path

import models
from soak import say
from tonnage.serving import Server

COUNT = 50
# Of the front, from the third cycle on: the first ones fill caches.
MAY_GROW = 4 << 20


def leftovers(server, name):
    """What can still be seen of an unloaded model; the server's profile of it is kept on purpose."""
    found = [f"process {pid}" for pid in server.pids()[1:]]
    found += [f"descriptor {link}" for link in models.descriptors(server.process.pid) if name in link]
    status = server.status()
    accounts = {account["name"]: account for account in status["accounts"]["children"]}
    found += [f"account {child['name']}" for child in accounts.get("workers", {"children": []})["children"]]
    found += [f"{account} {accounts[account]['used']} bytes" for account in ("shared", "ingress", "envelopes", "rotation")
              if accounts.get(account, {"used": 0})["used"]]
    url = f"http://127.0.0.1:{server.ports['metrics']}/metrics"
    with urllib.request.urlopen(url, timeout=30) as reply:
        found += [f"series {line}" for line in reply.read().decode().splitlines() if f'"{name}' in line]
    return found


def cycle(server, name):
    """What went wrong, as text; empty: nothing."""
    status, body = models.call(server, f"/v2/repository/models/{name}/load")
    if status != 200:
        return f"load was answered {status}: {body}"
    status, body = models.call(server, f"/v2/models/{name}/infer", models.one_row(server, name))
    if status != 200:
        return f"infer was answered {status}: {body}"
    status, body = models.call(server, f"/v2/repository/models/{name}/unload")
    if status != 200:
        return f"unload was answered {status}: {body}"
    if not models.await_until(lambda: not leftovers(server, name), 20):
        return f"left behind: {leftovers(server, name)}"
    return ""


def soak_route(options, repository, name, count):
    readings = {"cycles": 0, "front_anonymous": [], "front_descriptors": []}
    arguments = ("--model-control", "explicit", "--load-models", "none", "--memory", "2GiB")
    with Server(options.program, repository, *arguments) as server:
        while readings["cycles"] < count and time.monotonic() < options.ends:
            if wrong := cycle(server, name):
                return False, {**readings, "wrong": wrong}
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


def run(options):
    results = {}
    with tempfile.TemporaryDirectory(prefix="tonnage-soak-") as folder:
        models.stub_model(folder, "soaked-stub", {"model": "quadratic", "weight_bytes": "16MiB"})
        names = {"stub": "soaked-stub"}
        for route, exported in models.exported(options.models).items():
            names[route] = f"soaked-{route}"
            os.symlink(exported.resolve(), Path(folder, names[route]))
        for route, name in names.items():
            if options.route in (None, route):
                say(f"cycles of route {route}")
                results[route] = soak_route(options, folder, name, options.count or COUNT)
    passed = bool(results) and all(ok for ok, _ in results.values())
    return passed, {"routes": {route: {"pass": ok, **readings} for route, (ok, readings) in results.items()}}
