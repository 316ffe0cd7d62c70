# SPDX-License-Identifier: Apache-2.0
"""The short forms of ./dev soak, for every route that is there."""

import json
import subprocess
import sys
import unittest

from serving import BIN, SOURCE


def soak(*arguments):
    done = subprocess.run([sys.executable, str(SOURCE / "tests/soak/soak.py"), *arguments, "--build", str(BIN.parent)],
                          capture_output=True, text=True, timeout=600, check=False)
    return done.returncode, done.stdout + done.stderr


class Soak(unittest.TestCase):
    def test_five_cycles_of_load_and_unload_leave_nothing_of_any_route(self):
        status, said = soak("cycles", "--count", "5", "--for", "240s")
        self.assertEqual(0, status, said)
        self.assertIn("stub", json.loads(said[said.index("{"):].splitlines()[0])["routes"])

    def test_rotations_under_load_lose_nothing_and_run_nothing_twice(self):
        status, said = soak("rotation", "--count", "6", "--route", "stub", "--for", "60s")
        self.assertEqual(0, status, said)

    def test_growth_is_judged_by_the_last_third(self):
        sys.path[:0] = [str(SOURCE / "tests/soak"), str(SOURCE / "python")]
        from remainder import growth_of_last_third  # noqa: PLC0415
        self.assertEqual(0, growth_of_last_third([10.0] * 20 + [100.0] * 100))
        self.assertGreater(growth_of_last_third([float(i) for i in range(100, 400)]), 0.1)


if __name__ == "__main__":
    unittest.main()
