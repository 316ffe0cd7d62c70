# SPDX-License-Identifier: Apache-2.0
"""The length mix 80/15/5 through encoder-1024 (random weights) by every route that was exported, in fp32 and bf16
(native: fp32, a script decides for itself): the engine offline, all rows sorted, and the same requests through the
server, saturated.

Per case: offline_rps, server_rps, oracle (server ÷ offline of the same round), peak_bytes (highest use of the
server's process tree by the kernel), min_cosine (to fp32, over the export's checks). `best_bf16_over_fifo`
compares with batches of 64 padded to the longest in fp32; without AMX it is null, and says so.
"""

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

import harness
import mix
from tonnage.serving import Server, Watch

REQUESTS = 384
FIFO_REQUESTS = 128


class Routes:
    def __init__(self, binaries, model, scratch):
        self.binaries, self.model, self.scratch = binaries, model, Path(scratch)
        file = model / "1/artefacts.json"
        if not file.is_file():
            raise SystemExit(f"{file} is missing: ./dev setup --models --routes all")
        self.records = [r for r in json.loads(file.read_text())["artefacts"]
                        if r["precision"] in (("fp32",) if r["route"] == "native" else ("fp32", "bf16"))]
        self.folder = mix.model_variant(model, self.scratch / "models")
        self.lengths = None

    def serve(self, name, flags, requests):
        with Server(self.binaries / "tonnage", self.folder, "--memory", mix.MEMORY, "--v2-deadline", "900s", *flags,
                    state=self.scratch / f"state-{name}") as server:
            save = self.scratch / "sent.jsonl"
            with Watch(self.binaries / "tonnage-watch", server.process.pid, self.scratch / "watch.json") as watch:
                load = harness.call(self.binaries / "tonnage", "load", "--url", server.url, "--model", mix.MODEL,
                                    "--ids", "--format", "binary", "--mix", "80/15/5", "--saturate", mix.OUTSTANDING,
                                    "--requests", requests, "--seed", mix.SEED, "--json", "--save", save)
        if load["refused"]:
            raise SystemExit(f"{name}: {load['refused']} requests were refused: {load['refused_by']}")
        if self.lengths is None:
            self.lengths = self.scratch / "lengths.json"
            self.lengths.write_text(json.dumps([json.loads(line)["tokens"] for line in save.read_text().splitlines()]))
        return {"rps": load["rps"], "peak_bytes": watch.result()["highest_use_bytes"]}

    def offline(self, record):
        env = dict(os.environ, OMP_WAIT_POLICY="passive", OMP_NUM_THREADS="2")
        return harness.call(sys.executable, Path(__file__).parent / "oracle.py", self.model, self.lengths,
                            record["route"], record["precision"], env=env)

    def cases(self):
        cases = {}
        for record in self.records:
            name = f"{record['route']} {record['precision']}"
            flags = ["--route", record["route"], "--precision", record["precision"]]
            cases[f"{name} server"] = lambda n=name, f=flags: self.serve(n, f, REQUESTS)
            cases[f"{name} offline"] = lambda r=record: self.offline(r)
        cases["fifo"] = lambda: self.serve("fifo", ["--policy", "fifo", "--route", "trace"], FIFO_REQUESTS)
        return cases


def has_amx():
    return "amx_bf16" in Path("/proc/cpuinfo").read_text()


def summarize(records, rounds, with_amx):
    """The keys of the result."""
    result, best = {}, None
    for record in records:
        name = f"{record['route']} {record['precision']}"
        result[name] = {
            "offline_rps": round(rounds.median(f"{name} offline", "rps"), 2),
            "server_rps": round(rounds.median(f"{name} server", "rps"), 2),
            "oracle": round(rounds.median_of(lambda r, n=name: r[f"{n} server"]["rps"] / r[f"{n} offline"]["rps"]), 3),
            "peak_bytes": int(rounds.median(f"{name} server", "peak_bytes")),
            "min_cosine": min(record["min_cosine"], record["min_padding_cosine"]),
        }
        if record["precision"] == "bf16" and (best is None or result[name]["server_rps"] > result[best]["server_rps"]):
            best = name
    over = None
    if best and with_amx:
        over = round(rounds.median_of(lambda r: r[f"{best} server"]["rps"] / r["fifo"]["rps"]), 2)
    else:
        why = "this CPU has no AMX" if best else "nothing was exported in bf16"
        print(f"best_bf16_over_fifo is skipped: {why}", file=sys.stderr)
    return {"routes": result, "fifo_rps": round(rounds.median("fifo", "rps"), 2), "best_bf16": best,
            "best_bf16_over_fifo": over}


def main(options):
    scratch = tempfile.mkdtemp(prefix="tonnage-bench-")
    try:
        bench = Routes(options.build.resolve() / "bin", harness.ROOT / "build/models" / mix.MODEL, scratch)
        cases = bench.cases()
        harness.say("first starts: each route profiles its shapes once")
        for name, measure in cases.items():
            if not name.endswith("offline"):
                measure()
        rounds = harness.run_rounds(cases, options.rounds, noisy=options.noisy)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)

    harness.emit("routes", {**summarize(bench.records, rounds, has_amx()),
                            "model": "encoder-1024: MiniLM-L6 architecture, 1,024 positions, random weights"}, rounds)
