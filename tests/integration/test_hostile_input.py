# SPDX-License-Identifier: Apache-2.0
"""Hostile input costs its sender a clear error, and nobody else anything."""

import json
import unittest
import tempfile

from serving import ECHO_MODEL, IDS_MODEL, Server, in_parallel, stub_model


class HostileInput(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        stub_model(cls.folder.name, "echo", "echo", ECHO_MODEL.format(width=2))
        stub_model(cls.folder.name, "quadratic", "quadratic", IDS_MODEL.format(max_length=512))
        cls.server = Server(cls.folder.name).await_ready()

    @classmethod
    def tearDownClass(cls):
        cls.server.close()
        cls.folder.cleanup()

    def tearDown(self):
        self.server.assert_at_rest()
        status, _, reply = self.server.infer_rows("echo", "x", [[1.5, 2.5]], "FP32")
        self.assertEqual((200, [1.5, 2.5]), (status, reply["outputs"][0]["data"]))

    def refused(self, body, code=400, path="/v2/models/echo/infer", headers=None):
        status, _, data = self.server.request("POST", path, body, headers)
        self.assertEqual(code, status, data[:300])
        return json.loads(data)["error"]

    def test_a_negative_dim_is_refused_by_name(self):
        for dim in (-1, -9223372036854775808):
            text = self.refused(json.dumps({"inputs": [{"name": "x", "shape": [dim, 2], "datatype": "FP32", "data": [1]}]}))
            self.assertIn("x", text)
        for dim in ("-0.0", "1.5", "1e3", '"1"', "null"):
            self.refused('{"inputs":[{"name":"x","shape":[%s,2],"datatype":"FP32","data":[1,2]}]}' % dim)

    def test_element_counts_that_wrap_are_refused(self):
        for shape in ([8, 2305843009213693954], [2, 2305843009213693953], [2**62, 2**62], [0, 2**63 - 1, 2**63 - 1]):
            for count in (1, 16):
                self.refused(json.dumps({"inputs": [{"name": "x", "shape": shape, "datatype": "FP32", "data": [1] * count}]}))

    def test_a_json_length_header_that_lies_is_refused(self):
        body = json.dumps({"inputs": []})
        for value in ("99999999999", "99999999999999999999999999", "-1", "abc", "", "1.5"):
            self.refused(body, headers={"Inference-Header-Content-Length": value})

    def test_250000_nested_brackets_are_refused_on_every_route(self):
        nest = "[" * 250000 + "]" * 250000
        self.refused('{"inputs":[{"name":"x","shape":[1,2],"datatype":"FP32","data":%s}]}' % nest)
        status, _, _ = self.server.request("POST", "/invocations", nest, {"Content-Type": "application/json"}, "sagemaker")
        self.assertEqual(400, status)

    def test_a_million_one_byte_chunks_are_cut_off(self):
        head = b"POST /v2/models/echo/infer HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        for path, port in ((b"/v2/models/echo/infer", "http"), (b"/invocations", "sagemaker")):
            reply = self.server.raw(head.replace(b"/v2/models/echo/infer", path) + b"1\r\n \r\n" * 1000000 + b"0\r\n\r\n",
                                    port=port)
            self.assertRegex(reply[:20], rb"^HTTP/1.1 4(00|13) ", port)
            self.assertEqual(200, self.server.get("/v2/health/live")[0])

    def test_ids_outside_the_vocabulary_name_input_and_value(self):
        for bad in (30522, -1, 2**40):
            status, _, reply = self.server.infer_rows("quadratic", "ids", [[1, bad, 3]])
            self.assertEqual(400, status)
            self.assertIn("ids", reply["error"])
            self.assertIn(str(bad), reply["error"])

    def test_zero_length_rows_and_no_rows_are_refused_by_a_stated_rule(self):
        for shape in ([0, 3], [1, 0], [0], [2, 0]):
            status, _, _ = self.server.infer("quadratic", [{"name": "ids", "shape": shape, "datatype": "INT64", "data": []}])
            self.assertEqual(400, status, shape)

    def test_declared_rows_must_be_carried(self):
        """Values moved from one client to another when declared counts cut the batch."""
        def call(i):
            if i % 3 == 2:
                return self.server.infer_rows("echo", "x", [[float(i), 1.0]], "FP32")
            return self.server.infer("echo", [{"name": "x", "shape": [59 + i, 2], "datatype": "FP32", "data": [1.0, 2.0]}])

        for i, (status, _, reply) in enumerate(in_parallel(24, call)):
            if i % 3 == 2:
                self.assertEqual((200, [float(i), 1.0]), (status, reply["outputs"][0]["data"]))
            else:
                self.assertEqual(400, status)

    def test_a_header_bomb_is_refused(self):
        reply = self.server.raw(b"GET /v2 HTTP/1.1\r\nHost: x\r\nX-A: " + b"a" * 100000 + b"\r\n\r\n")
        self.assertTrue(reply == b"" or b" 431 " in reply or b" 400 " in reply, reply[:200])

    def test_a_body_longer_than_allowed_is_refused_before_it_is_read(self):
        reply = self.server.raw(b"POST /v2/models/echo/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n")
        self.assertIn(b" 413 ", reply)

    def test_an_unknown_model_or_verb_or_path_says_so(self):
        self.assertIn("Request for unknown model", self.refused("{}", 404, "/v2/models/nosuch/infer"))
        self.assertEqual(405, self.server.request("DELETE", "/v2/models/echo/infer")[0])
        self.assertEqual(404, self.server.get("/v2/nothing")[0])


if __name__ == "__main__":
    unittest.main()
