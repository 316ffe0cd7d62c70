# SPDX-License-Identifier: Apache-2.0
"""Real reviews through the real model: every body form says the same, long texts follow the stated rule."""

import json
import shutil
import tempfile
import unittest
from pathlib import Path

from serving import BIN, SOURCE, Server

MODEL = SOURCE / "build" / "models" / "reviews"
WORKER = BIN / "tonnage-worker-torch"
WHY_SKIPPED = f"needs {MODEL} and {WORKER}: ./dev setup --models && ./dev build"
TEXTS = ["Works exactly as promised, I love this camera.", "It broke after two days. Do not buy this."]
LONG = "this player is good and " * 300


def model_with(folder, too_long):
    """The exported model under another rule for texts above its length."""
    target = Path(folder) / "reviews"
    shutil.copytree(MODEL, target, symlinks=True)
    text = (target / "model.toml").read_text().replace('too_long = "truncate"', f'too_long = "{too_long}"')
    (target / "model.toml").write_text(text)
    return target


@unittest.skipUnless(MODEL.is_dir() and WORKER.exists(), WHY_SKIPPED)
class Reviews(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.state = tempfile.TemporaryDirectory()
        cls.server = Server(MODEL, state=cls.state.name, memory="600MiB").await_ready()

    @classmethod
    def tearDownClass(cls):
        cls.server.close()
        cls.state.cleanup()

    def invoke(self, body, content_type, accept=None):
        headers = {"Content-Type": content_type}
        if accept:
            headers["Accept"] = accept
        return self.server.request("POST", "/invocations", body, headers, "sagemaker")

    def labels(self, reply):
        return [row["label"] for row in json.loads(reply[2])["predictions"]]

    def test_a_good_and_a_bad_review_are_told_apart(self):
        reply = self.invoke(json.dumps({"instances": TEXTS}), "application/json")
        self.assertEqual(200, reply[0], reply[2])
        self.assertEqual(["positive", "negative"], self.labels(reply))

    def test_every_body_form_gives_the_same_labels(self):
        lines = "\n".join(json.dumps(text) for text in TEXTS)
        self.assertEqual(2, self.invoke(lines, "application/jsonlines")[2].count(b'"label"'))
        for text, label in zip(TEXTS, (b"positive", b"negative")):
            plain = self.invoke(text, "text/plain; charset=utf-8")
            self.assertEqual(200, plain[0], plain[2])
            self.assertIn(label, plain[2])
        csv = self.invoke('"' + '"\n"'.join(TEXTS) + '"\n', "TEXT/CSV; header=absent")
        self.assertEqual(200, csv[0], csv[2])

    def test_alone_and_in_a_mixed_batch_the_scores_agree(self):
        def scores(texts):
            status, _, reply = self.server.infer("reviews", [
                {"name": "text", "shape": [len(texts)], "datatype": "BYTES", "data": texts}],
                outputs=[{"name": "scores"}])
            self.assertEqual(200, status, reply)
            return reply["outputs"][0]["data"]

        alone = scores(TEXTS[:1]) + scores(TEXTS[1:])
        mixed = scores([TEXTS[0], LONG, TEXTS[1]])
        for got, expected in zip(mixed[:2] + mixed[4:], alone):
            self.assertAlmostEqual(expected, got, places=5)

    def test_a_long_text_is_truncated_with_a_marker(self):
        status, headers, reply = self.server.infer(
            "reviews", [{"name": "text", "shape": [2], "datatype": "BYTES", "data": [TEXTS[0], LONG]}])
        self.assertEqual(200, status, reply)
        self.assertEqual("1", headers["x-tonnage-truncated-rows"])
        self.assertEqual(1, reply["parameters"]["truncated_rows"])

    def test_the_second_start_profiles_nothing(self):
        log = self.server.log_text()
        with Server(MODEL, state=self.state.name + "-other", memory="600MiB") as first:
            first.await_ready()
        with Server(MODEL, state=self.state.name + "-other", memory="600MiB") as second:
            second.await_ready()
            self.assertIn("profile_known", second.log_text())
        self.assertNotIn("profile_known", log)

    def test_unknown_media_types_name_what_is_allowed(self):
        status, _, body = self.invoke("x", "application/x-parquet")
        self.assertEqual(415, status)
        self.assertIn(b"text/csv", body)
        self.assertEqual(406, self.invoke(json.dumps({"instances": TEXTS}), "application/json", "image/png")[0])


@unittest.skipUnless(MODEL.is_dir() and WORKER.exists(), WHY_SKIPPED)
class RefusedLength(unittest.TestCase):
    def test_under_the_rule_refuse_a_long_text_is_an_error_with_both_lengths(self):
        with tempfile.TemporaryDirectory() as folder:
            with Server(model_with(folder, "refuse"), memory="600MiB") as server:
                server.await_ready()
                status, headers, reply = server.infer(
                    "reviews", [{"name": "text", "shape": [1], "datatype": "BYTES", "data": [LONG]}])
                self.assertEqual((413, "too_long"), (status, headers["x-tonnage-reason"]), reply)
                self.assertIn("512", reply["error"])
                server.assert_at_rest()


@unittest.skipUnless(MODEL.is_dir() and WORKER.exists(), WHY_SKIPPED)
class ChunkedReviews(unittest.TestCase):
    def test_the_scores_of_a_long_text_are_the_weighted_mean_of_its_chunks(self):
        words = LONG.split()  # each of them is one token
        chunks = [" ".join(words[at:at + 510]) for at in range(0, len(words), 510)]
        weights = [len(chunk.split()) + 2 for chunk in chunks]
        with tempfile.TemporaryDirectory() as folder:
            with Server(model_with(folder, "chunk"), memory="600MiB") as server:
                server.await_ready()

                def scores(texts):
                    status, headers, reply = server.infer("reviews", [
                        {"name": "text", "shape": [len(texts)], "datatype": "BYTES", "data": texts}],
                        outputs=[{"name": "scores"}])
                    self.assertEqual(200, status, reply)
                    return reply["outputs"][0]["data"], headers

                alone, _ = scores(chunks)
                pooled, headers = scores([TEXTS[0], LONG])
                self.assertEqual("1", headers["x-tonnage-chunked-rows"])
                self.assertNotIn("x-tonnage-truncated-rows", headers)
                self.assertEqual(4, len(pooled))
                for label in (0, 1):
                    by_hand = sum(w * alone[2 * i + label] for i, w in enumerate(weights)) / sum(weights)
                    self.assertAlmostEqual(by_hand, pooled[2 + label], places=5)
                invoked = server.request("POST", "/invocations", LONG, {"Content-Type": "text/plain"}, "sagemaker")
                self.assertEqual((200, "1"), (invoked[0], invoked[1].get("x-tonnage-chunked-rows")))
                server.assert_at_rest()


if __name__ == "__main__":
    unittest.main()
