# SPDX-License-Identifier: Apache-2.0
"""A transformer of two narrow layers, exported for every route: what a soak loads when each load must be quick.

Route native ships this file, so that nothing but torch is imported at its top.
"""

import torch
from torch import nn
from torch.nn import functional

VOCABULARY, LENGTH, WIDTH, HEADS, LAYERS = 1000, 128, 64, 4, 2
MASKED = -30000.0  # exp() of it is zero in every float type


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.query_key_value = nn.Linear(WIDTH, 3 * WIDTH)
        self.mix = nn.Linear(WIDTH, WIDTH)
        self.inner = nn.Linear(WIDTH, 4 * WIDTH)
        self.outer = nn.Linear(4 * WIDTH, WIDTH)
        self.heads = HEADS
        self.head_width = WIDTH // HEADS

    def forward(self, hidden: torch.Tensor, penalty: torch.Tensor) -> torch.Tensor:
        rows, length, width = hidden.shape
        split = self.query_key_value(hidden).view(rows, length, 3, self.heads, self.head_width)
        query, key, value = split.permute(2, 0, 3, 1, 4).unbind(0)
        mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=penalty)
        hidden = hidden + self.mix(mixed.transpose(1, 2).reshape(rows, length, width))
        return hidden + self.outer(functional.gelu(self.inner(hidden)))


class Tiny(nn.Module):
    """input_ids, attention_mask [B, S] → scores [B, 2]"""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(VOCABULARY, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.head = nn.Linear(WIDTH, 2)
        self.masked = MASKED

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        hidden = self.words(input_ids)
        own = attention_mask.type_as(hidden)
        penalty = (1.0 - own[:, None, None, :]) * self.masked
        for layer in self.layers:
            hidden = layer(hidden, penalty)
        weight = own.unsqueeze(-1)
        return torch.softmax(self.head((hidden * weight).sum(1) / weight.sum(1).clamp(min=1)), dim=1)


def empty() -> Tiny:
    return Tiny()


def model(name: str):
    from tonnage.description import Model, Tensor  # noqa: PLC0415 - not where the worker runs this file

    torch.manual_seed(7)
    return Model(name=name, module=Tiny(), builder=empty, max_length=LENGTH,
                 inputs=[Tensor("input_ids", "INT64", [-1, -1], range=(0, VOCABULARY - 1)),
                         Tensor("attention_mask", "INT64", [-1, -1], source="mask")],
                 outputs=[Tensor("scores", "FP32", [-1, 2])])
