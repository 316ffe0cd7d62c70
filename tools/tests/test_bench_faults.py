# SPDX-License-Identifier: Apache-2.0
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))

import faults  # noqa: E402
import harness  # noqa: E402


GOOD = {"cold_start": 0.1, "kill": 0.2, "oom": 0.01, "retried": 1, "late": 0.002, "late_retried": 0}


def rounds(**changes):
    seen = {**GOOD, **changes}
    return harness.Rounds({
        "cold_start": [{"seconds": seen["cold_start"]}],
        "kill": [{"seconds": seen["kill"], "retried": 30, "predicted": 0.004, "refused": 0}],
        "out_of_memory": [{"seconds": seen["oom"], "retried": seen["retried"], "predicted": 0.003, "usual": 0.003}],
        "queue_timeout": [{"late": seen["late"], "retried": seen["late_retried"], "predicted": 0.004}],
    })


def test_each_fault_is_shown_beside_its_limit_the_predicted_time_and_the_rows_run_again():
    verdicts = faults.judge(rounds())
    def verdict(felt_s, limit_s, predicted_batch_s, retried_rows):
        return {"felt_s": felt_s, "limit_s": limit_s, "predicted_batch_s": predicted_batch_s,
                "retried_rows": retried_rows, "pass": True}

    assert verdicts == {"kill": verdict(0.2, 0.3, 0.004, 30), "out_of_memory": verdict(0.01, 0.026, 0.003, 1),
                        "queue_timeout": verdict(0.002, 0.02, 0.004, 0)}


@pytest.mark.parametrize("changes, missed", [
    ({"kill": 0.31}, "kill"),
    ({"oom": 0.027}, "out_of_memory"),
    ({"retried": 2}, "out_of_memory"),
    ({"late": 0.021}, "queue_timeout"),
    ({"late_retried": 1}, "queue_timeout"),
])
def test_a_missed_limit_is_found_and_the_other_verdicts_stand(changes, missed, capsys):
    verdicts = faults.judge(rounds(**changes))
    assert [fault for fault, seen in verdicts.items() if not seen["pass"]] == [missed]
    faults.print_verdicts(verdicts)
    assert [line.split()[0] for line in capsys.readouterr().err.splitlines() if "MISSED" in line] == [missed]


def test_a_limit_that_follows_a_measurement_is_taken_inside_its_round():
    seen = rounds()
    for case, value in rounds(cold_start=0.01, kill=0.02).values.items():
        seen.values[case] += value
    assert faults.judge(seen)["kill"]["pass"]  # 0.2 of 0.3 and 0.02 of 0.03
