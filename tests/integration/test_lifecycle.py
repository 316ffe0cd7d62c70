# SPDX-License-Identifier: Apache-2.0
"""The beginning and the end of a real server: warm-up, memory that does not suffice, drain."""

import json
import signal
import socket
import subprocess
import tempfile
import unittest

from serving import BIN, IDS_MODEL, WATCHDOG_S, Server, await_until, stub_model

IDS = IDS_MODEL.format(max_length=256)


class Lifecycle(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="tonnage-models-")
        self.addCleanup(self.folder.cleanup)

    def serve(self, *arguments, **kinds):
        server = Server(self.folder.name, *arguments, **kinds)
        self.addCleanup(server.close)
        return server

    def ends_well(self, server):
        self.assertEqual(0, server.process.wait(WATCHDOG_S), server.log_text())
        self.assertNotIn('"bug', server.log_text())

    def test_a_signal_in_the_middle_of_a_warm_up_ends_the_server_in_order(self):
        stub_model(self.folder.name, "slow", "sleepy", IDS, sleep_ms=400)
        server = self.serve()
        await_until(lambda: server.model_status("slow")["phase"] == "warming_up", "the warm-up")
        server.process.send_signal(signal.SIGTERM)
        self.ends_well(server)

    def test_a_request_whose_body_was_begun_is_answered_while_the_server_drains(self):
        stub_model(self.folder.name, "sum", "quadratic", IDS)
        server = self.serve().await_ready()
        body = json.dumps({"inputs": [{"name": "ids", "shape": [1, 4], "datatype": "INT64", "data": [1, 2, 3, 4]}]})
        head = f"POST /v2/models/sum/infer HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
        with socket.create_connection(("127.0.0.1", server.ports["http"]), timeout=WATCHDOG_S) as connection:
            connection.sendall((head + body[:20]).encode())
            await_until(lambda: any(a["name"] == "ingress" and a["used"] > 0
                                    for a in server.status()["accounts"]["children"]), "the body to be charged")
            server.process.send_signal(signal.SIGTERM)
            await_until(lambda: '"draining"' in server.log_text(), "the drain")
            connection.sendall(body[20:].encode())
            reply = b""
            while part := connection.recv(65536):
                reply += part
        self.assertEqual(b"HTTP/1.1 200", reply[:12], reply)
        self.assertEqual([10.0], json.loads(reply.partition(b"\r\n\r\n")[2])["outputs"][0]["data"])
        self.ends_well(server)

    def inspect(self, folder, *arguments):
        with tempfile.TemporaryDirectory() as state:  # what an earlier run learned would spare the warm-up
            return subprocess.run([str(BIN / "tonnage"), "inspect", str(folder), "--state", state, *arguments], text=True,
                                  capture_output=True, timeout=WATCHDOG_S)

    def test_the_smallest_budget_that_inspect_names_serves_the_longest_row(self):
        folder = stub_model(self.folder.name, "sum", "quadratic", IDS, weight_bytes="4MiB")
        seen = json.loads(self.inspect(folder, "--json").stdout)
        self.assertEqual(("on", True), (seen["enforce"], seen["safe_to_enforce"]))
        budget = str(seen["smallest_budget_bytes"])
        largest = json.loads(self.inspect(folder, "--json", "--memory", budget).stdout)["largest_batch"][-1]
        self.assertEqual(256, largest["length"])
        self.assertGreaterEqual(largest["rows"], 1)
        server = self.serve(memory=budget).await_ready()
        self.assertEqual(200, server.infer_rows("sum", "ids", [[1] * 256])[0])

    def test_inspect_with_memory_for_the_model_and_no_row_says_how_much_is_missing(self):
        folder = stub_model(self.folder.name, "sum", "quadratic", IDS)
        seen = json.loads(self.inspect(folder, "--json").stdout)
        run = self.inspect(folder, "--memory", str(seen["base_bytes"] + seen["weights_bytes"] + (2 << 20)))
        self.assertNotEqual(0, run.returncode)
        self.assertRegex(run.stderr, r"smallest budget for this model is [\d.]+ MiB: .*are missing")

    def test_inspect_with_too_little_memory_says_how_much_is_missing(self):
        folder = stub_model(self.folder.name, "sum", "quadratic", IDS)
        run = self.inspect(folder, "--memory", "64KiB")
        self.assertNotEqual(0, run.returncode)
        self.assertRegex(run.stderr, r"needs [\d.]+ \w+, [\d.]+ \w+ are free: [\d.]+ \w+ are missing")
        self.assertRegex(run.stderr, r"smallest budget for this model is [\d.]+ MiB: .*one row of length 256 .*missing")


if __name__ == "__main__":
    unittest.main()
