# SPDX-License-Identifier: Apache-2.0
"""y = 2 x + 1, and one fault per value of the first element. What it keeps it keeps for good."""

import os
import sys

import numpy as np
import torch

KEPT = []
STATE = {"sum": torch.zeros(())}


class Linear(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(64, 64)
        with torch.no_grad():
            self.layer.weight.copy_(2 * torch.eye(64))
            self.layer.bias.fill_(1)

    def forward(self, x):
        return self.layer(x)


def model_fn(model_dir):
    return Linear()


def predict_fn(data, model):
    return FAULTS.get(int(data[0, 0]), plain)(data, model)


def plain(data, model):
    return model(data)


def keep_outputs(data, model):
    KEPT.append(model(model(data)))
    return KEPT[-1]


def keep_a_chain(data, model):
    """A running sum that never ends its graph: the incident that inference mode ends."""
    result = model(data)
    STATE["sum"] = STATE["sum"] + result.mean()
    return result


def keep_python_objects(data, model):
    KEPT.append(list(range(100000)))
    return model(data)


def change_in_place(data, model):
    data += 1
    return model(data - 1)


def cycle(data, model):
    """Garbage that only a collection finds."""
    ring = [torch.empty(1000)]
    ring.append(ring)
    return model(data)


def take_much_numpy(data, model):
    return model(data) + float(np.ones(1 << 30, dtype=np.uint8)[0])


def raise_on_a_row(data, model):
    if (data == 999).any():
        raise ValueError("a row is not allowed")
    return model(data)


def return_numpy(data, model):
    return model(data).numpy()


def fork_and_come_back(data, model):
    os.fork()
    return model(data)


def print_much(data, model):
    for _ in range(100):
        print("x" * 10000)
    return model(data)


FAULTS = {
    101: keep_outputs, 102: keep_a_chain, 103: keep_python_objects, 104: change_in_place, 105: cycle,
    106: take_much_numpy, 107: raise_on_a_row, 108: return_numpy, 109: fork_and_come_back, 110: print_much,
    201: lambda data, model: model(data)[:-1],
    202: lambda data, model: model(data).double(),
    203: lambda data, model: "a text",
    204: lambda data, model: [model(data)] * 2,
    205: lambda data, model: {"z": model(data)},
    206: lambda data, model: model(data)[:, :3],
    207: lambda data, model: model(data).to_sparse(),
    301: lambda data, model: sys.exit(4),
    302: lambda data, model: os._exit(5),
    303: lambda data, model: os.kill(os.getpid(), 11),
}
