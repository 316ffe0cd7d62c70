# SPDX-License-Identifier: Apache-2.0
"""The length mix 80/15/5 through encoder-1024 (random weights), saturated: our policy against batches of 64
padded to the longest, against batches of one through the same server, and against the same engine offline.

Every case answers the first requests of one seeded sequence, all of them, with 256 outstanding; a rate is
requests ÷ time to the last answer. `fifo` gets the first 256 of them: it is six times slower.
"""

import json
import os
import shutil
import sys
import tempfile
import tomllib
from pathlib import Path

import harness
from tonnage.serving import Server

MODEL = "encoder-1024"
REQUESTS = {"dp": 768, "fifo": 256, "batch1": 768}
OUTSTANDING = 256
SEED = 20
MEMORY = "4GiB"


def with_settings(text, **tables):
    """model.toml with keys of some tables replaced or added; other lines stay as they are."""
    lines, table, waiting = [], "", {t: dict(v) for t, v in tables.items()}
    for line in text.splitlines() + ["[end]"]:
        header = line.strip()
        if header.startswith("["):
            lines += [f"{k} = {v}" for k, v in waiting.pop(table, {}).items()]
            table = header.strip("[]")
        key = line.partition("=")[0].strip()
        if "=" in line and key in waiting.get(table, {}):
            line = f"{key} = {waiting[table].pop(key)}"
        lines.append(line)
    lines.pop()  # [end]
    for name, keys in waiting.items():
        lines += [f"[{name}]", *(f"{k} = {v}" for k, v in keys.items())]
    text = "\n".join(lines) + "\n"
    tomllib.loads(text)
    return text


def model_variant(source, folder, **batching):
    """A repository with one model whose weights are those of `source` and whose batching differs."""
    target = Path(folder, MODEL)
    target.mkdir(parents=True)
    for entry in source.iterdir():
        if entry.name != "model.toml" and not entry.name.startswith("."):
            (target / entry.name).symlink_to(entry.resolve())
    settings = {"max_queue_s": 600, "max_queue_rows": 100000, **batching}
    (target / "model.toml").write_text(
        with_settings((source / "model.toml").read_text(), batching=settings, workers={"count": 1, "threads": 2}))
    return folder


class Mix:
    def __init__(self, binaries, models, scratch):
        self.binaries, self.scratch = binaries, Path(scratch)
        self.lengths = self.scratch / "lengths.jsonl"
        source = models / MODEL
        if not source.is_dir():
            raise SystemExit(f"{source} is missing: ./dev setup --models")
        self.source = source
        self.folders = {
            "dp": model_variant(source, self.scratch / "dp"),
            "fifo": model_variant(source, self.scratch / "fifo"),
            "batch1": model_variant(source, self.scratch / "batch1", max_rows=1),
        }

    def serve(self, case):
        """One round of one policy: a fresh server that knows its profile, the load, and what status counted."""
        policy = ["--policy", "fifo"] if case == "fifo" else []
        state = self.scratch / f"state-{case}"
        # Nobody waits in vain: the deadline is far beyond the queue.
        with Server(self.binaries / "tonnage", self.folders[case], "--memory", MEMORY, "--v2-deadline", "900s", *policy,
                    state=state) as server:
            before = server.model_status(MODEL)
            save = ["--save", self.lengths] if case == "dp" else []
            load = harness.call(self.binaries / "tonnage", "load", "--url", server.url, "--model", MODEL, "--ids",
                                "--format", "binary", "--mix", "80/15/5", "--saturate", OUTSTANDING, "--requests",
                                REQUESTS[case], "--seed", SEED, "--json", *save)
            after = server.model_status(MODEL)
        if load["refused"]:
            raise SystemExit(f"{case}: {load['refused']} of {load['sent']} requests were refused: {load['refused_by']}")
        counted = {k: after[k] - before[k] for k in ("batches", "rows", "padded_tokens", "real_tokens")}
        return {
            "rps": load["rps"],
            "padding_waste": 1 - counted["real_tokens"] / counted["padded_tokens"],
            "rows_per_batch": counted["rows"] / counted["batches"],
        }

    def oracle(self):
        """The same requests offline, in a process of its own."""
        lengths = [json.loads(line)["tokens"] for line in self.lengths.read_text().splitlines()]
        env = dict(os.environ, OMP_WAIT_POLICY="passive", OMP_NUM_THREADS="2")
        file = self.scratch / "oracle.json"
        file.write_text(json.dumps(lengths))
        return harness.call(sys.executable, Path(__file__).parent / "oracle.py", self.source, file, env=env)

    def cases(self):
        return {
            "dp": lambda: self.serve("dp"),
            "oracle": self.oracle,
            "batch1": lambda: self.serve("batch1"),
            "fifo": lambda: self.serve("fifo"),
        }


def main(options):
    binaries = options.build.resolve() / "bin"
    models = harness.ROOT / "build/models"
    scratch = tempfile.mkdtemp(prefix="tonnage-bench-")
    try:
        bench = Mix(binaries, models, scratch)
        harness.say("first starts: each policy profiles its shapes once")
        for case in bench.folders:
            bench.serve(case)
        rounds = harness.run_rounds(bench.cases(), options.rounds, noisy=options.noisy)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)

    def ratio(case):
        return round(rounds.median_of(lambda r: r["dp"]["rps"] / r[case]["rps"]), 3)

    harness.emit("mix", {
        "dp_over_fifo": ratio("fifo"),
        "oracle": ratio("oracle"),
        "over_batch1": ratio("batch1"),
        "padding_waste": round(rounds.median("dp", "padding_waste"), 4),
        "rows_per_batch": round(rounds.median("dp", "rows_per_batch"), 2),
        "rps": {case: round(rounds.median(case, "rps"), 2) for case in bench.cases()},
        "fifo_padding_waste": round(rounds.median("fifo", "padding_waste"), 4),
        "fifo_rows_per_batch": round(rounds.median("fifo", "rows_per_batch"), 2),
        "model": "encoder-1024: MiniLM-L6 architecture, 1,024 positions, random weights",
    }, rounds)
