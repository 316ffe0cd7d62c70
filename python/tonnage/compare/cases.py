# SPDX-License-Identifier: Apache-2.0
"""What is compared: each route and precision a model's folder holds a file for."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

NATIVE_PRECISION = "fp32"  # a handler decides for itself


class NoCase(ValueError):
    """Nothing can be compared; the message says what is missing and how to make it."""


@dataclass(frozen=True)
class Case:
    route: str
    precision: str
    # How the service that ran out of memory was fed: gradients on, batches of 64 padded to the longest.
    is_incident: bool = False

    @property
    def name(self) -> str:
        return "native as-is" if self.is_incident else f"{self.route} {self.precision}"

    @property
    def server_flags(self) -> list[str]:
        flags = ["--route", self.route, "--precision", self.precision]
        return [*flags, "--policy", "fifo"] if self.is_incident else flags


def version_folder(model: Path) -> Path:
    """The folder of the highest version, or the model's own where it has none."""
    versions = [child for child in model.iterdir() if child.is_dir() and child.name.isdecimal()]
    return max(versions, key=lambda child: int(child.name), default=model)


def read_artefacts(model: Path) -> dict:
    if not model.is_dir():
        raise NoCase(f"{model} is not a folder")
    file = version_folder(model) / "artefacts.json"
    if not file.is_file():
        raise NoCase(f"{file} is missing: export the model with `python -m tonnage.export … --routes all "
                     "--precisions fp32,bf16`, which writes it")
    return json.loads(file.read_text(encoding="utf-8"))


def find(artefacts: dict, routes: list[str] | None, precisions: list[str] | None) -> list[Case]:
    """Cases in the order of the export; the incident last, where there is a native artefact."""
    exported = [(record["route"], record["precision"]) for record in artefacts["artefacts"]]
    for name in routes or []:
        if name not in {route for route, _ in exported}:
            raise NoCase(f"route '{name}' was not exported; there are "
                         f"{', '.join(dict.fromkeys(route for route, _ in exported))}")
    cases = [Case(route, precision) for route, precision in exported
             if (not routes or route in routes) and (not precisions or precision in precisions)]
    if not cases:
        raise NoCase(f"no artefact has precision {', '.join(precisions or [])}")
    if any(case.route == "native" for case in cases):
        cases.append(Case("native", NATIVE_PRECISION, is_incident=True))
    return cases
