# SPDX-License-Identifier: Apache-2.0
"""Exports a module as a model the server can load, for one or several routes and precisions.

The module is put in eval mode and written with representative inputs. Every file is loaded again and compared
with the module on shapes that it was not made with, and with itself on rows alone and inside padded mixed
batches. A failed check fails the export and leaves what was there before untouched.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Sequence

import torch

from tonnage import artefacts, checks, held_out, model_toml, parity, routes, row_sizes
from tonnage import lengths as length_files
from tonnage.description import DescriptionError, Model
from tonnage.progress import say
from tonnage.sources import SourceError

EXAMPLE = """example:
  PYTHONPATH=python:. build/venv/bin/python -m tonnage.export mypackage.models:classifier --out models --lengths lengths.txt
writes models/NAME/model.toml and models/NAME/1/ with model.pt, artefacts.json and held_out.json; the factory is

  from tonnage.description import Model, Tensor
  def classifier():
      return Model(name="classifier", module=Net(), max_length=512,
                   inputs=[Tensor("input_ids", "INT64", [-1, -1], range=(0, 30521)),
                           Tensor("attention_mask", "INT64", [-1, -1], source="mask")],
                   outputs=[Tensor("scores", "FP32", [-1, 2])])
"""


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


def export_model(model: Model, out: Path, lengths: Sequence[int], seed: int = 7,
                 wanted: routes.Wanted = routes.Wanted()) -> Path:
    """Writes out/<name>/; returns that folder. Raises DescriptionError or ExportFailed."""
    checks.check_model(model)
    model.module.eval().requires_grad_(False)
    out.mkdir(parents=True, exist_ok=True)
    target = out / model.name
    with tempfile.TemporaryDirectory(prefix=f".{model.name}-", dir=out) as scratch:
        fresh = Path(scratch) / model.name
        version = fresh / "1"
        version.mkdir(parents=True)
        job = artefacts.start(model, version, lengths, seed)
        say(f"export {model.name}: routes {', '.join(wanted.routes)} in {', '.join(wanted.precisions)}, with an example of "
            f"{job.traced[0]} × {row_sizes.text_of(job.traced[1])}")
        artefacts.write_all(job, wanted)
        rows = held_out.make(model, lengths, torch.Generator().manual_seed(seed + 2))
        (version / "held_out.json").write_text(rows, encoding="utf-8")
        if model.tokenizer is not None:
            shutil.copyfile(model.tokenizer.vocab, fresh / "vocab.txt")
        (fresh / "model.toml").write_text(model_toml.render(model, wanted.routes[0]), encoding="utf-8")
        if target.exists():
            shutil.rmtree(target)
        fresh.rename(target)
    size = sum(file.stat().st_size for file in target.rglob("*"))
    say(f"export {model.name}: wrote {target} ({size / 2**20:.1f} MiB)")
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
    parser.add_argument("--routes", default="trace", metavar="LIST",
                        help=f"of {', '.join(routes.available())}, or all (default %(default)s); the first is that of "
                             "model.toml")
    parser.add_argument("--precisions", default="fp32", metavar="LIST",
                        help=f"of {', '.join(routes.PRECISIONS)} (default %(default)s); fp32 is always made")
    parser.add_argument("--arg", action="append", default=[], metavar="KEY=VALUE", help="passed to the factory")
    parser.add_argument("--seed", type=int, default=7, help="of the example inputs (default 7)")
    options = parser.parse_args(argv)
    try:
        wanted = routes.parse_wanted(options.routes, options.precisions)
        model = make_model(options.factory, parse_arguments(options.arg))
        export_model(model, options.out, length_files.read_lengths(options.lengths), options.seed, wanted)
    except (DescriptionError, routes.RouteError, length_files.LengthFileError, parity.ExportFailed, SourceError,
            OSError) as error:
        print(f"export failed: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
