# SPDX-License-Identifier: Apache-2.0
"""Exports a module as a TorchScript model the server can load.

The module is put in eval mode, traced with representative inputs, and the traced program is compared
with the module on shapes it was not traced with, and with itself on rows alone and inside padded mixed
batches. A failed check fails the export and leaves what was there before untouched.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import shutil
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Sequence

import torch

from tonnage import __version__, model_toml, parity
from tonnage import lengths as length_files
from tonnage.description import DescriptionError, Model
from tonnage.sources import SourceError

EXAMPLE = """example:
  PYTHONPATH=python:. build/venv/bin/python -m tonnage.export mypackage.models:classifier --out models --lengths lengths.txt
writes models/NAME/model.toml and models/NAME/1/model.pt, where the factory is

  from tonnage.description import Model, Tensor
  def classifier():
      return Model(name="classifier", module=Net(), max_length=512,
                   inputs=[Tensor("input_ids", "INT64", [-1, -1], range=(0, 30521)),
                           Tensor("attention_mask", "INT64", [-1, -1], source="mask")],
                   outputs=[Tensor("scores", "FP32", [-1, 2])])
"""


def say(text: str) -> None:
    print(text, flush=True)


def load_factory(name: str):
    module_name, colon, function = name.partition(":")
    if not colon or not module_name or not function:
        raise DescriptionError(f"'{name}' is no factory; write PACKAGE:FACTORY, for example tonnage.zoo:reviews")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise DescriptionError(f"'{name}': {error}; is its folder on PYTHONPATH?") from error
    if not callable(getattr(module, function, None)):
        raise DescriptionError(f"'{name}': module '{module_name}' has no function '{function}'")
    return getattr(module, function)


def trace(model: Model, lengths: Sequence[int], generator: torch.Generator) -> tuple[torch.jit.ScriptModule, tuple[int, int]]:
    model.module.eval().requires_grad_(False)
    limit = model.max_length or 1
    drawn = length_files.draw(lengths, 3, min(limit, 256), generator)
    drawn[0] = max(drawn[0], min(limit, 11))  # a length of one invites the tracer to specialise
    example = tuple(model.make_inputs(drawn, generator))
    with warnings.catch_warnings(record=True) as caught, torch.no_grad():
        warnings.simplefilter("always")
        try:
            program = torch.jit.trace(model.module, example, check_trace=True, check_tolerance=model.relative_tolerance)
        except (RuntimeError, torch.jit.TracingCheckError) as error:
            raise parity.ExportFailed(
                f"tracing at {len(drawn)} × {max(drawn)} failed: {parity.last_line(error)}") from error
    for warning in caught:
        if issubclass(warning.category, torch.jit.TracerWarning):
            say(f"  tracer: {str(warning.message).splitlines()[0]}")
    return program, (len(drawn), max(drawn))


def config_json(model: Model, report: parity.Report) -> str:
    def specs(tensors):
        return [{"name": t.name, "datatype": t.datatype, "dims": list(t.dims)} for t in tensors]

    return json.dumps({
        "name": model.name,
        "inputs": specs(model.inputs),
        "outputs": specs(model.outputs),
        "max_length": model.max_length,
        "labels": list(model.labels),
        "facts": dict(sorted(model.metadata.items())),
        "exporter": f"tonnage {__version__}, torch {torch.__version__}",
        "checked_shapes": [list(s) for s in report.shapes],
        "worst_difference": report.worst_difference,
        "worst_padding_difference": report.worst_padding_difference,
    })


def check_saved(model: Model, path: Path, generator: torch.Generator) -> None:
    """What ships is the file: it must load, and give what the module gives."""
    extra = {"config.json": ""}
    program = torch.jit.load(str(path), _extra_files=extra)
    if json.loads(extra["config.json"])["name"] != model.name:
        raise parity.ExportFailed(f"{path}: config.json inside it does not name '{model.name}'")
    length = min(model.max_length or 1, 19)
    inputs = model.make_inputs([length] * 2, generator)
    got_outputs = parity.run(program, inputs, "the saved program")
    want_outputs = parity.run(model.module, inputs, "the module")
    for spec, got, want in zip(model.outputs, got_outputs, want_outputs):
        parity.compare(model, got, want, f"saved file, output '{spec.name}' at shape 2 × {length}")


def export_model(model: Model, out: Path, lengths: Sequence[int], seed: int = 7) -> Path:
    """Writes out/<name>/; returns that folder. Raises DescriptionError or ExportFailed."""
    model.validate()
    generator = torch.Generator().manual_seed(seed)
    say(f"export {model.name}: tracing")
    program, traced = trace(model, lengths, generator)
    say(f"export {model.name}: traced at {traced[0]} × {traced[1]}; checking other shapes")
    report = parity.check_shapes(model, program, traced, generator)
    report.worst_padding_difference = parity.check_padding(model, program, lengths, generator)
    say(f"export {model.name}: {len(report.shapes)} shapes agree, largest difference {report.worst_difference:.2g}; "
        f"rows alone and in padded batches agree, largest difference {report.worst_padding_difference:.2g}")

    out.mkdir(parents=True, exist_ok=True)
    target = out / model.name
    with tempfile.TemporaryDirectory(prefix=f".{model.name}-", dir=out) as scratch:
        fresh = Path(scratch) / model.name
        (fresh / "1").mkdir(parents=True)
        file = fresh / "1" / "model.pt"
        torch.jit.save(program, str(file), _extra_files={"config.json": config_json(model, report)})
        check_saved(model, file, generator)
        if model.tokenizer is not None:
            shutil.copyfile(model.tokenizer.vocab, fresh / "vocab.txt")
        (fresh / "model.toml").write_text(model_toml.render(model, "trace"), encoding="utf-8")
        if target.exists():
            shutil.rmtree(target)
        fresh.rename(target)
    say(f"export {model.name}: wrote {target} ({(target / '1' / 'model.pt').stat().st_size / 2**20:.1f} MiB)")
    return target


def make_model(name: str, arguments: dict[str, str]) -> Model:
    factory = load_factory(name)
    try:
        inspect.signature(factory).bind(**arguments)
    except TypeError as error:
        raise DescriptionError(f"'{name}': {error}; --arg gives it {sorted(arguments)}") from error
    model = factory(**arguments)
    if not isinstance(model, Model):
        raise DescriptionError(f"'{name}' returned {type(model).__name__}, not a tonnage.description.Model")
    return model


def parse_arguments(pairs: Sequence[str]) -> dict[str, str]:
    arguments = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise DescriptionError(f"--arg '{pair}': write KEY=VALUE")
        arguments[key] = value
    return arguments


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tonnage.export", description=__doc__, epilog=EXAMPLE,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("factory", metavar="PACKAGE:FACTORY", help="function that returns a tonnage.description.Model")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="model repository to write into")
    parser.add_argument("--lengths", type=Path, metavar="FILE",
                        help="lengths to draw example inputs from: one integer or {\"tokens\": n} a line")
    parser.add_argument("--arg", action="append", default=[], metavar="KEY=VALUE", help="passed to the factory")
    parser.add_argument("--seed", type=int, default=7, help="of the example inputs (default 7)")
    options = parser.parse_args(argv)
    try:
        model = make_model(options.factory, parse_arguments(options.arg))
        export_model(model, options.out, length_files.read_lengths(options.lengths), options.seed)
    except (DescriptionError, length_files.LengthFileError, parity.ExportFailed, SourceError, OSError) as error:
        print(f"export failed: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
