# SPDX-License-Identifier: Apache-2.0
"""The short forms of ./dev soak, for every route whose worker is built, with a small model; and that soaks can fail."""

import collections
import http.server
import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from serving import BIN, SOURCE

sys.path[:0] = [str(SOURCE / "tests/soak"), str(SOURCE / "python")]

import exported  # noqa: E402
from clients import Clients, Load  # noqa: E402
from remainder import free_pages_grow, growth_of_last_third  # noqa: E402

CASES = ("trace fp32", "trace bf16", "script fp32", "aoti fp32", "onnx fp32", "native fp32")


def soak(*arguments):
    """(passed, readings of each case)"""
    done = subprocess.run([sys.executable, str(SOURCE / "tests/soak/soak.py"), *arguments, "--build", str(BIN.parent)],
                          capture_output=True, text=True, timeout=600, check=False)
    assert done.stdout, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["pass"] == (done.returncode == 0)
    return result


@pytest.fixture(scope="module")
def tiny():
    """The folder of small models. Skips aloud where nothing can be exported."""
    try:
        return exported.make_tiny(BIN.parent / "soak-models")
    except exported.NoModels as error:
        if "has no torch" in str(error):
            pytest.skip(str(error))
        raise


def need(tiny, route):
    """The names of all cases; skips aloud where the route's worker is not built."""
    cases, skipped = exported.find(tiny, BIN)
    if route in skipped:
        pytest.skip(f"route {route}: {skipped[route]}")
    return [case.name for case in cases]


@pytest.mark.parametrize("case", CASES)
def test_five_cycles_of_load_and_unload_leave_nothing(tiny, case):
    route, precision = case.split()
    assert case in need(tiny, route)
    result = soak("cycles", "--tiny", "--count", "5", "--for", "120s", "--route", route, "--precision", precision)
    assert result["pass"], json.dumps(result)
    assert {name: seen["cycles"] for name, seen in result["cases"].items()} == {case: 5}


def test_five_cycles_of_a_stub_leave_nothing():
    result = soak("cycles", "--count", "5", "--for", "60s", "--route", "stub")
    assert result["pass"], json.dumps(result)
    assert result["cases"]["stub"]["cycles"] == 5


def test_rotations_under_load_lose_nothing_and_run_nothing_twice():
    result = soak("rotation", "--count", "6", "--route", "stub", "--for", "60s")
    assert result["pass"], json.dumps(result)
    assert result["cases"]["stub"]["rotations"] == 6


def test_a_rotation_of_a_real_model_refuses_nobody(tiny):
    need(tiny, "trace")
    result = soak("rotation", "--tiny", "--count", "2", "--route", "trace", "--precision", "fp32", "--for", "60s")
    assert result["pass"], json.dumps(result)
    assert result["cases"]["trace fp32"]["rotations"] == 2


def test_after_twenty_thousand_requests_of_many_shapes_memory_is_flat(tiny):
    need(tiny, "trace")
    result = soak("remainder", "--tiny", "--count", "20000", "--route", "trace", "--precision", "fp32", "--for", "300s")
    assert result["pass"], json.dumps(result)
    assert result["cases"]["trace fp32"]["answers"] == {"200": 20000}


def test_a_route_that_is_not_there_is_said_and_is_no_success(tmp_path):
    result = soak("cycles", "--models", str(tmp_path), "--route", "trace")
    assert not result["pass"]
    assert "trace" in result["skipped"]


def test_growth_is_judged_by_the_last_third():
    assert growth_of_last_third([10.0] * 20 + [100.0] * 100) == 0
    assert growth_of_last_third([float(i) for i in range(100, 400)]) > 0.1


def test_free_pages_that_come_and_go_are_no_growth_and_those_that_stay_are():
    assert not free_pages_grow([0] * 8 + [5, 9, 7, 3, 9, 4, 8, 6] + [9, 10, 6, 9, 8, 10, 9, 5])
    assert not free_pages_grow([7] * 24)
    assert free_pages_grow([5, 9, 7, 3, 9, 4, 8, 6] * 2 + [25, 29, 27, 23, 29, 24, 28, 26])
    assert free_pages_grow(list(range(24)))


class Fickle(http.server.BaseHTTPRequestHandler):
    """Answers 200 until `left` is used up; then what `then` says: a status, or None to hang up."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):  # noqa: N802 - the name that the library calls
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.left -= 1
        status = 200 if self.server.left >= 0 else self.server.then
        if status is None:
            self.close_connection = True
            return
        self.send_response(status)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_):
        pass


def ask(good, then, **how):
    """The clients of a server that answers `good` requests well."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Fickle)
    server.left, server.then = good, then
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    Front = collections.namedtuple("Front", "ports")
    try:
        with Clients(Front({"http": server.server_port}), "m", Load(**how), lambda _: "{}") as clients:
            assert clients.wait(60)
        return clients
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_clients_that_are_all_answered_have_nothing_to_say():
    clients = ask(20, 500, clients=4, most=20)
    assert clients.wrong() == "" and clients.answers == {200: 20}


@pytest.mark.parametrize("then, expected", [(None, "client 0 died after 3 answers: RemoteDisconnected"),
                                            (503, "client 0 was answered {503: 7}, first {}")])
def test_a_client_that_fails_is_named_with_what_happened_to_it(then, expected):
    assert ask(3, then, clients=1, most=10).wrong().startswith(expected)


def test_a_client_that_was_never_answered_is_a_failure():
    assert "got no answer at all" in ask(99, 500, clients=2, most=1).wrong()


if __name__ == "__main__":
    sys.exit(pytest.main([str(Path(__file__))]))
