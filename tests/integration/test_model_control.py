# SPDX-License-Identifier: Apache-2.0
"""Models that come and go by Triton's repository calls, and a server that says goodbye."""

import json
import signal
import tempfile
import threading
import unittest

from serving import IDS_MODEL, Server, await_until, batching, stub_model

IDS = IDS_MODEL.format(max_length=64)
EXPLICIT = ("--model-control", "explicit")


class ModelControl(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def serve(self, *arguments, **options):
        server = Server(self.folder.name, *arguments, **options)
        self.addCleanup(server.close)
        return server.await_ready()

    def call(self, server, path, body=None, headers=None):
        status, reply_headers, data = server.request("POST", "/v2/repository/" + path, body, headers)
        return status, reply_headers.get("x-tonnage-reason"), json.loads(data)

    def states(self, server, body=None):
        status, _, rows = self.call(server, "index", body)
        self.assertEqual(200, status)
        return {row["name"]: row["state"] for row in rows}

    def test_a_model_comes_and_goes_while_another_serves(self):
        stub_model(self.folder.name, "stays", "quadratic", IDS)
        stub_model(self.folder.name, "comes", "quadratic", IDS)
        server = self.serve(*EXPLICIT, "--load-models", "stays")
        self.assertEqual({"stays": "READY", "comes": "UNAVAILABLE"}, self.states(server))
        self.assertEqual(404, server.infer_rows("comes", "ids", [[1, 2]])[0])
        self.assertEqual(200, self.call(server, "models/comes/load")[0])
        self.assertEqual(200, server.infer_rows("comes", "ids", [[1, 2]])[0], "load is answered when it is ready")
        self.assertEqual({"stays": "READY", "comes": "READY"}, self.states(server))
        self.assertEqual(200, self.call(server, "models/comes/unload", '{"parameters":{"unload_dependents":false}}')[0])
        await_until(lambda: self.states(server)["comes"] == "UNAVAILABLE", "the model to go")
        self.assertEqual({"stays": "READY"}, self.states(server, '{"ready":true}'))
        self.assertEqual(404, server.infer_rows("comes", "ids", [[1, 2]])[0])
        self.assertEqual(200, server.infer_rows("stays", "ids", [[1, 2]])[0])
        self.assertTrue(server.is_ready())
        self.assertNotIn('model="comes"', server.get("/metrics", "metrics")[2].decode())

    def test_a_fallback_that_the_repository_holds_and_nobody_loaded_keeps_nothing_from_serving(self):
        stub_model(self.folder.name, "main", "quadratic", 'fallback = "spare"\n' + IDS)
        stub_model(self.folder.name, "spare", "quadratic", IDS)
        server = self.serve(*EXPLICIT, "--load-models", "main")
        self.assertEqual(200, server.infer_rows("main", "ids", [[1, 2]])[0])

    def test_a_model_that_is_loaded_unloaded_and_loaded_again_in_one_drain_serves(self):
        stub_model(self.folder.name, "busy", "sleepy", IDS, sleep_ms=700)
        server = self.serve(*EXPLICIT)
        waiting = threading.Thread(target=lambda: server.infer_rows("busy", "ids", [[1, 2]]))
        waiting.start()
        await_until(lambda: server.status()["open_requests"] > 0, "the batch that keeps the old model")
        replies = {}
        first = threading.Thread(target=lambda: replies.update(first=self.call(server, "models/busy/load")))
        first.start()
        await_until(lambda: self.states(server)["busy"] != "READY", "the old model to leave")
        replies["unload"] = self.call(server, "models/busy/unload")
        replies["again"] = self.call(server, "models/busy/load")
        first.join()
        waiting.join()
        self.assertEqual(200, replies["unload"][0], replies)
        self.assertEqual(200, replies["again"][0], replies)
        self.assertEqual(200, server.infer_rows("busy", "ids", [[1, 2]])[0])

    def test_what_cannot_be_loaded_says_why_and_leaves_nothing(self):
        stub_model(self.folder.name, "good", "quadratic", IDS)
        stub_model(self.folder.name, "bad", "bad_load", IDS, weight_bytes="1MiB")
        stub_model(self.folder.name, "large", "quadratic", IDS, weight_bytes="1MiB")
        server = self.serve(*EXPLICIT, "--load-models", "good")
        status, reason, reply = self.call(server, "models/bad/load")
        self.assertEqual((400, "load_failed"), (status, reason))
        self.assertIn("failed to load 'bad'", reply["error"])
        status, reason, reply = self.call(server, "models/nobody/load")
        self.assertEqual((404, "unknown_model"), (status, reason))
        self.assertIn("failed to load 'nobody'", reply["error"])
        self.assertEqual(404, self.call(server, "models/..%2F..%2Fetc/load")[0])
        self.assertEqual(404, self.call(server, "models/nobody/unload")[0])
        self.assertEqual(200, self.call(server, "models/large/unload")[0], "not loaded is what was asked for")
        override = '{"parameters":{"config":"{}"}}'
        self.assertEqual((501, "model_override"), self.call(server, "models/large/load", override)[:2])
        self.assertEqual(400, self.call(server, "models/large/load", "{nonsense")[0])
        await_until(lambda: [m["name"] for m in server.status()["models"]] == ["good"], "the failed model to go")
        self.assertTrue(server.is_ready())

    def test_without_explicit_control_nothing_can_be_changed(self):
        stub_model(self.folder.name, "fixed", "quadratic", IDS)
        server = self.serve()
        for path in ("index", "models/fixed/load", "models/fixed/unload", "models/fixed/rotate",
                     "models/fixed/observe"):
            self.assertEqual((403, "model_control_off"), self.call(server, path)[:2], path)
        self.assertTrue(server.is_ready())

    def test_a_proxy_on_this_machine_is_no_operator(self):
        stub_model(self.folder.name, "fixed", "quadratic", IDS)
        server = self.serve(*EXPLICIT)
        self.assertEqual(403, self.call(server, "models/fixed/unload", headers={"X-Forwarded-For": "10.0.0.1"})[0])

    def test_a_reload_takes_the_new_description_and_a_broken_one_changes_nothing(self):
        folder = stub_model(self.folder.name, "m", "quadratic", IDS + batching("max_rows = 8"))
        server = self.serve(*EXPLICIT)
        text = (folder / "model.toml").read_text()
        (folder / "model.toml").write_text(text.replace("max_rows = 8", "max_rows = 0"))
        status, reason, reply = self.call(server, "models/m/load")
        self.assertEqual((400, "load_failed"), (status, reason))
        self.assertIn("max_rows", reply["error"])
        self.assertEqual(200, server.infer_rows("m", "ids", [[1, 2]])[0])
        (folder / "model.toml").write_text(text.replace("max_rows = 8", "max_rows = 16"))
        self.assertEqual(200, self.call(server, "models/m/load")[0])
        self.assertEqual(16, server.model_status("m")["max_rows"])

    def test_what_an_unloaded_model_had_taken_is_finished(self):
        stub_model(self.folder.name, "sleepy", "sleepy", IDS + batching("max_rows = 1"), sleep_ms=200)
        server = self.serve(*EXPLICIT)
        replies = []
        clients = [threading.Thread(target=lambda i=i: replies.append(server.infer_rows("sleepy", "ids", [[i, 1]])[0]))
                   for i in range(4)]
        for client in clients:
            client.start()
        await_until(lambda: server.status()["open_requests"] == 4, "all four to be waiting")
        self.assertEqual(200, self.call(server, "models/sleepy/unload")[0])
        self.assertIn(server.infer_rows("sleepy", "ids", [[9, 1]])[0], (404, 503))
        for client in clients:
            client.join()
        self.assertEqual([200] * 4, replies)
        await_until(lambda: server.status()["models"] == [], "the model to go")

    def test_an_operator_replaces_a_worker_and_is_told_what_came_back(self):
        stub_model(self.folder.name, "m", "quadratic", IDS)
        server = self.serve(*EXPLICIT)
        before = server.worker_pid("m")
        status, _, reply = self.call(server, "models/m/rotate")
        self.assertEqual(200, status, reply)
        self.assertEqual(1, reply["workers"])
        self.assertNotEqual(before, server.worker_pid("m"))
        self.assertIn('tonnage_rotations_total{model="m",reason="operator",result="done"} 1',
                      server.get("/metrics", "metrics")[2].decode())

    def test_a_standby_that_does_not_fit_is_refused_with_what_is_missing(self):
        stub_model(self.folder.name, "m", "quadratic", IDS, weight_bytes="150MiB")
        server = self.serve(*EXPLICIT, memory="300MiB")
        status, reason, reply = self.call(server, "models/m/rotate")
        self.assertEqual((503, "over_budget"), (status, reason), reply)
        self.assertTrue(server.is_ready())

    def test_after_sigterm_health_is_answered_and_new_work_refused_until_all_is_done(self):
        stub_model(self.folder.name, "sleepy", "sleepy", IDS, sleep_ms=1500)
        server = self.serve()
        replies = []
        client = threading.Thread(target=lambda: replies.append(server.infer_rows("sleepy", "ids", [[1, 1]])[0]))
        client.start()
        await_until(lambda: server.status()["open_requests"] == 1, "the request to run")
        server.process.send_signal(signal.SIGTERM)
        await_until(lambda: server.get("/v2/health/ready")[0] == 400, "readiness to fall")
        self.assertEqual(200, server.get("/v2/health/live")[0])
        status, headers, _ = server.infer_rows("sleepy", "ids", [[2, 1]])
        self.assertEqual((503, "draining"), (status, headers["x-tonnage-reason"]))
        self.assertEqual(503, server.request("GET", "/ping", port="sagemaker")[0])
        client.join()
        self.assertEqual([200], replies)
        self.assertEqual(0, server.process.wait(30))

    def test_a_server_with_nothing_to_do_listens_on_as_long_as_it_was_told(self):
        stub_model(self.folder.name, "m", "quadratic", IDS)
        server = self.serve("--drain-least", "1s")
        server.process.send_signal(signal.SIGTERM)
        await_until(lambda: server.get("/v2/health/ready")[0] == 400, "readiness to fall")
        self.assertEqual(0, server.process.wait(30))


if __name__ == "__main__":
    unittest.main()
