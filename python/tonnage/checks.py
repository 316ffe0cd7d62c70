# SPDX-License-Identifier: Apache-2.0
"""Whether a description agrees with itself; what the server would refuse is refused before anything is exported."""

from __future__ import annotations

import re

from tonnage.description import DATATYPES, DescriptionError, Model, Tensor

MOST_SIZES = 3
MOST_CHUNKS = 1024
SPECIAL_TOKENS = 2  # around each chunk


def check_model(model: Model) -> None:
    """Raises DescriptionError, which names the field and what is allowed."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", model.name):
        raise DescriptionError(f"model name '{model.name}'; allowed: letters, digits, '.', '_', '-'")
    if not model.inputs or not model.outputs:
        raise DescriptionError(f"model '{model.name}': at least one input and one output are needed")
    if model.sizes:
        _check_sizes(model)
    names = [t.name for t in [*model.inputs, *model.outputs]]
    for spec in [*model.inputs, *model.outputs]:
        _check_tensor(spec, names.count(spec.name), [size.name for size in model.sizes])
    if not model.sizes and any(t.has_length() for t in model.inputs) != (model.max_length > 0):
        raise DescriptionError(f"model '{model.name}': max_length is {model.max_length}; it must be positive exactly "
                               "when an input has a second dim of -1")
    if model.too_long not in ("refuse", "truncate", "chunk"):
        raise DescriptionError(f"model '{model.name}': too_long is '{model.too_long}'; allowed: refuse, truncate, "
                               "chunk")
    _check_chunks(model)
    if model.labels and list(model.outputs[0].dims)[-1] != len(model.labels):
        raise DescriptionError(f"model '{model.name}': {len(model.labels)} labels, but the first output "
                               f"'{model.outputs[0].name}' has dims {list(model.outputs[0].dims)}")


def _check_tensor(spec: Tensor, count: int, sizes: list[str]) -> None:
    if count > 1:
        raise DescriptionError(f"tensor '{spec.name}' is named {count} times; names must be unique")
    if spec.name == "embedding":
        raise DescriptionError("a tensor may not be called 'embedding' (ONNX export rejects it): 'sentence_embedding'")
    if spec.datatype not in DATATYPES:
        raise DescriptionError(f"tensor '{spec.name}': datatype '{spec.datatype}'; allowed: {', '.join(DATATYPES)}")
    dims = list(spec.dims)
    if not dims or dims[0] != -1 or any(d != -1 and d < 1 for d in dims):
        raise DescriptionError(f"tensor '{spec.name}': dims {dims}; the first must be -1 (rows), the others -1 or "
                               "above zero")
    free = dims[1:].count(-1)
    if not sizes and free > 1:
        raise DescriptionError(f"tensor '{spec.name}': dims {dims}; at most one dim after the first may be -1 "
                               "(length), unless the model has sizes")
    named = free if sizes else 0
    if len(spec.sizes) != named or not set(spec.sizes) <= set(sizes):
        raise DescriptionError(f"tensor '{spec.name}': sizes {list(spec.sizes)}; its dims {dims} need {named} names, "
                               f"of the model's {sizes}")


def _check_sizes(model: Model) -> None:
    names = [size.name for size in model.sizes]
    if len(names) > MOST_SIZES or len(set(names)) < len(names) or not all(names):
        raise DescriptionError(f"model '{model.name}': sizes {names}; allowed: 1 to {MOST_SIZES} with names of their "
                               "own")
    if model.max_length or model.tokenizer or model.too_long != "refuse":
        raise DescriptionError(f"model '{model.name}': max_length, tokenizer and too_long are for models with one "
                               "length; this one has sizes")
    for size in model.sizes:
        if size.max < 1:
            raise DescriptionError(f"size '{size.name}': max is {size.max}; the largest row must be known")
        if size.meet not in ("pad", "group"):
            raise DescriptionError(f"size '{size.name}': meet is '{size.meet}'; allowed: pad, group")
        if size.multiple is not None and (size.meet == "group" or not 1 <= size.multiple <= 4096):
            raise DescriptionError(f"size '{size.name}': multiple is {size.multiple}; allowed: 1 to 4096, of meet = "
                                   "pad")
        if not any(size.name in spec.sizes for spec in model.inputs if spec.source is None):
            raise DescriptionError(f"size '{size.name}' is no dim of an input that the client sends")


def _check_chunks(model: Model) -> None:
    if model.too_long != "chunk":
        if (model.chunk_pooling, model.chunk_overlap, model.max_chunks) != ("mean", 0, 16):
            raise DescriptionError(f"model '{model.name}': chunk_pooling, chunk_overlap and max_chunks are for "
                                   f"too_long = chunk; it is '{model.too_long}'")
        return
    if model.tokenizer is None:
        raise DescriptionError(f"model '{model.name}': too_long is 'chunk', which cuts texts and needs a tokenizer")
    if model.chunk_pooling not in ("mean", "max", "first"):
        raise DescriptionError(f"model '{model.name}': chunk_pooling is '{model.chunk_pooling}'; allowed: mean, max, "
                               "first")
    if not 0 <= model.chunk_overlap < model.max_length - SPECIAL_TOKENS:
        raise DescriptionError(f"model '{model.name}': chunk_overlap is {model.chunk_overlap}; a chunk of "
                               f"{model.max_length} tokens must also bring tokens of its own")
    if not 1 <= model.max_chunks <= MOST_CHUNKS:
        raise DescriptionError(f"model '{model.name}': max_chunks is {model.max_chunks}; allowed: 1 to {MOST_CHUNKS}")
    for spec in model.outputs:
        if spec.has_length() or (spec.datatype != "FP32" and model.chunk_pooling != "first"):
            raise DescriptionError(f"output '{spec.name}' is {spec.datatype} {list(spec.dims)}; chunks are pooled over "
                                   "outputs that do not follow the length, by mean and max in FP32 only")
