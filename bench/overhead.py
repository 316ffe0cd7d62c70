# SPDX-License-Identifier: Apache-2.0
"""What the server adds to a bare relay between three processes: the echo model through a stub worker.

One client, latency: spread over two CPUs (client and worker on one, front on the other), everything on one
CPU, and unpinned; the relay is measured beside each, pinned alike. 64 clients, rate: 343 B JSON, 4 KB binary.
"""

import os
import tempfile
from pathlib import Path

import harness
from stub_models import ECHO_MODEL, ONE_WORKER, stub_model
from tonnage.serving import Server

ECHO = "max_length = 4096\n" + ECHO_MODEL.format(width=-1) + ONE_WORKER
RELAY_REQUESTS = 20000
CLIENT_SECONDS = 2.0
LATENCY_BODY = 343


def layouts():
    """name → CPUs of client, front and worker; −1 is not pinned."""
    cpus = sorted(os.sched_getaffinity(0))
    first, second = cpus[0], cpus[1 % len(cpus)]
    return {"spread": (first, second, first), "one_cpu": (first, first, first), "free": (-1, -1, -1)}


def scheduler_mode(server):
    """Where the scheduler put front and worker, seen right after a run that pinned nothing."""
    last = {int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[36]) for pid in server.pids()}
    return "one core" if len(last) == 1 else "across cores"


class Overhead:
    def __init__(self, server, binaries):
        self.server, self.binaries, self.modes = server, binaries, []

    def pin(self, cpus):
        every = os.sched_getaffinity(0)
        _, front, worker = ({cpu} if cpu >= 0 else every for cpu in cpus)
        self.server.pin(front, worker)

    def relay(self, cpus):
        return harness.call(self.binaries / "tonnage-bench-relay", LATENCY_BODY, RELAY_REQUESTS, *cpus)

    def client(self, cpus, body="json", size=LATENCY_BODY, clients=1):
        self.pin(cpus)
        result = harness.call(self.binaries / "tonnage-bench-echo-client", self.server.ports["http"], "echo", body, size,
                              clients, CLIENT_SECONDS, cpus[0])
        if result["refused"]:
            raise SystemExit(f"{result['refused']} requests were refused: this does not measure overhead")
        if cpus[0] < 0 and clients == 1:
            self.modes.append(scheduler_mode(self.server))
        return result

    def cases(self):
        cases = {}
        for name, cpus in layouts().items():
            cases[f"relay_{name}"] = lambda cpus=cpus: self.relay(cpus)
            cases[f"server_{name}"] = lambda cpus=cpus: self.client(cpus)
        free = layouts()["free"]
        cases["rate"] = lambda: self.client(free, clients=64)
        cases["rate_4k"] = lambda: self.client(free, "binary", 4096, clients=64)
        return cases


def main(options):
    binaries = options.build.resolve() / "bin"
    with tempfile.TemporaryDirectory(prefix="tonnage-bench-") as folder:
        stub_model(folder, "echo", "echo", ECHO)
        with Server(binaries / "tonnage", folder, "--memory", "1GiB") as server:
            bench = Overhead(server, binaries)
            rounds = harness.run_rounds(bench.cases(), options.rounds, noisy=options.noisy)
    over = {
        name: rounds.median_of(lambda r, n=name: r[f"server_{n}"]["p50_us"] - r[f"relay_{n}"]["p50_us"])
        for name in layouts()
    }
    harness.emit("overhead", {
        "p50_over_relay_us": round(over["spread"], 2),
        "p50_us": round(rounds.median("server_free", "p50_us"), 2),
        "scheduler_mode": max(set(bench.modes), key=bench.modes.count),
        "pinned_p50_us": round(rounds.median("server_one_cpu", "p50_us"), 2),
        "pinned_over_relay_us": round(over["one_cpu"], 2),
        "spread_p50_us": round(rounds.median("server_spread", "p50_us"), 2),
        "relay_spread_p50_us": round(rounds.median("relay_spread", "p50_us"), 2),
        "relay_pinned_p50_us": round(rounds.median("relay_one_cpu", "p50_us"), 2),
        "rps": round(rounds.median("rate", "rps")),
        "rps_4k": round(rounds.median("rate_4k", "rps")),
    }, rounds)
