"""Loops that end are what they were; those that do not are stopped, and say so."""

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle import nn
from minipaddle.engine.ir.verifier import verify
from minipaddle.inference.model import Model
from minipaddle.inference.rounds import limit_iterations
from minipaddle.static import InputSpec

BACKENDS = ["interpreter", "native"]


def grow(x):
    while x.sum() < 10.0:
        x = x + 1.0
    return x


def grow_twice(x):
    """Branches and loops inside of loops; the second loop goes on with the count of the first."""
    total, i = x * 0.0, paddle.zeros([], "int64")
    while i < x.max():
        j = i * 0
        if (i % 2 == 0).all():
            while j < i:
                total, j = total + x, j + 1
        i = i + 1
    return grow(total)


def saved(function, tmp_path, *shape):
    prefix = str(tmp_path / "net")
    paddle.jit.save(function, prefix, input_spec=[InputSpec([*shape], "float32", "x")])
    return prefix


def run(model, x):
    bound = model.binding([x.shape])
    bound.inputs[0][...] = x
    bound.run()
    return bound.outputs[0].copy()


def rounds_of(i: int, j: int) -> int:
    """The iterations of `grow_twice` before the last loop, for the largest number i."""
    return i + sum(k for k in range(i) if k % 2 == 0) + j


@pytest.mark.parametrize("backend", BACKENDS)
def test_loops_that_end(tmp_path, backend):
    """They may make exactly as many iterations as the bound says."""
    prefix = saved(grow_twice, tmp_path, 2)
    for x in ([5, 1], [0, 0], [7, 2]):
        x = np.array(x, "float32")
        wanted = paddle.jit.load(prefix)(paddle.to_tensor(x)).numpy()
        before = sum(k * x for k in range(int(x.max())) if k % 2 == 0)
        most = rounds_of(int(x.max()), int((wanted - before).max()))
        np.testing.assert_array_equal(run(Model(prefix, backend=backend, rounds=most), x), wanted)
        if most:
            with pytest.raises(ValueError, match=f"go on after {most - 1} iterations"):
                run(Model(prefix, backend=backend, rounds=most - 1), x)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_loop_that_never_ends(tmp_path, backend):
    model = Model(saved(grow, tmp_path, 2), backend=backend, rounds=1000)
    assert (backend == "native") == (type(model.binding([(2,)])).__name__ == "MemoryBinding")
    for x in ([-np.inf, 0], [np.nan, 0], [0, 0]):
        x = np.array(x, "float32")
        if np.isneginf(x).any():
            with pytest.raises(
                ValueError, match="go on after 1,000 iterations\n  expected: an end"
            ):
                run(model, x)
        else:
            np.testing.assert_array_equal(run(model, x), x if np.isnan(x).any() else [5, 5])


def test_a_state_keeps_its_value_when_a_loop_is_stopped(tmp_path):
    class Sum(nn.Layer):
        def __init__(self):
            super().__init__()
            self.register_buffer("total", paddle.zeros([2]))

        def forward(self, x):
            self.total[:] = self.total + grow(x)
            return self.total + 0.0

    model = Model(saved(Sum(), tmp_path, 2), backend="interpreter", rounds=50)
    zeros, worst = np.zeros(2, "float32"), np.full(2, -np.inf, "float32")
    np.testing.assert_array_equal(run(model, zeros), [5, 5])
    with pytest.raises(ValueError, match="50 iterations"):
        run(model, worst)
    np.testing.assert_array_equal(run(model, zeros), [10, 10])


def test_loops_that_count_to_a_size_stay_as_they_are(tmp_path):
    prefix = str(tmp_path / "net")
    spec = InputSpec([2, None, 4], "float32", "x")
    paddle.jit.save(nn.LSTM(4, 5), prefix, input_spec=[spec])
    program = paddle.jit.load(prefix).program()
    assert "while_loop" in str(program)
    assert limit_iterations(program, 5) is program


@pytest.mark.parametrize(
    ("start", "test", "step"),
    [
        ("value=0.0, dtype=float32) : float32[]", "9.0", "1.0"),  # 2**24 + 1.0 is 2**24
        ("value=0, dtype=int8) : int8[]", "200", "1"),  # 127 + 1 is -128
        ("value=0, dtype=int64) : int64[]", "9", "0"),
        ("value=0, dtype=int64) : int64[]", "9", "-1"),
        ("value=0, dtype=int64) : int64[]", "1e+300", "1"),
    ],
)
def test_what_only_looks_like_counting(start, test, step):
    from minipaddle.ir.parser import parse

    kind = start.rpartition(" ")[2]
    program = parse(f"""program p(x: float32[]) {{
      v1 = full(shape=(), {start}
      v2 = while_loop(v1, test=(a0: {kind}) {{
        v1 = less_than(a0, {test}) : bool[]
        return v1
      }}, body=(a0: {kind}) {{
        v1 = add(a0, {step}) : {kind}
        return v1
      }}, carried=1, keep=False) : ({kind})
      v3 = item(v2, k=0) : {kind}
      return v3
    }}""")
    found = limit_iterations(program, 5)
    assert len(verify(found).outputs) == 2
    right = parse(str(program).replace(test, "9").replace(f"a0, {step})", "a0, 1)")
                  .replace(kind, "int64[]").replace("dtype=" + kind[:-2], "dtype=int64")
                  .replace("value=0.0", "value=0"))  # fmt: skip
    assert limit_iterations(right, 5) is right
