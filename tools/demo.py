#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`./dev demo`: real Amazon reviews through a real transformer under a memory budget that cannot be broken.

Sends review texts with the length mix 80 % under 128 tokens, 15 % 128-512, 5 % above, open loop at 0.7 × the
capacity measured while warming up. Memory is read from the kernel by tonnage-watch, a process of its own. Every
label is compared with that of route trace in fp32. The last line is one JSON object; nothing is left running. Exit
status 1: more memory than the budget, a dead worker, or more other labels than the precision explains.
"""

import argparse
import html
import json
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))

from demo_labels import MAY_DIFFER, REFERENCE, Labels, judge  # noqa: E402
from tonnage.serving import Server, ServerFailed, Watch  # noqa: E402

MODEL = "reviews"
MIX = "80/15/5"
SHARE_OF_CAPACITY = 0.7
LONG_TEXTS = 2000
SHOWN = {"short": 5, "medium": 2, "long": 1}


def say(text):
    print(f"demo: {text}", file=sys.stderr, flush=True)


def mib(count):
    return f"{count / 2**20:,.1f} MiB"


def collect_texts(folder, out):
    """Snippets and whole product reviews; texts above 512 tokens also from movie reviews. Returns the texts."""
    lines = []
    for name in ("snippets", "reviews"):
        lines += (folder / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    with open(folder / "movies.jsonl", encoding="utf-8") as movies:
        long = (line.rstrip("\n") for line in movies if json.loads(line)["tokens"] > 512)
        lines += [line for line, _ in zip(long, range(LONG_TEXTS))]
    out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return [json.loads(line) for line in lines]


class Load:
    """One run of `tonnage load`; its progress goes to our standard error."""

    def __init__(self, program, url, texts):
        self.base = [str(program), "load", "--url", url, "--model", MODEL, "--texts", str(texts), "--format", "json",
                     "--mix", MIX, "--json"]
        self.process = None

    def run(self, *arguments):
        self.process = subprocess.Popen([*self.base, *map(str, arguments)], stdout=subprocess.PIPE, text=True)
        out, _ = self.process.communicate()
        if self.process.returncode != 0:
            raise ServerFailed(f"tonnage load ended with {self.process.returncode}")
        return json.loads(out.strip().splitlines()[-1])

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def labelled_samples(saved, texts, labels):
    """Some answered requests of every class: (label, confidence, tokens, text), each text once."""
    samples = [json.loads(line) for line in saved.read_text().splitlines()]
    left, seen, chosen = dict(SHOWN), set(), []
    for sample in samples:
        scores = sample.get("scores", [])
        if sample["status"] != 200 or len(scores) != len(labels) or sample["text"] in seen:
            continue
        if left[sample["class"]] > 0:
            left[sample["class"]] -= 1
            seen.add(sample["text"])
            best = max(range(len(labels)), key=scores.__getitem__)
            chosen.append((labels[best], scores[best], sample["tokens"], texts[sample["text"]]["text"]))
    return sorted(chosen, key=lambda c: c[2])


def make_server(options, binaries, route, precision):
    return Server(binaries / "tonnage", options.models / MODEL, "--memory", options.memory, "--route", route,
                  "--precision", precision, state=options.state)


def print_samples(samples):
    print("\nsome reviews, as the model reads them")
    for label, confidence, tokens, text in samples:
        words = " ".join(html.unescape(html.unescape(text)).split())  # the source escapes twice
        print(f"  {label:>8} {confidence:6.1%}  {tokens:5d} tokens  {words[:76]}{'…' if len(words) > 76 else ''}")


def summarize(load, status, watched, capacity):
    """The keys of the last line."""
    model = next(m for m in status["models"] if m["name"] == MODEL)
    latency = load["latency_ms"]["all"]
    return {
        "answered": load["answered"],
        "refused": load["refused"],
        "refused_by": load["refused_by"],
        "budget_bytes": status["budget_bytes"],
        "highest_use_bytes": watched["highest_use_bytes"],
        "fifo_would_need_bytes": model["fifo_would_need_bytes"],
        "padding_waste": round(1 - model["real_tokens"] / max(model["padded_tokens"], 1), 4),
        "peak_error_median": model["peak_error_median"],
        "peak_error_worst": model["peak_error_worst"],
        "rows_per_batch": round(model["rows"] / max(model["batches"], 1), 2),
        "worker_deaths": model["worker_deaths"],
        "truncated_rows": load["truncated_rows"],
        "distinct_lengths": load["distinct_lengths"],
        "p50_ms": latency["p50"],
        "p99_ms": latency["p99"],
        "rate": round(load["offered_rate"], 2),
        "capacity": round(capacity, 2),
        "watch_cpu_share": watched["cpu_share"],
    }


def print_table(result, load, watched):
    refused = ", ".join(f"{reason} {count}" for reason, count in result["refused_by"].items()) or "none"
    rows = [
        ("route", f"{result['route']} in {result['precision']}; {result['labels_equal']:,} of "
                  f"{result['labels_compared']:,} labels are those of {' in '.join(REFERENCE)}"),
        ("requests answered", f"{result['answered']:,} of {load['sent']:,} at {result['rate']:.1f}/s "
                              f"(capacity {result['capacity']:.1f}/s), {result['distinct_lengths']} distinct lengths"),
        ("refused", f"{result['refused']:,} ({refused})"),
        ("longer than the model reads", f"{result['truncated_rows']:,} truncated, and marked so in the reply"),
        ("latency", f"p50 {result['p50_ms']:.0f} ms, p99 {result['p99_ms']:.0f} ms"),
        ("rows per batch", f"{result['rows_per_batch']:.1f}"),
        ("padding waste", f"{result['padding_waste']:.1%}"),
        ("peak, predicted against measured", f"median error {result['peak_error_median']:.3%}, "
                                             f"worst {result['peak_error_worst']:.3%}"),
        ("budget", mib(result["budget_bytes"])),
        ("highest use, by the kernel", f"{mib(result['highest_use_bytes'])} in {watched['samples']:,} readings "
                                       f"({mib(watched['anonymous_bytes'])} anonymous, {mib(watched['shared_bytes'])} "
                                       "shared)"),
        ("padded batches of 64 would need", f"{mib(result['fifo_would_need_bytes'])} (predicted, not run)"),
        ("worker deaths", str(result["worker_deaths"])),
    ]
    print()
    for name, value in rows:
        print(f"  {name:<34}{value}")
    for process in watched["processes"]:
        print(f"    {process['name']:<20} highest anonymous {mib(process['highest_rss_anon_bytes'])}, with files "
              f"{mib(process['vm_hwm_bytes'])} (VmHWM)")


def ask_reference(options, binaries, labels, send):
    say(f"asking route {REFERENCE[0]} in {REFERENCE[1]} for the labels of the same {options.requests} requests, once")
    server = make_server(options, binaries, *REFERENCE)
    try:
        server.start()
        server.wait_ready(say=say)
        with tempfile.NamedTemporaryFile(suffix=".jsonl") as saved:
            send(server, "--saturate", 64, "--requests", options.requests, "--seed", options.seed, "--save", saved.name)
            labels.keep(Path(saved.name))
    finally:
        server.stop()


def resolve_route(options):
    """Route and precision that the server will choose."""
    own = tomllib.loads((options.models / MODEL / "model.toml").read_text())
    route = own.get("route", REFERENCE[0]) if options.route == "model" else options.route
    precision = own.get("precision", REFERENCE[1]) if options.precision == "model" else options.precision
    return route, precision


def run(options, scratch):
    binaries = options.build.resolve() / "bin"
    labels = tomllib.loads((options.models / MODEL / "model.toml").read_text())["labels"]
    texts = collect_texts(options.models / "texts", scratch / "texts.jsonl")
    load = None

    def send(server, *arguments):
        nonlocal load
        load = Load(binaries / "tonnage", server.url, scratch / "texts.jsonl")
        return load.run(*arguments)

    chosen = resolve_route(options)
    expected = Labels(options.state, options.models / MODEL, (options.seed, options.requests, len(texts)))
    server = make_server(options, binaries, *chosen)
    try:
        if chosen != REFERENCE and not expected.are_known():
            ask_reference(options, binaries, expected, send)
        say(f"starting tonnage serve with a budget of {options.memory}, route {chosen[0]} in {chosen[1]}")
        server.start()
        with Watch(binaries / "tonnage-watch", server.process.pid, scratch / "watch.json") as watch:
            server.wait_ready(say=say)
            say(f"ready after {server.cold_start_s:.1f} s")
            warmup = max(100, options.requests // 10)
            say(f"warming up: {warmup} requests, 64 at a time")
            capacity = send(server, "--saturate", 64, "--requests", warmup, "--seed", options.seed + 1)["rps"]
            rate = max(SHARE_OF_CAPACITY * capacity, 0.1)
            say(f"sending {options.requests} reviews at {rate:.1f}/s, 0.7 × {capacity:.1f}/s")
            measured = send(server, "--rate", f"{rate:.3f}", "--requests", options.requests, "--seed", options.seed,
                            "--save", scratch / "saved.jsonl")
            status = server.status()
    finally:
        if load:
            load.stop()
        server.stop()
    watched = watch.result()
    result = summarize(measured, status, watched, capacity)
    if not expected.are_known():  # the first demo of these requests, and by the reference
        expected.keep(scratch / "saved.jsonl")
    equal, compared = expected.compare(scratch / "saved.jsonl")
    result.update(route=chosen[0], precision=chosen[1], labels_equal=equal, labels_compared=compared,
                  labels_may_differ=MAY_DIFFER[chosen[1]])
    print_samples(labelled_samples(scratch / "saved.jsonl", texts, labels))
    print_table(result, measured, watched)
    return result


def judge_run(result):
    """What must not be, a line each."""
    wrong = []
    if result["highest_use_bytes"] > result["budget_bytes"]:
        wrong.append("the highest use was ABOVE the budget")
    if result["worker_deaths"]:
        wrong.append(f"{result['worker_deaths']} workers DIED")
    labels = judge(result["precision"], result["labels_equal"], result["labels_compared"])
    return [*wrong, labels] if labels else wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--memory", default="400MiB", help="the server's whole budget (default %(default)s)")
    parser.add_argument("--route", default="model", help="as tonnage serve takes it; its file must have been exported")
    parser.add_argument("--precision", default="model", help="as tonnage serve takes it")
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--build", type=Path, default=Path("build/release"))
    parser.add_argument("--models", type=Path, default=Path("build/models"))
    parser.add_argument("--state", type=Path, default=Path("build/demo-state"), help="keeps what the server learned")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    started = time.monotonic()
    try:
        with tempfile.TemporaryDirectory(prefix="tonnage-demo-") as scratch:
            result = run(options, Path(scratch))
    except KeyboardInterrupt:
        say("stopped; nothing is left running")
        return 130
    except ServerFailed as error:
        say(str(error))
        return 1
    print(f"\n  in {time.monotonic() - started:.0f} s; nothing is left running")
    print(json.dumps(result))
    wrong = judge_run(result)
    for line in wrong:
        say(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
