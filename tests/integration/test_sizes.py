# SPDX-License-Identifier: Apache-2.0
"""Images of different height and width through a real convolution: grouped, or padded under a mask."""

import json
import shutil
import struct
import tempfile
import unittest
from pathlib import Path

from serving import BIN, Server, batching, in_parallel, stub_model

MODELS = BIN.parent / "torch_test_models"
EXPECTED = MODELS / "expected_images.json"
WHY_SKIPPED = f"needs {MODELS} and tonnage-worker-torch"

SIZES = """
[[size]]
name = "height"
max = {max}
{meet}
[[size]]
name = "width"
max = {max}
{meet}
"""
IMAGE = """
[[input]]
name = "image"
datatype = "FP32"
dims = [-1, 3, -1, -1]
sizes = ["height", "width"]
"""
SCORES = """
[[output]]
name = "scores"
datatype = "FP32"
dims = [-1, 2]
"""
MASK = """
[[input]]
name = "mask"
datatype = "INT64"
dims = [-1, -1, -1]
sizes = ["height", "width"]
source = "mask"
"""
HEAT = """
[[output]]
name = "heat"
datatype = "FP32"
dims = [-1, -1, -1]
sizes = ["height", "width"]
"""


def picture(height, width):
    """As make_models.py of the torch worker makes it, flat."""
    return [struct.unpack("<f", struct.pack("<f", i * 37 % 101 / 101))[0] for i in range(3 * height * width)]


def nested(flat, height, width):
    rows = [flat[i:i + width] for i in range(0, len(flat), width)]
    return [rows[i:i + height] for i in range(0, len(rows), height)]


MATRIX = """
[[input]]
name = "x"
datatype = "FP32"
dims = [-1, -1, -1]
sizes = ["height", "width"]
[[output]]
name = "y"
datatype = "FP32"
dims = [-1, -1, -1]
sizes = ["height", "width"]
"""


class Matrices(unittest.TestCase):
    """The stub echoes what it gets, so that padding in and cutting back must cancel."""

    def test_rows_come_back_in_their_own_size_and_cost_what_was_predicted(self):
        height = '[[size]]\nname = "height"\nmax = 40\nmeet = "group"\n'
        width = '[[size]]\nname = "width"\nmax = 300\nmultiple = 8\n'
        with tempfile.TemporaryDirectory() as folder:
            stub_model(folder, "matrices", "echo", height + width + MATRIX + batching("max_wait_ms = 20"),
                       bytes_per_token="2KiB")
            with Server(folder) as server:
                server.await_ready()
                sizes = [(h, w) for h in (1, 7, 40) for w in (1, 8, 33, 57, 120, 299, 300)]

                def echo(i):
                    h, w = sizes[i]
                    data = [float(i + j) for j in range(h * w)]
                    status, _, reply = server.infer(
                        "matrices", [{"name": "x", "shape": [1, h, w], "datatype": "FP32", "data": data}])
                    self.assertEqual(200, status, reply)
                    self.assertEqual(([1, h, w], data), (reply["outputs"][0]["shape"], reply["outputs"][0]["data"]))

                in_parallel(len(sizes), echo)
                model = server.model_status("matrices")
                self.assertLess(model["batches"], len(sizes), "rows of one height met")
                self.assertLess(model["peak_error_worst"], 0.02)
                self.assertEqual(0, model["over_grants"])
                server.assert_at_rest()


@unittest.skipUnless(EXPECTED.exists() and (BIN / "tonnage-worker-torch").exists(), WHY_SKIPPED)
class Images(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        grouped = SIZES.format(max=96, meet='meet = "group"')
        padded = SIZES.format(max=96, meet="multiple = 16")
        rows = batching("max_rows = 8\nmax_wait_ms = 20")
        cls.write("grouped", "images", grouped + IMAGE + SCORES + rows)
        cls.write("padded", "masked_images", padded + IMAGE + MASK + SCORES + HEAT + rows)
        cls.expected = json.loads(EXPECTED.read_text())
        cls.server = Server(cls.folder.name).await_ready()

    @classmethod
    def tearDownClass(cls):
        cls.server.close()
        cls.folder.cleanup()

    @classmethod
    def write(cls, name, file, toml):
        folder = Path(cls.folder.name) / name / "1"
        folder.mkdir(parents=True)
        shutil.copy(MODELS / f"{file}.pt", folder / "model.pt")
        (folder.parent / "model.toml").write_text('route = "script"\n' + toml)

    def infer(self, model, size, binary=False, rows=1):
        height, width = size
        flat = picture(height, width) * rows
        shape = [rows, 3, height, width]
        if not binary:
            status, _, reply = self.server.infer(
                model, [{"name": "image", "shape": shape, "datatype": "FP32", "data": flat}])
            self.assertEqual(200, status, reply)
            return {output["name"]: output for output in reply["outputs"]}
        raw = struct.pack(f"<{len(flat)}f", *flat)
        head = json.dumps({"inputs": [{"name": "image", "shape": shape, "datatype": "FP32",
                                       "parameters": {"binary_data_size": len(raw)}}]}).encode()
        status, _, body = self.server.request("POST", f"/v2/models/{model}/infer", head + raw,
                                              {"Inference-Header-Content-Length": str(len(head))})
        self.assertEqual(200, status, body)
        return {output["name"]: output for output in json.loads(body)["outputs"]}

    def assert_scores(self, expected, got, places=4):
        for one, other in zip(expected, got, strict=True):
            self.assertAlmostEqual(one, other, places=places)

    def test_every_size_gives_the_scores_that_python_gives(self):
        for model in ("grouped", "padded"):
            for case in self.expected:
                for binary in (False, True):
                    got = self.infer(model, case["size"], binary)["scores"]
                    self.assert_scores(case["scores"], got["data"])

    def test_rows_of_many_sizes_at_once_are_answered_as_if_alone(self):
        for model in ("grouped", "padded"):
            before = self.server.model_status(model)
            cases = self.expected * 4
            replies = in_parallel(len(cases), lambda i: self.infer(model, cases[i]["size"], binary=True))
            for case, reply in zip(cases, replies):
                self.assert_scores(case["scores"], reply["scores"]["data"])
            after = self.server.model_status(model)
            self.assertLess(after["batches"] - before["batches"], len(cases), "rows of one size met")
        self.server.assert_at_rest()

    def test_an_output_that_follows_the_sizes_is_cut_back_to_its_row(self):
        cases = [case["size"] for case in self.expected]
        alone = [self.infer("padded", size)["heat"] for size in cases]
        together = in_parallel(len(cases), lambda i: self.infer("padded", cases[i], binary=True)["heat"])
        for size, one, other in zip(cases, alone, together):
            self.assertEqual([1, *size], one["shape"])
            self.assertEqual([1, *size], other["shape"])
            self.assert_scores(one["data"], other["data"])

    def test_several_rows_of_one_request(self):
        case = self.expected[0]
        got = self.infer("grouped", case["size"], rows=3)["scores"]
        self.assertEqual([3, 2], got["shape"])
        self.assert_scores(case["scores"] * 3, got["data"])

    def test_records_of_one_invocation_may_differ_in_size(self):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(Path(self.folder.name) / "grouped", Path(folder) / "grouped")
            with Server(Path(folder) / "grouped") as server:
                server.await_ready()
                lines = [json.dumps(nested(picture(*case["size"]), *case["size"])) for case in self.expected]
                status, _, body = server.request("POST", "/invocations", "\n".join(lines),
                                                 {"Content-Type": "application/jsonlines"}, "sagemaker")
                self.assertEqual(200, status, body)
                for case, line in zip(self.expected, body.splitlines(), strict=True):
                    self.assert_scores(case["scores"], json.loads(line))

    def test_sizes_that_cannot_be_are_named(self):
        def refusal(shape, data):
            status, headers, reply = self.server.infer(
                "padded", [{"name": "image", "shape": shape, "datatype": "FP32", "data": data}])
            return status, headers["x-tonnage-reason"], reply["error"]

        status, reason, error = refusal([1, 3, 2, 97], [0] * 6 * 97)
        self.assertEqual((413, "too_long"), (status, reason))
        self.assertIn("width 97; the model 'padded' takes at most 96", error)
        status, reason, error = refusal([1, 3, 0, 4], [])
        self.assertEqual((400, "zero_length"), (status, reason))
        self.assertIn("height 0", error)
        status, reason, _ = refusal([1, 3, 2**31, 2**31], [])
        self.assertEqual(400, status)
        status, _, reply = self.server.infer("padded", [
            {"name": "image", "shape": [1, 3, 2, 4], "datatype": "FP32", "data": [0] * 24},
            {"name": "mask", "shape": [1, 2, 5], "datatype": "INT64", "data": [1] * 10}])
        self.assertEqual(400, status)
        self.assertIn("'mask' has width 5, input 'image' has width 4", reply["error"])


if __name__ == "__main__":
    unittest.main()
