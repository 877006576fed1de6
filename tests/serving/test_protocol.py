"""The protocol alone: arrays there and back, and what is wrong with a request."""

import json
import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from minipaddle.engine.core.dim import symbol
from minipaddle.engine.core.record import Spec
from minipaddle.serving.protocol import (
    DTYPES,
    NAMES,
    BadRequest,
    RequestLimits,
    WantedOutput,
    describe,
    read_request,
    write_response,
)

BATCH = symbol("batch", 1000)
INPUTS = {
    "x": Spec((BATCH, 2), np.dtype("float32")),
    "n": Spec((BATCH,), np.dtype("int8")),
}
OUTPUTS = {"y": Spec((BATCH,), np.dtype("float32")), "z": Spec((BATCH,), np.dtype("float32"))}
LIMITS = RequestLimits(elements=1000)


def read(body, length=None, inputs=INPUTS):
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    return read_request(body, length, inputs, OUTPUTS, LIMITS)


def request(**changes):
    """A request that is right, with changes of its input x."""
    x = {"name": "x", "shape": [1, 2], "datatype": "FP32", "data": [1, 2]} | changes
    x = {k: v for k, v in x.items() if v is not ...}
    return {"inputs": [x, {"name": "n", "shape": [1], "datatype": "INT8", "data": [3]}]}


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)
@given(data=st.data())
@settings(max_examples=10, deadline=None)
def test_arrays_travel_as_bytes_and_as_lists(dtype, data):
    shape = data.draw(array_shapes(min_side=0, max_dims=3, max_side=4))
    if dtype == ml_dtypes.bfloat16:
        array = data.draw(arrays("int8", shape)).astype(dtype)
    else:
        finite = {"allow_nan": False, "allow_infinity": False} if dtype.kind == "f" else None
        array = data.draw(arrays(dtype, shape, elements=finite))
    spec = {"x": Spec(shape, dtype)}
    raw = array.tobytes()
    head = {"name": "x", "shape": [*shape], "datatype": NAMES[dtype]}
    binary = {"inputs": [head | {"parameters": {"binary_data_size": len(raw)}}]}
    text = json.dumps(binary).encode()
    found = read_request(text + raw, str(len(text)), spec, {}, LIMITS).arrays[0]
    assert found.tobytes() == raw
    for values in (array.tolist(), array.ravel().tolist()):
        listed = json.dumps({"inputs": [head | {"data": values}]}).encode()
        found = read_request(listed, None, spec, {}, LIMITS).arrays[0]
        assert found.dtype == dtype
        assert found.shape == shape
        np.testing.assert_array_equal(found, array)
    wanted = WantedOutput("x", True), array
    body, length = write_response("m", "1", "", [wanted])
    assert body[length:] == raw
    assert json.loads(body[:length])["outputs"][0]["shape"] == [*shape]


def test_a_request_is_read():
    found = read(request() | {"id": "7", "parameters": {"priority": 2, "timeout": 5000}})
    assert found.id == "7"
    assert found.priority == 2
    assert found.timeout == 0.005
    assert [a.tolist() for a in found.arrays] == [[[1, 2]], [3]]
    assert found.outputs == [WantedOutput("y", False), WantedOutput("z", False)]
    assert read(request()).timeout == math.inf


def test_outputs_are_chosen():
    asked = [{"name": "z", "parameters": {"binary_data": True}}, {"name": "y"}]
    assert read(request() | {"outputs": asked}).outputs == [
        WantedOutput("z", True), WantedOutput("y", False)
    ]  # fmt: skip
    every = {"parameters": {"binary_data_output": True}}
    assert all(each.binary for each in read(request() | every).outputs)


WRONG = {
    "no JSON": (b"{", "no JSON"),
    "NaN": (b'{"inputs": NaN}', "NaN is no JSON"),
    "a list": ([], "a list, not an object"),
    "nested too deeply": (b"[" * 100_000, "no JSON"),
    "no inputs": ({}, r"the inputs \['x', 'n'\] are missing"),
    "inputs of another kind": ({"inputs": [1]}, "`inputs` is a list, not a list of objects"),
    "an unknown input": (request(name="w"), "no input 'w'"),
    "an input without a name": (request(name=...), "no input None"),
    "an input twice": ({"inputs": request()["inputs"] * 2}, "given twice"),
    "an input is missing": ({"inputs": request()["inputs"][:1]}, r"\['n'\] are missing"),
    "a shape that is no list": (request(shape=2), "the shape of x"),
    "a negative size": (request(shape=[-1, 2]), "the shape of x"),
    "a size that is true": (request(shape=[True, 2]), "the shape of x"),
    "another shape": (request(shape=[1, 3], data=[1, 2, 3]), r"it takes \[-1, 2\]"),
    "too many axes": (request(shape=[1] * 99), "the shape of x"),
    "too many elements": (request(shape=[10**9, 2]), "more than 1,000 elements"),
    "another datatype": (request(datatype="FP64"), "it takes FP32"),
    "no datatype": (request(datatype=...), "it takes FP32"),
    "words": (request(data=["a", "b"]), "not a list of numbers"),
    "truth for numbers": (request(data=[True, False]), "not a list of numbers"),
    "ragged": (request(data=[[1, 2], [3]]), "not a list of numbers"),
    "too few": (request(data=[1]), "have the shape"),
    "in another order": (request(data=[[1], [2]]), "have the shape"),
    "nothing": (request(data=None), "are null, not a list"),
    "no data": (request(data=...), "needs either"),
    "both": (request(parameters={"binary_data_size": 8}), "needs either"),
    "too large for float32": (request(data=[1e300, 0]), "do not fit into FP32"),
    "parameters of another kind": (request(parameters=[]), "`parameters` of x is a list"),
    "shared memory": (request(parameters={"shared_memory_region": "r"}), "not supported"),
    "bytes that are not there": (
        request(data=..., parameters={"binary_data_size": 8}), "0 are left"),
    "bytes of another size": (request(data=..., parameters={"binary_data_size": 9}), "need 8"),
    "a size that is no number": (
        request(data=..., parameters={"binary_data_size": "8"}),
        '`binary_data_size` of x is "8", not a whole number'),
    "an unknown output": (request() | {"outputs": [{"name": "w"}]}, "no output 'w'"),
    "an output twice": (request() | {"outputs": [{"name": "y"}] * 2}, "twice"),
    "outputs of another kind": (request() | {"outputs": {}}, "`outputs` is an object, not a list"),
    "classes": (
        request() | {"outputs": [{"name": "y", "parameters": {"classification": 3}}]},
        "not supported"),
    "a sequence": (request() | {"parameters": {"sequence_id": 3}}, "not supported"),
    "a negative timeout": (request() | {"parameters": {"timeout": -1}}, "not a whole number"),
    "an id that is a number": (request() | {"id": 3}, "`id` is 3, not a string"),
    "a priority that is true": (
        request() | {"parameters": {"priority": True}}, "`priority` is true, not a whole number"),
    "binary that is a number": (
        request() | {"outputs": [{"name": "y", "parameters": {"binary_data": 1}}]},
        "`binary_data` of y is 1, not true or false"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_said(name):
    body, message = WRONG[name]
    with pytest.raises(BadRequest, match=message):
        read(body)


def test_whole_numbers_stay_whole_and_in_range():
    bad = request()
    for value in (1.5, 200, -129, 2**70, None):
        bad["inputs"][1]["data"] = [value]
        with pytest.raises(BadRequest, match=r"fit into INT8|numbers for INT8"):
            read(bad)


@pytest.mark.parametrize("length", ["-1", "x", "99999", "1" * 50, "²"])
def test_a_length_that_makes_no_sense(length):
    with pytest.raises(BadRequest, match="Inference-Header-Content-Length"):
        read(request(), length)


def test_bytes_that_no_input_takes():
    body = json.dumps(request()).encode()
    with pytest.raises(BadRequest, match="3 bytes after the JSON; the inputs take 0"):
        read(body + b"abc", str(len(body)))


def test_truth_is_one_bit():
    spec = {"b": Spec((1,), np.dtype("bool"))}
    head = {"name": "b", "shape": [1], "datatype": "BOOL", "parameters": {"binary_data_size": 1}}
    text = json.dumps({"inputs": [head]}).encode()
    with pytest.raises(BadRequest, match="not only 0 and 1"):
        read_request(text + b"\2", str(len(text)), spec, {}, LIMITS)


def test_what_json_cannot_say_is_asked_for_as_bytes():
    array = np.array([np.nan], "float32")
    with pytest.raises(BadRequest, match="binary_data"):
        write_response("m", "1", "", [(WantedOutput("y", False), array)])
    body, length = write_response("m", "1", "", [(WantedOutput("y", True), array)])
    assert np.isnan(np.frombuffer(body[length:], "float32"))


def test_metadata_has_open_sizes():
    assert describe(INPUTS)[0] == {"name": "x", "datatype": "FP32", "shape": [-1, 2]}
