# SPDX-License-Identifier: Apache-2.0
"""Small TorchScript models for benches of memory: `ids` INT64 [rows, length] in, `out` FP32 [rows, n] out.

Usage: toys.py FOLDER. What this very text made already is not made again.
"""

import hashlib
import sys
from pathlib import Path
from typing import Dict

import torch
from torch import nn
from torch.nn import functional as F

VOCABULARY = 1000
WIDTH = 128
HEADS = 4


class Layer(nn.Module):
    """Pre-norm attention and feed-forward; `eager` computes the scores (length squared) itself."""

    def __init__(self, eager=False):
        super().__init__()
        self.eager = eager
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.mix = nn.Linear(WIDTH, WIDTH)
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        rows, length, _ = x.shape
        q, k, v = self.qkv(x).view(rows, length, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4).unbind(0)
        if self.eager:
            scores = torch.matmul(q, k.transpose(-1, -2)) * (WIDTH // HEADS) ** -0.5
            mixed = torch.matmul(torch.softmax(scores, -1), v)
        else:
            mixed = F.scaled_dot_product_attention(q, k, v)
        x = x + self.mix(mixed.transpose(1, 2).reshape(rows, length, WIDTH))
        return x + self.down(F.gelu(self.up(x)))


class Layers(nn.Module):
    def __init__(self, count, eager=False):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, WIDTH)
        self.layers = nn.Sequential(*(Layer(eager) for _ in range(count)))

    def forward(self, ids):
        return self.layers(self.embed(ids)).mean(1)


class Convolution(nn.Module):
    """Over the length, with a kernel for which the library may want a scratch area of its own."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, WIDTH)
        self.wide = nn.Conv1d(WIDTH, 2 * WIDTH, 5, padding=2)
        self.strided = nn.Conv1d(2 * WIDTH, WIDTH, 3, stride=2, padding=1)

    def forward(self, ids):
        x = self.embed(ids).transpose(1, 2)
        return self.strided(F.relu(self.wide(x))).mean(2)


class Branch(nn.Module):
    """Takes a wider way, about a fifth dearer, where one id of the batch is the rare one."""

    def __init__(self):
        super().__init__()
        self.rare = 7
        self.embed = nn.Embedding(VOCABULARY, WIDTH)
        self.cheap = nn.Linear(WIDTH, 4 * WIDTH)
        self.dear = nn.Linear(WIDTH, 5 * WIDTH)

    def forward(self, ids):
        x = self.embed(ids)
        if bool((ids == self.rare).any()):
            return torch.relu(self.dear(x)).mean(1).sum(1, keepdim=True)
        return torch.relu(self.cheap(x)).mean(1).sum(1, keepdim=True)


class ShapeCache(nn.Module):
    """Keeps a table per shape that it has seen, as position tables and masks are kept."""

    kept: Dict[int, torch.Tensor]

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, WIDTH)
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.kept = torch.jit.annotate(Dict[int, torch.Tensor], {})

    def forward(self, ids):
        key = ids.size(0) * 65536 + ids.size(1)
        if key not in self.kept:
            self.kept[key] = torch.arange(ids.size(1)).to(torch.float32) * 0.001
        x = self.embed(ids) + self.kept[key].unsqueeze(-1)
        return torch.relu(self.up(x)).mean(1)


def write(folder: Path) -> None:
    torch.manual_seed(7)
    example = torch.ones(2, 8, dtype=torch.long)
    traced = {
        "two_layers": Layers(2),
        "one_layer": Layers(1),
        "one_layer_bf16": Layers(1).to(torch.bfloat16),
        "eager_attention": Layers(2, eager=True),
        "convolution": Convolution(),
    }
    for name, module in traced.items():
        torch.jit.save(torch.jit.trace(module.eval(), example), folder / f"{name}.pt")
    for name, module in {"branch": Branch(), "shape_cache": ShapeCache()}.items():
        torch.jit.save(torch.jit.script(module.eval()), folder / f"{name}.pt")


def main() -> None:
    folder = Path(sys.argv[1])
    stamp = folder / "recipe"
    recipe = hashlib.sha256(Path(__file__).read_bytes() + torch.__version__.encode()).hexdigest()
    if stamp.exists() and stamp.read_text(encoding="ascii") == recipe:
        for file in folder.glob("*.pt"):
            file.touch()  # as a build expects of what it asked for
        return
    folder.mkdir(parents=True, exist_ok=True)
    write(folder)
    stamp.write_text(recipe, encoding="ascii")


if __name__ == "__main__":
    main()
