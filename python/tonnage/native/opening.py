# SPDX-License-Identifier: Apache-2.0
"""The opening of a session: hello, then load with its document and its segments."""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass

from tonnage.native import wire


@dataclass
class Opening:
    document: dict
    slots: list[memoryview]  # read-only
    region: memoryview


def open_session(channel: wire.Channel) -> Opening:
    hello = channel.receive()
    if hello.kind != wire.Kind.HELLO or any(hello.body[2:]):
        raise wire.Breach("no hello")
    version = struct.unpack_from("<H", hello.body)[0]
    if version != wire.VERSION:
        raise wire.WrongVersion(f"the front speaks version {version}, this worker {wire.VERSION}")
    load = channel.receive()
    if load.kind != wire.Kind.LOAD:
        raise wire.Breach("no load")
    fds = list(load.fds)
    slot_bytes, output_bytes = struct.unpack("<QQ", load.body)
    try:
        document = wire.read_document(fds.pop(0))
        slots = [wire.map_segment(fds.pop(0), slot_bytes, writable=False) for _ in range(wire.INPUT_SLOTS)]
        return Opening(document, slots, wire.map_segment(fds.pop(0), output_bytes, writable=True))
    finally:
        for fd in fds:
            os.close(fd)
