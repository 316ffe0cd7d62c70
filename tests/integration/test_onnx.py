# SPDX-License-Identifier: Apache-2.0
"""The ONNX worker behind the whole server: a small model of the tree, files that cannot be loaded, and the
reviews model against its TorchScript self where both were exported."""

import json
import shutil
import signal
import os
import struct
import tempfile
import unittest
from pathlib import Path

from serving import BIN, SOURCE, Server, await_until

WORKER = BIN / "tonnage-worker-onnx"
SMALL = SOURCE / "workers" / "onnx" / "testdata"
REVIEWS = SOURCE / "build" / "models" / "reviews"
TEXTS = SOURCE / "build" / "models" / "texts" / "snippets.jsonl"
NO_WORKER = f"needs {WORKER}: ./dev setup && ./dev build"

SCORES = """
max_length = 64
[[input]]
name = "ids"
datatype = "INT64"
dims = [-1, -1]
range = [0, 49]
[[input]]
name = "mask"
datatype = "INT64"
dims = [-1, -1]
source = "mask"
[[output]]
name = "scores"
datatype = "FP32"
dims = [-1, 2]
"""


def small_model(root, content):
    folder = Path(root) / "scores"
    (folder / "1").mkdir(parents=True)
    (folder / "1" / "model.onnx").write_bytes(content)
    (folder / "model.toml").write_text(SCORES)
    return folder


def floats(path):
    return [value for (value,) in struct.iter_unpack("<f", path.read_bytes())]


@unittest.skipUnless(WORKER.exists(), NO_WORKER)
class SmallModel(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.whole = (SMALL / "scores.onnx").read_bytes()

    def serve(self, content):
        server = Server(small_model(self.folder.name, content))
        self.addCleanup(server.close)
        return server

    def scores(self, server, rows):
        status, _, reply = server.infer_rows("scores", "ids", rows)
        self.assertEqual(200, status, reply)
        return reply["outputs"][0]["data"]

    def test_it_answers_what_python_computes(self):
        server = self.serve(self.whole).await_ready()
        ids = [index * 37 % 50 for index in range(33)]
        expected = floats(SMALL / "expected_scores.f32")
        got = self.scores(server, [ids[:11], ids[11:22]]) + self.scores(server, [ids[22:31]])
        for one, other in zip(expected, got):
            self.assertAlmostEqual(one, other, places=4)
        self.assertIn('"runtime":"onnxruntime 1.', server.log_text())

    def test_a_killed_worker_comes_back(self):
        server = self.serve(self.whole).await_ready()
        before = self.scores(server, [[1, 2, 3]])
        pid = server.worker_pid("scores")
        os.kill(pid, signal.SIGKILL)
        await_until(lambda: server.is_ready() and server.worker_pid("scores") not in (0, pid), "another worker")
        self.assertEqual(before, self.scores(server, [[1, 2, 3]]))
        server.assert_at_rest()

    def test_a_file_that_cannot_be_loaded_is_named_with_its_reason(self):
        server = self.serve(self.whole[: len(self.whole) // 2])
        await_until(lambda: "bad_model_file: the file is cut off" in server.log_text(), "the reason in the log")
        self.assertIn("cut off", json.dumps(server.status()))
        self.assertTrue(server.is_live())


@unittest.skipUnless(WORKER.exists(), NO_WORKER)
@unittest.skipUnless((REVIEWS / "1" / "model.onnx").exists() and (REVIEWS / "1" / "model.pt").exists(),
                     "needs the reviews model for both routes: ./dev setup --models --routes trace,onnx")
class Reviews(unittest.TestCase):
    def labels(self, route, texts):
        with tempfile.TemporaryDirectory() as folder:
            target = Path(folder) / "reviews"
            shutil.copytree(REVIEWS, target)
            toml = (target / "model.toml").read_text().replace('route = "trace"', f'route = "{route}"')
            (target / "model.toml").write_text(toml)
            with Server(target, memory="900MiB") as server:
                server.await_ready()
                status, _, body = server.request("POST", "/invocations", json.dumps({"instances": texts}),
                                                 {"Content-Type": "application/json"}, "sagemaker")
                self.assertEqual(200, status, body)
                server.assert_at_rest()
                return [row["label"] for row in json.loads(body)["predictions"]]

    def test_both_routes_give_the_same_labels(self):
        with open(TEXTS, encoding="utf-8") as lines:
            texts = [json.loads(line)["text"] for line, _ in zip(lines, range(200))]
        onnx = self.labels("onnx", texts)
        self.assertEqual({"positive", "negative"}, set(onnx))
        self.assertEqual(self.labels("trace", texts), onnx)


if __name__ == "__main__":
    unittest.main()
