#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the engine alone can do: all rows known beforehand, sorted by length, batched by dynamic programming
under 2,048 padded tokens, lengths rounded up to 32; the artefact of one route in this process, no server.

    oracle.py MODEL_FOLDER LENGTHS.json [ROUTE PRECISION]      trace fp32 by default
prints {"rps": …, "padding_waste": …, "rows_per_batch": …}
"""

import json
import sys
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))

from tonnage import routes  # noqa: E402

MAX_PADDED_TOKENS = 2048
MULTIPLE = 32
CALL_COST = 30  # tokens that the fixed cost of a call is worth on a CPU


def partition(lengths):
    """Contiguous groups of the sorted lengths with the least padded tokens + CALL_COST per group."""
    rows = sorted(lengths)
    padded = [-(-length // MULTIPLE) * MULTIPLE for length in rows]
    best, cut = [0.0] + [float("inf")] * len(rows), [0] * (len(rows) + 1)
    for end in range(1, len(rows) + 1):
        for begin in range(end - 1, -1, -1):
            tokens = (end - begin) * padded[end - 1]
            if tokens > MAX_PADDED_TOKENS and end - begin > 1:
                break
            if best[begin] + tokens + CALL_COST < best[end]:
                best[end], cut[end] = best[begin] + tokens + CALL_COST, begin
    groups, end = [], len(rows)
    while end:
        groups.append(rows[cut[end]:end])
        end = cut[end]
    return groups[::-1]


def make_batch(group, generator):
    width = -(-group[-1] // MULTIPLE) * MULTIPLE
    ids = torch.randint(0, 30522, (len(group), width), generator=generator)
    mask = (torch.arange(width) < torch.tensor(group).unsqueeze(1)).long()
    return ids * mask, mask


def main():
    folder, lengths = Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text())
    name, precision = sys.argv[3:5] or ("trace", "fp32")
    route = routes.get(name)
    model = route.load(sorted(folder.glob(f"*/{route.FILES[precision]}"))[-1], precision)
    generator = torch.Generator().manual_seed(0)
    batches = [make_batch(group, generator) for group in partition(lengths)]
    with torch.inference_mode():
        for ids, mask in batches:  # first passes over a shape are two to three times slower
            model([ids, mask])
        started = time.perf_counter()
        for ids, mask in batches:
            model([ids, mask])
        elapsed = time.perf_counter() - started
    padded = sum(ids.numel() for ids, _ in batches)
    print(json.dumps({"rps": len(lengths) / elapsed, "padding_waste": 1 - sum(lengths) / padded,
                      "rows_per_batch": len(lengths) / len(batches)}))


if __name__ == "__main__":
    main()
