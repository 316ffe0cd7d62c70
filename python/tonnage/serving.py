# SPDX-License-Identifier: Apache-2.0
"""A running `tonnage serve` for demo and benches: started, ready, asked, stopped; nothing left behind."""

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path


class ServerFailed(RuntimeError):
    """The server did not come up, or went away."""


class Server:
    """Use as a context manager. `log` keeps what the server wrote to standard error."""

    def __init__(self, program, models, *arguments, state=None, environment=None):
        self._folder = tempfile.mkdtemp(prefix="tonnage-")
        self._port_file = Path(self._folder, "ports.json")
        self.log = Path(self._folder, "server.log")
        self._command = [str(program), "serve", "--models", str(models), "--http-port", "0", "--metrics-port", "0",
                         "--host", "127.0.0.1", "--port-file", str(self._port_file),
                         "--state", str(state or Path(self._folder, "state")), *map(str, arguments)]
        self._environment = {**os.environ, **(environment or {})}
        self.process = None
        self.ports = {}
        self.cold_start_s = None  # from spawn to ready

    def __enter__(self):
        self.start()
        try:
            self.wait_ready()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    def start(self):
        self._started = time.monotonic()
        with open(self.log, "wb") as log:
            # A session of its own: Ctrl-C reaches this script first, which then stops the server in order.
            self.process = subprocess.Popen(self._command, stdout=log, stderr=log, env=self._environment,
                                            start_new_session=True)

    def wait_ready(self, patience=180, say=None):
        """Waits for the port file and for readiness; shows what the server is busy with when it takes long."""
        pidfd = os.pidfd_open(self.process.pid)
        told = time.monotonic()
        try:
            pause = 0.01
            while time.monotonic() - self._started < patience:
                if self._port_file.exists() and not self.ports:
                    with contextlib.suppress(json.JSONDecodeError):  # half written
                        self.ports = json.loads(self._port_file.read_text())
                if self.ports and self.is_ready():
                    self.cold_start_s = time.monotonic() - self._started
                    return
                if select.select([pidfd], [], [], pause)[0]:
                    raise ServerFailed(f"tonnage serve ended with {self.process.wait()}:\n{self.last_log()}")
                pause = min(pause * 1.3, 0.2)
                if say and time.monotonic() - told > 2:
                    told = time.monotonic()
                    say(f"waiting for the server, {told - self._started:.0f} s")
        finally:
            os.close(pidfd)
        raise ServerFailed(f"tonnage serve was not ready after {patience} s:\n{self.last_log()}")

    def last_log(self, lines=15):
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:]) if self.log.exists() else ""

    @property
    def url(self):
        return f"http://127.0.0.1:{self.ports['http']}"

    def get(self, path, timeout=10):
        with urllib.request.urlopen(self.url + path, timeout=timeout) as reply:
            return reply.read()

    def is_ready(self):
        try:
            self.get("/v2/health/ready", timeout=5)
            return True
        except (urllib.error.URLError, OSError):
            return False

    def status(self):
        return json.loads(self.get("/v1/tonnage/status"))

    def model_status(self, name):
        models = self.status().get("models", [])
        for model in models:
            if model.get("name") == name:
                return model
        raise ServerFailed(f"the status names no model '{name}': {[m.get('name') for m in models]}")

    def pids(self):
        """The server and all its descendants."""
        return process_tree(self.process.pid)

    def pin(self, front_cpu, worker_cpu):
        """Every thread of the server on one CPU, every thread of its workers on another."""
        for pid in self.pids():
            cpu = front_cpu if pid == self.process.pid else worker_cpu
            for thread in os.listdir(f"/proc/{pid}/task"):
                with contextlib.suppress(ProcessLookupError):
                    os.sched_setaffinity(int(thread), cpu)

    def stop(self):
        if self.process and self.process.poll() is None:
            tree = self.pids()
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            for pid in tree[1:]:  # a worker outlives its server only if the server was killed
                with contextlib.suppress(ProcessLookupError, FileNotFoundError):
                    if "tonnage-worker" in Path(f"/proc/{pid}/cmdline").read_text():
                        os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self._folder, ignore_errors=True)


class Watch:
    """tonnage-watch on a process tree: the kernel's numbers, every 10 ms. A context manager; `result()` is there
    afterwards."""

    def __init__(self, program, pid, out):
        self._command, self._out = [str(program), str(pid), str(out)], Path(out)
        self.process = None

    def __enter__(self):
        self.process = subprocess.Popen(self._command)
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=30)

    def result(self):
        return json.loads(self._out.read_text())


def children_of(pid):
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            yield from map(int, task.read_text().split())


def process_tree(pid):
    """`pid` and its descendants, parents first."""
    tree = [pid]
    for member in tree:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            tree += children_of(member)
    return tree
