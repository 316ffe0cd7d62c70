# SPDX-License-Identifier: Apache-2.0
"""The model `masked_mean` of the wire suite; the value 999 is not allowed."""

INPUTS = [{"name": "values", "datatype": "FP32", "shape": [-1, -1]},
          {"name": "mask", "datatype": "INT64", "shape": [-1, -1]}]
OUTPUTS = [{"name": "mean", "datatype": "FP32", "shape": [-1, 1]}]


def model_fn(model_dir):
    return None


def predict_fn(data, model):
    if (data["values"] == 999).any():
        raise ValueError("999 is not allowed")
    mask = data["mask"].float()
    return {"mean": ((data["values"] * mask).sum(1) / mask.sum(1))[:, None]}
