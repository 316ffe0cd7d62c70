# SPDX-License-Identifier: Apache-2.0
"""Small models for the worker's tests, with the outputs that Python computes for them.

Usage: PYTHONPATH=python make_models.py FOLDER
"""

import json
import os
import pathlib
import sys
import zipfile
from typing import Dict, List

import torch
from torch import nn

from tonnage import artefacts, held_out
from tonnage.description import Model, Tensor
from tonnage.routes import aoti

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


class Images(nn.Module):
    """image [B, 3, H, W] -> scores [B, 2], whatever H and W are."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 16, 3, padding=1)
        self.second = nn.Conv2d(16, 16, 3, padding=1)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(16, 2)

    def forward(self, image):
        states = torch.relu(self.second(torch.relu(self.first(image))))
        return self.head(self.pool(states).flatten(1))


class MaskedImages(nn.Module):
    """image, mask [B, H, W] -> scores [B, 2] and heat [B, H, W]; padding changes neither."""

    def __init__(self, images):
        super().__init__()
        self.inner = images

    def forward(self, image, mask):
        own = mask.to(image.dtype).unsqueeze(1)
        states = torch.relu(self.inner.first(image)) * own
        states = torch.relu(self.inner.second(states)) * own
        mean = states.sum((2, 3)) / own.sum((2, 3))
        return self.inner.head(mean), states.mean(1)


def picture(height, width):
    """[3, height, width]; tests/integration/test_sizes.py makes the same values."""
    return (torch.arange(3 * height * width) * 37 % 101 / 101).reshape(3, height, width)


def expected_scores(images, sizes):
    with torch.inference_mode():
        return [{"size": size, "scores": images(picture(*size).unsqueeze(0))[0].tolist()} for size in sizes]


class ReturnsHalf(nn.Module):
    def forward(self, x):
        return x.to(torch.float16)


class Doubles(nn.Module):
    def forward(self, x):
        return x * 2.0


class LosesPrecision(nn.Module):
    """What is subtracted again is too large for the small values that matter, in fewer bits."""

    def forward(self, x):
        return (x + 4096.0) - 4096.0


class RunsCode:
    """Whoever unpickles it executes it."""

    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (str(self.folder / "executed"),)


def scores_model(module) -> Model:
    """As tonnage.export wants it described."""
    ids = Tensor("ids", "INT64", [-1, -1], range=(0, VOCAB - 1))
    mask = Tensor("mask", "INT64", [-1, -1], source="mask")
    return Model(name="scores", module=module, inputs=[ids, mask], max_length=64,
                 outputs=[Tensor("scores", "FP32", [-1, 2]), Tensor("mean", "FP32", [-1, WIDTH])])


def with_other_fact(source: pathlib.Path, target: pathlib.Path, key: str, value: str) -> None:
    """A copy of a compiled file that says something else of itself."""
    with zipfile.ZipFile(source) as there, zipfile.ZipFile(target, "w") as copy:
        for item in there.infolist():
            content = there.read(item)
            if item.filename.endswith("wrapper_metadata.json"):
                metadata = json.loads(content)
                config = json.loads(metadata["tonnage"])
                config["facts"][key] = value
                content = json.dumps({**metadata, "tonnage": json.dumps(config)}).encode()
            copy.writestr(item.filename, content)


def make_compiled(folder: pathlib.Path, model: Model) -> None:
    generator = torch.Generator().manual_seed(3)
    path = folder / "compiled.pt2"
    aoti.write(model, path, "fp32", model.make_inputs([5, 3], generator), artefacts.config_json(model))
    with_other_fact(path, folder / "compiled_elsewhere.pt2", "compiled_for_cpu_flags", "avx2 avx4096")
    with_other_fact(path, folder / "compiled_by_another_torch.pt2", "compiled_for_torch", "1.2.3+cpu")
    (folder / "half.pt2").write_bytes(path.read_bytes()[: path.stat().st_size // 2])


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
    images = Images().eval()
    as_dict = AsDict().eval()
    as_dict.inner = scores
    torch.jit.save(torch.jit.script(as_dict), folder / "as_dict.pt")
    torch.jit.save(torch.jit.script(scores), folder / "scripted.pt")
    for name, module in [
        ("doubles", Doubles()),
        ("loses_precision", LosesPrecision()),
        ("changes_its_input", ChangesItsInput()),
        ("keeps_the_graph", KeepsTheGraph()),
        ("hoards", Hoards()),
        ("returns_half", ReturnsHalf()),
        ("images", images),
        ("masked_images", MaskedImages(images).eval()),
    ]:
        torch.jit.save(torch.jit.script(module), folder / f"{name}.pt")
    sizes = [[24, 31], [31, 24], [40, 40], [7, 56], [64, 64], [1, 1]]
    (folder / "expected_images.json").write_text(json.dumps(expected_scores(images, sizes)))
    (folder / "broken.pt").write_bytes(b"not an archive")
    whole = (folder / "scores.pt").read_bytes()
    (folder / "half.pt").write_bytes(whole[: len(whole) // 2])
    torch.save(RunsCode(folder), folder / "saved_by_torch.pt")

    model = scores_model(scores.requires_grad_(False))
    rows = held_out.make(model, [5, 9, 20, 40], torch.Generator().manual_seed(5))
    (folder / "held_out.json").write_text(rows)
    other = json.loads(rows)
    for row in other["rows"]:
        row["outputs"]["mean"] = row["outputs"]["mean"][::-1]
    (folder / "held_out_of_another.json").write_text(json.dumps(other))
    make_compiled(folder, model)

    # What the test sends: 3 rows of 11 ids, the last two positions of the last row are padding.
    ids = (torch.arange(33) * 37 % VOCAB).reshape(3, 11)
    mask = torch.ones(3, 11, dtype=torch.long)
    mask[2, 9:] = 0
    with torch.inference_mode():
        answers = scores(ids, mask)
    (folder / "expected_scores.f32").write_bytes(answers[0].contiguous().numpy().tobytes())
    (folder / "expected_mean.f32").write_bytes(answers[1].contiguous().numpy().tobytes())


main()
