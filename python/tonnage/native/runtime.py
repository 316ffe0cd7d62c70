# SPDX-License-Identifier: Apache-2.0
"""Runs a handler inside its grant. Why a batch failed is read from the meter's flags: over_grant (our allocator
refused) before pressure (malloc did, or Python said MemoryError) before bad_output before model_error."""

from __future__ import annotations

import dataclasses
import gc
import os
import platform
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Sequence

import torch

from tonnage.native import bodies, handler, log, parity, tensors, weights
from tonnage.native.meter import UNLIMITED, Meter
from tonnage.native.spec import Spec, parse
from tonnage.native.wire import ErrorKind, LoadFailed, Run, RunFailed, resident_bytes

# Beside the launcher: bin/python/tonnage/native/runtime.py → bin.
PROGRAMS = Path(__file__).resolve().parents[3]
OWN_FOLDER = Path(__file__).resolve().parent
MOST_TRACE = 600
MOST_FRAMES = 3
MODES = ("guarded", "as-is")


@dataclass
class Runtime:
    handler: handler.Handler
    meter: Meter
    inputs: list[Spec]
    outputs: list[Spec]
    is_guarded: bool
    facts: dict[str, str]
    weights: int
    libraries: int  # resident before the handler was loaded
    heap_before: tuple[int, int]
    settled: int = 0  # live bytes after the last collection
    told: bool = False
    peak: int = 0

    @staticmethod
    def load(document: dict) -> Runtime:
        options = document.get("options", {})
        mode = options.get("mode", "guarded")
        if mode not in MODES:
            raise LoadFailed("bad_load_doc", f"mode '{mode}'; allowed: {', '.join(MODES)}")
        meter = Meter(PROGRAMS)
        torch.set_num_threads(max(1, int(document.get("threads", 1))))
        torch.set_num_interop_threads(1)
        before, libraries, heap = meter.live(), resident_bytes(), meter.heap()
        meter.begin(document.get("load_limit") or UNLIMITED)
        loaded = _load_handler(document, options, meter)
        meter.end()
        inputs = parse(document.get("inputs", []), "inputs") or loaded.inputs
        outputs = parse(document.get("outputs", []), "outputs") or loaded.outputs
        if not inputs or not outputs:
            raise LoadFailed("bad_handler", "neither model.toml nor INPUTS and OUTPUTS of the script name the inputs "
                                            "and outputs; write [[input]] and [[output]]")
        gc.collect()
        gc.freeze()  # what is loaded stays, and later collections need not walk it
        facts = {"python": platform.python_version(), "cpu_capability": torch.backends.cpu.get_cpu_capability(),
                 "threads": str(torch.get_num_threads()), "native_mode": mode,
                 "precision": options.get("precision", "fp32"),
                 "native_handler": _describe(loaded)}
        runtime = Runtime(loaded, meter, inputs, outputs, mode == "guarded", facts, max(0, meter.live() - before),
                          libraries, heap)
        # Inside what a load may hold, and nothing of it stays.
        limit = document.get("load_limit")
        room = max(0, limit - meter.live()) if limit else UNLIMITED
        runtime.facts |= parity.prove(options, inputs, outputs,
                                      lambda run, views: runtime.run(dataclasses.replace(run, grant=room), views))
        runtime.trim()
        runtime.settled = meter.live()
        if not runtime.is_guarded:
            log.say("native_as_is", detail="gradients are on and the handler keeps what it keeps; for comparison only")
        return runtime

    def run(self, run: Run, views: Sequence[memoryview]) -> list[tensors.Output]:
        """Raises RunFailed. Afterwards peak tells what the run held."""
        for view, layout, spec in zip(views, run.inputs, self.inputs):
            tensors.prove_range(view, layout, spec)
        self.meter.begin(run.grant)
        try:
            return self._predict(run, views)
        except RunFailed as failed:
            raise self._judge(failed) from None
        except Exception as error:  # whatever the handler raises; sys.exit is not among it
            raise self._judge(_as_failure(error)) from None
        finally:
            self.meter.end()
            self.peak = self.meter.peak()

    def _predict(self, run: Run, views: Sequence[memoryview]) -> list[tensors.Output]:
        pid = os.getpid()
        with torch.inference_mode() if self.is_guarded else torch.enable_grad():
            values = [tensors.read_input(view, layout) for view, layout in zip(views, run.inputs)]
            result = self.handler.predict(values, self.inputs)
            if os.getpid() != pid:
                os._exit(0)  # a child that the handler forked came back here; this is its parent's work
            results = bodies.read_reply(result, self.outputs) if self.handler.writes_json() else \
                tensors.by_name(result, self.outputs)
            if not self.is_guarded:
                self._tell_of_graphs(results)
            return [tensors.prove(value, spec, run.rows) for value, spec in zip(results, self.outputs)]

    def _judge(self, failed: RunFailed) -> RunFailed:
        if self.meter.needed():
            return RunFailed(ErrorKind.OVER_GRANT, str(failed), self.meter.needed())
        return RunFailed(ErrorKind.PRESSURE, str(failed)) if self.meter.pressure() else failed

    def _tell_of_graphs(self, results: Sequence[Any]) -> None:
        graphs = [f"'{spec.name}' ({type(value.grad_fn).__name__})" for spec, value in zip(self.outputs, results)
                  if torch.is_tensor(value) and value.grad_fn is not None]
        if graphs and not self.told:
            self.told = True
            log.say("native_graph", detail=f"output {', '.join(graphs)} carries the graph of its activations: who "
                                           "keeps it keeps them")

    def live(self) -> int:
        """Live tensor bytes: what only cycles hold is collected first, so that what is left is kept."""
        if self.meter.live() > self.settled:
            gc.collect()
        self.settled = self.meter.live()
        return self.settled

    def heap(self) -> tuple[int, int]:
        """Of malloc above its state before the load: resident, and allocated and not freed."""
        resident, used = (max(0, now - before) for now, before in zip(self.meter.heap(), self.heap_before))
        return resident, min(used, resident)  # resident may have fallen below that of before

    def trim(self) -> None:
        gc.collect()
        self.meter.purge()


def _load_handler(document: dict, options: dict[str, str], meter: Meter) -> handler.Handler:
    allowed = [key for key in options.get("allow_missing", "").split("\n") if key]
    try:
        with weights.watched(allowed):
            return handler.load(Path(document.get("path", "")), options)
    except LoadFailed:
        raise
    except Exception as error:  # of the handler's own code
        if meter.needed():
            raise LoadFailed("over_load_limit", f"loading needs {meter.needed()} bytes of tensors, allowed are "
                                                f"{document['load_limit']}") from error
        if meter.pressure() or isinstance(error, MemoryError):
            raise LoadFailed("out_of_memory", f"the kernel refused memory while loading: {_trace(error)}") from error
        raise LoadFailed("load_failed", _trace(error)) from error


def _as_failure(error: Exception) -> RunFailed:
    kind = ErrorKind.PRESSURE if isinstance(error, MemoryError) else ErrorKind.MODEL_ERROR
    text = _trace(error)
    traceback.clear_frames(error.__traceback__)  # their locals are this batch's tensors
    return RunFailed(kind, text)


def _trace(error: Exception) -> str:
    """What was raised, and the last lines of the handler's code on the way there."""
    what = "".join(traceback.format_exception_only(error)).strip()[:MOST_TRACE]
    frames = [frame for frame in traceback.extract_tb(error.__traceback__)
              if Path(frame.filename).parent != OWN_FOLDER and not frame.filename.startswith("<")]
    where = [f"  {Path(frame.filename).name}:{frame.lineno} in {frame.name}: {frame.line}" for frame in frames]
    return "\n".join([what, *where[-MOST_FRAMES:]])


def _describe(loaded: handler.Handler) -> str:
    own = sorted(loaded.functions)
    return f"{', '.join(own)} of the script" if own else f"{type(loaded.model).__name__}, called with the inputs"
