# SPDX-License-Identifier: Apache-2.0
"""What a route ties you to, and what it may lose of the original. Facts of the formats, not of one model."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Ties:
    needs: str
    upstream: str
    loses: str
    enforcement: str  # of memory grants, as `tonnage inspect` says it


TIES = {
    "trace": Ties("LibTorch of the worker; any CPU", "deprecated as of torch 2.11, still the most common",
                  "branches on values: the traced path is kept", "exact"),
    "script": Ties("LibTorch of the worker; any CPU", "deprecated as of torch 2.11",
                   "what the TorchScript compiler does not understand: it fails at export", "exact"),
    "aoti": Ties("exactly this torch, this kind of CPU or GPU; g++ at export", "the successor of TorchScript",
                 "branches on values; shapes outside the exported range", "exact for intermediates"),
    "onnx": Ties("ONNX Runtime; no torch at run time", "maintained, versioned opsets",
                 "operators without an ONNX form; branches on values", "exact"),
    "openvino": Ties("OpenVINO; Intel kernels first", "maintained", "operators without an OpenVINO form", "capped"),
    "native": Ties("Python and exactly the packages of the model", "whatever the model's own code needs",
                   "nothing", "capped"),
}
UNKNOWN = Ties("unknown", "unknown", "unknown", "unknown")


def of(route: str) -> Ties:
    return TIES.get(route, UNKNOWN)
