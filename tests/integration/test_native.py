# SPDX-License-Identifier: Apache-2.0
"""Native workers behind the server: scripts that were written for SageMaker, and their faults."""

import json
import os
import tempfile
import unittest
from pathlib import Path

from serving import BIN, Server, await_until, batching, in_parallel

TOML = """
route = "native"
[[input]]
name = "x"
datatype = "FP32"
dims = [-1, 4]
[[output]]
name = "y"
datatype = "FP32"
dims = [-1, 4]
"""

SCRIPT = """
import torch
KEPT = []
def model_fn(model_dir):
    torch.manual_seed(0)
    return torch.nn.Linear(4, 4)
def predict_fn(data, model):
    {body}
"""


@unittest.skipUnless((BIN / "libtonnage_torch_allocator.so").exists(),
                     "SKIPPED: the native worker needs the torch of build/venv")
class Native(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def write(self, name, body, toml="", script=SCRIPT):
        folder = Path(self.folder.name) / name
        (folder / "1" / "code").mkdir(parents=True)
        (folder / "model.toml").write_text(TOML + toml)
        (folder / "1" / "code" / "inference.py").write_text(script.format(body=body))
        return folder

    def serve(self, *arguments, **options):
        server = Server(self.folder.name, *arguments, **options)
        self.addCleanup(server.close)
        return server.await_ready()

    def ask(self, server, name, *rows):
        return server.infer_rows(name, "x", [list(map(float, row)) for row in rows], "FP32")

    def test_a_script_answers_many_clients_and_is_shown_as_capped(self):
        folder = self.write("double", "return data * 2 + model.weight.sum() * 0")
        server = self.serve()
        replies = in_parallel(16, lambda i: self.ask(server, "double", [i, 1, 2, 3]))
        for i, (status, _, reply) in enumerate(replies):
            self.assertEqual((200, [2.0 * i, 2.0, 4.0, 6.0]), (status, reply["outputs"][0]["data"]))
        self.assertEqual("capped", server.model_status("double")["workers"][0]["enforcement"])
        server.assert_at_rest()
        server.close()
        inspected = json.loads(run_inspect(folder))
        self.assertEqual("capped", inspected["enforcement"])
        self.assertEqual("guarded", inspected["metadata"]["native_mode"])

    def test_a_row_that_a_script_throws_at_fails_alone(self):
        self.write("thrower", "\n    ".join(["if (data == 999).any():", "    raise ValueError('not this row')",
                                             "return model(data)"]), batching("max_wait_ms = 30"))
        server = self.serve()
        replies = in_parallel(8, lambda i: self.ask(server, "thrower", [999 if i == 3 else i, 0, 0, 0]))
        self.assertEqual([200, 200, 200, 500, 200, 200, 200, 200], [status for status, _, _ in replies])
        self.assertEqual("model_error", replies[3][1]["x-tonnage-reason"])
        self.assertIn("not this row", replies[3][2]["error"])
        self.assertEqual(0, server.model_status("thrower")["worker_deaths"])
        server.assert_at_rest()

    def test_a_script_that_ends_its_process_loses_that_row_and_comes_back(self):
        self.write("leaver", "\n    ".join(["if (data == 999).any():", "    import os; os._exit(3)",
                                            "return model(data)"]))
        server = self.serve()
        self.assertEqual(200, self.ask(server, "leaver", [1, 2, 3, 4])[0])
        status, headers, _ = self.ask(server, "leaver", [999, 0, 0, 0])
        self.assertEqual((500, "poison_row"), (status, headers["x-tonnage-reason"]))
        await_until(lambda: self.ask(server, "leaver", [1, 2, 3, 4])[0] == 200, "the next worker")
        server.assert_at_rest()

    def test_what_a_script_prints_is_log_and_its_children_end_with_it(self):
        child = Path(self.folder.name) / "child.pid"
        self.write("noisy", "\n    ".join([
            "if data[0, 0] == 7:", "    print('x' * 10_000_000)", "if data[0, 0] == 8:", "    import subprocess",
            f"    open({str(child)!r}, 'w').write(str(subprocess.Popen(['/bin/sleep', '1000']).pid))",
            "return model(data)"]))
        server = self.serve("--log-file", str(Path(self.folder.name) / "log.jsonl"))
        self.assertEqual(200, self.ask(server, "noisy", [7, 0, 0, 0])[0])
        self.assertEqual(200, self.ask(server, "noisy", [8, 0, 0, 0])[0])
        server.assert_at_rest()
        pid = int(child.read_text())
        self.assertTrue(is_running(pid))
        server.close()
        await_until(lambda: not is_running(pid), "the end of the script's child")

    def test_bytes_that_a_script_keeps_are_shown_per_batch(self):
        self.write("hoarder", "\n    ".join(["KEPT.append(torch.zeros(1024))", "return model(data)"]))
        server = self.serve()
        before = server.model_status("hoarder")["workers"][0]["live_bytes"]
        for i in range(10):
            self.assertEqual(200, self.ask(server, "hoarder", [i, 0, 0, 0])[0])
        self.assertEqual(10 * 4096, server.model_status("hoarder")["workers"][0]["live_bytes"] - before)

    def test_a_graph_is_kept_only_as_is(self):
        body = "\n    ".join(["result = model(data)", "KEPT.append(result.sum())", "return result"])
        self.write("guarded", body)
        self.write("as_is", body, '[native]\nmode = "as-is"\n')
        server = self.serve()
        grown = {}
        for name in ("guarded", "as_is"):
            before = server.model_status(name)["workers"][0]["live_bytes"]
            for i in range(10):
                self.assertEqual(200, self.ask(server, name, [i, 0, 0, 0])[0])
            grown[name] = server.model_status(name)["workers"][0]["live_bytes"] - before
        self.assertEqual(10 * 4, grown["guarded"])  # the sums themselves
        self.assertEqual(10 * (4 + 16), grown["as_is"])  # and the inputs that each was made of
        self.assertIn("native_as_is", server.log_text())
        self.assertIn("AddmmBackward0", server.log_text())

    def test_a_script_that_keeps_graphs_as_is_is_named_within_fifty_requests(self):
        body = "\n    ".join(["wide = model(data).repeat(1, 256)", "KEPT.append((wide * wide).sum())",
                              "return model(data)"])
        self.write("guarded", body)
        self.write("as_is", body, '[native]\nmode = "as-is"\n')
        server = self.serve()
        for i in range(50):
            for name in ("guarded", "as_is"):
                self.assertEqual(200, self.ask(server, name, [i, 0, 0, 0])[0])
        named = [line for line in server.log_text().splitlines() if '"event":"retention"' in line]
        self.assertEqual(["as_is/1/0"], [json.loads(line)["worker"] for line in named], named)
        self.assertGreaterEqual(json.loads(named[0])["bytes_per_row"], 4096)

    def test_a_script_that_cannot_load_leaves_the_server_up_and_says_why(self):
        self.write("broken", "pass", script="def model_fn(model_dir):\n    raise OSError('no such weights')\n")
        self.write("good", "return model(data)")
        server = Server(self.folder.name)
        self.addCleanup(server.close)
        await_until(lambda: server.get("/v2/models/good/ready")[0] == 200, "the good model")
        why = await_until(lambda: server.model_status("broken")["why"], "the reason of the broken model")
        self.assertIn("no such weights", why)
        self.assertEqual(200, self.ask(server, "good", [1, 2, 3, 4])[0])

    def test_memory_that_nobody_counts_is_refused_by_the_kernel_and_the_next_row_works(self):
        self.write("numpy", "\n    ".join(["import numpy", "if data[0, 0] == 999:",
                                           "    numpy.ones(8 << 30, dtype=numpy.uint8)", "return model(data)"]))
        server = self.serve()
        status, headers, _ = self.ask(server, "numpy", [999, 0, 0, 0])
        self.assertGreaterEqual(status, 500)
        self.assertEqual(200, self.ask(server, "numpy", [1, 2, 3, 4])[0])
        self.assertEqual(0, server.model_status("numpy")["worker_deaths"])
        server.assert_at_rest()

    def test_an_interpreter_without_torch_is_named(self):
        self.write("lost", "return model(data)")
        server = Server(self.folder.name, "--python", "/nowhere/python")
        self.addCleanup(server.close)
        why = await_until(lambda: server.model_status("lost")["why"], "the reason")
        self.assertIn("/nowhere/python", why)
        self.assertIn("--python", why)


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().split(") ")[1][0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def run_inspect(folder):
    import subprocess

    with tempfile.TemporaryDirectory() as state:
        return subprocess.run([str(BIN / "tonnage"), "inspect", str(folder), "--json", "--state", state],
                              capture_output=True, text=True, check=True, env={"PATH": os.environ["PATH"]}).stdout


if __name__ == "__main__":
    unittest.main()
