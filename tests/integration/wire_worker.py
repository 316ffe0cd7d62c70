# SPDX-License-Identifier: Apache-2.0
"""A worker written from docs/wire.md alone: the models echo and masked_mean, in plain Python."""
import fcntl, json, math, mmap, os, pathlib, socket, struct, sys, time

HEADER, TENSOR = struct.Struct("<4sHHIIQ"), struct.Struct("<BB6xQQ8q")
HELLO, LOAD, LOADED, FAILED, RUN, DONE, NEED, REGION, DISCARD, ERROR, TRIM, TRIMMED, STAT, STATS, STOP = range(1, 16)
OVER_GRANT, MODEL_ERROR, BAD_OUTPUT, BAD_REQUEST = 1, 2, 4, 6
WIDTHS = dict(BOOL=1, UINT8=1, UINT16=2, UINT32=4, UINT64=8, INT8=1, INT16=2, INT32=4, INT64=8, FP16=2, FP32=4, FP64=8)
SIZE_SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
MEAN_INPUTS = [{"name": n, "datatype": t, "shape": [-1, -1]} for n, t in (("values", "FP32"), ("mask", "INT64"))]


class RunError(Exception): pass  # of kind, text, needed bytes


def text(value):
    data = value.encode()[:1024]
    return struct.pack(f"<I{len(data)}s", len(data), data)


def map_segment(fd, size, access):
    if fcntl.fcntl(fd, fcntl.F_GET_SEALS) & SIZE_SEALS != SIZE_SEALS or os.fstat(fd).st_size < size:
        raise ValueError("a segment could change its size or is too small")
    with os.fdopen(fd, "rb"):  # which closes it
        return memoryview(mmap.mmap(fd, size, mmap.MAP_SHARED, access))


def resident():
    pages = [int(word) for word in pathlib.Path("/proc/self/statm").read_text().split()]
    return (pages[1] - pages[2]) * mmap.PAGESIZE


class Worker:
    batches, libraries = 0, resident()  # there is no model yet

    def send(self, kind, ticket=0, body=b"", fds=()):
        socket.send_fds(self.socket, [HEADER.pack(b"TNNG", 1, kind, 24 + len(body), 0, ticket) + body], fds)

    def receive(self, *awaited):
        packet, fds, flags, _ = socket.recv_fds(self.socket, 8192, 8, socket.MSG_CMSG_CLOEXEC)
        packet = packet or HEADER.pack(b"TNNG", 1, STOP, HEADER.size, 0, 0)  # end of file means the same
        letters, version, kind, size, zero, ticket = HEADER.unpack_from(packet)
        if letters != b"TNNG" or size != len(packet) or zero or flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC):
            raise ValueError("not a message")
        if version != 1 or (kind == HELLO and struct.unpack_from("<H", packet, 24)[0] != 1):
            self.send(FAILED, 0, text("wrong_version") + text("this worker speaks version 1"))
            sys.exit(2)
        if kind == STOP:
            sys.exit(0)
        if kind not in awaited or len(fds) != {LOAD: 4, REGION: 1}.get(kind, 0):
            raise ValueError(f"message {kind} with {len(fds)} descriptors was not awaited")
        return kind, ticket, packet[24:], fds

    def load(self):
        self.socket = socket.socket(fileno=int(os.environ["TONNAGE_WIRE_FD"]))
        self.receive(HELLO)
        _, _, body, fds = self.receive(LOAD)
        slot_bytes, output_bytes = struct.unpack("<QQ", body)
        try:
            self.slots = [map_segment(fd, slot_bytes, mmap.PROT_READ) for fd in fds[1:3]]
            self.region = map_segment(fds[3], output_bytes, mmap.PROT_READ | mmap.PROT_WRITE)
            doc = json.loads(os.pread(fds[0], 1 << 20, 0))
            self.options = doc.get("options", {})
            self.model = {"echo": self.echo, "masked_mean": self.masked_mean}[self.options.get("model", "echo")]
        except (KeyError, ValueError, OSError) as error:
            self.send(FAILED, 0, text("load_failed") + text(repr(error)))
            sys.exit(3)
        self.inputs, outputs = MEAN_INPUTS, [{"name": "mean", "datatype": "FP32", "shape": [-1, 1]}]
        if self.model == self.echo:
            self.inputs = doc.get("inputs") or [{"name": "x", "datatype": "FP32", "shape": [-1, -1]}]
            outputs = [dict(self.inputs[0], name="y")]
        answer = os.memfd_create("loaded", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.write(answer, json.dumps({"runtime": "python", "inputs": self.inputs, "outputs": outputs}).encode())
        fcntl.fcntl(answer, fcntl.F_ADD_SEALS, SIZE_SEALS | fcntl.F_SEAL_WRITE)
        self.send(LOADED, 0, struct.pack("<QQ", 0, 0), [answer])

    def find_inputs(self, slot, rows, count, body):
        if slot >= 2 or rows < 1 or count != len(self.inputs):
            raise RunError(BAD_REQUEST, "no such slot, no rows, or not the inputs of the model", 0)
        for i, spec in enumerate(self.inputs):
            kind, rank, offset, size, *dims = TENSOR.unpack_from(body, 32 + 88 * i)
            shape = [rows] + [have if dim == -1 else dim for have, dim in zip(dims[1:], spec["shape"][1:])]
            declared = list(WIDTHS).index(spec["datatype"]) + 1, shape, math.prod(shape) * WIDTHS[spec["datatype"]]
            if (kind, dims[:rank], size) != declared or offset % 64 or offset + size > len(self.slots[slot]):
                raise RunError(BAD_REQUEST, f"input {i} does not fit the model or the slot", 0)
            yield kind, shape, self.slots[slot][offset:offset + size]

    def echo(self, inputs, _grant):
        return *inputs[0], 0

    def masked_mean(self, inputs, grant):
        (_, (rows, length), values), (_, _, mask) = inputs
        if 4 * rows > grant:
            raise RunError(OVER_GRANT, "the output exceeds the grant", 4 * rows)
        values, mask, means = values.cast("f"), mask.cast("q"), []
        if float(self.options.get("throw_on", "nan")) in values:
            raise RunError(MODEL_ERROR, "a value is not allowed", 0)
        for at in (range(row * length, (row + 1) * length) for row in range(rows)):
            weight = sum(mask[i] for i in at)
            means.append(sum(values[i] * mask[i] for i in at) / weight if weight else math.nan)
        return 11, [rows, 1], struct.pack(f"<{rows}f", *means), 4 * rows

    def run(self, ticket, body):
        slot, rows, _length, _zero, grant, count = struct.unpack_from("<IIIIQI", body)
        inputs = list(self.find_inputs(slot, rows, count, body))
        began = time.monotonic_ns()
        self.batches += 1
        kind, shape, data, peak = self.model(inputs, grant)  # both models have one output
        execution = time.monotonic_ns() - began
        if len(data) > len(self.region):
            self.send(NEED, ticket, struct.pack("<Q", len(data)))
            answered, _, size, fds = self.receive(REGION, DISCARD)
            if answered == DISCARD:
                raise RunError(BAD_OUTPUT, "the outputs were discarded", 0)
            self.region = map_segment(fds[0], *struct.unpack("<Q", size), mmap.PROT_READ | mmap.PROT_WRITE)
        self.region[:len(data)] = data
        table = TENSOR.pack(kind, len(shape), 0, len(data), *shape, *[0] * (8 - len(shape)))
        self.send(DONE, ticket, struct.pack("<QQQqQ", peak, 0, resident(), execution, 1) + table)

    def serve(self):
        self.load()
        while True:
            kind, ticket, body, _ = self.receive(RUN, TRIM, STAT)
            if kind == RUN:
                try:
                    self.run(ticket, body)
                except RunError as error:
                    number, what, needed = error.args
                    self.send(ERROR, ticket, struct.pack("<B7xQQQ", number, 0, 0, needed) + text(what))
            else:
                numbers = (0, resident(), self.batches, self.libraries, 0, 0)[:2 if kind == TRIM else 6]
                self.send(kind + 1, 0, struct.pack(f"<{len(numbers)}Q", *numbers))


if __name__ == "__main__":
    try:
        Worker().serve()
    except (ValueError, struct.error, IndexError) as broken:
        raise SystemExit(2) from broken
