# SPDX-License-Identifier: Apache-2.0
"""Request and reply bodies for handlers that define input_fn or output_fn: JSON, as text."""

from __future__ import annotations

import json
from typing import Any, Sequence

import torch

from tonnage.native.spec import Spec
from tonnage.native.tensors import DTYPES, bad_output

CONTENT_TYPE = "application/json"


def write_request(values: Sequence[Any], specs: Sequence[Spec]) -> str:
    """One input: its rows as a nested list. Several: an object, name → rows."""
    plain = [_plain(value) for value in values]
    return json.dumps(plain[0] if len(specs) == 1 else dict(zip((spec.name for spec in specs), plain)))


def _plain(value: Any) -> Any:
    if torch.is_tensor(value):
        return value.tolist()
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def read_reply(reply: Any, specs: Sequence[Spec]) -> list[Any]:
    """What output_fn returned: a body, (body, content type), or an object with a `response`."""
    if isinstance(reply, tuple) and len(reply) == 2:
        reply = reply[0]
    body = getattr(reply, "response", reply)
    if not isinstance(body, (str, bytes, bytearray)):
        raise bad_output(f"output_fn returned {type(body).__name__}, not a JSON text")
    try:
        parsed = json.loads(body)
    except ValueError as error:
        raise bad_output(f"output_fn returned what is not JSON: {error}") from error
    if isinstance(parsed, dict):
        missing = [spec.name for spec in specs if spec.name not in parsed]
        if missing:
            raise bad_output(f"the JSON of output_fn has no '{missing[0]}'; it has {', '.join(parsed)}")
        values = [parsed[spec.name] for spec in specs]
    elif len(specs) == 1:
        values = [parsed]
    else:
        raise bad_output("the JSON of output_fn is not an object of the outputs "
                         + ", ".join(spec.name for spec in specs))
    return [_tensor(value, spec) for value, spec in zip(values, specs)]


def _tensor(value: Any, spec: Spec) -> Any:
    if spec.datatype == "BYTES":
        return value
    try:
        return torch.tensor(value, dtype=DTYPES[spec.datatype])
    except (TypeError, ValueError, RuntimeError) as error:
        raise bad_output(f"output '{spec.name}' of output_fn is no {spec.datatype} tensor: {error}") from error
