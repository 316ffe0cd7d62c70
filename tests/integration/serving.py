# SPDX-License-Identifier: Apache-2.0
"""What the integration tests share: a running server, raw HTTP; model folders come from tools/stub_models.py.

Everything waits through await_until(), the one place with a clock and the one watchdog.
"""

import http.client
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
sys.path.append(str(SOURCE / "tools"))

from stub_models import ECHO_MODEL, IDS_MODEL, batching, stub_model  # noqa: E402, F401

BIN = Path(os.environ.get("TONNAGE_BIN", SOURCE / "build" / "dev" / "bin"))
WATCHDOG_S = 60.0

def await_until(predicate, what):
    """Polls `predicate` until it gives something true; fails after the watchdog."""
    deadline = time.monotonic() + WATCHDOG_S
    while time.monotonic() < deadline:
        value = predicate()
        if value:
            return value
        select.select([], [], [], 0.005)
    raise AssertionError(f"waited {WATCHDOG_S:.0f} s for {what}")


class Server:
    """`tonnage serve` on free ports of the loopback, with its state in a folder of its own."""

    def __init__(self, models, *arguments, memory="1GiB", state=None):
        self.folder = tempfile.TemporaryDirectory(prefix="tonnage-test-")
        self.port_file = Path(self.folder.name) / "ports.json"
        self.log = open(Path(self.folder.name) / "log.jsonl", "w+b")
        state = state or str(Path(self.folder.name) / "state")
        self.process = subprocess.Popen(
            [str(BIN / "tonnage"), "serve", "--models", str(models), "--memory", memory, "--host", "127.0.0.1",
             "--http-port", "0", "--sagemaker-port", "0", "--metrics-port", "0", "--state", state,
             "--port-file", str(self.port_file), *arguments],
            stdout=self.log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        try:
            await_until(lambda: self.port_file.exists() or self.process.poll() is not None, "the port file")
            assert self.process.poll() is None, self.log_text()
            self.ports = json.loads(self.port_file.read_text())
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(WATCHDOG_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.log.close()
        self.folder.cleanup()

    def log_text(self):
        self.log.flush()
        return Path(self.log.name).read_text(errors="replace")

    def await_ready(self):
        await_until(self.is_ready, "readiness; the log says\n" + self.log_text()[-2000:])
        return self

    def is_ready(self):
        assert self.process.poll() is None, self.log_text()
        return self.get("/v2/health/ready")[0] == 200

    def is_live(self):
        return self.process.poll() is None and self.get("/v2/health/live")[0] == 200

    def request(self, method, path, body=None, headers=None, port="http"):
        connection = http.client.HTTPConnection("127.0.0.1", self.ports[port], timeout=WATCHDOG_S)
        try:
            connection.request(method, path, body, headers or {})
            reply = connection.getresponse()
            return reply.status, {k.lower(): v for k, v in reply.getheaders()}, reply.read()
        finally:
            connection.close()

    def get(self, path, port="http"):
        return self.request("GET", path, port=port)

    def status(self):
        return json.loads(self.get("/v1/tonnage/status")[2])

    def model_status(self, name):
        return next(m for m in self.status()["models"] if m["name"] == name)

    def worker_pid(self, name):
        return self.model_status(name)["workers"][0]["pid"]

    def infer(self, model, inputs, **request):
        body = json.dumps({"inputs": inputs, **request})
        status, headers, data = self.request("POST", f"/v2/models/{model}/infer", body)
        return status, headers, json.loads(data)

    def infer_rows(self, model, name, rows, datatype="INT64", **request):
        """Rows of equal length → the flat data of the first output."""
        shape = [len(rows), len(rows[0])] if rows else [0, 0]
        flat = [value for row in rows for value in row]
        status, headers, reply = self.infer(
            model, [{"name": name, "shape": shape, "datatype": datatype, "data": flat}], **request)
        return status, headers, reply

    def raw(self, payload, port="http", receive=True):
        """Sends bytes as they are; what came back until the server closed, or one reply's head."""
        with socket.create_connection(("127.0.0.1", self.ports[port]), timeout=WATCHDOG_S) as connection:
            try:
                connection.sendall(payload)
            except (BrokenPipeError, ConnectionResetError):
                pass
            if not receive:
                return b""
            got = b""
            while b"\r\n\r\n" not in got:
                try:
                    part = connection.recv(65536)
                except ConnectionResetError:
                    break
                if not part:
                    break
                got += part
            return got

    def assert_at_rest(self):
        """Live, ready, and every transient account at exactly zero."""
        assert self.is_live()

        def rest():
            status = self.status()
            accounts = {a["name"]: a["used"] for a in status["accounts"]["children"]}
            return status["open_requests"] == 0 and accounts.get("ingress") == 0 and accounts.get("envelopes") == 0

        await_until(rest, "the ledger to come to rest")
        assert self.status()["bugs"] == 0


def in_parallel(count, call):
    """Runs call(i) on `count` threads at once; the results in order."""
    results = [None] * count
    errors = []

    def run(i):
        try:
            results[i] = call(i)
        except BaseException as error:  # noqa: BLE001 - reported below, in the test's own thread
            errors.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WATCHDOG_S * 2)
    if errors:
        raise errors[0]
    return results


def binary_body(name, shape, values, form="<f", datatype="FP32"):
    raw = b"".join(struct.pack(form, value) for value in values)
    head = json.dumps({"inputs": [{"name": name, "shape": shape, "datatype": datatype,
                                   "parameters": {"binary_data_size": len(raw)}}],
                       "parameters": {"binary_data_output": True}}).encode()
    return head + raw, {"Inference-Header-Content-Length": str(len(head))}
