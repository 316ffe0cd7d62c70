# SPDX-License-Identifier: Apache-2.0
"""A BERT encoder of MiniLM size in plain torch, with mean pooling; attention is scaled dot product.

Shapes stay free under tracing: positions are a slice of a buffer, and no Python number of a shape is
used for anything but views. No dtype is written down either (type_as, a penalty that every float type
holds), so that one traced or scripted program runs in the precision that its weights are converted to.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional


@dataclass(frozen=True)
class Size:
    vocabulary: int = 30522
    positions: int = 512
    width: int = 384
    layers: int = 6
    heads: int = 12
    inner: int = 1536
    norm_epsilon: float = 1e-12


# Of masked positions: exp() of it is zero in every float type, and fp16 can still hold it; finite, so
# that no row gives NaN.
MASKED = -30000.0


LONG = Size(positions=1024)


class Layer(nn.Module):
    def __init__(self, size: Size) -> None:
        super().__init__()
        self.heads = size.heads
        self.head_width = size.width // size.heads
        self.query_key_value = nn.Linear(size.width, 3 * size.width)
        self.attention_out = nn.Linear(size.width, size.width)
        self.attention_norm = nn.LayerNorm(size.width, eps=size.norm_epsilon)
        self.inner = nn.Linear(size.width, size.inner)
        self.outer = nn.Linear(size.inner, size.width)
        self.outer_norm = nn.LayerNorm(size.width, eps=size.norm_epsilon)

    def forward(self, hidden: torch.Tensor, penalty: torch.Tensor) -> torch.Tensor:
        rows, length, width = hidden.shape
        split = self.query_key_value(hidden).view(rows, length, 3, self.heads, self.head_width)
        query, key, value = split.permute(2, 0, 3, 1, 4).unbind(0)
        mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=penalty)
        mixed = mixed.transpose(1, 2).reshape(rows, length, width)
        hidden = self.attention_norm(hidden + self.attention_out(mixed))
        return self.outer_norm(hidden + self.outer(functional.gelu(self.inner(hidden))))


class SentenceEncoder(nn.Module):
    """input_ids, attention_mask [B, S] → sentence_embedding [B, width], of Euclidean length 1."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.words = nn.Embedding(size.vocabulary, size.width)
        self.positions = nn.Embedding(size.positions, size.width)
        self.segments = nn.Embedding(2, size.width)
        self.norm = nn.LayerNorm(size.width, eps=size.norm_epsilon)
        self.masked = MASKED
        self.layers = nn.ModuleList(Layer(size) for _ in range(size.layers))
        self.register_buffer("position_ids", torch.arange(size.positions), persistent=False)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        position_ids = self.position_ids[: input_ids.shape[1]]
        hidden = self.words(input_ids) + self.positions(position_ids) + self.segments.weight[0]
        hidden = self.norm(hidden)
        own = attention_mask.type_as(hidden)
        penalty = (1.0 - own[:, None, None, :]) * self.masked
        for layer in self.layers:
            hidden = layer(hidden, penalty)
        weight = own.unsqueeze(-1)
        mean = (hidden * weight).sum(1) / weight.sum(1).clamp(min=1e-9)
        return functional.normalize(mean, dim=1)


class ReviewClassifier(nn.Module):
    """scores [B, 2], probabilities of negative and positive; sentence_embedding [B, 384]."""

    def __init__(self, encoder: SentenceEncoder, head: nn.Linear) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = head

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        embedding = self.encoder(input_ids, attention_mask)
        return torch.softmax(self.head(embedding), dim=1), embedding


def empty_reviews() -> ReviewClassifier:
    size = Size()
    return ReviewClassifier(SentenceEncoder(size), nn.Linear(size.width, 2))


def empty_encoder_1024() -> SentenceEncoder:
    return SentenceEncoder(LONG)


def load_bert(path: Path, size: Size) -> SentenceEncoder:
    """From a BertModel's safetensors file."""
    from safetensors.torch import load_file

    stored = load_file(str(path))

    def pair(name: str) -> tuple[torch.Tensor, torch.Tensor]:
        return stored[f"{name}.weight"], stored[f"{name}.bias"]

    encoder = SentenceEncoder(size)
    state = {
        "words.weight": stored["embeddings.word_embeddings.weight"],
        "positions.weight": stored["embeddings.position_embeddings.weight"],
        "segments.weight": stored["embeddings.token_type_embeddings.weight"],
    }
    state["norm.weight"], state["norm.bias"] = pair("embeddings.LayerNorm")
    for index in range(size.layers):
        there, here = f"encoder.layer.{index}", f"layers.{index}"
        parts = [pair(f"{there}.attention.self.{part}") for part in ("query", "key", "value")]
        state[f"{here}.query_key_value.weight"] = torch.cat([weight for weight, _ in parts])
        state[f"{here}.query_key_value.bias"] = torch.cat([bias for _, bias in parts])
        for ours, theirs in (
            ("attention_out", "attention.output.dense"),
            ("attention_norm", "attention.output.LayerNorm"),
            ("inner", "intermediate.dense"),
            ("outer", "output.dense"),
            ("outer_norm", "output.LayerNorm"),
        ):
            state[f"{here}.{ours}.weight"], state[f"{here}.{ours}.bias"] = pair(f"{there}.{theirs}")
    encoder.load_state_dict(state)
    return encoder


def random_encoder(size: Size, seed: int, deviation: float = 0.02) -> SentenceEncoder:
    """The same program with seeded random weights: for speed and memory, not for meaning."""
    generator = torch.Generator().manual_seed(seed)
    encoder = SentenceEncoder(size)
    with torch.no_grad():
        for name, parameter in encoder.named_parameters():
            if "norm" in name:
                parameter.fill_(1.0 if name.endswith("weight") else 0.0)
            elif name.endswith("bias"):
                parameter.zero_()
            else:
                parameter.normal_(0.0, deviation, generator=generator)
    return encoder
