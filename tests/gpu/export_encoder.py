# SPDX-License-Identifier: Apache-2.0
"""A small encoder of MiniLM's shape as TorchScript, random weights; run by acceptance.sh with any PyTorch.

Attention is written out, so that a batch takes memory with the square of its longest row, as that of the
incident did. usage: export_encoder.py FILE
"""

import json
import sys

import torch
from torch import nn

VOCABULARY, POSITIONS, WIDTH, HEADS, LAYERS = 30522, 1024, 384, 12, 6


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads, self.size = HEADS, WIDTH // HEADS
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.wide = nn.Linear(WIDTH, 4 * WIDTH)
        self.narrow = nn.Linear(4 * WIDTH, WIDTH)
        self.norm1 = nn.LayerNorm(WIDTH)
        self.norm2 = nn.LayerNorm(WIDTH)

    def forward(self, x, bias):
        rows, length = x.shape[0], x.shape[1]
        qkv = self.qkv(x).view(rows, length, 3, self.heads, self.size).permute(2, 0, 3, 1, 4)
        scores = torch.matmul(qkv[0], qkv[1].transpose(-1, -2)) * self.size**-0.5 + bias
        mixed = torch.matmul(scores.softmax(-1), qkv[2]).transpose(1, 2).reshape(rows, length, self.heads * self.size)
        x = self.norm1(x + self.out(mixed))
        return self.norm2(x + self.narrow(nn.functional.gelu(self.wide(x))))


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(VOCABULARY, WIDTH)
        self.positions = nn.Parameter(torch.randn(POSITIONS, WIDTH) * 0.02)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))

    def forward(self, ids, mask):
        x = self.words(ids) + self.positions[: ids.shape[1]]
        real = mask.to(x.dtype)
        # Not below what fp16 holds.
        bias = (1 - real)[:, None, None, :] * -3e4
        for layer in self.layers:
            x = layer(x, bias)
        weight = real[:, :, None]
        return (x * weight).sum(1) / weight.sum(1).clamp(min=1)


def main():
    torch.manual_seed(0)
    module = torch.jit.script(Encoder().eval())
    ids = {"name": "ids", "datatype": "INT64", "shape": [-1, -1], "range": [0, VOCABULARY - 1]}
    mask = {"name": "mask", "datatype": "INT64", "shape": [-1, -1], "range": [0, 1]}
    output = {"name": "sentence", "datatype": "FP32", "shape": [-1, WIDTH]}
    config = json.dumps({"inputs": [ids, mask], "outputs": [output]})
    torch.jit.save(module, sys.argv[1], _extra_files={"config.json": config})


if __name__ == "__main__":
    main()
