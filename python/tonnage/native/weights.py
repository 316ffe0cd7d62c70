# SPDX-License-Identifier: Apache-2.0
"""Weights that are missing or too many are never silent: while a model loads, load_state_dict(strict=False)
is held to the keys that `allow_missing` names."""

from __future__ import annotations

import contextlib
import fnmatch
from pathlib import Path
from typing import Any, Iterator, Sequence

import torch

from tonnage.native.wire import LoadFailed

FILES = ("model.safetensors", "weights.safetensors", "weights.pt", "model.pth", "pytorch_model.bin")
MOST_KEYS = 12  # of each list in a message


class WrongWeights(RuntimeError):
    """As the RuntimeError of a strict load_state_dict."""


@contextlib.contextmanager
def watched(allowed: Sequence[str]) -> Iterator[None]:
    """`allowed`: keys, or patterns with *. Raises LoadFailed at the end, also where the handler swallowed it."""
    original = torch.nn.Module.load_state_dict
    problems: list[str] = []

    def load_state_dict(self: torch.nn.Module, state_dict: Any, strict: bool = True, *args: Any, **kwargs: Any) -> Any:
        result = original(self, state_dict, False, *args, **kwargs)
        if problem := _problem(type(self).__name__, result, allowed):
            problems.append(problem)
            raise WrongWeights(problem)
        return result

    torch.nn.Module.load_state_dict = load_state_dict
    try:
        yield
    finally:
        torch.nn.Module.load_state_dict = original
        if problems:
            raise LoadFailed("wrong_weights", problems[0])


def _problem(owner: str, result: Any, allowed: Sequence[str]) -> str:
    def left(keys: Sequence[str]) -> list[str]:
        return [key for key in keys if not any(fnmatch.fnmatchcase(key, pattern) for pattern in allowed)]

    found = {"missing": left(result.missing_keys), "unexpected": left(result.unexpected_keys)}
    lists = [f"{what} {len(keys)}: {', '.join(keys[:MOST_KEYS])}{', …' if len(keys) > MOST_KEYS else ''}"
             for what, keys in found.items() if keys]
    return f"the weights do not fit {owner}: {'; '.join(lists)} (allow_missing may name them)" if lists else ""


def first_sentence(error: Exception) -> str:
    """torch puts pages of advice behind it."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].split(". ")[0]


def read(folder: Path, name: str = "") -> dict[str, torch.Tensor]:
    """A state dict, without running code of the file."""
    candidates = [folder / name] if name else [folder / file for file in FILES]
    file = next((candidate for candidate in candidates if candidate.is_file()), None)
    if file is None:
        raise LoadFailed("bad_model_file", f"{folder} holds none of {', '.join(c.name for c in candidates)}; name the "
                                           "file with weights in [native]")
    try:
        if file.suffix == ".safetensors":
            from safetensors.torch import load_file

            return load_file(str(file))
        state = torch.load(file, map_location="cpu", weights_only=True)
    except ImportError as error:
        raise LoadFailed("bad_model_file", f"{file}: the interpreter has no package safetensors") from error
    except (MemoryError, torch.OutOfMemoryError):
        raise
    except Exception as error:  # pickle, zip and safetensors raise types of their own
        raise LoadFailed("bad_model_file", f"{file}: {type(error).__name__}: {first_sentence(error)}") from error
    if not isinstance(state, dict) or not all(torch.is_tensor(value) for value in state.values()):
        raise LoadFailed("bad_model_file", f"{file} holds {type(state).__name__}, not a state dict of tensors")
    return state
