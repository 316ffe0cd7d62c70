# SPDX-License-Identifier: Apache-2.0
"""Real texts for `tonnage load --texts` and for the tokenizer's test.

DIR/snippets.jsonl   rated snippets of Amazon reviews (short)
DIR/reviews.jsonl    whole product reviews: the snippets joined by review id
DIR/movies.jsonl     movie reviews (long-tailed)
DIR/corpus/NAME.nul  every text the tokenizer is compared on, each ended by a NUL byte
A line of a .jsonl file is {"text": …, "tokens": n}, with [CLS] and [SEP] counted, untruncated.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Iterable, Sequence

from tonnage import sources
from tonnage.wordpiece import Wordpiece

VADER_SETS = {
    "amazon_snippets": "amazonReviewSnippets",
    "movie_snippets": "movieReviewSnippets",
    "editorials": "nytEditorialSnippets",
    "tweets": "tweets",
}
CORPUS = [*VADER_SETS, "movie_reviews"]


def review_id(snippet_id: str) -> str:
    """`17_4` is the fourth snippet of review 17."""
    return snippet_id.split("_")[0]


def whole_reviews(snippets: Iterable[tuple[str, float, str]]) -> list[str]:
    joined: dict[str, list[str]] = {}
    for snippet_id, _, text in snippets:
        joined.setdefault(review_id(snippet_id), []).append(text)
    return [" ".join(parts) for parts in joined.values()]


def movie_reviews() -> list[str]:
    csv.field_size_limit(1 << 20)
    with open(sources.movie_reviews_csv(), encoding="utf-8", newline="") as file:
        return [row["text"] for row in csv.DictReader(file)]


def corpus(archive: Path, name: str) -> list[str]:
    if name == "movie_reviews":
        return movie_reviews()
    return [text for _, _, text in sources.read_vader(archive, VADER_SETS[name])]


def write_jsonl(path: Path, texts: Sequence[str], tokenizer: Wordpiece) -> None:
    with open(path, "w", encoding="utf-8") as file:
        for text, ids in zip(texts, tokenizer.encode(texts)):
            file.write(json.dumps({"text": text, "tokens": len(ids)}, ensure_ascii=False) + "\n")


def write_nul(path: Path, texts: Sequence[str]) -> None:
    if any("\0" in text for text in texts):
        raise sources.SourceError(f"{path.stem}: a text holds a NUL byte; the corpus format has no room for it")
    path.write_bytes(b"".join(text.encode("utf-8") + b"\0" for text in texts))


def write_all(archive: Path, out: Path, say) -> None:
    tokenizer = Wordpiece(sources.minilm_folder() / "vocab.txt")
    snippets = sources.read_vader(archive, VADER_SETS["amazon_snippets"])
    (out / "corpus").mkdir(parents=True, exist_ok=True)
    movies = movie_reviews()
    for name, texts in (
        ("snippets", [text for _, _, text in snippets]),
        ("reviews", whole_reviews(snippets)),
        ("movies", movies),
    ):
        say(f"texts: {name}.jsonl, {len(texts):,} texts")
        write_jsonl(out / f"{name}.jsonl", texts, tokenizer)
    for name in CORPUS:
        write_nul(out / "corpus" / f"{name}.nul", movies if name == "movie_reviews" else corpus(archive, name))
