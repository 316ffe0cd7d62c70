# SPDX-License-Identifier: Apache-2.0
"""Small TorchScript models for torch_worker_test.cc, with the outputs that Python computes for them.

Usage: make_models.py FOLDER
"""

import json
import pathlib
import sys
from typing import Dict, List

import torch
from torch import nn

VOCAB = 100
WIDTH = 64


class Scores(nn.Module):
    """ids, mask -> (scores [B, 2], mean [B, WIDTH]); its peak is linear in padded tokens."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, WIDTH)
        self.mix = nn.Linear(WIDTH, 4 * WIDTH)
        self.back = nn.Linear(4 * WIDTH, WIDTH)
        self.head = nn.Linear(WIDTH, 2)

    def forward(self, ids, mask):
        states = self.back(torch.relu(self.mix(self.embed(ids))))
        weights = mask.unsqueeze(-1).to(states.dtype)
        mean = (states * weights).sum(1) / weights.sum(1).clamp(min=1)
        return self.head(mean), mean


class AsDict(nn.Module):
    """The answers by name, in another order than the front asks for."""

    def __init__(self):
        super().__init__()
        self.inner = Scores()

    def forward(self, ids, mask) -> Dict[str, torch.Tensor]:
        scores, mean = self.inner(ids, mask)
        return {"mean": mean, "scores": scores}


class ChangesItsInput(nn.Module):
    def forward(self, x):
        return x.add_(1.0)


class KeepsTheGraph(nn.Module):
    """Stores its last output; with gradients on, the graphs of all calls would pile up."""

    last: torch.Tensor

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH))
        self.last = torch.zeros(1, WIDTH)

    def forward(self, x):
        self.last = x * self.weight + self.last.sum() * 0.5
        return self.last * 2.0


class Hoards(nn.Module):
    """Keeps real bytes per call: 4 KiB of fp32."""

    kept: List[torch.Tensor]

    def __init__(self):
        super().__init__()
        self.kept = torch.jit.annotate(List[torch.Tensor], [])

    def forward(self, x):
        self.kept.append(x.sum() + torch.zeros(1024))  # depends on x: no constant to share
        return x * 1.0


class ReturnsHalf(nn.Module):
    def forward(self, x):
        return x.to(torch.float16)


def main() -> None:
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(7)
    config = {
        "inputs": [{"name": name, "datatype": "INT64", "dims": [-1, -1]} for name in ("ids", "mask")],
        "outputs": [
            {"name": "scores", "datatype": "FP32", "dims": [-1, 2]},
            {"name": "mean", "datatype": "FP32", "dims": [-1, WIDTH]},
        ],
        "facts": {"made_for": "torch_worker_test"},
    }
    scores = Scores().eval()
    example = (torch.ones(2, 5, dtype=torch.long), torch.ones(2, 5, dtype=torch.long))
    traced = torch.jit.trace(scores, example)
    torch.jit.save(traced, folder / "scores.pt", _extra_files={"config.json": json.dumps(config)})
    as_dict = AsDict().eval()
    as_dict.inner = scores
    torch.jit.save(torch.jit.script(as_dict), folder / "as_dict.pt")
    for name, module in [
        ("changes_its_input", ChangesItsInput()),
        ("keeps_the_graph", KeepsTheGraph()),
        ("hoards", Hoards()),
        ("returns_half", ReturnsHalf()),
    ]:
        torch.jit.save(torch.jit.script(module), folder / f"{name}.pt")
    (folder / "broken.pt").write_bytes(b"not an archive")

    # What the test sends: 3 rows of 11 ids, the last two positions of the last row are padding.
    ids = (torch.arange(33) * 37 % VOCAB).reshape(3, 11)
    mask = torch.ones(3, 11, dtype=torch.long)
    mask[2, 9:] = 0
    with torch.inference_mode():
        answers = scores(ids, mask)
    (folder / "expected_scores.f32").write_bytes(answers[0].contiguous().numpy().tobytes())
    (folder / "expected_mean.f32").write_bytes(answers[1].contiguous().numpy().tobytes())


main()
