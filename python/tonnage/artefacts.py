# SPDX-License-Identifier: Apache-2.0
"""Writes the files of one model version, a file per route and precision, and proves each by loading it again.

artefacts.json beside them records, per route and precision: file, size, sha256, for which torch and which
instruction set it was made, the checked shapes, and the worst that was seen of it.
"""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Sequence

import torch

from tonnage import __version__, parity, routes, row_sizes
from tonnage.description import Model, RowSize, largest
from tonnage.progress import say


@dataclass
class Job:
    model: Model
    folder: Path  # of the version
    lengths: Sequence[int]
    seed: int
    example: Sequence[torch.Tensor] = ()
    traced: tuple[int, RowSize] = (0, 0)
    config: str = ""
    records: list[dict] = field(default_factory=list)


def config_json(model: Model) -> str:
    def specs(tensors):
        return [{"name": t.name, "datatype": t.datatype, "dims": list(t.dims)}
                | ({"range": list(t.allowed())} if t.allowed() else {}) for t in tensors]

    return json.dumps({
        "name": model.name,
        "inputs": specs(model.inputs),
        "outputs": specs(model.outputs),
        "max_length": model.max_length,
        "labels": list(model.labels),
        "facts": dict(sorted(model.metadata.items())),
        "exporter": f"tonnage {__version__}, torch {torch.__version__}",
    })


def start(model: Model, folder: Path, lengths: Sequence[int], seed: int) -> Job:
    generator = torch.Generator().manual_seed(seed)
    rows = row_sizes.example(model, lengths, generator)
    example = model.make_inputs(rows, generator)
    return Job(model, folder, lengths, seed, example, (len(rows), largest(rows)), config_json(model))


def write_all(job: Job, wanted: routes.Wanted) -> None:
    precisions = wanted.precisions
    for name in wanted.routes:
        route = routes.get(name)
        served = [precision for precision in precisions if precision in route.FILES]
        for precision in precisions:
            if precision not in served:
                say(f"export {job.model.name}: route {name} has no precision {precision}, which is left out")
        if not served:
            raise routes.RouteError(f"route '{name}' has none of the precisions {', '.join(precisions)}; "
                                    f"it has {', '.join(route.FILES)}")
        facts: dict[str, dict] = {}  # by file
        for precision in served:
            _write_one(job, name, route, precision, facts)
    (job.folder / "artefacts.json").write_text(json.dumps({
        "exporter": f"tonnage {__version__}",
        "torch": torch.__version__,
        "instruction_set": torch.backends.cpu.get_cpu_capability(),
        "example_shape": row_sizes.as_list(*job.traced),
        "artefacts": job.records,
    }, indent=1) + "\n", encoding="utf-8")


def _write_one(job: Job, name: str, route: ModuleType, precision: str, facts: dict[str, dict]) -> None:
    file = route.FILES[precision]
    path = job.folder / file
    started = time.monotonic()
    try:
        if file not in facts:
            facts[file] = route.write(job.model, path, precision, job.example, job.config)
        written = time.monotonic()
        record = {"route": name, "precision": precision, "file": file, "bytes": path.stat().st_size,
                  "sha256": hashlib.sha256(path.read_bytes()).hexdigest(), **facts[file],
                  **_prove(job, route.load(path, precision), precision, facts[file].get("limits", {}))}
    except parity.ExportFailed as error:
        raise parity.ExportFailed(f"route {name}, {precision}: {error}") from error
    job.records.append(record)
    say(f"export {job.model.name}: route {name}, {precision}: {len(record['checked_shapes'])} shapes, largest "
        f"difference {record['worst_difference']:.2g}, least cosine {record['min_cosine']:.6f}; rows alone and in "
        f"padded batches, largest difference {record['worst_padding_difference']:.2g} "
        f"({written - started:.0f} s to write, {time.monotonic() - written:.0f} s to check)")


def _prove(job: Job, loaded, precision: str, limits: dict) -> dict:
    def program(*inputs: torch.Tensor) -> list[torch.Tensor]:
        return loaded(list(inputs))

    model, generator = job.model, torch.Generator().manual_seed(job.seed + 1)
    allowed = parity.allowed_for(model, precision)
    rows, length = limits.get("rows", (1, 1 << 30)), limits.get("length", (1, 1 << 30))
    shapes = [shape for shape in row_sizes.untraced(model, job.traced)
              if rows[0] <= shape[0] <= rows[1] and (model.sizes or length[0] <= shape[1] <= length[1])]
    alike = parity.check_shapes(model, program, allowed, shapes, generator)
    padded = parity.check_padding(model, program, allowed, job.lengths, generator)
    return {"checked_shapes": [row_sizes.as_list(*shape) for shape in shapes],
            "worst_difference": alike.worst_difference, "min_cosine": alike.min_cosine,
            "worst_padding_difference": padded.worst_difference, "min_padding_cosine": padded.min_cosine}
