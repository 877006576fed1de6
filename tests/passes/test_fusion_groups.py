"""Groups that look alike are asked once, and the answer is that of asking each."""

from unittest.mock import patch

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle.engine.core import slots
from minipaddle.engine.core.dim import symbol
from minipaddle.engine.core.record import Spec
from minipaddle.engine.core.slots import plugged
from minipaddle.engine.core.symbols import Composite
from minipaddle.engine.passes.fusion import fuse
from minipaddle.engine.passes.nest import Nest, refine
from minipaddle.ir.parser import parse
from minipaddle.passes.fusion_forms import Forms, answers_since
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


@pytest.mark.sweep(one_in=3)
@pytest.mark.parametrize("name", PROGRAMS)
def test_groups_of_equal_form_are_equally_nests(name):
    program = PROGRAMS[name]()
    found = str(fuse(program))
    with patch.object(Forms, "of", lambda *_: (object(),)):
        assert str(fuse(program)) == found


def nests_of(program) -> int:
    """How many nests a fusion makes to see whether they are some."""
    made, original = 0, Nest.__init__

    def counted(self, *args):
        nonlocal made
        made += 1
        original(self, *args)

    with patch.object(Nest, "__init__", counted):
        fuse(program)
    return made


def test_a_longer_recurrence_asks_no_more():
    """All turns look alike, though each reads another slice."""
    answers_since.cache_clear()
    longer = nests_of(of_slices(40))
    answers_since.cache_clear()
    assert longer - nests_of(of_slices(30)) <= 5


def test_the_second_program_of_a_model_asks_little():
    answers_since.cache_clear()
    assert nests_of(of_slices(6)) > 10
    assert nests_of(of_slices(6)) == 0


def test_answers_end_with_what_is_plugged_in():
    """A reader's part of the engine may know other nests."""
    program = of_slices(6)
    answers_since.cache_clear()
    fuse(program)
    once = len(answers_since(slots.epoch)[2])
    with plugged("nest.stage_of", lambda kind, args: 1):
        assert not answers_since(slots.epoch)[2]
        fuse(program)
    fuse(program)
    assert len(answers_since(slots.epoch)[2]) == once > 10


def test_sizes_that_only_a_run_knows_are_of_one_program():
    """What is equal may be assumed for one program and not for another."""

    def form_of(sizes):
        program = program_of(lambda x: (x * 2.0).exp().sum(-1), Spec(sizes, np.dtype("float32")))
        forms = Forms(*answers_since(slots.epoch)[:2])
        return forms.of(program.records, program.outputs)

    n = symbol("n", hint=7)
    assert form_of((4, 3)) == form_of((4, 3))
    assert form_of((n, 3)) != form_of((n, 3))


def test_no_place_lies_in_an_empty_part():
    program = parse(A_PLACE_IN_NOTHING)
    ((_, node, _),) = Nest(program.records[1:], program.outputs).outputs
    assert (node.kind, node.of) == ("number", 0)


def test_reshapes_of_one_another_need_no_division():
    """The loops are the axes of which all shapes are products: no load divides its index."""

    def f(x, bias):
        y = (x + bias).tanh().reshape([6, 8])
        return y - y.sum(0)

    program = program_of(f, (12, 4), (4,))
    nest = Nest(program.records, program.outputs)
    assert [a.extent for a in nest.loops] == [6, 2, 4]
    assert not any(type(t) is Composite for i in nest.indices() for t in i.atoms)


def test_loops_are_those_of_the_results_where_there_are_no_common_axes():
    """So that what is stored needs no division, and all is one nest."""

    def f(x):
        return x.reshape([4, 2, 3]).transpose([0, 2, 1]).reshape([12, 2]) + 1.0

    program = fuse(program_of(f, (4, 6)))
    assert sum(r.op.name == "fused" for r in program.records) == 1


def test_shapes_without_common_axes_keep_their_own():
    assert refine([(6, 4), (3, 8)]) == (3, 2, 4)
    assert refine([(6, 4), (4, 6)]) is None
    assert refine([(2, 1, 3), (6,)]) == (2, 3)
    assert refine([(symbol("n", 4), 2)]) is None
