# SPDX-License-Identifier: Apache-2.0
"""Texts above a model's length, cut into chunks: the pooled reply is what pooling by hand gives."""

import json
import tempfile
import unittest
from pathlib import Path

from serving import Server, batching, stub_model

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"] + [f"w{'abcdefghij'[i]}" for i in range(10)]
LENGTH = 10
ROOM = LENGTH - 2  # beside [CLS] and [SEP]

TEXT_MODEL = """
max_length = {length}
too_long = "chunk"
{keys}
[[input]]
name = "ids"
datatype = "INT64"
dims = [-1, -1]
[[output]]
name = "sum"
datatype = "FP32"
dims = [-1, 1]
[tokenizer]
kind = "wordpiece"
vocab = "vocab.txt"
"""


def words(count, first=0):
    return [WORDS[4 + (first + i * i) % 10] for i in range(count)]


def chunks_of(text, overlap=0):
    """As the README of `text` states it: full chunks, neighbours share the overlap."""
    chunks, at = [], 0
    while True:
        chunks.append(text[at:at + ROOM])
        if at + ROOM >= len(text):
            return chunks
        at += ROOM - overlap


class Chunks(unittest.TestCase):
    def serve(self, keys="", **options):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        model = stub_model(folder.name, "texts", "quadratic",
                           TEXT_MODEL.format(length=LENGTH, keys=keys) + batching("max_rows = 4"), **options)
        (model / "vocab.txt").write_text("\n".join(WORDS) + "\n")
        server = Server(Path(folder.name))
        self.addCleanup(server.close)
        return server.await_ready()

    def infer(self, server, texts):
        data = [" ".join(text) for text in texts]
        return server.infer("texts", [{"name": "text", "shape": [len(data)], "datatype": "BYTES", "data": data}])

    def sums(self, server, texts):
        status, headers, reply = self.infer(server, texts)
        self.assertEqual(200, status, reply)
        self.assertNotIn("x-tonnage-chunked-rows", headers)
        return reply["outputs"][0]["data"]

    def check(self, keys, overlap, pool):
        server = self.serve(keys)
        texts = [words(3), words(37, 2), words(ROOM, 5), words(ROOM + 1, 7)]
        status, headers, reply = self.infer(server, texts)
        self.assertEqual(200, status, reply)
        self.assertEqual("2", headers["x-tonnage-chunked-rows"])
        self.assertEqual(2, reply["parameters"]["chunked_rows"])
        self.assertEqual([4, 1], reply["outputs"][0]["shape"])
        for text, pooled in zip(texts, reply["outputs"][0]["data"]):
            chunks = chunks_of(text, overlap)
            alone = self.sums(server, chunks)
            self.assertAlmostEqual(pool(alone, [len(chunk) + 2 for chunk in chunks]), pooled, places=4)
        server.assert_at_rest()

    def test_the_mean_is_weighted_by_the_tokens_of_each_chunk(self):
        self.check("", 0, lambda values, lengths: sum(v * n for v, n in zip(values, lengths)) / sum(lengths))

    def test_the_largest_of_overlapping_chunks(self):
        self.check('chunk_pooling = "max"\nchunk_overlap = 3', 3, lambda values, lengths: max(values))

    def test_only_the_first_chunk_counts(self):
        self.check('chunk_pooling = "first"', 0, lambda values, lengths: values[0])

    def test_a_text_of_more_chunks_than_allowed_is_refused_with_the_bound(self):
        server = self.serve("max_chunks = 3")
        self.assertEqual(200, self.infer(server, [words(3 * ROOM)])[0])
        status, headers, reply = self.infer(server, [words(3), words(3 * ROOM + 1)])
        self.assertEqual((413, "too_long"), (status, headers["x-tonnage-reason"]), reply)
        self.assertIn("3 chunks of 10", reply["error"])
        server.assert_at_rest()

    def test_more_rows_than_a_request_may_have_are_refused_although_they_came_as_few_texts(self):
        server = self.serve("max_rows_per_request = 5")
        status, headers, reply = self.infer(server, [words(3 * ROOM), words(3 * ROOM)])
        self.assertEqual((413, "too_many_rows"), (status, headers["x-tonnage-reason"]), reply)
        server.assert_at_rest()

    def test_invocations_answer_one_record_per_text(self):
        server = self.serve()
        body = "\n".join(json.dumps(" ".join(text)) for text in (words(3), words(30)))
        status, headers, reply = server.request(
            "POST", "/invocations", body, {"Content-Type": "application/jsonlines"}, "sagemaker")
        self.assertEqual(200, status, reply)
        self.assertEqual(2, len(reply.splitlines()))
        self.assertEqual("1", headers["x-tonnage-chunked-rows"])

    def test_a_chunk_whose_row_fails_fails_its_text(self):
        server = self.serve(throw_on=WORDS.index("wj"))
        status, _, reply = self.infer(server, [["wa"] * ROOM + ["wj"]])
        self.assertEqual(500, status, reply)
        self.assertEqual(200, self.infer(server, [["wa"] * 30])[0])
        server.assert_at_rest()


if __name__ == "__main__":
    unittest.main()
