"""Every operator, by the cases its area wrote down, against an independent oracle.

The list of operators is `core.op.OPS` itself: an operator without a case fails here by name.
"""

import importlib
import itertools
import zlib
from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import torch

import minipaddle as paddle
from minipaddle.distributed.collectives.operators import COLLECTIVES
from minipaddle.engine.core import dim as dims
from minipaddle.engine.core.op import OPS
from minipaddle.engine.core.record import Spec
from minipaddle.testing import check_grad
from tests.ops.cases import Case

pytestmark = pytest.mark.sweep(one_in=1)

EXEMPT = {
    "leaf": "the start of a tape computes nothing",
    "item": "takes one result of several; every case with several results uses it",
    "input": "what is given to a program is not computed",
    "number": "a Python number in a program: every case with one becomes it under tracing",
    "after": "its first input, later: tests/passes/test_recompute.py",
    "fused": "a group of others: tests/passes and tests/executors",
    "cond": "regions: tests/jit and tests/ir",
    "while_loop": "regions: tests/jit and tests/ir",
    "custom": "regions: tests/jit",
    "by_mode": "tests/static",
    "check": "raises: tests/jit/test_runtime.py",
    "show": "prints: tests/jit/test_runtime.py",
    "reshard": "a mark of where pieces lie: tests/sharding",
    "placed_as": "a mark of where pieces lie: tests/sharding",
} | dict.fromkeys((op.name for op in COLLECTIVES), "of several ranks: tests/distributed")
HALVES = {"float16": np.dtype("float16"), "bfloat16": np.dtype(ml_dtypes.bfloat16)}
WIDENED = ("histogram", "wide_product")
"""Operators whose results for halves are float32."""
NEAR = {"float64": (1e-10, 1e-12), "float32": (2e-5, 1e-6), "float16": (1e-3, 1e-3)}


def collect() -> dict[str, list[Case]]:
    found: dict[str, list[Case]] = {}
    for path in sorted(Path(__file__).parent.glob("cases_*.py")):
        for name, cases in importlib.import_module(f"tests.ops.{path.stem}").CASES.items():
            found.setdefault(name, []).extend([cases] if isinstance(cases, Case) else cases)
    return found


CASES = collect()
ALL = [(name, k) for name, cases in sorted(CASES.items()) for k in range(len(cases))]


def select(wanted) -> Callable:
    """A test of operators: it is called with each case for which `wanted(op, case)`."""
    chosen: dict[str, list[int]] = {}
    for name, k in ALL:
        if name in OPS and wanted(OPS[name], CASES[name][k]):
            chosen.setdefault(name, []).append(k)

    def of_each_case(test):
        @pytest.mark.parametrize("name", chosen)
        def of_each_operator(name):
            for k in chosen[name]:
                try:
                    test(name, k)
                except BaseException as error:
                    error.add_note(f"This was case {k} of {name}, counted from 0.")
                    raise

        of_each_operator.__name__, of_each_operator.__doc__ = test.__name__, test.__doc__
        return of_each_operator

    return of_each_case


def drawn(name: str, k: int, dtype="float64") -> list:
    """The inputs of a case, the floating ones in `dtype`."""
    rng = np.random.default_rng(zlib.crc32(f"{name}-{k}".encode()))
    dtype = HALVES.get(dtype, dtype)
    return [
        x.astype(dtype) if isinstance(x, np.ndarray) and x.dtype.kind == "f" else x
        for x in CASES[name][k].build(rng)
    ]


def tensor(x):
    return paddle.to_tensor(x) if isinstance(x, np.ndarray) else x


def listed(y) -> list:
    return list(y) if isinstance(y, list | tuple) else [y]


def run(name: str, k: int, inputs) -> list:
    """The results as NumPy arrays."""
    y = OPS[name](*map(tensor, inputs), **CASES[name][k].attrs)
    return [t.numpy() for t in listed(y)]


def expected(case: Case, inputs) -> list:
    """The oracle's results as NumPy arrays."""
    if case.numpy is not None:
        return [np.asarray(y) for y in listed(case.numpy(*inputs))]
    given = [torch.from_numpy(x.copy()) if isinstance(x, np.ndarray) else x for x in inputs]
    return [torch.as_tensor(y).detach().numpy() for y in listed(case.torch(*given))]


def close(ours, theirs, factor: float) -> None:
    assert ours.shape == theirs.shape
    rtol, atol = NEAR.get(ours.dtype.name, NEAR["float64"])
    np.testing.assert_allclose(ours, theirs, rtol * factor, atol * factor, equal_nan=True)


def differentiable(op, case: Case) -> tuple:
    """Places of the inputs to differentiate by."""
    if case.wrt is not None:
        return case.wrt
    sample = case.build(np.random.default_rng(0))
    return tuple(j for j in floats(sample) if op.rule(j) is not None)


# ---- the tests -------------------------------------------------------------------------------


def test_every_operator_has_a_case():
    ours = {n for n, op in OPS.items() if op.body.__module__.startswith("minipaddle.")}
    missing = sorted(ours - CASES.keys() - EXEMPT.keys())
    assert not missing, f"operators without a case in tests/ops/cases_*.py: {missing}"


def test_every_case_is_of_an_operator():
    assert sorted(CASES.keys() - OPS.keys()) == []


def test_each_case_has_one_oracle():
    oracles = {(n, k): (CASES[n][k].torch, CASES[n][k].numpy, CASES[n][k].check) for n, k in ALL}
    assert not [case for case, found in oracles.items() if found.count(None) != 2]


@select(lambda op, case: {"float64", "float32"} & {*case.dtypes})
def test_values(name, k):
    case = CASES[name][k]
    for dtype in ("float64", "float32"):
        if dtype not in case.dtypes:
            continue
        inputs = drawn(name, k, dtype)
        ours = run(name, k, inputs)
        if case.check is not None:
            case.check(ours, inputs)
            continue
        for a, b in zip(ours, expected(case, inputs), strict=True):
            close(a, b, case.tolerance)


def test_halves_are_float32_rounded_once():
    """One test for all: the rule is one line of `Op.evaluate`, the operators are many."""
    wrong = []
    for (name, k), half in itertools.product(ALL, HALVES):
        case = CASES[name][k]
        low = drawn(name, k, half)
        if name not in OPS or half not in case.dtypes or not any(is_half(x) for x in low):
            continue
        wide = [x.astype("float32") if is_half(x) else x for x in low]
        kept = HALVES[half] if name not in WIDENED else "float32"
        for a, b in zip(run(name, k, low), run(name, k, wide), strict=True):
            fits = a.dtype == (kept if b.dtype == "float32" else b.dtype)
            if not fits or not np.array_equal(a, b.astype(a.dtype), equal_nan=a.dtype.kind != "b"):
                wrong.append(f"{name}-{k} in {half}")
    assert wrong == []


def is_half(x) -> bool:
    return isinstance(x, np.ndarray) and x.dtype in HALVES.values()


def foretold(name: str, k: int, inputs) -> list[Spec]:
    """What the shape rule says of the results."""
    op, attrs = OPS[name], CASES[name][k].attrs
    specs = [Spec(x.shape, x.dtype) if isinstance(x, np.ndarray) else x for x in inputs]
    specs_of_results = op.result_spec(specs, {**op.defaults, **attrs})
    return [specs_of_results] if isinstance(specs_of_results, Spec) else list(specs_of_results)


def floats(inputs) -> list[int]:
    """The places of floating arrays."""
    return [j for j, x in enumerate(inputs) if isinstance(x, np.ndarray) and x.dtype.kind == "f"]


@select(lambda op, case: len(floats(case.build(np.random.default_rng(0)))) > 1)
def test_dtype_of_mixed_floats_is_foretold(name, k):
    """One input wider, or narrower, than the others: the same error before and in the run, or the
    dtypes that were said."""
    for at, dtype in itertools.product(floats(drawn(name, k)), ("float64", "float16")):
        inputs = drawn(name, k, "float32")
        inputs[at] = inputs[at].astype(dtype)
        try:
            expected = [spec.dtype for spec in foretold(name, k, inputs)]
        except (TypeError, ValueError) as error:
            with pytest.raises(type(error)):
                run(name, k, inputs)
            continue
        assert [y.dtype for y in run(name, k, inputs)] == expected


@select(lambda op, case: True)
def test_shape_and_dtype_are_foretold(name, k):
    inputs = drawn(name, k, "float32")
    for spec, y in zip(foretold(name, k, inputs), run(name, k, inputs), strict=True):
        assert (spec.dtype, len(spec.shape)) == (y.dtype, y.ndim)
        for n, size in zip(spec.shape, y.shape, strict=True):
            assert n == size or dims.symbols(n)  # a size that the values decide


def arrays_hold_something(case) -> bool:
    sample = case.build(np.random.default_rng(0))
    return all(x.size for x in sample if isinstance(x, np.ndarray))


@select(
    lambda op, case: op.kind == "elementwise" and not case.check and arrays_hold_something(case)
)
def test_single_numbers(name, k):
    """Arrays without an axis do what the same elements in arrays do, derivatives included."""
    op, attrs = OPS[name], CASES[name][k].attrs
    ones = [x.reshape(-1)[:1] if isinstance(x, np.ndarray) else x for x in drawn(name, k)]
    found = []
    for shape in ([1], []):
        inputs = [tensor(x.reshape(shape)) if isinstance(x, np.ndarray) else x for x in ones]
        wrt = [inputs[j] for j in differentiable(op, CASES[name][k])]
        for x in wrt:
            x.stop_gradient = False
        y = op(*inputs, **attrs)
        slopes = paddle.grad(y, wrt, allow_unused=True) if wrt and not y.stop_gradient else []
        assert all(t is None or t.shape == shape for t in [y, *slopes])
        found.append([t.numpy().reshape(-1) for t in [y, *slopes] if t is not None])
    for a, b in zip(*found, strict=True):
        np.testing.assert_array_equal(a, b)


def spread_out(x: np.ndarray) -> np.ndarray:
    """The same values, every second place of a larger array in Fortran order."""
    if not x.ndim:
        return x
    big = np.zeros([2 * n for n in x.shape], x.dtype, order="F")
    view = big[(slice(None, None, 2),) * x.ndim]
    view[...] = x
    return view


@select(lambda op, case: case.check is None and bool(op.inputs))
def test_values_of_strided_inputs(name, k):
    inputs = drawn(name, k)
    strided = [spread_out(x) if isinstance(x, np.ndarray) else x for x in inputs]
    tensors = [paddle.Tensor(x) if isinstance(x, np.ndarray) else x for x in strided]
    for t, x in zip(tensors, strided, strict=True):
        if isinstance(x, np.ndarray):
            t.array = x  # to_tensor would copy
    ours = [t.numpy() for t in listed(OPS[name](*tensors, **CASES[name][k].attrs))]
    for a, b in zip(ours, run(name, k, inputs), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13, equal_nan=True)


@select(lambda op, case: case.torch is not None and case.order > 0 and differentiable(op, case))
def test_first_derivative_against_torch(name, k):
    op, case = OPS[name], CASES[name][k]
    inputs, wrt = drawn(name, k), differentiable(op, case)
    theirs = [torch.from_numpy(x.copy()) if isinstance(x, np.ndarray) else x for x in inputs]
    ours = [tensor(x) for x in inputs]
    for j in wrt:
        theirs[j].requires_grad_()
        ours[j].stop_gradient = False
    pairs = [
        (a, b)
        for a, b in zip(listed(op(*ours, **case.attrs)), listed(case.torch(*theirs)), strict=True)
        if torch.is_tensor(b) and b.requires_grad
    ]
    rng = np.random.default_rng(len(name) + k)
    weights = [rng.standard_normal(tuple(b.shape)) for _, b in pairs]
    ours_g = paddle.grad(
        [a for a, _ in pairs], [ours[j] for j in wrt], [tensor(w) for w in weights]
    )
    theirs_g = torch.autograd.grad(
        [b for _, b in pairs], [theirs[j] for j in wrt], [torch.from_numpy(w) for w in weights]
    )
    for a, b in zip(ours_g, theirs_g, strict=True):
        close(a.numpy(), b.numpy(), case.tolerance * 10)


@select(lambda op, case: case.order > 0 and case.smooth and differentiable(op, case))
def test_derivatives_against_central_differences(name, k):
    op, case = OPS[name], CASES[name][k]

    def function(*inputs):
        results = listed(op(*inputs, **case.attrs))
        return [results[j] for j in case.results] if case.results is not None else results

    function.__name__ = name
    factor = max(case.tolerance, 1)
    check_grad(
        function,
        *drawn(name, k),
        order=case.order,
        wrt=differentiable(op, case),
        rtol=1e-5 * factor,
        atol=1e-6 * factor,
        elements=6,
    )


@select(lambda op, case: getattr(op, "source", None) is not None)
def test_index_map_of_movements(name, k):
    op, case = OPS[name], CASES[name][k]
    (x,) = drawn(name, k)
    (y,) = run(name, k, [x])
    spec = Spec(x.shape, x.dtype)
    for i in np.ndindex(y.shape):
        place = tuple(op.source(list(i), spec, **case.attrs))
        assert y[i] == x[place], f"result{list(i)} comes from x{list(place)}?"
