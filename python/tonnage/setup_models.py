# SPDX-License-Identifier: Apache-2.0
"""Makes the demo models and texts: OUT/reviews, OUT/encoder-1024, OUT/texts.

Each part carries a recipe: a hash of the sources that make it and the versions they use. A part whose
recipe has not changed is left alone, so a second run does nothing.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Callable, Sequence

from tonnage import routes, sources
from tonnage.progress import say
from tonnage.routes import Wanted

PACKAGE = Path(__file__).parent
EXPORTER = ["artefacts.py", "checks.py", "description.py", "export.py", "held_out.py", "lengths.py", "model_toml.py",
            "parity.py", "row_sizes.py", "encoder.py", "zoo.py"]
PARTS: dict[str, list[str]] = {
    "texts": ["sources.py", "texts.py", "wordpiece.py"],
    "reviews": [*EXPORTER, "head.py", "sources.py", "texts.py", "wordpiece.py"],
    "encoder-1024": [*EXPORTER, "texts.py"],
}


def digest_of(files: Sequence[str]) -> str:
    """Without importing torch: an unchanged setup must answer in less than a second."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.encode() + b"\0" + (PACKAGE / file).read_bytes() + b"\0")
    digest.update(importlib.metadata.version("torch").encode())
    return digest.hexdigest()


def recipe(part: str, wanted: Wanted) -> dict[str, str]:
    """What a part was made of, and by file that was asked for what that was made of."""
    made = {"part": digest_of(PARTS[part])}
    for route in wanted.routes if part != "texts" else ():
        shared = ["routes/torchscript.py"] if route in ("trace", "script", "aoti") else []
        digest = digest_of([f"routes/{route}.py", *shared])
        made.update({f"{route} {precision}": digest for precision in wanted.precisions})
    return made


def is_current(out: Path, part: str, wanted: Wanted) -> bool:
    """Routes that were made beyond those wanted do no harm."""
    try:
        stamp = json.loads((out / part / ".recipe").read_text(encoding="ascii"))
    except (OSError, json.JSONDecodeError):
        return False
    return isinstance(stamp, dict) and recipe(part, wanted).items() <= stamp.items()


def finish(out: Path, part: str, wanted: Wanted) -> None:
    """The stamp comes last: an interrupted part is made again."""
    (out / part / ".recipe").write_text(json.dumps(recipe(part, wanted)) + "\n", encoding="ascii")


def make_texts(out: Path, archive: Path) -> None:
    from tonnage import texts

    fresh = out / ".texts"
    shutil.rmtree(fresh, ignore_errors=True)
    texts.write_all(archive, fresh, say)
    shutil.rmtree(out / "texts", ignore_errors=True)
    fresh.rename(out / "texts")


def export(out: Path, factory: str, *arguments: str) -> None:
    command = [sys.executable, "-m", "tonnage.export", factory, "--out", str(out),
               "--lengths", str(out / "texts" / "reviews.jsonl"), *arguments]
    # Threads that spin at a barrier make an export ten times slower beside one busy neighbour.
    environment = {"OMP_WAIT_POLICY": "passive", **os.environ}
    if subprocess.run(command, check=False, env=environment).returncode != 0:
        raise sources.SourceError(f"`{' '.join(command)}` failed; its message is above")


def make(out: Path, wanted: Wanted) -> None:
    chosen = ["--routes", ",".join(wanted.routes), "--precisions", ",".join(wanted.precisions)]
    makers: dict[str, Callable[[Path], None]] = {
        "texts": lambda archive: make_texts(out, archive),
        "reviews": lambda archive: export(out, "tonnage.zoo:reviews", "--arg", f"archive={archive}", *chosen),
        "encoder-1024": lambda archive: export(out, "tonnage.zoo:encoder_1024", *chosen),
    }
    stale = [part for part in PARTS if not is_current(out, part, wanted)]
    if not stale:
        say(f"models: {', '.join(PARTS)} in {out} are up to date (routes {', '.join(wanted.routes)})")
        return
    sources.install_packages(say)
    archive = sources.fetch_vader(out / ".sources", say)
    for part in stale:
        started = time.monotonic()
        makers[part](archive)
        finish(out, part, wanted)
        say(f"models: {part} made in {time.monotonic() - started:.0f} s")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tonnage.setup_models", description=__doc__,
                                     epilog="example:\n  python -m tonnage.setup_models --out build/models",
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder of models and texts")
    parser.add_argument("--routes", default="trace", help="as tonnage.export takes them (default %(default)s)")
    parser.add_argument("--precisions", help="as tonnage.export takes them (default fp32; with all routes fp32,bf16)")
    options = parser.parse_args(argv)
    try:
        wanted = routes.parse_wanted(options.routes, options.precisions or ("fp32,bf16" if options.routes == "all" else "fp32"))
        out = options.out.resolve()
        out.mkdir(parents=True, exist_ok=True)
        with open(out / ".lock", "w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # two set-ups at once would write the same folders
            make(out, wanted)
    except (sources.SourceError, routes.RouteError, OSError) as error:
        print(f"setting up the models failed: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
