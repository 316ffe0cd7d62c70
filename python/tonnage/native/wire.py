# SPDX-License-Identifier: Apache-2.0
"""docs/wire.md in Python: packets, shared memory, documents. Standard library only, so that a worker whose
interpreter lacks torch can still say so."""

from __future__ import annotations

import fcntl
import json
import mmap
import os
import socket
import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Sequence

VERSION = 1
INPUT_SLOTS = 2
ALIGNMENT = 64
MOST_TENSORS = 16
MOST_TEXT = 1024
MOST_DOC = 1 << 20
LETTERS = b"TNNG"
HEADER = struct.Struct("<4sHHIIQ")
RUN_HEAD = struct.Struct("<IIIIQII")  # slot, rows, length, zero, grant; then the count of tensors, zero
TENSOR = struct.Struct("<BB6sQQ8q")
SIZE_SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
# Numbered from 1.
DATATYPES = ("BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64", "FP16", "FP32",
             "FP64", "BYTES", "BF16")


class Kind(IntEnum):
    HELLO = 1
    LOAD = 2
    LOADED = 3
    FAILED = 4
    RUN = 5
    DONE = 6
    NEED = 7
    REGION = 8
    DISCARD = 9
    ERROR = 10
    TRIM = 11
    TRIMMED = 12
    STAT = 13
    STATS = 14
    STOP = 15


class ErrorKind(IntEnum):
    OVER_GRANT = 1
    MODEL_ERROR = 2
    BAD_OUTPUT = 4
    PRESSURE = 5
    BAD_REQUEST = 6


# What a front may send: length of the body (None: tensors follow) and number of descriptors.
FROM_FRONT = {Kind.HELLO: (8, 0), Kind.LOAD: (16, 4), Kind.RUN: (None, 0), Kind.REGION: (8, 1), Kind.DISCARD: (0, 0),
              Kind.TRIM: (0, 0), Kind.STAT: (0, 0), Kind.STOP: (0, 0)}


class Breach(Exception):
    """The front broke the protocol: the worker ends with status 2."""


class WrongVersion(Exception):
    """The front speaks another version."""


class Stopped(Exception):
    """The front said stop, or is gone."""


class LoadFailed(Exception):
    """reason, detail: what `failed` says."""


class RunFailed(Exception):
    """kind, text, needed bytes: what `error` says."""

    def __init__(self, kind: ErrorKind, text: str, needed: int = 0) -> None:
        super().__init__(text)
        self.kind = kind
        self.needed = needed


@dataclass(frozen=True)
class Layout:
    datatype: str
    dims: tuple[int, ...]
    offset: int
    size: int


@dataclass(frozen=True)
class Run:
    slot: int
    rows: int
    length: int
    grant: int
    inputs: tuple[Layout, ...]


@dataclass(frozen=True)
class Message:
    kind: Kind
    ticket: int
    body: bytes
    fds: tuple[int, ...] = ()


def text(value: str) -> bytes:
    data = value.encode("utf-8", "replace")[:MOST_TEXT]
    data = data.decode("utf-8", "ignore").encode()  # a letter that was cut in half goes
    return struct.pack("<I", len(data)) + data


def parse_run(body: bytes) -> Run:
    if len(body) < RUN_HEAD.size:
        raise Breach("a run that is too short")
    slot, rows, length, zero, grant, count, zero_too = RUN_HEAD.unpack_from(body)
    if zero or zero_too or count > MOST_TENSORS or len(body) != RUN_HEAD.size + count * TENSOR.size:
        raise Breach("a run that is not one")
    layouts = tuple(_parse_layout(body, RUN_HEAD.size + i * TENSOR.size) for i in range(count))
    return Run(slot, rows, length, grant, layouts)


def _parse_layout(body: bytes, at: int) -> Layout:
    number, rank, zero, offset, size, *dims = TENSOR.unpack_from(body, at)
    if not 1 <= number <= len(DATATYPES) or rank > 8 or zero != bytes(6) or any(dims[rank:]) or min(dims) < 0 \
            or offset >= 1 << 63 or size >= 1 << 63:
        raise Breach("a tensor that is not one")
    return Layout(DATATYPES[number - 1], tuple(dims[:rank]), offset, size)


def pack_layouts(layouts: Sequence[Layout]) -> bytes:
    packed = [struct.pack("<II", len(layouts), 0)]
    for layout in layouts:
        dims = [*layout.dims, *[0] * (8 - len(layout.dims))]
        packed.append(TENSOR.pack(DATATYPES.index(layout.datatype) + 1, len(layout.dims), bytes(6), layout.offset,
                                  layout.size, *dims))
    return b"".join(packed)


class Channel:
    """The worker's end of the socket. A process that the handler forks has none."""

    def __init__(self, fd: int) -> None:
        os.set_inheritable(fd, False)
        self._socket = socket.socket(fileno=fd)
        os.register_at_fork(after_in_child=self._socket.close)

    def send(self, kind: Kind, ticket: int = 0, body: bytes = b"", fds: Sequence[int] = ()) -> None:
        packet = HEADER.pack(LETTERS, VERSION, kind, HEADER.size + len(body), 0, ticket) + body
        try:
            socket.send_fds(self._socket, [packet], fds)
        except (BrokenPipeError, ConnectionResetError) as gone:
            raise Stopped from gone

    def receive(self) -> Message:
        try:
            packet, fds, flags, _ = socket.recv_fds(self._socket, 8192, 8, socket.MSG_CMSG_CLOEXEC)
        except ConnectionResetError as gone:
            raise Stopped from gone
        if not packet:
            raise Stopped
        try:
            message = self._parse(packet, flags, fds)
        except (Breach, WrongVersion):
            for fd in fds:
                os.close(fd)
            raise
        if message.kind == Kind.STOP:
            raise Stopped
        return message

    @staticmethod
    def _parse(packet: bytes, flags: int, fds: Sequence[int]) -> Message:
        if len(packet) < HEADER.size or flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC):
            raise Breach("a packet that is not a message")
        letters, version, kind, size, zero, ticket = HEADER.unpack_from(packet)
        if letters != LETTERS or size != len(packet) or zero:
            raise Breach("a packet that is not a message")
        if version != VERSION:
            raise WrongVersion(f"the front speaks version {version}, this worker {VERSION}")
        if kind not in FROM_FRONT:
            raise Breach(f"message {kind} is not the front's to send")
        length, descriptors = FROM_FRONT[Kind(kind)]
        body = packet[HEADER.size:]
        if (length is not None and len(body) != length) or len(fds) != descriptors:
            raise Breach(f"{Kind(kind).name.lower()} has another size or number of descriptors")
        return Message(Kind(kind), ticket, body, tuple(fds))


def map_segment(fd: int, size: int, writable: bool) -> memoryview:
    """Takes the descriptor over. Sealed against a change of size, so that no access can fail later."""
    try:
        if fcntl.fcntl(fd, fcntl.F_GET_SEALS) & SIZE_SEALS != SIZE_SEALS:
            raise LoadFailed("bad_segment", "a segment could change its size")
        if size < 1 or os.fstat(fd).st_size < size:
            raise LoadFailed("bad_segment", f"a segment is smaller than the {size} bytes that were said")
        access = mmap.PROT_READ | mmap.PROT_WRITE if writable else mmap.PROT_READ
        return memoryview(mmap.mmap(fd, size, mmap.MAP_SHARED, access))
    except OSError as error:
        raise LoadFailed("bad_segment", str(error)) from error
    finally:
        os.close(fd)


def read_document(fd: int) -> dict:
    try:
        if not fcntl.fcntl(fd, fcntl.F_GET_SEALS) & fcntl.F_SEAL_WRITE or os.fstat(fd).st_size > MOST_DOC:
            raise LoadFailed("bad_load_doc", "the document is not sealed, or larger than 1 MiB")
        document = json.loads(os.pread(fd, MOST_DOC, 0))
    except (OSError, ValueError) as error:
        raise LoadFailed("bad_load_doc", str(error)) from error
    finally:
        os.close(fd)
    if not isinstance(document, dict):
        raise LoadFailed("bad_load_doc", "the document is not a JSON object")
    return document


def sealed_document(document: dict) -> int:
    fd = os.memfd_create("tonnage-loaded", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.write(fd, json.dumps(document).encode())
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, SIZE_SEALS | fcntl.F_SEAL_WRITE)
    return fd


def resident_bytes() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        pages = [int(word) for word in file.read().split()]
    return (pages[1] - pages[2]) * mmap.PAGESIZE
