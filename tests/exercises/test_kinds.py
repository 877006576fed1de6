"""The kinds of wrong solutions: each is right but for one thing, and says whether it met that."""

import numpy as np
import pytest

import minipaddle.distributed as dist
from minipaddle.distributed.collectives.operators import group_numbered
from minipaddle.learn import Exercise
from tests.exercises import kinds


def of(source: str, name: str):
    """The function `f` of a text, with a kind around it."""
    given = {}
    exec(compile(kinds.around(source, kinds.ast.parse(source).body[0], name), "<f>", "exec"), given)
    return given["f"]


def test_a_wait_left_out_is_that_of_the_function_alone(monkeypatch):
    monkeypatch.setattr(kinds, "met", False)
    text = "def f(g, x):\n    g.all_reduce(x)\n    return g.all_reduce(x, wait=False).wait()"
    f = of(text, "a needed wait() left out")

    def rank():
        group = group_numbered(0)
        x = np.ones(2)
        return f(group, x), group.all_reduce(np.ones(2), wait=False).wait().tolist()

    assert dist.spawn(rank, nprocs=2).results == [(None, [2.0, 2.0])] * 2
    assert kinds.met
    kinds.met = False
    assert dist.spawn(rank, nprocs=1).results[0][0].tolist() == [1.0, 1.0]
    assert not kinds.met, "one rank waits for nobody"


@pytest.mark.parametrize(("size", "stride", "right"), [(6, 2, True), (7, 2, False), (7, 1, True)])
def test_even_parts(size, stride, right, monkeypatch):
    monkeypatch.setattr(kinds, "met", False)
    f = of("def f(x, stride):\n    return x[::stride]", "right only for even parts")
    x = np.arange(float(size))
    assert np.array_equal(f(x, stride), x[::stride]) is right
    assert kinds.met is (stride > 1)


def test_every_kind_stands_around_every_public_function(monkeypatch):
    text = "def f(x, axis):\n    return x\n\ndef _g(x):\n    return x\n\ndef h(*x):\n    return x"
    monkeypatch.setattr(Exercise, "solution", text)
    exercise = Exercise("", "easy", 5, {}, ("?", "", ""), {})
    changes = [m.change for m in kinds.kinds_of(exercise)]
    assert changes == [f"{name}: {kind}" for name in "fh" for kind in kinds.KINDS]
    with pytest.raises(kinds.Forgotten):
        of(text, "right only for positive axes")(np.ones(2), -1)  # by place, and seen by its name
