"""The manager skips a pass that finds nothing it looks for: running it would change nothing."""

import pytest

import minipaddle as paddle
from minipaddle.engine.core.slots import SLOTS
from minipaddle.engine.passes.algebra import table
from minipaddle.engine.passes.manager import arguments, optimized, survey
from minipaddle.engine.passes.patterns import RewriteRule
from minipaddle.engine.passes.registry import DEFAULTS, LOOKS_FOR, PASSES
from tests.passes.programs import MAKERS, cases, program_of

FUNCTIONS = {
    "one operator": lambda x: x.tanh(),
    "two results": lambda x: (x.tanh(), x.exp()),
    "a chain": lambda x: x.exp().tanh(),
    "equal operators": lambda x: (x.exp(), x.tanh().exp()),
    "a constant": lambda x: x + paddle.ones([2]).cumsum(),
    "a loop": lambda x: paddle.static.nn.while_loop(
        lambda i: i < 5.0, lambda i: [i * 2.0 + 1.0], [x.sum()]
    ),
}


@pytest.mark.sweep(one_in=3)
@pytest.mark.parametrize("name", [*FUNCTIONS, *[*MAKERS][::12]])
def test_a_pass_that_is_skipped_would_change_nothing(name):
    own = name in FUNCTIONS
    for program in [program_of(FUNCTIONS[name], (2,))] if own else [c.program for c in cases(name)]:
        for pass_, now in [(s.name, s.before) for s in optimized(program).snapshots]:
            if pass_ in LOOKS_FOR and survey(now, {}).isdisjoint(LOOKS_FOR[pass_]):
                slot = f"passes.{pass_}"
                after = SLOTS[slot].function(now, **arguments(slot, DEFAULTS))
                assert str(after) == str(now), pass_


def test_a_program_of_one_operator_needs_no_pass(monkeypatch):
    for name in PASSES:
        monkeypatch.setattr(SLOTS[f"passes.{name}"], "function", None)
    program = program_of(FUNCTIONS["one operator"], (2,))
    done = optimized(program)
    assert done.program is program
    assert [s.name for s in done.snapshots] == PASSES
    assert not any(s.changed for s in done.snapshots)


def test_algebra_looks_for_the_operators_of_its_rules():
    assert table(0).keys() <= {*LOOKS_FOR["algebra"]}


def test_a_readers_rules_are_applied():
    program = program_of(lambda x: x.exp() * 1, (2,))
    assert [r.op.name for r in optimized(program).program.records] == ["exp"]
    rule = RewriteRule(lambda x: paddle.exp(x), lambda x: paddle.log(x))
    with paddle.plugged("algebra.numbers", lambda: [rule]):
        done = optimized(program, fusion=False).program
    assert [r.op.name for r in done.records] == ["log", "multiply"]
