#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fetches ONNX Runtime's library and C headers into a folder, for tonnage-worker-onnx.

Both are in one package of the npm registry. What npm delivers is compared with the hashes below; without npm,
without the registry or on another processor it says what is missing, and the worker is not built.
"""

import argparse
import hashlib
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

PACKAGE = "com.github.asus4.onnxruntime@0.4.9"
VERSION = "1.29.0"
HEADERS = "package/Plugins/iOS~/onnxruntime.xcframework/ios-arm64/onnxruntime.framework/Headers"
# member of the package → (place below the folder, sha256)
WANTED = {
    "package/Plugins/Linux/x64/libonnxruntime.so": (
        "lib/libonnxruntime.so.1", "5715f06d8992ca8eeeddcce43df3a7d38f97d537052126f558e912cb312460ca"),
    f"{HEADERS}/onnxruntime_c_api.h": (
        "include/onnxruntime_c_api.h", "acc0cf4b3f28d39339c76770d76164bb7a0637dc89f5fde764b4017b632f6743"),
    f"{HEADERS}/onnxruntime_ep_c_api.h": (
        "include/onnxruntime_ep_c_api.h", "e6c986c9e98583f8113b2c6bc3864814883b806d501cf24da4d239c45753e235"),
    f"{HEADERS}/onnxruntime_error_code.h": (
        "include/onnxruntime_error_code.h", "5ce3b054e798eced8d14f5b86e98692fd33470463f96194ce0700a2d53dd8721"),
    "package/LICENSE": ("LICENSE", "2f07c72751aed99790b8a4869cf2311df85a860b22ded05fa22803587a48922c"),
    "package/ThirdPartyNotices.txt": (
        "ThirdPartyNotices.txt", "4c5b864d8974c94b37461f38163facef79a1bb5dea461667ee9e5be6a8e73f83"),
}


class Unavailable(RuntimeError):
    """Why there is no ONNX Runtime; the message is for people."""


def digest_of(path):
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None


def is_there(folder, wanted=None):
    return all(digest_of(folder / place) == digest for place, digest in (wanted or WANTED).values())


def fetch(package, folder):
    """The package's archive, downloaded into `folder`."""
    npm = shutil.which("npm")
    if npm is None:
        raise Unavailable("there is no npm (Debian package npm)")
    command = [npm, "pack", package, "--silent", "--fetch-retries", "1", "--cache", str(folder / "cache"),
               "--pack-destination", str(folder)]
    result = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    archives = list(folder.glob("*.tgz"))
    if result.returncode != 0 or not archives:
        why = (result.stderr.strip().splitlines() or ["no reason given"])[0]
        raise Unavailable(f"npm pack {package} failed: {why}")
    return archives[0]


def unpack(archive, into, wanted=None):
    """Writes the wanted members below `into`; refuses a member that is not what it was."""
    wanted = wanted or WANTED
    with tarfile.open(archive) as package:
        for member, (place, digest) in wanted.items():
            try:
                data = package.extractfile(member).read()
            except (KeyError, AttributeError) as error:
                raise Unavailable(f"{archive.name} has no {member}") from error
            found = hashlib.sha256(data).hexdigest()
            if found != digest:
                raise Unavailable(f"{member} has sha256 {found}, expected {digest}")
            target = into / place
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)


def install(folder):
    """True when it had to be fetched."""
    if is_there(folder):
        return False
    if platform.machine() != "x86_64":
        raise Unavailable(f"{PACKAGE} carries the library for x86_64 only, this is {platform.machine()}")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".onnxruntime-", dir=folder.parent) as scratch:
        fresh = Path(scratch) / "fresh"
        unpack(fetch(PACKAGE, Path(scratch)), fresh)
        if folder.exists():
            shutil.rmtree(folder)
        fresh.rename(folder)
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    parser.add_argument("--check", action="store_true", help="only tell, by the exit status, whether it is there")
    options = parser.parse_args()
    folder = options.out.resolve()
    if options.check:
        return 0 if is_there(folder) else 1
    try:
        if install(folder):
            print(f"setup: ONNX Runtime {VERSION} (npm {PACKAGE}, MIT) is in {folder}")
        return 0
    except (Unavailable, OSError, tarfile.TarError) as error:
        print(f"setup: ONNX Runtime SKIPPED: {error}. tonnage-worker-onnx will not be built.")
        return 1


if __name__ == "__main__":
    sys.exit(main())
