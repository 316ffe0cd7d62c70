# SPDX-License-Identifier: Apache-2.0
"""The small classifier on top of the sentence embedding: logistic regression on rated snippets."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Sequence

import torch
from torch import nn
from torch.nn import functional

from tonnage.encoder import SentenceEncoder
from tonnage.texts import review_id
from tonnage.wordpiece import Wordpiece, truncate

SPLIT_SEED = 2014
HELD_OUT_SHARE = 0.2
# Strength of the pull towards zero: the best of seven, 1e-5 to 3e-3, in accuracy and log loss of a
# five-fold cross-validation by review inside the training reviews (the held-out ones had no say).
WEIGHT_DECAY = 3e-4
CLEARLY_BETTER = 0.05


@dataclass(frozen=True)
class Rated:
    review: str
    text: str
    label: int  # 0 negative, 1 positive


@dataclass(frozen=True)
class Outcome:
    head: nn.Linear
    accuracy: float  # on held-out reviews
    majority: float  # of the larger class there
    trained: int
    held_out: int


def rated_snippets(rows: Sequence[tuple[str, float, str]]) -> list[Rated]:
    """The sign of the mean rating is the label; snippets rated exactly 0 have none and are left out."""
    return [Rated(review_id(i), text, int(rating > 0)) for i, rating, text in rows if rating != 0]


def split_by_review(rated: Sequence[Rated]) -> tuple[list[Rated], list[Rated]]:
    """Training and held-out snippets; no review is in both, so that nothing leaks."""
    reviews = sorted({r.review for r in rated})
    random.Random(SPLIT_SEED).shuffle(reviews)
    held_out = set(reviews[: round(len(reviews) * HELD_OUT_SHARE)])
    return [r for r in rated if r.review not in held_out], [r for r in rated if r.review in held_out]


def embed(encoder: SentenceEncoder, tokenizer: Wordpiece, texts: Sequence[str], limit: int, say) -> torch.Tensor:
    rows = [truncate(ids, limit) for ids in tokenizer.encode(texts)]
    order = sorted(range(len(rows)), key=lambda i: len(rows[i]))  # little padding
    result = torch.empty(len(rows), encoder.words.embedding_dim)
    with torch.inference_mode():
        for start in range(0, len(order), 64):
            batch = order[start : start + 64]
            longest = len(rows[batch[-1]])
            ids = torch.zeros(len(batch), longest, dtype=torch.int64)
            mask = torch.zeros_like(ids)
            for at, index in enumerate(batch):
                ids[at, : len(rows[index])] = torch.tensor(rows[index])
                mask[at, : len(rows[index])] = 1
            result[torch.tensor(batch)] = encoder(ids, mask)
            if start % 1024 == 0:
                say(f"  embedded {start:,} of {len(order):,} snippets")
    return result


def fit(features: torch.Tensor, labels: torch.Tensor, decay: float = WEIGHT_DECAY) -> nn.Linear:
    head = nn.Linear(features.shape[1], 2)
    nn.init.zeros_(head.weight)
    nn.init.zeros_(head.bias)
    features = features.clone()  # an inference tensor cannot take part in a backward pass
    optimizer = torch.optim.LBFGS(head.parameters(), max_iter=300, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        value = functional.cross_entropy(head(features), labels) + decay * head.weight.square().sum()
        value.backward()
        return value

    optimizer.step(loss)
    return head.requires_grad_(False)


def train(encoder: SentenceEncoder, tokenizer: Wordpiece, rated: Sequence[Rated], limit: int, say) -> Outcome:
    training, held_out = split_by_review(rated)
    features = embed(encoder, tokenizer, [r.text for r in [*training, *held_out]], limit, say)
    labels = torch.tensor([r.label for r in [*training, *held_out]])
    count = len(training)
    head = fit(features[:count], labels[:count])
    right = head(features[count:]).argmax(1) == labels[count:]
    positive = float(labels[count:].float().mean())
    return Outcome(head, float(right.float().mean()), max(positive, 1 - positive), count, len(held_out))
