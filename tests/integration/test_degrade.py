# SPDX-License-Identifier: Apache-2.0
"""A model that keeps running out of memory is answered for by its fallback, and every reply says so."""

import json
import subprocess
import tempfile
import unittest

from serving import BIN, IDS_MODEL, Server, batching, stub_model

IDS = IDS_MODEL.format(max_length=1024).replace("range = [0, 30521]\n", "")
SINGLE = batching("max_rows = 1")


class Degrade(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def test_the_fallback_answers_for_a_resting_model_and_the_reply_names_it(self):
        stub_model(self.folder.name, "large", "thrower", 'fallback = "small"\n' + IDS + SINGLE, throw_on=999,
                   throw_as="oom")
        stub_model(self.folder.name, "small", "quadratic", IDS)
        server = Server(self.folder.name)
        self.addCleanup(server.close)
        server.await_ready()
        status, headers, reply = server.infer_rows("large", "ids", [[2, 3]])
        self.assertEqual(200, status, reply)
        self.assertNotIn("x-tonnage-fallback-model", headers)

        for _ in range(8):
            if server.model_status("large")["ladder"] == "resting":
                break
            status, headers, reply = server.infer_rows("large", "ids", [[1, 999]])
            # The one that lays the model to rest is answered by the fallback already.
            self.assertEqual("over_memory" if status == 413 else None, headers.get("x-tonnage-reason"), reply)
        self.assertEqual("resting", server.model_status("large")["ladder"])

        status, headers, reply = server.infer_rows("large", "ids", [[2, 3]])
        self.assertEqual(200, status, reply)
        self.assertEqual([5.0], reply["outputs"][0]["data"])
        self.assertEqual("large", reply["model_name"])
        self.assertEqual("small", reply["parameters"]["fallback_model"])
        self.assertEqual("small", headers["x-tonnage-fallback-model"])
        server.await_ready()  # it answers, so it is ready
        self.assertEqual(0, server.model_status("large")["worker_deaths"])
        self.assertGreaterEqual(server.model_status("large")["fallback_requests"], 1)
        server.assert_at_rest()

    def test_an_operator_says_whether_predictions_refuse(self):
        stub_model(self.folder.name, "m", "quadratic", IDS)
        server = Server(self.folder.name, "--model-control", "explicit")
        self.addCleanup(server.close)
        server.await_ready()
        self.assertEqual("on", server.model_status("m")["enforce"])
        for verb, enforce in (("observe", "observe"), ("enforce", "on")):
            status, _, body = server.request("POST", f"/v2/repository/models/m/{verb}")
            self.assertEqual((200, {"name": "m", "enforce": enforce}), (status, json.loads(body)))
            self.assertEqual(enforce, server.model_status("m")["enforce"])
        self.assertEqual(404, server.request("POST", "/v2/repository/models/nobody/observe")[0])

    def test_a_fallback_that_is_missing_or_gives_something_else_is_an_error_before_the_start(self):
        def check():
            command = [str(BIN / "tonnage"), "serve", "--models", self.folder.name, "--check"]
            return subprocess.run(command, capture_output=True, text=True, timeout=60)

        stub_model(self.folder.name, "large", "quadratic", 'fallback = "smal"\n' + IDS)
        stub_model(self.folder.name, "small", "quadratic", IDS.replace("[-1, 1]", "[-1, 3]"))
        missing = check()
        self.assertNotEqual(0, missing.returncode)
        self.assertIn("model 'large' cannot fall back to 'smal': there is no such model", missing.stderr)
        stub_model(self.folder.name, "large", "quadratic", 'fallback = "small"\n' + IDS)
        self.assertIn("output 1 is 'sum' FP32 [-1, 1] here and 'sum' FP32 [-1, 3] there", check().stderr)


if __name__ == "__main__":
    unittest.main()
