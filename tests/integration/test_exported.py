# SPDX-License-Identifier: Apache-2.0
"""What tonnage.export writes of rows with several free dims and of long texts, read and served."""

import importlib.util
import json
import os
import subprocess
import sys

import pytest

from serving import BIN, SOURCE, Server

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="exporting needs the torch of build/venv"),
    pytest.mark.skipif(not (BIN / "tonnage-worker-torch").exists(), reason=f"needs {BIN}/tonnage-worker-torch"),
]
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "good", "bad"]


def exported(out, factory, *arguments):
    environment = {**os.environ, "PYTHONPATH": f"{SOURCE / 'python'}:{SOURCE / 'python/tests'}"}
    subprocess.run([sys.executable, "-m", "tonnage.export", f"toy_models:{factory}", "--out", str(out), *arguments],
                   check=True, env=environment, stdout=subprocess.DEVNULL)
    return next(out.iterdir())


def inspected(folder, tmp_path, *arguments):
    done = subprocess.run([str(BIN / "tonnage"), "inspect", str(folder), "--state", str(tmp_path / "state"), *arguments],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("factory", ["picture", "grouped_pictures"])
def test_pictures_of_any_size_are_read_and_served(tmp_path, factory):
    folder = exported(tmp_path / "models", factory)
    seen = json.loads(inspected(folder, tmp_path, "--json"))
    assert [tensor["dims"] for tensor in seen["inputs"]] == [[-1, 3, -1, -1], [-1, -1, -1]]
    assert "length = padded height × width" in inspected(folder, tmp_path)
    with Server(folder) as server:
        server.await_ready()
        status, _, reply = server.infer(folder.name, [
            {"name": "image", "shape": [2, 3, 5, 7], "datatype": "FP32", "data": [0.5] * (2 * 3 * 5 * 7)}])
        assert status == 200, reply
        assert {output["name"]: output["shape"] for output in reply["outputs"]} == {"scores": [2, 2], "heat": [2, 5, 7]}
        server.assert_at_rest()


def test_a_long_text_becomes_chunks_as_the_description_says(tmp_path):
    vocab = tmp_path / "vocab.txt"
    vocab.write_text("\n".join(WORDS) + "\n")
    folder = exported(tmp_path / "models", "chunked", "--arg", f"vocab={vocab}")
    inspected(folder, tmp_path)
    with Server(folder) as server:
        server.await_ready()

        def scores(*texts):
            status, headers, reply = server.infer(
                "chunked", [{"name": "text", "shape": [len(texts)], "datatype": "BYTES", "data": list(texts)}])
            assert status == 200, reply
            return headers, reply["outputs"][0]["data"]

        # 46 words beside the two marks, and the last 4 of them again.
        long = ["good"] * 46 + ["bad"] * 20
        headers, pooled = scores(" ".join(long))
        assert headers["x-tonnage-chunked-rows"] == "1"
        _, alone = scores(" ".join(long[:46]), " ".join(long[42:]))
        assert pooled == pytest.approx([max(pair) for pair in zip(alone[:4], alone[4:])], abs=1e-5)
        server.assert_at_rest()
