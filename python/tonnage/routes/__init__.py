# SPDX-License-Identifier: Apache-2.0
"""The routes a model can be exported for, a module each. A route module has

FILES              precision → file name in the version's folder; precisions may share a file
write(model, path, precision, example, config) → dict
                   writes the file; `example` is one padded batch to trace with, `config` the JSON text that
                   the C++ side reads (names, types, shapes), for formats that have room for it. The returned
                   facts go into artefacts.json; "limits" = {"rows": [low, high], "length": [low, high]} says
                   that the file works for those shapes only. Raises ExportFailed with the reason.
load(path, precision) → program
                   the file as a callable from a list of tensors to a list of tensors: what is checked is
                   what ships, loaded again.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Sequence
NAMES = ("trace", "script", "aoti", "onnx", "native")
PRECISIONS = ("fp32", "bf16", "fp16")


@dataclass(frozen=True)
class Wanted:
    """What is to be exported; the first route is that of model.toml."""

    routes: Sequence[str] = ("trace",)
    precisions: Sequence[str] = ("fp32",)


class RouteError(ValueError):
    """A route or precision that there is not; the message names those that are."""


def get(name: str) -> ModuleType:
    _check(name)
    return importlib.import_module(f"tonnage.routes.{name}")


def _check(name: str) -> None:
    if name not in available():
        raise RouteError(f"route '{name}'; allowed: {', '.join(available())}, or all")


def available() -> list[str]:
    return [name for name in NAMES if Path(__file__).with_name(f"{name}.py").exists()]


def parse_wanted(names: str, precisions: str) -> Wanted:
    """From two lists with commas, as a command line has them."""
    return Wanted(parse_routes(names), parse_precisions(precisions))


def parse_routes(text: str) -> list[str]:
    names = available() if text == "all" else [name.strip() for name in text.split(",")]
    for name in names:
        _check(name)
    return list(dict.fromkeys(names))


def parse_precisions(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in PRECISIONS:
            raise RouteError(f"precision '{name}'; allowed: {', '.join(PRECISIONS)}")
    if "fp32" not in names:
        names.insert(0, "fp32")  # the reference of all others
    return list(dict.fromkeys(names))
