# SPDX-License-Identifier: Apache-2.0
"""A fault of a model costs its own row or its own worker, never the service."""

import collections
import os
import signal
import tempfile
import unittest
from pathlib import Path

from serving import ECHO_MODEL, IDS_MODEL, Server, await_until, batching, in_parallel, stub_model

IDS = IDS_MODEL.format(max_length=1024)
# Without a stated range warm-up sends zeros and ones only, never the value that a fault waits for.
UNRANGED = IDS.replace("range = [0, 30521]\n", "")
GATHER = UNRANGED + batching("max_wait_ms = 30")  # rows sent together meet in one batch


class Faults(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def serve(self, *arguments, **options):
        server = Server(self.folder.name, *arguments, **options)
        self.addCleanup(server.close)
        return server.await_ready()

    def test_one_poison_row_of_64_costs_two_deaths_and_only_itself(self):
        log = Path(self.folder.name) / "executed.txt"
        stub_model(self.folder.name, "aborter", "aborter", GATHER, abort_on=777, execution_log=str(log))
        server = self.serve()
        log.write_text("")

        nonces = [1000 + i for i in range(64)]
        rows = [[nonces[i], 777 if i == 41 else 5] for i in range(64)]
        replies = in_parallel(64, lambda i: server.infer_rows("aborter", "ids", [rows[i]]))
        for i, (status, headers, reply) in enumerate(replies):
            if i == 41:
                self.assertEqual(500, status, reply)
                self.assertEqual("poison_row", headers["x-tonnage-reason"])
            else:
                self.assertEqual(200, status, reply)
                self.assertEqual([float(nonces[i] + 5)], reply["outputs"][0]["data"])
        self.assertEqual(2, server.model_status("aborter")["worker_deaths"])

        # Executed, not only answered: the guilty row in both deaths, any other once, and at most once
        # more in the batch that died.
        executed = collections.Counter(log.read_text().split())
        for i, nonce in enumerate(nonces):
            self.assertIn(executed[str(nonce)], (2,) if i == 41 else (1, 2), f"row {i}")

        # Remembered: the same row is refused without costing a worker.
        status, headers, _ = server.infer_rows("aborter", "ids", [rows[41]])
        self.assertEqual((500, "poison_row"), (status, headers["x-tonnage-reason"]))
        self.assertEqual(2, server.model_status("aborter")["worker_deaths"])
        server.assert_at_rest()

    def test_a_thrown_error_fails_only_its_own_row(self):
        stub_model(self.folder.name, "thrower", "thrower", GATHER, throw_on=999)
        server = self.serve()
        replies = in_parallel(8, lambda i: server.infer_rows("thrower", "ids", [[i, 999 if i == 3 else 1]]))
        self.assertEqual([200, 200, 200, 500, 200, 200, 200, 200], [status for status, _, _ in replies])
        self.assertEqual("model_error", replies[3][1]["x-tonnage-reason"])
        self.assertEqual(0, server.model_status("thrower")["worker_deaths"])
        server.assert_at_rest()

    def test_a_worker_killed_under_load_loses_no_request(self):
        stub_model(self.folder.name, "sleepy", "sleepy", IDS + batching("max_rows = 4"), sleep_ms=5)
        server = self.serve()

        def call(i):
            if i == 20:
                os.kill(server.worker_pid("sleepy"), signal.SIGKILL)
            return server.infer_rows("sleepy", "ids", [[i, 1]])

        replies = in_parallel(60, call)
        self.assertEqual([200] * 60, [status for status, _, _ in replies])
        self.assertEqual([float(i + 1) for i in range(60)], [reply["outputs"][0]["data"][0] for _, _, reply in replies])
        self.assertGreaterEqual(server.model_status("sleepy")["worker_deaths"], 1)
        server.assert_at_rest()

    def test_a_model_that_lies_about_its_cost_is_held_to_its_grant(self):
        stub_model(self.folder.name, "liar", "quadratic", IDS, bytes_per_token=4096, bytes_per_token_squared=16,
                   lie_factor=3, lie_after=200)
        server = self.serve(memory="400MiB")
        honest = in_parallel(4, lambda i: [server.infer_rows("liar", "ids", [[1] * 16])[0] for _ in range(100)])
        self.assertEqual([[200] * 100] * 4, honest)
        replies = in_parallel(32, lambda i: server.infer_rows("liar", "ids", [[1] * (16 + 30 * i)]))
        for status, headers, reply in replies:
            self.assertIn(status, (200, 413, 503), reply)
            if status != 200:
                self.assertIn("x-tonnage-reason", headers)
        self.assertGreater(sum(status == 200 for status, _, _ in replies), 0)
        self.assertGreater(server.model_status("liar")["over_grants"], 0)
        self.assertEqual(0, server.model_status("liar")["worker_deaths"])
        server.assert_at_rest()

    def test_a_row_that_can_never_fit_is_refused_with_the_numbers(self):
        stub_model(self.folder.name, "heavy", "quadratic", IDS, bytes_per_token=400000)
        server = self.serve(memory="200MiB")
        status, headers, reply = server.infer_rows("heavy", "ids", [[1] * 1024])
        self.assertEqual((413, "never_fits"), (status, headers["x-tonnage-reason"]), reply)
        self.assertIn("length", reply["error"])
        self.assertEqual(200, server.infer_rows("heavy", "ids", [[1] * 16])[0])
        server.assert_at_rest()

    def test_kept_bytes_are_shown_per_batch(self):
        # Otherwise the worker is replaced, for it keeps enough to reach its limit within minutes.
        stub_model(self.folder.name, "hoarder", "hoarder", IDS + "[rotation]\nretention_within_s = 0\n",
                   keep_bytes_per_call=4096)
        server = self.serve()
        before = server.model_status("hoarder")["workers"][0]["live_bytes"]
        for i in range(20):
            self.assertEqual(200, server.infer_rows("hoarder", "ids", [[i, 1]])[0])
        after = server.model_status("hoarder")["workers"][0]["live_bytes"]
        self.assertEqual(20 * 4096, after - before)

    def test_a_model_that_cannot_load_leaves_the_server_up_and_not_ready(self):
        stub_model(self.folder.name, "bad", "bad_load", IDS)
        stub_model(self.folder.name, "echo", "echo", ECHO_MODEL.format(width=2))
        server = Server(self.folder.name)
        self.addCleanup(server.close)
        await_until(lambda: server.get("/v2/models/echo/ready")[0] == 200, "the good model")
        await_until(lambda: server.model_status("bad")["why"], "the reason of the bad model")
        self.assertEqual(400, server.get("/v2/health/ready")[0])
        self.assertEqual(503, server.get("/ping", "sagemaker")[0])
        self.assertEqual(200, server.infer_rows("echo", "x", [[1.0, 2.0]], "FP32")[0])

    def test_a_deadline_passes_on_time_while_another_batch_runs(self):
        stub_model(self.folder.name, "sleepy", "sleepy", IDS + batching("max_rows = 1"), sleep_ms=800)
        server = self.serve()
        replies = in_parallel(3, lambda i: server.infer_rows(
            "sleepy", "ids", [[i, 1]], parameters={"timeout": 100000 if i else 0} if i else {}))
        codes = sorted(status for status, _, _ in replies)
        self.assertEqual(200, codes[0])
        self.assertTrue(all(code in (200, 503, 504) for code in codes))
        self.assertIn(codes[-1], (503, 504))
        server.assert_at_rest()

    def test_a_full_queue_refuses_with_retry_after_and_health_stays_quick(self):
        stub_model(self.folder.name, "sleepy", "sleepy", IDS + batching("max_rows = 1\nmax_queue_rows = 2"), sleep_ms=20)
        server = self.serve("--overload-status", "429")
        replies = in_parallel(60, lambda i: server.infer_rows("sleepy", "ids", [[i, 1]]) if i % 6 else
                              server.get("/v2/health/live"))
        codes = collections.Counter(reply[0] for reply in replies)
        self.assertEqual(60, codes[200] + codes[429])
        self.assertGreater(codes[429], 0)
        for status, headers, _ in replies:
            if status == 429:
                self.assertGreaterEqual(int(headers["retry-after"]), 1)
        server.assert_at_rest()

    def test_a_client_that_leaves_frees_its_rows(self):
        stub_model(self.folder.name, "sleepy", "sleepy", IDS + batching("max_rows = 1"), sleep_ms=300)
        server = self.serve()
        body = b'{"inputs":[{"name":"ids","shape":[1,2],"datatype":"INT64","data":[1,2]}]}'
        head = b"POST /v2/models/sleepy/infer HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body)
        for _ in range(20):
            server.raw(head + body, receive=False)
        await_until(lambda: server.status()["open_requests"] == 0, "the abandoned requests to go")
        server.assert_at_rest()


if __name__ == "__main__":
    unittest.main()
