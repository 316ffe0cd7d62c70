# SPDX-License-Identifier: Apache-2.0
"""How long a fault is felt, with stub workers: from killing the worker under load to the next good answer, from
running out of memory to the next good answer, and how late a deadline that passes in the queue is answered.

Each is held against its limit, beside the predicted time of the batch it hit and the rows that were run again. The
bench fails when one is missed. Cold start is what the kill is compared with: empty state directory, from spawn to the
first good answer.
"""

import functools
import http.client
import json
import os
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
LIAR = {"lie_factor": 4, "lie_after": 100, "sleep_ms": 2}
LIAR_LENGTH = 64
STEADY_LENGTH = 128
MEMORY = "512MiB"
LIAR_REQUESTS = 200
TIMEOUT_MS = 200
WAITING = 8

# The limits: a worker is there again after three cold starts; a batch that ran out of memory is answered after it
# ran twice, and a little; a deadline is noticed soon.
KILL_COLD_STARTS = 3
OOM_BATCHES, OOM_EXTRA_S, OOM_RETRIES = 2, 0.020, 1
LATE_S = 0.020


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
        self.steady = repository(self.folder / "steady", "steady", STEADY_LENGTH, sleep_ms=2)
        self.steady_state = self.folder / "state"
        self.liar = repository(self.folder / "liar", "liar", LIAR_LENGTH, **LIAR)

    def server(self, models, **kinds):
        return Server(self.binaries / "tonnage", models, "--memory", MEMORY, **kinds)

    def predicted(self, model, length, state):
        """Seconds that a batch of one row is predicted to take, by the profile in `state`, which is made if need be."""
        seen = harness.call(self.binaries / "tonnage", "inspect", model, "--memory", MEMORY, "--state", state, "--json")
        return next(p["time_ms"] for p in seen["grid"] if (p["rows"], p["length"]) == (1, length)) / 1e3

    @functools.cached_property
    def steady_batch(self):
        return self.predicted(self.steady / "steady", STEADY_LENGTH, self.steady_state)

    def cold_start(self):
        began = time.monotonic()
        with self.server(self.steady) as server:
            status, _ = Client(server, "steady").infer()
            if status != 200:
                raise SystemExit(f"the first answer of a fresh server was {status}")
            return {"seconds": time.monotonic() - began}

    def kill(self):
        """kill -9 of the worker while 16 clients wait for it: everyone is answered."""
        predicted = self.steady_batch
        with self.server(self.steady, state=self.steady_state) as server:
            load = subprocess.Popen(
                [self.binaries / "tonnage", "load", "--url", server.url, "--model", "steady", "--ids", "--format",
                 "binary", "--mix", "100/0/0", "--saturate", "16", "--for", "5s", "--json"],
                stdout=subprocess.PIPE, text=True)
            client = Client(server, "steady")
            for _ in range(50):  # under load, before the kill
                client.infer()
            before = server.model_status("steady")["retried_rows"]
            os.kill(worker_pid(server), signal.SIGKILL)
            began = time.perf_counter()
            while client.infer()[0] != 200:
                pass
            recovered = time.perf_counter() - began
            result = json.loads(load.communicate()[0].strip().splitlines()[-1])
            retried = server.model_status("steady")["retried_rows"] - before
        return {"seconds": recovered, "refused": result["refused"], "retried": retried, "predicted": predicted}

    def out_of_memory(self):
        """The request that finds out that the model lied, until there is a good answer again."""
        # A state of its own: the lesson would survive the restart, and the next round would find no liar.
        state = tempfile.mkdtemp(dir=self.folder)
        predicted = self.predicted(self.liar / "liar", LIAR_LENGTH, state)
        with self.server(self.liar, state=state) as server:
            client, usual = Client(server, "liar"), []
            for _ in range(LIAR_REQUESTS):
                before = server.model_status("liar")
                began = time.perf_counter()
                status, seconds = client.infer(LIAR_LENGTH)
                while status != 200 and time.perf_counter() - began < 30:
                    status, _ = client.infer(LIAR_LENGTH)
                took, after = time.perf_counter() - began, server.model_status("liar")
                if after["over_grants"] > before["over_grants"]:
                    return {"seconds": took, "usual": statistics.median(usual or [seconds]), "predicted": predicted,
                            "retried": after["retried_rows"] - before["retried_rows"]}
                usual.append(seconds)
        raise SystemExit(f"the lying model was never caught in {LIAR_REQUESTS} requests")

    def queue_timeout(self):
        """Rows that wait behind a stopped worker are answered when their deadline passes."""
        predicted = self.steady_batch
        with self.server(self.steady, state=self.steady_state) as server:
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
            retried = server.model_status("steady")["retried_rows"]
        if any(status != 504 for status, _ in answers):
            raise SystemExit(f"deadlines that passed in the queue were answered {sorted({s for s, _ in answers})}")
        return {"late": max(seconds for _, seconds in answers) - TIMEOUT_MS / 1e3, "retried": retried,
                "predicted": predicted}


def judge(rounds):
    """Fault → what was felt of it, what was allowed, what the batch was predicted to take, and whether it is kept.
    Seconds are medians over the rounds, a limit that follows a measurement is taken inside its round; rows run again
    are the most of a round."""
    def felt(fault, seconds, limit, most_retries=None):
        retried = max(value["retried"] for value in rounds.values[fault])
        over = rounds.median_of(lambda r: r[fault][seconds] / limit(r))
        return {"felt_s": round(rounds.median(fault, seconds), 4), "limit_s": round(rounds.median_of(limit), 4),
                "predicted_batch_s": round(rounds.median(fault, "predicted"), 5), "retried_rows": retried,
                "pass": over <= 1 and (most_retries is None or retried <= most_retries)}

    return {
        "kill": felt("kill", "seconds", lambda r: KILL_COLD_STARTS * r["cold_start"]["seconds"]),
        # One row a batch: its rows run again are the batch's retries.
        "out_of_memory": felt("out_of_memory", "seconds",
                              lambda r: OOM_BATCHES * r["out_of_memory"]["predicted"] + OOM_EXTRA_S, OOM_RETRIES),
        "queue_timeout": felt("queue_timeout", "late", lambda _: LATE_S, 0),
    }


def print_verdicts(verdicts):
    for fault, seen in verdicts.items():
        harness.say(f"{fault:<14} felt {seen['felt_s'] * 1e3:8.1f} ms of {seen['limit_s'] * 1e3:8.1f} ms allowed, batch "
                    f"predicted {seen['predicted_batch_s'] * 1e3:.2f} ms, {seen['retried_rows']} rows run again: "
                    f"{'kept' if seen['pass'] else 'MISSED'}")


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
    verdicts = judge(rounds)
    print_verdicts(verdicts)
    passed = all(seen["pass"] for seen in verdicts.values())
    harness.emit("faults", {
        "pass": passed,
        "faults": verdicts,
        "kill_to_answer_s": round(rounds.median("kill", "seconds"), 4),
        "cold_start_s": round(rounds.median("cold_start", "seconds"), 4),
        "kill_over_cold_start": round(rounds.median_of(lambda r: r["kill"]["seconds"] / r["cold_start"]["seconds"]), 3),
        "kill_refused": refused,
        "oom_to_answer_s": round(rounds.median("out_of_memory", "seconds"), 4),
        "usual_answer_s": round(rounds.median("out_of_memory", "usual"), 5),
        "queue_timeout_late_ms": round(rounds.median("queue_timeout", "late") * 1e3, 3),
    }, rounds)
    return 0 if passed else 1
