# SPDX-License-Identifier: Apache-2.0
"""Clients that ask one request after the other, each on a connection of its own. What became of each is kept: a
soak with a dead client would pass because nobody asked."""

import collections
import http.client
import threading
import time
from dataclasses import dataclass, field


@dataclass
class Record:
    """What one client saw."""

    answers: collections.Counter = field(default_factory=collections.Counter)  # by status
    refusal: str = ""  # the body of the first answer that was not 200
    died_of: str = ""

    def wrong(self):
        if self.died_of:
            return f"died after {self.answers.total()} answers: {self.died_of}"
        if not self.answers:
            return "got no answer at all"
        bad = {status: count for status, count in self.answers.items() if status != 200}
        return f"was answered {bad}, first {self.refusal}" if bad else ""


@dataclass(frozen=True)
class Load:
    clients: int
    rate: float | None = None  # requests a second, of all of them; None: as fast as they are answered
    most: int | None = None  # requests; None: until they are told to end


class Clients:
    """A context manager: they ask until it is left, or all of `load` is sent. Request number n, from 0, has the body
    body_of(n)."""

    def __init__(self, server, name, load, body_of):
        self._port, self._path, self._body_of = server.ports["http"], f"/v2/models/{name}/infer", body_of
        self._pause, self._most = 1 / load.rate if load.rate else 0.0, load.most
        self.sent, self._lock, self._ends = 0, threading.Lock(), threading.Event()
        self.records = [Record() for _ in range(load.clients)]
        self._threads = [threading.Thread(target=self._run, args=(record,)) for record in self.records]

    def __enter__(self):
        self._began = time.monotonic()
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._ends.set()
        for thread in self._threads:
            thread.join()

    def wait(self, seconds):
        """Until all requests are sent and answered, or every client is dead; False: not within `seconds`."""
        ends = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, ends - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    @property
    def answers(self):
        return sum((record.answers for record in self.records), collections.Counter())

    def wrong(self):
        """Which client failed and how, a line each; empty: every request was answered with 200."""
        told = [f"client {number} {record.wrong()}" for number, record in enumerate(self.records) if record.wrong()]
        if not told and self.answers.total() != self.sent:
            told.append(f"{self.sent} requests were sent, {self.answers.total()} were answered")
        return "; ".join(told)

    def _next(self):
        """The number of the next request; None: no more."""
        with self._lock:
            if self._ends.is_set() or (self._most is not None and self.sent >= self._most):
                return None
            self.sent += 1
            return self.sent - 1

    def _run(self, record):
        try:
            connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
            while (number := self._next()) is not None:
                wait = self._began + number * self._pause - time.monotonic()
                if self._pause and wait > 0:
                    threading.Event().wait(wait)
                connection.request("POST", self._path, self._body_of(number))
                reply = connection.getresponse()
                said = reply.read()
                record.answers[reply.status] += 1
                if reply.status != 200 and not record.refusal:
                    record.refusal = said.decode(errors="replace")
        except Exception as error:  # noqa: BLE001 - a thread's own; wrong() tells it
            record.died_of = f"{type(error).__name__}: {error}"
