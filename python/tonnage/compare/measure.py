# SPDX-License-Identifier: Apache-2.0
"""One case, measured: a server of its own with nothing else on the machine, load from `tonnage load`, memory read
from the kernel for the whole process tree by `tonnage-watch`."""

from __future__ import annotations

import concurrent.futures
import json
import re
import subprocess
import tempfile
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

from tonnage.compare import answers
from tonnage.compare.cases import Case, version_folder
from tonnage.serving import Server, ServerFailed, Watch

OUTSTANDING = 256


@dataclass
class Traffic:
    texts: Path | None  # JSON lines; None: random ids
    mix: str
    seconds: float      # of each of the three loads
    seed: int = 1

    def flags(self, model: Path) -> list[str]:
        source = ["--texts", str(self.texts), "--format", "json"] if self.texts else \
            ["--ids", "--format", "binary", *_id_flags(model)]
        return [*source, "--mix", self.mix, "--seed", str(self.seed)]


def _id_flags(model: Path) -> list[str]:
    """Random ids that the model takes: below the end of every range, no row longer than it allows."""
    document = tomllib.loads((model / "model.toml").read_text(encoding="utf-8"))
    ends = [spec["range"][1] for spec in document.get("input", []) if "range" in spec and spec.get("source") != "mask"]
    below = ["--vocabulary", str(min(ends) + 1)] if ends else []
    return [*below, *(["--max-length", str(document["max_length"])] if "max_length" in document else [])]


@dataclass
class Setup:
    programs: Path  # folder
    traffic: Traffic
    memory: str     # budget of each server
    state: Path     # where costs are remembered between the starts of one case

    @property
    def tonnage(self) -> Path:
        return self.programs / "tonnage"


@dataclass
class Measured:
    case: Case
    error: str | None = None
    load_s: float = 0.0            # spawn to ready, costs known
    weights_bytes: int = 0
    peak_bytes: int = 0            # highest use of the process tree over everything
    resident_after_bytes: int = 0  # of the worker, at the end
    growth_per_1000: float = 0.0   # bytes of resident memory per 1,000 requests, second half of the saturated load
    p50_ms: float = 0.0            # one client
    p99_ms: float = 0.0
    saturated_rps: float = 0.0
    saturated_p99_ms: float = 0.0
    refused: int = 0
    agreement: answers.Agreement | None = None
    artefact: dict = field(default_factory=dict)


def variant(model: Path, case: Case, folder: Path) -> Path:
    """A repository that holds the model alone, its files linked; the incident's runs as-is."""
    target = folder / model.name
    target.mkdir(parents=True)
    for entry in model.iterdir():
        if entry.name != "model.toml":
            (target / entry.name).symlink_to(entry.resolve())
    text = (model / "model.toml").read_text(encoding="utf-8")
    if case.is_incident:
        text = as_is(text)
    (target / "model.toml").write_text(text, encoding="utf-8")
    return folder


def as_is(text: str) -> str:
    """model.toml whose handler keeps gradients on and whatever its script keeps."""
    if "native" in tomllib.loads(text):
        head, table, rest = re.split(r"(?m)^([ \t]*\[[ \t]*native[ \t]*\].*\n?)", text, maxsplit=1)
        own = re.split(r"(?m)^(?=[ \t]*\[)", rest, maxsplit=1)[0]  # up to the next table
        others = rest[len(own):]
        without_mode = re.sub(r"(?m)^[ \t]*mode[ \t]*=.*\n?", "", own)
        return head + table.rstrip("\n") + '\nmode = "as-is"\n' + without_mode + others
    return text + '\n[native]\nmode = "as-is"\n'


def _load(setup: Setup, server: Server, model: Path, outstanding: int) -> dict:
    traffic = setup.traffic
    command = [str(setup.tonnage), "load", "--url", server.url, "--model", model.name, "--json", *traffic.flags(model),
               "--saturate", str(outstanding), "--for", f"{traffic.seconds}s"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False,
                          timeout=300 + 20 * traffic.seconds)
    if done.returncode != 0 or not done.stdout.strip():
        raise ServerFailed(f"tonnage load ended with {done.returncode}:\n{server.last_log()}")
    result = json.loads(done.stdout.strip().splitlines()[-1])
    if not result["answered"]:
        raise ServerFailed(f"none of {result['sent']} requests was answered: {result['refused_by']}")
    return result


def _in_parallel(functions):
    with concurrent.futures.ThreadPoolExecutor(len(functions)) as pool:
        return [future.result() for future in [pool.submit(function) for function in functions]]


def _worker(server: Server, model: str) -> dict:
    return server.model_status(model)["workers"][0]


def measure(case: Case, model: Path, setup: Setup) -> Measured:
    """Never raises for what the case itself does wrong: that is its result."""
    result = Measured(case)
    with tempfile.TemporaryDirectory(prefix="tonnage-compare-") as scratch:
        state = setup.state / case.name.replace(" ", "-")  # costs depend on the policy's corners
        flags = ["--memory", setup.memory, "--v2-deadline", "900s", *case.server_flags]
        try:
            folder = variant(model, case, Path(scratch, "models"))
            # The first start learns the costs; what is measured is a start that knows them.
            with Server(setup.tonnage, folder, *flags, state=state):
                pass
            with Server(setup.tonnage, folder, *flags, state=state) as server:
                result.load_s = server.cold_start_s
                with Watch(setup.programs / "tonnage-watch", server.process.pid, Path(scratch, "watch.json")) as watch:
                    _fill(result, model, setup, server)
                result.peak_bytes = watch.result()["highest_use_bytes"]
        except (ServerFailed, OSError, subprocess.TimeoutExpired, ValueError, KeyError) as error:
            result.error = (str(error).strip().splitlines() or [type(error).__name__])[-1]
    return result


def _fill(result: Measured, model: Path, setup: Setup, server: Server) -> None:
    name = model.name
    result.weights_bytes = server.model_status(name)["weights_bytes"]
    result.agreement = answers.check(server.url, name, version_folder(model) / "held_out.json", _in_parallel)
    one = _load(setup, server, model, 1)
    result.p50_ms, result.p99_ms = one["latency_ms"]["all"]["p50"], one["latency_ms"]["all"]["p99"]
    first = _load(setup, server, model, OUTSTANDING)
    before = _worker(server, name)["resident_bytes"]
    second = _load(setup, server, model, OUTSTANDING)
    result.resident_after_bytes = _worker(server, name)["resident_bytes"]
    answered = first["answered"] + second["answered"]
    result.saturated_rps = answered / (first["elapsed_s"] + second["elapsed_s"])
    result.saturated_p99_ms = max(first["latency_ms"]["all"]["p99"], second["latency_ms"]["all"]["p99"])
    result.refused = one["refused"] + first["refused"] + second["refused"]
    if second["answered"]:
        result.growth_per_1000 = (result.resident_after_bytes - before) * 1000 / second["answered"]
