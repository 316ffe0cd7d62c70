# SPDX-License-Identifier: Apache-2.0
"""The counting allocator of the torch worker, in this process: every CPU tensor byte is counted from now on,
and refused above the grant. Python objects and numpy's arrays are not seen."""

from __future__ import annotations

import ctypes
from pathlib import Path

import torch

from tonnage.native import wire

LIBRARY = "libtonnage_torch_allocator.so"
UNLIMITED = (1 << 64) - 1


class Meter:
    """One per process. begin() and end() enclose a batch; the flags of the last one stay readable."""

    def __init__(self, folder: Path) -> None:
        file = folder / LIBRARY
        if not file.exists():
            raise wire.LoadFailed("no_allocator", f"{file} is missing: it is built where the build finds torch")
        try:
            library = ctypes.CDLL(str(file))
        except OSError as error:
            raise wire.LoadFailed("wrong_torch", f"{error}; the interpreter has torch {torch.__version__}") from error
        for name, result in {"version": ctypes.c_char_p, "install": None, "begin": None, "end": None,
                             "live": ctypes.c_uint64, "peak": ctypes.c_uint64, "needed": ctypes.c_uint64,
                             "pressure": ctypes.c_int, "heap": None, "purge": None}.items():
            function = library[f"tonnage_torch_{name}"]
            function.restype = result
            setattr(self, f"_{name}", function)
        self._begin.argtypes = [ctypes.c_uint64]
        built_for = self._version().decode()
        if torch.__version__.split("+")[0] != built_for:
            raise wire.LoadFailed("wrong_torch", f"the interpreter has torch {torch.__version__}, this build needs "
                                                 f"{built_for} (--python)")
        self._install()

    def begin(self, grant: int) -> None:
        self._begin(grant)

    def end(self) -> None:
        self._end()

    def live(self) -> int:
        return self._live()

    def peak(self) -> int:
        """Highest live bytes since begin(), minus those before it."""
        return self._peak()

    def needed(self) -> int:
        """What the largest refused allocation would have made of the peak; 0 without a refusal."""
        return self._needed()

    def pressure(self) -> bool:
        """The kernel refused memory that the grant allowed."""
        return bool(self._pressure())

    def heap(self) -> tuple[int, int]:
        """What malloc holds resident, and what of it is allocated and not freed."""
        resident, used = ctypes.c_uint64(), ctypes.c_uint64()
        self._heap(ctypes.byref(resident), ctypes.byref(used))
        return resident.value, used.value

    def purge(self) -> None:
        """Gives free pages of malloc back to the kernel."""
        self._purge()
