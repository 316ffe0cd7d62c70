# SPDX-License-Identifier: Apache-2.0
"""The native worker's parts without a process; on the wire: workers/native/native_worker_test.cc."""

import json
import struct
import sys

import pytest
import torch

from tonnage.native import bodies, handler, parity, tensors, weights, wire
from tonnage.native.spec import Spec, find_inputs, parse

X = Spec("x", "FP32", (-1, 2))
IDS = Spec("ids", "INT64", (-1, -1))
WORDS = Spec("words", "BYTES", (-1, 1))


def strings(*values):
    return b"".join(struct.pack("<I", len(value)) + value for value in values)


def script(tmp_path, text):
    file = tmp_path / "code" / "inference.py"
    file.parent.mkdir(exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def test_one_input_is_a_nested_list_and_several_are_an_object():
    x, ids = torch.tensor([[1.0, 2.0]]), torch.tensor([[3, 4, 5]])
    assert json.loads(bodies.write_request([x], [X])) == [[1.0, 2.0]]
    assert json.loads(bodies.write_request([x, ids], [X, IDS])) == {"x": [[1.0, 2.0]], "ids": [[3, 4, 5]]}
    assert json.loads(bodies.write_request([[[b"a"], [b"\xff"]]], [WORDS])) == [["a"], ["\ufffd"]]


@pytest.mark.parametrize("reply", [
    "[[1, 2]]", b"[[1, 2]]", ("[[1, 2]]", "application/json"), '{"x": [[1, 2]], "more": 1}',
])
def test_a_reply_is_rows_or_an_object_by_name(reply):
    (value,) = bodies.read_reply(reply, [X])
    assert value.dtype == torch.float32 and value.tolist() == [[1.0, 2.0]]


@pytest.mark.parametrize("reply, expected", [
    (5, "not a JSON text"), ("no json", "not JSON"), ('{"y": []}', "no 'x'; it has y"), ("[[1], [2, 3]]", "no FP32 tensor"),
    ('[["a"]]', "no FP32 tensor"),
])
def test_a_reply_that_is_none_is_a_bad_output(reply, expected):
    with pytest.raises(wire.RunFailed, match=expected) as failed:
        bodies.read_reply(reply, [X])
    assert failed.value.kind == wire.ErrorKind.BAD_OUTPUT


def test_an_input_is_a_copy_of_its_own():
    slot = bytearray(struct.pack("<4f", 1, 2, 3, 4))
    value = tensors.read_input(memoryview(slot), wire.Layout("FP32", (2, 2), 0, 16))
    slot[:4] = struct.pack("<f", 9)
    assert value.tolist() == [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize("form, datatype", [("<3q", "INT64"), ("<3I", "UINT32")])
def test_a_value_outside_its_range_is_the_senders_fault(form, datatype):
    spec = Spec("ids", datatype, (-1, -1), (0, 1))
    inside, outside = (memoryview(struct.pack(form, *values)) for values in ((0, 1, 1), (0, 1, 2)))
    layout = wire.Layout(datatype, (1, 3), 0, len(inside))
    tensors.prove_range(inside, layout, spec)
    with pytest.raises(wire.RunFailed, match=r"'ids' is outside \[0, 1\]") as failed:
        tensors.prove_range(outside, layout, spec)
    assert failed.value.kind == wire.ErrorKind.BAD_REQUEST


def test_an_empty_input_is_an_empty_tensor():
    assert tensors.read_input(memoryview(b""), wire.Layout("INT64", (2, 0), 0, 0)).shape == (2, 0)


def test_strings_come_and_go_as_nested_lists():
    data = strings(b"ab", b"", b"c", b"d")
    read = tensors.read_strings(memoryview(data), (2, 2))
    assert read == [[b"ab", b""], [b"c", b"d"]]
    output = tensors.prove([["ab", b""], ["c", "d"]], Spec("y", "BYTES", (-1, 2)), 2)
    assert output.dims == (2, 2) and output.value == data
    with pytest.raises(wire.RunFailed, match="does not hold 3 strings"):
        tensors.read_strings(memoryview(data), (3,))


@pytest.mark.parametrize("value", ["a", ["a"], [["a"], ["b", "c"]], [["a"], [1]], [["a"]]])
def test_strings_of_another_shape_are_a_bad_output(value):
    with pytest.raises(wire.RunFailed, match="output 'words'"):
        tensors.prove(value, WORDS, 2)


def test_outputs_are_taken_by_position_or_by_name():
    a, b = torch.zeros(1, 2), torch.ones(1, 3)
    pair = [X, Spec("y", "FP32", (-1, 3))]
    assert tensors.by_name((a, b), pair) == [a, b]
    assert tensors.by_name({"y": b, "x": a}, pair) == [a, b]
    assert tensors.by_name(a, [X]) == [a] and tensors.by_name([a], [X]) == [a]


def test_an_output_without_a_graph_leaves_the_worker():
    weight = torch.ones(2, requires_grad=True)
    output = tensors.prove((torch.ones(3, 4) @ torch.ones(4, 2) * weight).t().t(), X, 3)
    region = memoryview(bytearray(64))
    output.write(region)
    assert output.value.grad_fn is None and struct.unpack_from("<6f", region) == (4.0,) * 6


def test_outputs_are_placed_aligned():
    outputs = [tensors.prove(torch.zeros(3, 2), X, 3), tensors.prove(torch.zeros(3, 2), X, 3)]
    layouts, needed = tensors.place(outputs, 64)
    assert [layout.offset for layout in layouts] == [0, 64] and needed == 88


@pytest.mark.parametrize("change, expected", [
    ({"slot": 2}, "no slot 2"), ({"rows": 0}, "no rows"), ({"rows": 3}, "expected 3"), ({"inputs": ()}, "0 inputs"),
    ({"offset": 32}, "not aligned"), ({"offset": 1 << 62}, "lie outside"), ({"size": 15}, "are not those"),
    ({"datatype": "INT32"}, "type INT32"), ({"dims": (2, 1)}, "size 1 in dim 1"), ({"dims": (4,)}, "rank 1"),
])
def test_a_run_that_does_not_fit_is_refused_before_it_is_read(change, expected):
    layout = wire.Layout(**{"datatype": "FP32", "dims": (2, 2), "offset": 0, "size": 16}
                         | {k: v for k, v in change.items() if k in ("datatype", "dims", "offset", "size")})
    run = wire.Run(**{"slot": 0, "rows": 2, "length": 0, "grant": 1, "inputs": (layout,)}
                   | {k: v for k, v in change.items() if k in ("slot", "rows", "inputs")})
    with pytest.raises(wire.RunFailed, match=expected) as failed:
        find_inputs(run, [memoryview(bytes(64))] * 2, [X])
    assert failed.value.kind == wire.ErrorKind.BAD_REQUEST


@pytest.mark.parametrize("entries, expected", [
    ({}, "not a list"), ([{"name": "x"}], "datatype"), ([{"name": "x", "datatype": "FP33", "shape": [-1]}], "FP33"),
    ([{"name": "x", "datatype": "FP32", "shape": []}], "dims"),
    ([{"name": "x", "datatype": "FP32", "shape": [-1]}] * 2, "twice"),
])
def test_tensors_that_are_described_wrongly_are_named(entries, expected):
    with pytest.raises(wire.LoadFailed, match=expected):
        parse(entries, "INPUTS")


def test_a_context_is_given_to_who_takes_one_and_another_count_is_an_error():
    context = handler.Context({"model_dir": "here"})
    assert handler.with_context(lambda a, b: (a, b), 2, context)(1, 2) == (1, 2)
    assert handler.with_context(lambda a, b, c: (a, b, c), 2, context)(1, 2) == (1, 2, context)
    with pytest.raises(wire.LoadFailed, match="takes 4 arguments; it is given 2, or with a context 3"):
        handler.with_context(lambda a, b, c, d: 0, 2, context)


def test_a_signature_is_looked_at_once_while_loading(tmp_path, monkeypatch):
    text = "def model_fn(folder):\n    return 2\ndef predict_fn(data, model, context):\n    return data * model\n"
    loaded = handler.load(script(tmp_path, text), {})
    monkeypatch.setattr(handler.inspect, "signature", None)
    assert [loaded.predict([value], [X]) for value in (1, 2)] == [2, 4]
    monkeypatch.undo()
    with pytest.raises(wire.LoadFailed, match="predict_fn takes 1 arguments"):
        handler.load(script(tmp_path, text.replace(", model, context", "")), {})


def test_several_inputs_reach_predict_fn_by_name_and_the_default_by_position(tmp_path):
    own = script(tmp_path, "def model_fn(folder):\n    return lambda a, b: a - b\n"
                           "def predict_fn(data, model):\n    return model(data['x'], data['ids']) * 10\n")
    assert handler.load(own, {}).predict([5, 3], [X, IDS]) == 20
    own = script(tmp_path, "def model_fn(folder):\n    return lambda a, b: a - b\n")
    assert handler.load(own, {}).predict([5, 3], [X, IDS]) == 2


def test_transform_fn_takes_the_place_of_the_other_three(tmp_path):
    text = "def model_fn(folder):\n    return 2\ndef transform_fn(model, body, kind, accept):\n    return body * model\n"
    loaded = handler.load(script(tmp_path, text), {})
    assert loaded.reads_json() and loaded.writes_json()
    assert loaded.predict([torch.ones(1, 1)], [X]) == "[[1.0]][[1.0]]"
    with pytest.raises(wire.LoadFailed, match="beside"):
        handler.load(script(tmp_path, text + "def predict_fn(data, model):\n    pass\n"), {})


def test_a_model_that_nobody_can_call_is_refused_when_it_is_loaded(tmp_path):
    with pytest.raises(wire.LoadFailed, match="define predict_fn"):
        handler.load(script(tmp_path, "def model_fn(folder):\n    return 5\n"), {})


def test_modules_beside_a_script_and_its_model_folder_are_found(tmp_path):
    own = script(tmp_path, "from beside_the_script import double\nSEEN = []\n"
                           "def model_fn(folder, context):\n"
                           "    SEEN.extend([folder, context.system_properties['model_dir']])\n    return double\n")
    (own.parent / "beside_the_script.py").write_text("def double(x):\n    return x * 2\n", encoding="utf-8")
    loaded = handler.load(own, {})
    assert loaded.predict([4], [X]) == 8
    assert sys.modules["inference"].SEEN == [str(tmp_path)] * 2


def held_out(tmp_path, factor=1.0):
    def row(length):
        ids = list(range(1, length + 1))
        return {"length": length, "inputs": {"ids": ids}, "outputs": {"x": [sum(ids) * factor, float(length)]}}

    file = tmp_path / "held_out.json"
    file.write_text(json.dumps({"inputs": [{"name": "ids", "datatype": "INT64", "dims": [-1, -1], "pad": 0}],
                                "outputs": [{"name": "x", "datatype": "FP32", "dims": [-1, 2]}],
                                "rows": [row(length) for length in (1, 7, 3, 5)]}), encoding="utf-8")
    return {"held_out": str(file)}


def sum_and_count(run, views):
    ids = tensors.read_input(views[0], run.inputs[0])
    value = torch.stack([ids.sum(1).float(), (ids != 0).sum(1).float()], 1)
    return [tensors.prove(value, X, run.rows)]


def test_held_out_rows_that_agree_alone_and_padded_are_facts(tmp_path):
    facts = parity.prove(held_out(tmp_path), [IDS], [X], sum_and_count)
    assert facts == {"parity_rows": "4", "parity_min_cosine": "1.000000", "parity_max_difference": "0"}
    assert parity.prove({}, [IDS], [X], sum_and_count) == {}


def test_a_model_whose_answers_have_another_direction_is_refused_with_the_figures(tmp_path):
    with pytest.raises(wire.LoadFailed, match=r"least cosine is -?0\.\d+ at output 'x' of row \d \(length \d\), alone") as failed:
        parity.prove(held_out(tmp_path, factor=-0.5), [IDS], [X], sum_and_count)
    assert failed.value.args[0] == "parity"
    assert parity.prove(held_out(tmp_path, factor=1.01) | {"parity_min_cosine": "0.9"}, [IDS], [X], sum_and_count)
    with pytest.raises(wire.LoadFailed, match="nan"):
        parity.prove(held_out(tmp_path, factor=float("nan")), [IDS], [X], sum_and_count)


def test_one_row_that_is_no_number_fails_the_gate_whatever_the_rows_after_it_are(tmp_path):
    def spoiled(run, views):
        results = sum_and_count(run, views)
        results[0].value[results[0].value[:, 1] == 1] = float("nan")  # the row of length 1, which comes first
        return results

    with pytest.raises(wire.LoadFailed, match="nan at output 'x' of row 0"):
        parity.prove(held_out(tmp_path), [IDS], [X], spoiled)


def test_a_gate_that_is_no_number_is_named(tmp_path):
    with pytest.raises(wire.LoadFailed, match="parity_min_cosine"):
        parity.prove(held_out(tmp_path) | {"parity_min_cosine": "high"}, [IDS], [X], sum_and_count)


def test_an_output_of_one_value_is_judged_over_all_rows(tmp_path):
    def sums(run, views):
        return [tensors.prove(sum_and_count(run, views)[0].value[:, :1] * factor, one, run.rows)]

    options, one = held_out(tmp_path), Spec("x", "FP32", (-1, 1))
    document = json.loads((tmp_path / "held_out.json").read_text(encoding="utf-8"))
    for row in document["rows"]:
        row["outputs"]["x"] = row["outputs"]["x"][:1]
    (tmp_path / "held_out.json").write_text(json.dumps(document), encoding="utf-8")
    factor = 1.0
    assert parity.prove(options, [IDS], [one], sums)["parity_min_cosine"] == "1.000000"
    factor = -1.0
    with pytest.raises(wire.LoadFailed, match="output 'x' of all rows, alone"):
        parity.prove(options, [IDS], [one], sums)


def test_held_out_rows_that_are_incomplete_are_named(tmp_path):
    (tmp_path / "held_out.json").write_text("{}", encoding="utf-8")
    with pytest.raises(wire.LoadFailed, match="held_out.json"):
        parity.prove({"held_out": str(tmp_path / "held_out.json")}, [IDS], [X], sum_and_count)


def test_a_converted_module_computes_in_its_precision_and_answers_in_the_models(tmp_path):
    text = "import torch\ndef model_fn(folder):\n    return torch.nn.Linear(2, 2)\n"
    loaded = handler.load(script(tmp_path, text), {"precision": "bf16"})
    result = loaded.predict([torch.ones(1, 2)], [X])
    assert loaded.model.weight.dtype == torch.bfloat16 and result.dtype == torch.float32
    with pytest.raises(wire.LoadFailed, match="converts in its model_fn"):
        handler.load(script(tmp_path, text + "def predict_fn(data, model):\n    return data\n"), {"precision": "bf16"})


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)


def test_weights_that_do_not_fit_are_told_also_when_the_error_is_swallowed():
    state = Net().first.state_dict()
    with pytest.raises(wire.LoadFailed, match=r"missing 4: first.weight, .*; unexpected 2: weight, bias"):
        with weights.watched([]):
            try:
                Net().load_state_dict(state, strict=False)
            except RuntimeError:
                pass


def test_allowed_keys_may_be_missing_and_the_rest_is_loaded():
    state = {f"first.{key}": value for key, value in Net().first.state_dict().items()}
    net = Net()
    with weights.watched(["second.*"]):
        result = net.load_state_dict(state)
    assert torch.equal(net.first.weight, state["first.weight"]) and len(result.missing_keys) == 2
    with pytest.raises(RuntimeError, match="Missing key"):
        net.load_state_dict(state)  # afterwards torch is as it was


def test_a_file_of_weights_runs_no_code(tmp_path):
    torch.save(Net(), tmp_path / "weights.pt")
    with pytest.raises(wire.LoadFailed, match="weights.pt"):
        weights.read(tmp_path)
    with pytest.raises(wire.LoadFailed, match="holds none of model.safetensors"):
        weights.read(tmp_path / "empty")
