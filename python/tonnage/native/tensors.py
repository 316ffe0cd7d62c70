# SPDX-License-Identifier: Apache-2.0
"""Between the bytes of the wire and tensors: inputs are copied out of shared memory once, so that what a handler
keeps stays what it was; outputs are proven before a byte is placed."""

from __future__ import annotations

import math
import struct
import warnings
from dataclasses import dataclass
from typing import Any, Sequence

import torch

from tonnage.native.spec import Spec
from tonnage.native.wire import ErrorKind, Layout, RunFailed

DTYPES = {"BOOL": torch.bool, "UINT8": torch.uint8, "UINT16": torch.uint16, "UINT32": torch.uint32,
          "UINT64": torch.uint64, "INT8": torch.int8, "INT16": torch.int16, "INT32": torch.int32,
          "INT64": torch.int64, "FP16": torch.float16, "FP32": torch.float32, "FP64": torch.float64,
          "BF16": torch.bfloat16}
ORDERED = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)  # that aminmax knows
NAMES = {dtype: name for name, dtype in DTYPES.items()}

warnings.filterwarnings("ignore", message="The given buffer is not writable")  # read once, then copied


def wrap(view: memoryview, dtype: torch.dtype, dims: Sequence[int]) -> torch.Tensor:
    """The bytes where they lie."""
    return torch.frombuffer(view, dtype=dtype).reshape(dims) if len(view) else torch.empty(dims, dtype=dtype)


def read_input(view: memoryview, layout: Layout) -> Any:
    """A tensor of its own, or for BYTES a nested list of bytes."""
    if layout.datatype == "BYTES":
        return read_strings(view, layout.dims)
    return wrap(view, DTYPES[layout.datatype], layout.dims).clone()


def prove_range(view: memoryview, layout: Layout, spec: Spec) -> None:
    """An id outside its table is the sender's fault, not the handler's. Raises RunFailed."""
    if spec.range is None or not len(view):
        return
    values = wrap(view, DTYPES[layout.datatype], layout.dims)
    low, high = torch.aminmax(values if values.dtype in ORDERED else values.to(torch.int64))
    if low < spec.range[0] or high > spec.range[1]:
        raise RunFailed(ErrorKind.BAD_REQUEST, f"a value of input '{spec.name}' is outside {list(spec.range)}")


def read_strings(view: memoryview, dims: Sequence[int]) -> list:
    strings, at, count = [], 0, math.prod(dims)
    for _ in range(count):
        if at + 4 > len(view):
            break
        end = at + 4 + struct.unpack_from("<I", view, at)[0]
        if end > len(view):
            break
        strings.append(bytes(view[at + 4:end]))
        at = end
    if len(strings) != count or at != len(view):
        raise RunFailed(ErrorKind.BAD_REQUEST, f"a BYTES tensor does not hold {count} strings")
    for dim in reversed(dims[1:]):
        strings = [strings[i:i + dim] for i in range(0, len(strings), dim)] if dim else []
    return strings


@dataclass
class Output:
    """An output that was proven; `value` is a tensor, or for BYTES the packed strings."""

    datatype: str
    dims: tuple[int, ...]
    size: int
    value: Any

    def write(self, region: memoryview) -> None:
        if isinstance(self.value, bytes):
            region[:self.size] = self.value
        elif self.size:
            wrap(region[:self.size], self.value.dtype, self.dims).copy_(self.value)


def bad_output(problem: str) -> RunFailed:
    return RunFailed(ErrorKind.BAD_OUTPUT, problem)


def by_name(result: Any, specs: Sequence[Spec]) -> list[Any]:
    """What predict_fn returned, one value per output: a tensor alone, a tuple or list by position, a dict or an
    object with items (a ModelOutput) by name."""
    if hasattr(result, "items") and not torch.is_tensor(result):
        values = dict(result.items())
        for spec in specs:
            if spec.name not in values:
                raise bad_output(f"the returned dict has no '{spec.name}'; it has {', '.join(map(str, values))}")
        return [values[spec.name] for spec in specs]
    if len(specs) == 1 and (is_array(result) or specs[0].datatype == "BYTES" and not _is_single(result)):
        return [result]
    if not isinstance(result, (tuple, list)):
        raise bad_output(f"the handler returned {describe(result)}; allowed are a tensor or numpy array, a tuple or "
                         "list of them, and a dict by name")
    if len(result) != len(specs):
        raise bad_output(f"the handler returned {len(result)} outputs, the model has {len(specs)}: "
                         f"{', '.join(spec.name for spec in specs)}")
    return list(result)


def _is_single(result: Any) -> bool:
    return isinstance(result, (tuple, list)) and len(result) == 1 and isinstance(result[0], (tuple, list))


def prove(value: Any, spec: Spec, rows: int) -> Output:
    if spec.datatype == "BYTES":
        return _prove_strings(value, spec, rows)
    if not torch.is_tensor(value) and is_array(value):
        try:
            value = torch.from_numpy(value)
        except (TypeError, ValueError) as error:
            raise bad_output(f"output '{spec.name}': {error}") from error
    if not torch.is_tensor(value):
        raise bad_output(f"output '{spec.name}' is {describe(value)}, not a tensor")
    if value.device.type != "cpu" or value.layout != torch.strided:
        raise bad_output(f"output '{spec.name}' is not a dense CPU tensor ({value.device}, {value.layout})")
    if value.dtype not in NAMES:
        raise bad_output(f"output '{spec.name}' has type {value.dtype}, which the wire cannot carry")
    value = value.detach()
    if problem := spec.problem(NAMES[value.dtype], value.shape, rows):
        raise bad_output(f"output '{spec.name}' {problem}")
    return Output(spec.datatype, tuple(value.shape), value.numel() * value.element_size(), value)


def _prove_strings(value: Any, spec: Spec, rows: int) -> Output:
    value = value.tolist() if hasattr(value, "tolist") else value
    dims, level = [], [value]
    while level and all(isinstance(item, (list, tuple)) for item in level):
        if len({len(item) for item in level}) > 1:
            raise bad_output(f"output '{spec.name}' is a list of lists of different length")
        dims.append(len(level[0]))
        level = [inner for item in level for inner in item]
    if not dims or any(not isinstance(item, (str, bytes)) for item in level):
        raise bad_output(f"output '{spec.name}' is {describe(value)}, not a list of strings")
    if problem := spec.problem("BYTES", dims, rows):
        raise bad_output(f"output '{spec.name}' {problem}")
    encoded = [item.encode() if isinstance(item, str) else item for item in level]
    packed = b"".join(struct.pack("<I", len(item)) + item for item in encoded)
    return Output("BYTES", tuple(dims), len(packed), packed)


def is_array(value: Any) -> bool:
    return torch.is_tensor(value) or (hasattr(value, "__array_interface__") and hasattr(value, "shape"))


def describe(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__name__}".removeprefix("builtins.")


def place(outputs: Sequence[Output], alignment: int) -> tuple[list[Layout], int]:
    """One after the other, each aligned; and the bytes that all need."""
    layouts, end = [], 0
    for output in outputs:
        offset = -(-end // alignment) * alignment
        layouts.append(Layout(output.datatype, output.dims, offset, output.size))
        end = offset + output.size
    return layouts, end
