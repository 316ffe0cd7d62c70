# SPDX-License-Identifier: Apache-2.0
"""A module whose file imports torch alone, as route native ships it."""

import torch
from torch import nn


class Mean(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(100, 4)

    def forward(self, input_ids, attention_mask):
        weight = attention_mask.to(torch.float32).unsqueeze(-1)
        return (self.words(input_ids) * weight).sum(1) / weight.sum(1).clamp(min=1)


def build():
    return Mean()
