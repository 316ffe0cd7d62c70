# SPDX-License-Identifier: Apache-2.0
"""Model folders of the stub worker, for tests and benches."""

import json
from pathlib import Path

IDS_MODEL = """
max_length = {max_length}
[[input]]
name = "ids"
datatype = "INT64"
dims = [-1, -1]
range = [0, 30521]
[[output]]
name = "sum"
datatype = "FP32"
dims = [-1, 1]
"""

ECHO_MODEL = """
[[input]]
name = "x"
datatype = "FP32"
dims = [-1, {width}]
[[output]]
name = "y"
datatype = "FP32"
dims = [-1, {width}]
"""

ONE_WORKER = """
[workers]
count = 1
threads = 1
"""


def batching(keys):
    """The [batching] table, to be added to a model's text."""
    return "\n[batching]\n" + keys + "\n"


def stub_model(root, name, model, toml, **options):
    """Writes the folder of one stub model; `options` go to its [stub] table."""
    folder = Path(root) / name
    (folder / "1").mkdir(parents=True, exist_ok=True)
    stub = {"model": model, **options}
    lines = [f'{key} = {json.dumps(value)}' for key, value in stub.items()]
    (folder / "model.toml").write_text('route = "stub"\n' + toml + "\n[stub]\n" + "\n".join(lines) + "\n")
    return folder
