# SPDX-License-Identifier: Apache-2.0
"""The small ONNX models of onnx_worker_test.cc and what they answer. Their files are in the tree, so that the tests
need no Python; after a change here run

    python make_models.py FOLDER      (needs PyPI onnx and numpy)
"""

import pathlib
import sys

import numpy as np
from onnx import TensorProto, helper, numpy_helper

VOCAB, WIDTH, WIDE = 50, 8, 32
OPSET = 18


def graph(name, nodes, inputs, outputs, weights=()):
    return helper.make_graph(nodes, name, inputs, outputs, [numpy_helper.from_array(w, n) for n, w in weights])


def save(folder, made, opsets=(("", OPSET),), facts=()):
    model = helper.make_model(made, opset_imports=[helper.make_opsetid(d, v) for d, v in opsets], ir_version=9,
                              producer_name="tonnage")
    helper.set_model_props(model, dict(facts))
    (folder / f"{made.name}.onnx").write_bytes(model.SerializeToString(deterministic=True))


def tensor(name, dims, datatype=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, datatype, dims)


def make_weights():
    random = np.random.default_rng(7)

    def normal(*shape):
        return random.standard_normal(shape).astype(np.float32)

    return {"words": normal(VOCAB, WIDTH), "mix": normal(WIDTH, WIDE), "back": normal(WIDE, WIDTH),
            "head": normal(WIDTH, 2)}


def scores(folder, weights):
    """ids, mask -> (scores [B, 2], mean [B, WIDTH]); its peak is linear in padded tokens."""
    nodes = [
        helper.make_node("Gather", ["words", "ids"], ["states"]),
        helper.make_node("MatMul", ["states", "mix"], ["mixed"]),
        helper.make_node("Relu", ["mixed"], ["wide"]),
        helper.make_node("MatMul", ["wide", "back"], ["narrow"]),
        helper.make_node("Cast", ["mask"], ["mask_f"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["mask_f", "last"], ["own"]),
        helper.make_node("Mul", ["narrow", "own"], ["kept"]),
        helper.make_node("ReduceSum", ["kept", "length"], ["sum"], keepdims=0),
        helper.make_node("ReduceSum", ["own", "length"], ["count"], keepdims=0),
        helper.make_node("Div", ["sum", "count"], ["mean"]),
        helper.make_node("MatMul", ["mean", "head"], ["scores"]),
    ]
    axes = {"last": np.array([-1], np.int64), "length": np.array([1], np.int64)}
    ids = [tensor(name, ["rows", "length"], TensorProto.INT64) for name in ("ids", "mask")]
    outputs = [tensor("scores", ["rows", 2]), tensor("mean", ["rows", WIDTH])]
    save(folder, graph("scores", nodes, ids, outputs, [*weights.items(), *axes.items()]),
         facts={"config.json": '{"facts": {"made_for": "onnx_worker_test"}}'})


def expected(folder, weights):
    """What the test sends: 3 rows of 11 ids, the last two positions of the last row are padding."""
    ids = (np.arange(33) * 37 % VOCAB).reshape(3, 11)
    own = np.ones((3, 11, 1), np.float32)
    own[2, 9:] = 0
    states = np.maximum(weights["words"][ids] @ weights["mix"], 0) @ weights["back"]
    mean = (states * own).sum(1) / own.sum(1)
    (folder / "expected_scores.f32").write_bytes((mean @ weights["head"]).astype("<f4").tobytes())
    (folder / "expected_mean.f32").write_bytes(mean.astype("<f4").tobytes())


def external(folder, name, location):
    """y = x + w, with w in another file."""
    weight = numpy_helper.from_array(np.arange(WIDTH, dtype=np.float32), "w")
    weight.ClearField("raw_data")
    weight.data_location = TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", "0"), ("length", str(4 * WIDTH))):
        entry = weight.external_data.add()
        entry.key, entry.value = key, value
    made = graph(name, [helper.make_node("Add", ["x", "w"], ["y"])], [tensor("x", ["rows", WIDTH])],
                 [tensor("y", ["rows", WIDTH])])
    made.initializer.append(weight)
    save(folder, made)


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    weights = make_weights()
    scores(folder, weights)
    expected(folder, weights)
    x, y = tensor("x", ["rows", WIDTH]), tensor("y", ["rows", WIDTH])
    half = tensor("y", ["rows", WIDTH], TensorProto.FLOAT16)
    text = [tensor(name, ["rows", 1], TensorProto.STRING) for name in "xy"]
    node = helper.make_node
    save(folder, graph("passes_through", [node("Identity", ["x"], ["y"])], [x], [y]))
    save(folder, graph("adds_in_place", [node("Add", ["x", "one"], ["z"]), node("Relu", ["z"], ["y"])], [x], [y],
                       [("one", np.ones(1, np.float32))]))
    save(folder, graph("returns_half", [node("Cast", ["x"], ["y"], to=TensorProto.FLOAT16)], [x], [half]))
    save(folder, graph("unknown_operator", [node("Frobnicate", ["x"], ["y"], domain="com.example")], [x], [y]),
         opsets=(("", OPSET), ("com.example", 1)))
    save(folder, graph("future_opset", [node("Relu", ["x"], ["y"])], [x], [y]), opsets=(("", 99),))
    save(folder, graph("takes_text", [node("Identity", ["x"], ["y"])], text[:1], text[1:]))
    bf16 = np.eye(WIDTH).astype(helper.tensor_dtype_to_np_dtype(TensorProto.BFLOAT16))
    save(folder, graph("computes_in_bf16", [node("Cast", ["x"], ["b"], to=TensorProto.BFLOAT16),
                                            node("MatMul", ["b", "w"], ["c"]),
                                            node("Cast", ["c"], ["y"], to=TensorProto.FLOAT)], [x], [y], [("w", bf16)]))
    external(folder, "weights_beside", "weights.bin")
    (folder / "weights.bin").write_bytes(np.arange(WIDTH, dtype="<f4").tobytes())
    external(folder, "weights_outside", "../weights.bin")


main()
