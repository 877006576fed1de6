"""Groups that look alike are asked once, and the answer is that of asking each."""

from itertools import count
from unittest.mock import patch

import pytest

import minipaddle as paddle
from minipaddle.engine.passes.fusion import fuse
from minipaddle.engine.passes.nest import Nest
from minipaddle.ir.parser import parse
from minipaddle.passes.fusion_forms import Forms
from tests.executors.programs_fuzzed import A_PLACE_IN_NOTHING
from tests.passes.programs import MAKERS, cases, program_of


def of_slices(steps: int):
    """A recurrence over slices of one array, whose sides are slices of what is inside, too."""

    def f(x):
        h = x[0] * 0.0
        for t in range(steps):
            h = (x[t] * h + x[t]).tanh() * x[t, ::-1]
            left, right = h[:2], h[2:]
            h = paddle.concat([right * left, right + left])
        return h, x[1:2].exp() + x[1].exp()

    return program_of(f, (steps, 4))


PROGRAMS = {"slices": lambda: of_slices(6)}
PROGRAMS |= {name: lambda name=name: cases(name)[0].program for name in [*MAKERS][::9]}


@pytest.mark.parametrize("name", PROGRAMS)
def test_groups_of_equal_form_are_equally_nests(name):
    program, numbers = PROGRAMS[name](), count()
    found = str(fuse(program))
    with patch.object(Forms, "of", lambda *_: (next(numbers),)):
        assert str(fuse(program)) == found


def test_a_longer_recurrence_asks_no_more():
    """All turns look alike, though each reads another slice."""

    def nests(steps: int) -> int:
        made, program = 0, of_slices(steps)
        original = Nest.__init__

        def counted(self, *args):
            nonlocal made
            made += 1
            original(self, *args)

        with patch.object(Nest, "__init__", counted):
            fuse(program)
        return made

    assert nests(40) - nests(30) <= 5


def test_no_place_lies_in_an_empty_part():
    program = parse(A_PLACE_IN_NOTHING)
    ((_, node, _),) = Nest(program.records[1:], program.outputs).outputs
    assert (node.kind, node.of) == ("number", 0)
