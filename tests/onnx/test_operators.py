"""Every operator with an ONNX form against onnxruntime, by the cases of the operator suite."""

import numpy as np
import onnx
import pytest

import minipaddle as paddle
from minipaddle.engine.core.op import OPS
from minipaddle.engine.eager.tracer import trace
from minipaddle.engine.ir.program import Program
from minipaddle.onnx import forms
from minipaddle.onnx.exporting import model_of_program
from minipaddle.onnx.loading import layer_of
from minipaddle.onnx.rows import ROWS
from tests.onnx.running import by_runtime
from tests.ops.test_operators import CASES, drawn, listed, run


def program_of(name: str, k: int, inputs) -> Program:
    """The program of a case: arrays are inputs, numbers are numbers."""
    arrays = [x for x in inputs if isinstance(x, np.ndarray)]

    def call(*tensors):
        given = iter(tensors)
        full = [next(given) if isinstance(x, np.ndarray) else x for x in inputs]
        return listed(OPS[name](*full, **CASES[name][k].attrs))

    specs = [paddle.to_tensor(x).spec for x in arrays]
    made = trace(call, specs, names=[f"x{j}" for j in range(len(specs))])
    made.program.outputs = made.program.outputs[: len(made.places)]
    return made.program


def dtype_of(case) -> str:
    return "float32" if "float32" in case.dtypes else case.dtypes[0]


def check(name: str, k: int) -> None:
    """A case in onnxruntime gives what eager mode gives."""
    inputs = drawn(name, k, dtype_of(CASES[name][k]))
    model = model_of_program(program_of(name, k, inputs), {})[0]
    onnx.checker.check_model(model, full_check=True)
    arrays = [x for x in inputs if isinstance(x, np.ndarray)]
    theirs = by_runtime(model, arrays)
    for y, z in zip(run(name, k, inputs), theirs, strict=True):
        assert (y.shape, y.dtype) == (z.shape, z.dtype)
        np.testing.assert_allclose(z.astype("float64"), y.astype("float64"), 2e-4, 2e-5)


@pytest.mark.parametrize("name", sorted(forms().keys() & CASES.keys()))
def test_an_operator(name):
    for k in range(len(CASES[name])):
        try:
            check(name, k)
        except BaseException as problem:
            problem.add_note(f"This was case {k} of {name}, counted from 0.")
            raise


def said(row, program) -> list[dict]:
    """What ONNX says of each record of a row's operator."""
    own = [r.attrs for r in program.records if r.op is OPS[row.op]]
    return [{k: f.write(attrs[f.name]) for k, f in row.fields.items()} for attrs in own]


@pytest.mark.parametrize("row", [r for r in ROWS if r.dtypes], ids=lambda row: row.op)
def test_a_row_is_read_as_it_is_written(row):
    """The reader gives the operator and the attributes that the writer was given."""
    for k, case in enumerate(CASES[row.op]):
        program = program_of(row.op, k, drawn(row.op, k, dtype_of(case)))
        (method,) = layer_of(model_of_program(program, {})[0], ".")._methods.values()
        written, read = said(row, program), said(row, method.program)
        if any(isinstance(v, tuple) and not v for v in written[0].values()):  # no axes: an Identity
            assert read == []
            continue
        assert len(written) == len(read) == 1
        assert read[0] == {name: pytest.approx(v) for name, v in written[0].items()}, case


@pytest.mark.parametrize("name", sorted(CASES.keys() - forms().keys()))
def test_an_operator_without_a_form_is_refused_by_name(name):
    program = program_of(name, 0, drawn(name, 0, dtype_of(CASES[name][0])))
    with pytest.raises(NotImplementedError, match=rf"{name}\(.*has no ONNX form"):
        model_of_program(program, {})


def test_most_operators_have_a_form():
    """What has none: factorizations, random numbers, special functions, what derivatives and
    several ranks need.
    """
    assert len(forms()) >= 225
    assert {"relu", "mish", "conv", "softmax", "quantize", "cond", "while_loop"} <= forms().keys()
    assert not {"svd", "random_normal", "lgamma", "max_pool_grad", "all_reduce"} & forms().keys()
