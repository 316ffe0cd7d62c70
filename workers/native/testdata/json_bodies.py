# SPDX-License-Identifier: Apache-2.0
"""A handler as it is written for SageMaker: it knows bodies, not tensors."""

import json

import torch


def model_fn(model_dir, context):
    assert context.system_properties["model_dir"] == model_dir
    return torch.nn.Identity()


def input_fn(request_body, content_type):
    assert content_type == "application/json" and isinstance(request_body, str)
    rows = json.loads(request_body)
    return torch.tensor(rows) * 3


def predict_fn(data, model):
    return model(data)


def output_fn(prediction, accept):
    return json.dumps({"y": prediction.tolist()}), accept
