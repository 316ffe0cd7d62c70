# SPDX-License-Identifier: Apache-2.0
"""How long a fault is felt, with stub workers: from killing the worker under load to the next good answer, from
running out of memory to the next good answer, and how late a deadline that passes in the queue is answered.

Cold start is what the kill is compared with: empty state directory, from spawn to the first good answer.
"""

import http.client
import json
import os
import re
import signal
import statistics
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import harness
from stub_models import IDS_MODEL, ONE_WORKER, stub_model
from tonnage.serving import Server

# Tells the truth while it is profiled, then needs four times what it said.
LIAR = {"lie_factor": 4, "lie_after": 100}
LIAR_REQUESTS = 200
TIMEOUT_MS = 200
WAITING = 8


def repository(folder, name, max_length, **options):
    stub_model(folder, name, "quadratic", IDS_MODEL.format(max_length=max_length) + ONE_WORKER, **options)
    return folder


class Client:
    """One keep-alive connection; infer() gives (status, seconds)."""

    def __init__(self, server, model):
        self.path = f"/v2/models/{model}/infer"
        self.connection = http.client.HTTPConnection("127.0.0.1", server.ports["http"], timeout=90)

    def infer(self, length=8, timeout_ms=None):
        body = {"inputs": [{"name": "ids", "shape": [1, length], "datatype": "INT64", "data": [5] * length}]}
        if timeout_ms:
            body["parameters"] = {"timeout": timeout_ms * 1000}
        started = time.perf_counter()
        self.connection.request("POST", self.path, json.dumps(body))
        reply = self.connection.getresponse()
        reply.read()
        return reply.status, time.perf_counter() - started


def worker_pid(server):
    for pid in server.pids()[1:]:
        if "tonnage-worker" in Path(f"/proc/{pid}/cmdline").read_text():
            return pid
    raise SystemExit("the server has no worker")


class Faults:
    def __init__(self, binaries, folder):
        self.binaries, self.folder = binaries, Path(folder)
        self.steady = repository(self.folder / "steady", "steady", 128, sleep_ms=2)
        self.liar = repository(self.folder / "liar", "liar", 64, **LIAR)

    def server(self, models, **kinds):
        return Server(self.binaries / "tonnage", models, "--memory", "512MiB", **kinds)

    def cold_start(self):
        began = time.monotonic()
        with self.server(self.steady) as server:
            status, _ = Client(server, "steady").infer()
            if status != 200:
                raise SystemExit(f"the first answer of a fresh server was {status}")
            return {"seconds": time.monotonic() - began}

    def kill(self):
        """kill -9 of the worker while 16 clients wait for it: everyone is answered."""
        with self.server(self.steady, state=self.folder / "state") as server:
            load = subprocess.Popen(
                [self.binaries / "tonnage", "load", "--url", server.url, "--model", "steady", "--ids", "--format",
                 "binary", "--mix", "100/0/0", "--saturate", "16", "--for", "5s", "--json"],
                stdout=subprocess.PIPE, text=True)
            client = Client(server, "steady")
            for _ in range(50):  # under load, before the kill
                client.infer()
            os.kill(worker_pid(server), signal.SIGKILL)
            began = time.perf_counter()
            while client.infer()[0] != 200:
                pass
            recovered = time.perf_counter() - began
            result = json.loads(load.communicate()[0].strip().splitlines()[-1])
        return {"seconds": recovered, "refused": result["refused"]}

    def out_of_memory(self):
        """The request that finds out that the model lied, until there is a good answer again."""
        # A state of its own: the lesson would survive the restart, and the next round would find no liar.
        with self.server(self.liar, state=tempfile.mkdtemp(dir=self.folder)) as server:
            client, usual = Client(server, "liar"), []
            for _ in range(LIAR_REQUESTS):
                before = over_grants(server)
                began = time.perf_counter()
                status, seconds = client.infer(64)
                while status != 200 and time.perf_counter() - began < 30:
                    status, _ = client.infer(64)
                if over_grants(server) > before:
                    return {"seconds": time.perf_counter() - began, "usual": statistics.median(usual or [seconds])}
                usual.append(seconds)
        raise SystemExit(f"the lying model was never caught in {LIAR_REQUESTS} requests")

    def queue_timeout(self):
        """Rows that wait behind a stopped worker are answered when their deadline passes."""
        with self.server(self.steady, state=self.folder / "state") as server:
            clients = [Client(server, "steady") for _ in range(WAITING + 1)]
            for client in clients:
                client.infer()
            pid = worker_pid(server)
            os.kill(pid, signal.SIGSTOP)
            try:
                with ThreadPoolExecutor(len(clients)) as pool:
                    busy = pool.submit(clients[0].infer)
                    answers = list(pool.map(lambda c: c.infer(8, TIMEOUT_MS), clients[1:]))
                    os.kill(pid, signal.SIGCONT)
                    if busy.result()[0] != 200:
                        raise SystemExit(f"the row on the stopped worker was answered {busy.result()[0]}")
            finally:
                os.kill(pid, signal.SIGCONT)
        if any(status != 504 for status, _ in answers):
            raise SystemExit(f"deadlines that passed in the queue were answered {sorted({s for s, _ in answers})}")
        return {"late_ms": max(seconds for _, seconds in answers) * 1e3 - TIMEOUT_MS}


def over_grants(server):
    connection = http.client.HTTPConnection("127.0.0.1", server.ports["metrics"], timeout=10)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    return sum(float(v) for v in re.findall(r"^tonnage_over_grants_total\S* (\S+)$", text, re.M))


def main(options):
    with tempfile.TemporaryDirectory(prefix="tonnage-bench-") as folder:
        faults = Faults(options.build.resolve() / "bin", folder)
        rounds = harness.run_rounds({
            "cold_start": faults.cold_start,
            "kill": faults.kill,
            "out_of_memory": faults.out_of_memory,
            "queue_timeout": faults.queue_timeout,
        }, options.rounds, noisy=options.noisy)
    refused = sum(v["refused"] for v in rounds.values["kill"])
    harness.emit("faults", {
        "kill_to_answer_s": round(rounds.median("kill", "seconds"), 4),
        "cold_start_s": round(rounds.median("cold_start", "seconds"), 4),
        "kill_over_cold_start": round(rounds.median_of(lambda r: r["kill"]["seconds"] / r["cold_start"]["seconds"]), 3),
        "kill_refused": refused,
        "oom_to_answer_s": round(rounds.median("out_of_memory", "seconds"), 4),
        "usual_answer_s": round(rounds.median("out_of_memory", "usual"), 5),
        "queue_timeout_late_ms": round(rounds.median("queue_timeout", "late_ms"), 3),
    }, rounds)
