# SPDX-License-Identifier: Apache-2.0
"""What long texts do to short ones: the same short and medium arrivals (rate, seed) without and with long texts
beside them, at 0.6 × capacity in total, for each layout of executors. encoder-1024 (random weights).

`short_p99_ratio` is p99 of the texts up to 128 tokens with longs ÷ without, of the best layout; every layout is
in `layouts`, with the shares of shorts and longs that were answered. 95 % of both must be: what is refused waits for
nobody, and would make its layout the best.

shared   one worker × 2 threads takes both classes
idle     beside it a worker × 1 thread for longs alone, at idle priority, which holds no compute token
split    2 workers × 1 thread, one of them closed to longs
"""

import shutil
import subprocess
import tempfile
from pathlib import Path

import harness
import mix
from tonnage.serving import Server

SECONDS = 40
SHARE_OF_CAPACITY = 0.6
SHARE_OF_LONGS = 0.05
LEAST_ANSWERED = 0.95
LAYOUTS = {
    "shared": {"count": 1, "threads": 2},
    "idle": {"count": 1, "threads": 2, "long_count": 1, "long_threads": 1, "long_priority": '"idle"'},
    "split": {"count": 1, "threads": 1, "long_count": 1, "long_threads": 1, "long_priority": '"normal"'},
}


class LongLane:
    def __init__(self, binaries, model, scratch):
        self.binaries, self.scratch = binaries, Path(scratch)
        self.folders = {}
        for name, workers in LAYOUTS.items():
            folder = mix.model_variant(model, self.scratch / name)
            toml = folder / mix.MODEL / "model.toml"
            toml.write_text(mix.with_settings(toml.read_text(), workers=workers))
            self.folders[name] = folder
        self.rate = None

    def server(self, layout):
        return Server(self.binaries / "tonnage", self.folders[layout], "--memory", mix.MEMORY,
                      state=self.scratch / f"state-{layout}")

    def load(self, server, *flags):
        return [self.binaries / "tonnage", "load", "--url", server.url, "--model", mix.MODEL, "--ids", "--format",
                "binary", "--json", *flags]

    def measure_capacity(self):
        """Requests a second of the whole mix, saturated, in the plainest layout. Also the first start of each."""
        for layout in LAYOUTS:
            with self.server(layout) as server:
                if layout == "shared":
                    result = harness.call(*self.load(server, "--mix", "80/15/5", "--saturate", 64, "--requests", 512))
                    self.rate = SHARE_OF_CAPACITY * result["rps"]

    def measure(self, layout):
        common = ("--for", f"{SECONDS}s", "--seed", mix.SEED)
        with self.server(layout) as server:
            shorts = self.load(server, "--mix", "84/16/0", "--rate", (1 - SHARE_OF_LONGS) * self.rate, *common)
            longs = self.load(server, "--mix", "0/0/100", "--rate", SHARE_OF_LONGS * self.rate, *common)
            alone = harness.call(*shorts)
            with subprocess.Popen(list(map(str, longs)), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                  text=True) as beside:
                together = harness.call(*shorts)
                said = beside.communicate()[0]
        if beside.returncode != 0 or not said.strip():
            raise SystemExit(f"{layout}: the load of long texts failed with {beside.returncode}")
        long_result = harness.parse_last(said)
        before, after = alone["latency_ms"]["short"], together["latency_ms"]["short"]
        return {
            "ratio": after["p99"] / before["p99"],
            "base_p99_ms": before["p99"],
            "p99_ms": after["p99"],
            "shorts_answered": min(share_answered(alone), share_answered(together)),
            "longs_answered": share_answered(long_result),
            "long_p99_ms": long_result["latency_ms"]["long"]["p99"],
        }


def share_answered(load):
    return load["answered"] / max(1, load["sent"])


def summarize(rounds):
    """The keys of the result."""
    layouts = {name: {key: round(rounds.median(name, key), 3) for key in rounds.values[name][0]} for name in rounds.values}
    complete = [name for name, seen in layouts.items()
                if min(seen["shorts_answered"], seen["longs_answered"]) >= LEAST_ANSWERED]
    best = min(complete, key=lambda name: layouts[name]["ratio"], default=None)
    chosen = layouts[best] if best else {}
    return {"short_p99_ratio": chosen.get("ratio"), "best_layout": best, "base_p99_ms": chosen.get("base_p99_ms"),
            "longs_answered": chosen.get("longs_answered"), "layouts": layouts}


def main(options):
    model = harness.ROOT / "build/models" / mix.MODEL
    if not model.is_dir():
        raise SystemExit(f"{model} is missing: ./dev setup --models")
    scratch = tempfile.mkdtemp(prefix="tonnage-bench-")
    try:
        bench = LongLane(options.build.resolve() / "bin", model, scratch)
        harness.say("first starts: each layout profiles its shapes once")
        bench.measure_capacity()
        rounds = harness.run_rounds({name: lambda n=name: bench.measure(n) for name in LAYOUTS}, options.rounds,
                                    noisy=options.noisy)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    harness.emit("longlane", {**summarize(rounds), "rate": round(bench.rate, 2)}, rounds)
