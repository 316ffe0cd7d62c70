# SPDX-License-Identifier: Apache-2.0
"""Writes model.toml, the file the server reads about a model."""

from __future__ import annotations

import json
from typing import Any

from tonnage.description import Model, Size, Tensor


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_value(v) for v in value) + "]"
    return json.dumps(str(value), ensure_ascii=False)  # a JSON string is a TOML basic string


def _pairs(values: dict[str, Any]) -> list[str]:
    return [f"{key} = {_value(value)}" for key, value in values.items()]


def _tensor(kind: str, spec: Tensor) -> list[str]:
    lines = ["", f"[[{kind}]]"]
    lines += _pairs({"name": spec.name, "datatype": spec.datatype, "dims": list(spec.dims)})
    if spec.sizes:
        lines += _pairs({"sizes": list(spec.sizes)})
    if kind == "input":
        if spec.allowed() is not None:
            lines += _pairs({"range": list(spec.allowed())})
        if spec.has_length():
            lines += _pairs({"pad": spec.pad})
        if spec.source is not None:
            lines += _pairs({"source": spec.source})
    return lines


def _table(name: str, values: dict[str, Any]) -> list[str]:
    return ["", f"[{name}]", *_pairs(values)] if values else []


def _size(size: Size) -> list[str]:
    multiple = {} if size.multiple is None else {"multiple": size.multiple}
    return ["", "[[size]]", *_pairs({"name": size.name, "max": size.max, "meet": size.meet, **multiple})]


def _limits(model: Model) -> list[str]:
    if not model.max_length:
        return []
    lines = _pairs({"max_length": model.max_length, "too_long": model.too_long})
    if model.too_long == "chunk":
        lines += _pairs({"chunk_pooling": model.chunk_pooling, "chunk_overlap": model.chunk_overlap,
                         "max_chunks": model.max_chunks})
    return lines


def render(model: Model, route: str) -> str:
    lines = [f"# Written by tonnage.export for the model '{model.name}'.", *_pairs({"route": route}), *_limits(model)]
    if model.labels:
        lines += _pairs({"labels": list(model.labels)})
    for size in model.sizes:
        lines += _size(size)
    for spec in model.inputs:
        lines += _tensor("input", spec)
    for spec in model.outputs:
        lines += _tensor("output", spec)
    if model.tokenizer is not None:
        words = {"kind": "wordpiece", "vocab": "vocab.txt", "lowercase": model.tokenizer.lowercase}
        lines += _table("tokenizer", words)
    lines += _table("batching", model.batching)
    lines += _table("workers", model.workers)
    lines += _table("metadata", dict(sorted(model.metadata.items())))
    return "\n".join(lines) + "\n"
