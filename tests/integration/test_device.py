# SPDX-License-Identifier: Apache-2.0
"""A model on a device: the real server and the driver's library that stands in; the worker is the stub, which
pretends. No GPU is needed or used."""

import os
import tempfile
import unittest
from unittest import mock

from serving import BIN, IDS_MODEL, Server, await_until, stub_model

MIB = 1024 * 1024
IDS = IDS_MODEL.format(max_length=256)
ON_DEVICE = 'device = "cuda:0"\n' + IDS
FAKE_DRIVER = BIN.parent / "fake_nvml"  # 16 GiB, 4,384 MiB of them used by others


class Device(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="tonnage-models-")
        self.addCleanup(self.folder.cleanup)

    def serve(self, *arguments, driver, **options):
        with mock.patch.dict(os.environ, {"LD_LIBRARY_PATH": str(driver)}):
            server = Server(self.folder.name, *arguments, **options)
        self.addCleanup(server.close)
        return server

    def test_its_weights_and_grants_are_of_the_device_and_the_host_has_its_process(self):
        stub_model(self.folder.name, "far", "quadratic", ON_DEVICE, weight_bytes="300MiB")
        server = self.serve(driver=FAKE_DRIVER).await_ready()
        status, _, reply = server.infer_rows("far", "ids", [[1, 2, 3, 4]])
        self.assertEqual((200, [10.0]), (status, reply["outputs"][0]["data"]))
        status = server.status()
        [device] = status["devices"]
        self.assertEqual("cuda:0", device["name"])
        self.assertEqual(16384 * MIB, device["total_bytes"])
        self.assertEqual(4384 * MIB, device["in_use_bytes"])
        self.assertAlmostEqual(0.9 * 16384 * MIB, device["budget_bytes"], delta=MIB)
        worker = server.model_status("far")["workers"][0]
        self.assertEqual(300 * MIB, worker["device"]["weights_bytes"])
        self.assertGreaterEqual(worker["device"]["base_bytes"], 700 * MIB)  # the driver names no process of ours
        self.assertEqual(0, worker["weights_bytes"])
        self.assertEqual("capped", worker["enforcement"])
        metrics = server.get("/metrics", port="metrics")[2].decode()
        self.assertIn('tonnage_device_bytes{device="cuda:0",what="total"} 17179869184', metrics)
        self.assertIn('tonnage_account_limit_bytes{account="cuda:0"}', metrics)
        self.assertIn('tonnage_worker_device_bytes{', metrics)

    def test_a_budget_that_was_said_is_taken_literally_and_too_small_a_one_is_told(self):
        stub_model(self.folder.name, "far", "quadratic", ON_DEVICE, weight_bytes="10MiB")
        server = self.serve("--device-memory", "1GiB", driver=FAKE_DRIVER)
        await_until(lambda: "are missing" in server.model_status("far")["why"], "the reason")
        self.assertIn("on the device", server.model_status("far")["why"])
        self.assertEqual(1024 * MIB, server.status()["devices"][0]["budget_bytes"])

    def test_without_a_driver_the_model_is_named_and_the_others_serve(self):
        stub_model(self.folder.name, "far", "quadratic", ON_DEVICE)
        stub_model(self.folder.name, "near", "quadratic", IDS)
        server = self.serve(driver=self.folder.name)
        await_until(lambda: server.infer_rows("near", "ids", [[1, 2]])[0] == 200, "the other model")
        self.assertIn("model 'far' is for cuda:0: libnvidia-ml.so.1 cannot be loaded", server.log_text())
        status, headers, reply = server.infer_rows("far", "ids", [[1, 2]])
        self.assertNotEqual(200, status)
        self.assertIn("far", str(reply))
        self.assertEqual([], server.status()["devices"])


if __name__ == "__main__":
    unittest.main()
