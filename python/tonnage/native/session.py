# SPDX-License-Identifier: Apache-2.0
"""The session after its opening: loaded, then run, trim and stat until stop."""

from __future__ import annotations

import os
import struct
import time

import torch

from tonnage.native import spec, tensors, wire
from tonnage.native.opening import Opening
from tonnage.native.runtime import Runtime
from tonnage.native.wire import ErrorKind, Kind


class Session:
    def __init__(self, channel: wire.Channel, opening: Opening, runtime: Runtime) -> None:
        self._channel = channel
        self._slots = opening.slots
        self._region = opening.region
        self._runtime = runtime
        self._batches = 0

    def serve(self) -> None:
        """Returns never; Stopped is the ordinary end."""
        self._say_loaded()
        while True:
            message = self._channel.receive()
            if message.kind == Kind.RUN:
                self._answer(message.ticket, wire.parse_run(message.body))
            elif message.kind == Kind.TRIM:
                self._runtime.trim()
                self._channel.send(Kind.TRIMMED, 0, struct.pack("<QQ", self._runtime.live(), wire.resident_bytes()))
            elif message.kind == Kind.STAT:
                self._channel.send(Kind.STATS, 0, struct.pack(
                    "<6Q", self._runtime.live(), wire.resident_bytes(), self._batches, self._runtime.libraries,
                    *self._runtime.heap()))
            else:
                raise wire.Breach(f"{message.kind.name.lower()} came where run, trim, stat or stop was awaited")

    def _say_loaded(self) -> None:
        runtime = self._runtime
        fd = wire.sealed_document({"runtime": f"torch {torch.__version__.split('+')[0]} (Python)",
                                   "inputs": [s.document() for s in runtime.inputs],
                                   "outputs": [s.document() for s in runtime.outputs],
                                   "facts": runtime.facts})
        self._channel.send(Kind.LOADED, 0, struct.pack("<QQ", runtime.weights, runtime.live()), [fd])
        os.close(fd)

    def _answer(self, ticket: int, run: wire.Run) -> None:
        problem = None
        try:
            execution, table = self._run(ticket, run)
        except wire.RunFailed as failed:
            problem = (failed.kind, failed.needed, str(failed))
        # Here the tensors of the run are gone, also those of a traceback: live is what the handler keeps.
        peak, live = self._runtime.peak, self._runtime.live()
        if problem is None:
            head = struct.pack("<QQQq", peak, live, wire.resident_bytes(), execution)
            self._channel.send(Kind.DONE, ticket, head + table)
        else:
            kind, needed, text = problem
            self._channel.send(Kind.ERROR, ticket, struct.pack("<B7xQQQ", kind, peak, live, needed) + wire.text(text))

    def _run(self, ticket: int, run: wire.Run) -> tuple[int, bytes]:
        """Execution in ns, and the packed layouts of the outputs, which lie in the region."""
        self._runtime.peak = 0
        views = spec.find_inputs(run, self._slots, self._runtime.inputs)
        began = time.monotonic_ns()
        self._batches += 1
        outputs = self._runtime.run(run, views)
        execution = time.monotonic_ns() - began
        layouts, needed = tensors.place(outputs, wire.ALIGNMENT)
        if needed > len(self._region):
            self._enlarge(ticket, needed)
        for output, layout in zip(outputs, layouts):
            output.write(self._region[layout.offset:])
        return execution, wire.pack_layouts(layouts)

    def _enlarge(self, ticket: int, needed: int) -> None:
        self._channel.send(Kind.NEED, ticket, struct.pack("<Q", needed))
        answer = self._channel.receive()
        if answer.kind not in (Kind.REGION, Kind.DISCARD) or answer.ticket != ticket:
            raise wire.Breach(f"{answer.kind.name.lower()} came where region or discard was awaited")
        if answer.kind == Kind.DISCARD:
            raise wire.RunFailed(ErrorKind.BAD_OUTPUT, f"outputs of {needed} bytes were discarded by the front")
        size = struct.unpack("<Q", answer.body)[0]
        if size < needed:
            raise wire.Breach(f"the new region has {size} bytes, {needed} are needed")
        self._region = wire.map_segment(answer.fds[0], size, writable=True)
