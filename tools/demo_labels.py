# SPDX-License-Identifier: Apache-2.0
"""The labels that the demo's requests must get, whatever route and precision they went through."""

import contextlib
import hashlib
import json

REFERENCE = ("trace", "fp32")  # route and precision whose labels count
# Share of the labels that may differ from the reference. In fp32 routes differ by 1e-6 of a score, so none. The 8 bits
# of bf16 moved the scores of 800 short texts by up to 0.009 (median 0.001): only a text whose score is that near to one
# half can change its label, which one in a hundred is (two in 800 did). Twice that, since 200 requests are few.
MAY_DIFFER = {"fp32": 0.0, "bf16": 0.02, "fp16": 0.01}


def labels_of(saved):
    """Text → the class with the highest score, of every answered request in a file of `tonnage load --save`."""
    samples = (json.loads(line) for line in saved.read_text().splitlines())
    return {str(s["text"]): max(range(len(s["scores"])), key=s["scores"].__getitem__)
            for s in samples if s["status"] == 200 and s.get("scores")}


class Labels:
    """Those of the reference, kept in a file for the next demo with the same model and the same requests."""

    def __init__(self, folder, model, requests):
        self._file = folder / "reference_labels.json"
        weights = model / "1" / "model.pt"
        content = weights.read_bytes() if weights.exists() else b""
        self._key = hashlib.sha256(content + repr(requests).encode()).hexdigest()
        self._labels = None
        with contextlib.suppress(OSError, json.JSONDecodeError):
            kept = json.loads(self._file.read_text())
            if kept.get("key") == self._key:
                self._labels = kept["labels"]

    def are_known(self):
        return self._labels is not None

    def keep(self, saved):
        self._labels = labels_of(saved)
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._file.write_text(json.dumps({"key": self._key, "labels": self._labels}))

    def compare(self, saved):
        """(equal, compared), over the texts that both answered."""
        both = {text: label for text, label in labels_of(saved).items() if text in self._labels}
        return sum(label == self._labels[text] for text, label in both.items()), len(both)


def judge(precision, equal, compared):
    """What is wrong with the labels, as text; empty: nothing."""
    if compared == 0:
        return "no label could be compared with the reference"
    unequal, allowed = compared - equal, MAY_DIFFER[precision]
    if unequal <= allowed * compared:
        return ""
    return (f"{unequal:,} of {compared:,} labels are not those of {' in '.join(REFERENCE)}; in {precision} "
            f"{f'{allowed:.0%} may differ' if allowed else 'none may differ'}")
