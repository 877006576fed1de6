"""The operator suite in the native executor: every case of an area in one program, one C file."""

import numpy as np
import pytest

from minipaddle.engine.core.op import OPS
from minipaddle.engine.core.record import Spec
from minipaddle.engine.eager.device import NUMPY, QUIET
from minipaddle.engine.eager.tensor import Tensor
from minipaddle.engine.eager.tracer import trace
from minipaddle.engine.executors.compiler import compiler
from minipaddle.engine.executors.native import CannotCompile, Executable
from minipaddle.engine.ir.interpreter import Run
from minipaddle.executors.support import REFUSED
from tests.executors.batch import QUICK, Unbuilt, build
from tests.ops.test_operators import ALL, CASES, drawn, listed

pytestmark = [
    pytest.mark.sweep(one_in=2),
    pytest.mark.skipif(compiler() is None, reason="no C compiler: install gcc or clang"),
]

CHUNK = 120
HALF_UNIT = 2.0**-24
SOME = 8
NEAR = {
    "float32": (2e-5, 1e-5),
    "float64": (1e-10, 1e-11),
    "bfloat16": (1e-2, 1e-2),
    "float16": (2e-3, 2e-3),
}


def chunks(dtype: str) -> list[list]:
    """The cases that a program can hold: those whose sizes do not depend on values."""
    found = [(n, k) for n, k in ALL if n in OPS and fits(n, k, dtype)]
    return [found[j : j + CHUNK] for j in range(0, len(found), CHUNK)]


def fits(name: str, k: int, dtype: str) -> bool:
    case, op = CASES[name][k], OPS[name]
    return dtype in case.dtypes and not op.effect and op.kind != "control"


def program_of(cases, dtype: str):
    """One program that computes all cases, and its inputs."""
    given, calls, arrays = [], [], []
    for name, k in cases:
        inputs, own = drawn(name, k, dtype), []
        for x in inputs:
            if isinstance(x, np.ndarray):
                own.append(len(arrays))
                arrays.append(x)
            else:
                own.append(None)
        calls.append((name, k, inputs, own))
    given = [Spec(a.shape, a.dtype) for a in arrays]

    def function(*tensors):
        results = []
        for name, k, inputs, own in calls:
            args = [x if at is None else tensors[at] for x, at in zip(inputs, own, strict=True)]
            ys = listed(OPS[name](*args, **CASES[name][k].attrs))
            results += [y for y in ys if isinstance(y, Tensor)]
            owners.extend([f"{name}-{k}"] * (len(results) - len(owners)))
        return results

    owners: list[str] = []
    return trace(function, given).program, arrays, owners


def unequal(owners, wanted, found, dtype: str) -> list:
    """The results that are not what the interpreter gives."""
    wrong = []
    for name, a, b in zip(owners, wanted, found, strict=True):
        rtol, atol = NEAR[np.asarray(a).dtype.name if np.asarray(a).dtype.kind == "f" else dtype]
        factor = CASES[name.rpartition("-")[0]][int(name.rpartition("-")[2])].tolerance
        a, b = (np.asarray(x).astype("float64") for x in (a, b))
        if not np.allclose(b, a, rtol * factor, atol * factor, equal_nan=True):
            wrong.append((name, a.ravel()[:3].tolist(), b.ravel()[:3].tolist()))
    return wrong


def computed(cases, dtype: str) -> tuple:
    """(the cases, who owns which result, the interpreter's results, those in C, the inputs).

    No case is left to the host.
    """
    closed = [c for c in cases if c[0] not in REFUSED]
    program, arrays, owners = program_of(closed, dtype)
    quietly = QUIET.copy().run
    wanted = quietly(Run(NUMPY), program, [a.copy() for a in arrays])
    made = Unbuilt(program)
    assert "by the host: nothing" in made.report().replace("\n", " ")
    build([made], None if dtype == "float32" else QUICK)  # gcc takes a third of the time for these
    return closed, owners, wanted, quietly(made, program, [a.copy() for a in arrays]), arrays


def errors(cases, owners, wanted, found, arrays) -> list[tuple[str, float, float]]:
    """(case, the interpreter's error, that of C) for each result with SOME numbers or more, against
    float64. The error of a single number is chance."""
    program, _, same = program_of(cases, "float64")
    assert same == owners
    given = [a.astype("float64") if a.dtype == np.float32 else a for a in arrays]
    triples, pairs = zip(QUIET.copy().run(Run(NUMPY), program, given), wanted, found), []
    for owner, triple in zip(owners, triples, strict=True):
        exact, *both = (np.asarray(x) for x in triple)
        if exact.dtype != np.float64:
            continue
        finite = np.all([np.isfinite(x) for x in (exact, *both)], 0)
        norm = float(np.linalg.norm(exact[finite]))
        if finite.sum() >= SOME and norm:
            apart = (float(np.linalg.norm((x - exact)[finite])) / norm for x in both)
            pairs.append((owner, *apart))
    return pairs


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
@pytest.mark.parametrize("part", range(8))
def test_operators(dtype, part):
    cases = [c for j, chunk in enumerate(chunks(dtype)) if j % 8 == part for c in chunk]
    if not cases:
        pytest.skip("fewer cases than parts")
    closed, owners, wanted, found, arrays = computed(cases, dtype)
    assert not unequal(owners, wanted, found, dtype)
    if dtype == "float32":
        worse = [x for x in errors(closed, owners, wanted, found, arrays) if not accurate(*x[1:])]
        assert not worse


def accurate(wanted: float, found: float) -> bool:
    """Whether an error is no more than twice the interpreter's, or than that of five roundings."""
    return found <= 2 * max(wanted, 2.5 * HALF_UNIT)


def test_what_only_values_say_is_interpreted():
    program, *_ = program_of([("nonzero", 0)], "float32")
    with pytest.raises(CannotCompile, match="sizes that depend on values"):
        Executable(program)
