"""What operators do at the edges: NaN, infinities, both zeros, the least and the largest numbers.

`tests/data/edges.csv` is the table of all that PyTorch and Paddle do differently there, and whom
MiniPaddle follows: what the two do alike, it does. All executors give the same.
"""

import csv
import itertools
import json
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch

import minipaddle as paddle
from minipaddle.engine.core.op import OPS
from minipaddle.engine.executors.compiler import compiler
from tests.codegen.cuda_on_cpu import can_emulate_gpu
from tests.executors import paths
from tests.ops.edges import INF, NAN, REDUCTIONS, answers, edges, reduction, rows
from tests.ops.test_operators import CASES, differentiable, floats

DATA = Path(__file__).parent.parent / "data"
NEAR = {"float64": (1e-9, 1e-15), "float32": (3e-4, 1e-7)}
"""Of other implementations; what cancels is noise."""

OWN = {"gate", "winner", "averaged", "averaged_square", "pushed", "bernoulli_nll", "gated", "huber"}
"""Operators that no library has: their oracles are formulas of the tests."""


def calls() -> dict:
    """{text of a call: (operator, case, number of inputs, places to differentiate by)}."""
    found = {}
    for name, cases in sorted(CASES.items()):
        for case in cases if name in OPS and OPS[name].kind == "elementwise" else ():
            given = case.build(np.random.default_rng(0))
            if name in OWN or name == "cast" or not 0 < len(given) == len(floats(given)):
                continue
            wrt = differentiable(OPS[name], case) if case.order else ()
            key = f"{name} {case.attrs}" if case.attrs else name
            found.setdefault(key, (OPS[name], case, len(given), tuple(wrt)))
    return found


CALLS = calls()


def write_calls(path: str) -> None:
    """For `tests/data/make_paddle_edges.py`."""
    text = json.dumps([(k, op.name, c.attrs, n, wrt) for k, (op, c, n, wrt) in CALLS.items()])
    Path(path).write_text(text)


def make(a, wants):
    return paddle.to_tensor(a, stop_gradient=not wants)


def read(t):
    return t.numpy()


def torch_tensor(a, wants):
    return torch.from_numpy(a.copy()).requires_grad_(wants)


def torch_array(t):
    return torch.as_tensor(t).detach().numpy()


@cache
def recorded() -> dict:
    return json.loads((DATA / "paddle_edges.json").read_text())


def of_paddle(key: str, like: list) -> list | None:
    """What Paddle gave, as arrays like `like`."""
    found = recorded()["calls"].get(key)
    return found and [
        np.frombuffer(bytes.fromhex(h), a.dtype).reshape(a.shape) for h, a in zip(found, like)
    ]


def alike(a, b, dtype: str, *, signs=False):
    """Where two arrays are the same, to a rounding; with `signs` the sign of zeros counts."""
    if a.dtype.kind != "f":
        return a == b
    same = np.isclose(a, b, *NEAR[dtype], equal_nan=True)
    return same & ~((a == 0) & (b == 0) & (np.signbit(a) != np.signbit(b))) if signs else same


TORCH = {
    "max": lambda x: x.amax(-1), "min": lambda x: x.amin(-1), "flip": lambda x: x.flip(-1),
    "logsumexp": lambda x: x.logsumexp(-1), "median": lambda x: torch.quantile(x, 0.5, -1),
    "norm": lambda x: torch.linalg.vector_norm(x, 2, -1),
    "smooth_l1_loss": lambda x: torch.nn.functional.smooth_l1_loss(x, torch.zeros_like(x)),
    "l1_loss": lambda x: torch.nn.functional.l1_loss(x, torch.zeros_like(x)),
    "binary_cross_entropy": lambda x: torch.nn.functional.binary_cross_entropy(
        x, torch.ones_like(x)),
}  # fmt: skip


def of_rows(key: str, dtype: str):
    """(what, row, ours, PyTorch's, Paddle's) of a reduction; a row that raises gives the error."""
    function = reduction(paddle, key)
    oracle = TORCH.get(key) or (lambda x: getattr(x, key)(-1))
    theirs = recorded()["rows"][f"{key} {dtype}"]
    for row, given in zip(rows(dtype), theirs, strict=True):
        both = []
        for how in ((read, make, function), (torch_array, torch_tensor, oracle)):
            try:
                both.append(answers(*how, (0,), [row]))
            except (ValueError, RuntimeError, IndexError):
                both.append(None)
        ours, other = both
        for k, what in enumerate(("value", "x")):
            a, b = ours and ours[k], other and other[k]
            like = a if a is not None else b
            c = None
            if given is not None and like is not None:
                c = np.frombuffer(bytes.fromhex(given[k]), like.dtype).reshape(like.shape)
            yield what, row, a, b, c


def points(key: str, dtype: str):
    """(what, inputs, ours, PyTorch's, Paddle's or None) at every edge; `what` is "value", or the
    input by which it is differentiated."""
    if key in REDUCTIONS:
        yield from of_rows(key, dtype)
        return
    op, case, count, wrt = CALLS[key]
    arrays = edges(dtype, count)
    ours = answers(read, make, lambda *xs: op(*xs, **case.attrs), wrt, arrays)
    theirs = answers(torch_array, torch_tensor, case.torch, wrt, arrays)
    third = of_paddle(f"{key} {dtype}", ours) or [None] * len(ours)
    for what, *three in zip(["value", *(op.inputs[k] for k in wrt)], ours, theirs, third):
        for j, inputs in enumerate(zip(*arrays)):
            yield what, inputs, *(None if a is None else a[j] for a in three)


def agree(a, b, dtype, signs):
    """`alike`, of values that may be missing: None where a library raises."""
    if a is None or b is None:
        return np.array(a is None and b is None)
    a, b = np.asarray(a), np.asarray(b)
    return alike(a, b, dtype, signs=signs) if a.shape == b.shape else np.array(False)


@cache
def differences(key: str, dtype: str = "float64") -> dict:
    """{what: the points at which not all three agree, each with (where ours is PyTorch's, where
    Paddle's)}. Of reductions the sign of a zero may be any."""
    found: dict = {}
    for what, inputs, ours, theirs, third in points(key, dtype):
        signs = what == "value" and key not in REDUCTIONS
        left, right = agree(ours, theirs, dtype, signs), agree(ours, third, dtype, signs)
        known = third is not None or key in REDUCTIONS
        if not left.all() or (known and not right.all()):
            found.setdefault(what, []).append((inputs, ours, theirs, third, left, right & known))
    return found


def table() -> dict:
    """{(operator, what): row}."""
    with open(DATA / "edges.csv", encoding="utf-8", newline="") as file:
        return {(row["operator"], row["what"]): row for row in csv.DictReader(file)}


FOLLOWED = {
    "PyTorch": lambda left, right: left.all(),
    "Paddle": lambda left, right: right.all(),
    "one of them": lambda left, right: (left | right).all(),
    "neither": lambda left, right: True,
}
"""Whom a row follows: what must hold at every point where the three are not equal."""


@pytest.mark.parametrize("dtype", NEAR)
@pytest.mark.parametrize("key", [*CALLS, *REDUCTIONS])
@pytest.mark.filterwarnings("ignore")
def test_what_the_two_do_alike_is_done_and_the_rest_is_in_the_table(key, dtype):
    known = table()
    for what, found in differences(key, dtype).items():
        row = known.get((key, what))
        inputs, ours, theirs, third, *_ = found[0]
        seen = f"{key} {what} at {inputs}: {ours}, PyTorch {theirs}, Paddle {third}"
        assert row, f"not in tests/data/edges.csv: {seen}"
        for inputs, ours, theirs, third, left, right in found:
            seen = f"{key} {what} at {inputs}: {ours}, PyTorch {theirs}, Paddle {third}"
            assert FOLLOWED[row["follows"]](left, right), seen


@pytest.mark.filterwarnings("ignore")
def test_every_row_of_the_table_is_a_difference_and_has_a_reason():
    for (key, what), row in table().items():
        decided = "rounding decides" in row["why"]  # it may, on a processor without FMA
        found = {*differences(key), *differences(key, "float32")}
        assert what in found or decided, (key, what)
        assert row["follows"] in FOLLOWED
        assert row["why"]


# ---- executors -------------------------------------------------------------------------------

TOGETHER = 24
"""Calls in one program: one call of the compiler."""
CLOSE = {"float32": (2e-5, 1e-36), "float64": (1e-11, 1e-300)}
CANCELLING = {"float32": (1e-3, 1e-6), "float64": (1e-9, 1e-14)}
CANCELS = {"gelu", "i0e", "i1e", "sinc"}


def value_and_slopes(op, attrs, wrt):
    """A function of tensors that gives a list: the operator's value and its derivatives."""

    def function(*xs):
        y = op(*xs, **attrs)
        return [y, *paddle.grad(y.sum(), [xs[k] for k in wrt])] if wrt else [y]

    return function


@pytest.mark.skipif(compiler() is None, reason="no C compiler")
@pytest.mark.parametrize("dtype", NEAR)
@pytest.mark.parametrize("first", range(0, len(CALLS), TOGETHER))
@pytest.mark.filterwarnings("ignore")
def test_executors_agree(first, dtype):
    """C gives eager's values, signs of zeros among them, and its derivatives."""
    chosen = list(CALLS.items())[first : first + TOGETHER]
    functions = [value_and_slopes(op, case.attrs, wrt) for _, (op, case, _, wrt) in chosen]
    inputs = [[make(a, k in wrt) for k, a in enumerate(edges(dtype, count))]
              for _, (_, _, count, wrt) in chosen]  # fmt: skip

    def program(inputs):
        return [f(*xs) for f, xs in zip(functions, inputs)]

    eager = program(inputs)
    native = paddle.jit.to_static(program, backend="native")(inputs)
    for (key, (op, *_)), wanted, found in zip(chosen, eager, native, strict=True):
        for k, (a, b) in enumerate(zip(wanted, found, strict=True)):
            a, b = a.numpy(), b.numpy()
            if a.dtype.kind != "f":
                near = a == b
            else:
                limits = (CANCELLING if op.name in CANCELS else CLOSE)[dtype]
                near = np.isclose(b, a, *limits, equal_nan=True)
                near &= (k > 0) | (a != 0) | (b != 0) | (np.signbit(a) == np.signbit(b))
            at = int(np.argmin(near))
            point = [x.numpy()[at].item() for x in inputs[chosen.index((key, CALLS[key]))]]
            assert near[at], f"{key}, result {k}, at {point}: {b[at]}, not {a[at]}"


LONG = 37
"""Elements of a row that C works on in vectors, and some more."""


def arrays_of_rows(dtype: str) -> dict:
    """{shape: arrays}: rows of edge values, some of them by themselves, those of a size together,
    and long ones. These have nothing huge: a product of it and 0 is what the order makes it.
    """
    found, together = {}, {}
    for row in rows(dtype):
        found.setdefault(row.shape, []).append(row)
        if row.size:
            together.setdefault(row.size, []).append(row)
        if row.size and not (np.abs(row) == np.array(1e30, dtype)).any():
            together.setdefault(LONG, []).append(np.resize(row, LONG))
    stacks = map(np.stack, together.values())
    return {s: given[::9] for s, given in found.items()} | {a.shape: [a] for a in stacks}


def reductions_of(example):
    """A function of a row that gives what every reduction makes of it, and its derivative."""
    chosen = []
    for key in REDUCTIONS:
        function = value_and_slopes(reduction(paddle, key), {}, (0,))
        with suppress(ValueError):  # max of nothing
            function(make(np.zeros_like(example), True))
            chosen.append(function)
    return lambda x: [result for function in chosen for result in function(x)]


def scans(x):
    """What each scan makes of the last axis, and its derivative."""
    extremes = [lambda x: paddle.cummax(x, -1)[0], lambda x: paddle.cummin(x, -1)[0]]
    others = [reduction(paddle, name) for name in ("cumprod", "cumsum", "logcumsumexp")]
    found = [value_and_slopes(f, {}, (0,))(x) for f in (*extremes, *others)]
    return [y for pair in found for y in pair]


@pytest.mark.skipif(compiler() is None, reason="no C compiler")
@pytest.mark.parametrize("dtype", NEAR)
@pytest.mark.filterwarnings("ignore")
def test_executors_agree_on_scans(dtype):
    values = [NAN, INF, -INF, 0.0, -0.0, 1.0, -2.0, 1e30]
    x = make(np.array([*itertools.product(values, repeat=4)], dtype), True)
    both = zip(scans(x), paddle.jit.to_static(scans, backend="native")(x), strict=True)
    for a, b in both:
        np.testing.assert_allclose(b.numpy(), a.numpy(), *CLOSE[dtype])


@pytest.mark.sweep(one_in=2)
@pytest.mark.slow
@pytest.mark.skipif(compiler() is None, reason="no C compiler")
@pytest.mark.parametrize("dtype", NEAR)
@pytest.mark.filterwarnings("ignore")
def test_executors_agree_on_reductions(dtype):
    """C, the memory plan and the emulated GPU give what the interpreter gives, as far as the order
    of terms is not open.
    """
    cases, given = [], arrays_of_rows(dtype)
    for shape, arrays in given.items():
        with paths.collect_programs(f"rows {shape}", cases):
            program = paddle.jit.to_static(reductions_of(arrays[0]), backend="interpreter")
            for array in arrays:
                program(make(array, True))
    wrong = [*paths.differences(cases, passes=0.0, natives=0, cuda=float(can_emulate_gpu()))]
    assert not wrong, "\n".join(f"{d.case.name}, {d.path.name}: {d.message}" for d in wrong)
    assert len(cases) == len(given)


if __name__ == "__main__":
    write_calls(sys.argv[1])
