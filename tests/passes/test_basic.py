"""Dead code, common subexpressions, operators taken apart, sizes made numbers: before and after."""

import numpy as np
import pytest

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle.engine.core.dim import symbol
from minipaddle.engine.core.record import Record, Spec
from minipaddle.engine.ir.program import Program, everywhere, open_sizes
from minipaddle.engine.passes.cse import cse
from minipaddle.engine.passes.dead_code import dead_code
from minipaddle.engine.passes.decompose import RULES, decompose
from minipaddle.engine.passes.manager import PASSES, optimized
from minipaddle.engine.passes.result_aliasing import separate
from minipaddle.engine.passes.rewriting import rewritten
from minipaddle.engine.passes.specialise import sizes_of, specialise
from tests.passes.programs import body, program_of, same_results

LABELS = Spec((4,), np.dtype("int64"))


def test_dead_code_goes():
    program = program_of(lambda x: (x.exp(), x + 1.0)[1], (2,))
    assert body(program) == "v1 = exp(x) : float32[2]\nv2 = add(x, 1.0) : float32[2]\nreturn v2"
    assert body(dead_code(program)) == "v1 = add(x, 1.0) : float32[2]\nreturn v1"
    assert len(program.records) == 2, "the program before stays as it was"


def test_what_is_alive_is_the_same_program():
    program = program_of(lambda x: x.exp(), (2,))
    assert dead_code(program) is cse(program) is decompose(program) is program


def test_dead_code_in_a_branch_goes():
    def f(x):
        return paddle.static.nn.cond(x.sum() > 0, lambda: (x.exp(), x * 2.0)[1], lambda: x)

    program = program_of(f, (2,))
    assert "exp" in str(program)
    assert "exp" not in str(dead_code(program))
    same_results(program, dead_code(program))


def test_common_subexpressions_are_computed_once():
    program = program_of(lambda x, y: (x * y).exp() + (x * y).exp(), (2,), (2,))
    assert body(cse(program)) == (
        "v1 = multiply(x, y) : float32[2]\n"
        "v2 = exp(v1) : float32[2]\n"
        "v3 = add(v2, v2) : float32[2]\n"
        "return v3"
    )


@pytest.mark.parametrize("pair", [(0.0, -0.0), (1, True), (1, 1.0)], ids=str)
def test_numbers_that_only_seem_equal(pair):
    program = program_of(lambda x: x * pair[0] - x * pair[1], (2,))
    assert cse(program) is program


def test_two_draws_stay_two():
    program = program_of(lambda x: F.dropout(x, 0.5) + F.dropout(x, 0.5), (64,))
    drawn = [r.op.name for r in cse(program).records].count("random_uniform")
    assert drawn == 2


def test_two_results_stay_two_pieces_of_memory():
    program = program_of(lambda x: (x + 1.0, x + 1.0), (2,))
    assert cse(program) is program


def test_softmax_taken_apart():
    program = program_of(lambda x: F.softmax(x), (2, 3))
    assert body(decompose(program)) == (
        "v1 = max(x, axis=(1,), keepdim=True) : float32[2, 1]\n"
        "v2 = subtract(x, v1) : float32[2, 3]\n"
        "v3 = exp(v2) : float32[2, 3]\n"
        "v4 = sum(v3, axis=(1,), keepdim=True) : float32[2, 1]\n"
        "v5 = divide(v3, v4) : float32[2, 3]\n"
        "return v5"
    )


def with_gradient(f):
    def both(x, *rest):
        x.stop_gradient = False
        y = f(x, *rest)
        return y, *paddle.grad([y], [x])

    return both


APART = {
    "softmax": (lambda x: F.softmax(x, axis=0), (4, 3)),
    "log_softmax": (lambda x: F.log_softmax(x), (4, 3)),
    "cross_entropy": (lambda x, y: F.cross_entropy(x, y), (4, 3), LABELS),
    "cross_entropy, rows": (lambda x, y: F.cross_entropy(x, y, reduction="none"), (4, 3), LABELS),
    "cross_entropy, sum": (lambda x, y: F.cross_entropy(x, y, reduction="sum"), (4, 3), LABELS),
    "cross_entropy, ignored": (lambda x, y: F.cross_entropy(x, y, ignore_index=1), (4, 3), LABELS),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, 3, w, b), (4, 3), (3,), (3,)),
    "rms_norm": (lambda x: F.rms_norm(x, 3)[0], (4, 3)),
    "mean": (lambda x: x.mean(axis=1, keepdim=True), (4, 3)),
    "logsumexp": (lambda x: x.logsumexp(axis=0), (4, 3)),
    "linear": (lambda x, w, b: F.linear(x, w, b), (2, 4, 3), (3, 5), (5,)),
    "norm": (lambda x: x.norm(p=2, axis=1), (4, 3)),
    "norm, p=3": (lambda x: x.norm(p=3, axis=1), (4, 3)),
}


@pytest.mark.parametrize("name", APART)
def test_taken_apart_means_the_same(name):
    f, *specs = APART[name]
    program = program_of(with_gradient(f), *specs)
    after = decompose(program)
    assert not {r.op for r in after.records} & set(RULES)
    same_results(program, after)


@pytest.mark.parametrize("ignore", [-100, 1])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_the_second_derivative_of_cross_entropy(reduction, ignore):
    def f(x, y):
        x.stop_gradient = False
        loss = F.cross_entropy(x, y, reduction=reduction, ignore_index=ignore).sum()
        (g,) = paddle.grad([loss], [x], create_graph=True)
        return paddle.grad([(g * g).sum()], [x])

    program = program_of(f, (4, 3), LABELS)
    same_results(program, decompose(program))


def test_cross_entropy_with_class_weights():
    def f(x, y, w):
        x.stop_gradient = False
        loss = F.cross_entropy(x, y, weight=w, ignore_index=1)
        return loss, *paddle.grad([loss], [x])

    program = program_of(f, (4, 3), LABELS, (3,))
    same_results(program, decompose(program))


def test_what_taking_apart_leaves():
    """A mean of whole numbers is rounded as NumPy rounds it; half precision is rounded once."""
    whole = program_of(lambda x: paddle.mean(x.astype("int64")).astype("float32"), (4,))
    after = decompose(whole)
    assert "mean" not in {r.op.name for r in after.records}
    same_results(whole, after, [np.array([-3.0, -2.0, -1.0, 0.5], "f4")], rtol=0, atol=0)
    half = program_of(lambda x: F.softmax(x.astype("float16")), (4, 3))
    after = decompose(half)
    assert [r.dtype.name for r in after.records if r.op.name == "exp"] == ["float32"]
    same_results(half, after, rtol=0, atol=0)


def test_a_label_that_is_no_class_is_still_refused():
    program = decompose(program_of(lambda x, y: F.cross_entropy(x, y), (4, 3), LABELS))
    with pytest.raises(IndexError, match="7 is no number from 0 to 2"):
        same_results(program, program, [np.ones((4, 3), "f4"), np.full(4, 7)])


def test_sizes_become_numbers():
    n = symbol("n", 5)
    program = program_of(lambda x: x.reshape([-1, 2]) + x.shape[0], Spec((n, 4), np.dtype("f4")))
    assert open_sizes(program) == {"n"}
    sizes = sizes_of(program, [(3, 4)])
    assert sizes == {"n": 3}
    after = specialise(program, sizes=sizes)
    assert body(after) == (
        "v1 = reshape(x, shape=(6, 2,)) : float32[6, 2]\nv2 = add(v1, 3) : float32[6, 2]\nreturn v2"
    )
    assert not open_sizes(after)
    assert specialise(program) is program


def test_what_is_given_is_an_input_and_nothing_else():
    """A backward is given what the forward computed: no pass may look at how."""
    program = program_of(lambda x, y, g: (x.tanh() + -y, (x.tanh() + -y).exp() * g), *[(3,)] * 3)
    made = program.records[2]  # x.tanh() + -y: a rule would write a difference of it
    late = [r for r in program.records[3:] if r.op.name in ("exp", "multiply")]
    late[0] = Record(late[0].op, [made], {}, *made.spec)
    late[1] = Record(late[1].op, [late[0], program.inputs[2]], {}, *made.spec)
    back = Program("back", [made, program.inputs[2]], [], late, [late[1], made])
    after = optimized(back, fusion=False).program
    assert [r.op.name for r in after.given] == ["input"] * 2
    assert [r.op.name for r in after.records] == ["exp", "multiply"]
    same_results(back, after)


def test_sizes_in_regions_and_states():
    net = paddle.nn.BatchNorm1D(4)

    def f(x):
        y = net(x)
        return paddle.static.nn.cond(y.sum() > 0, lambda: y * 2.0, lambda: y)

    program = program_of(f, Spec((symbol("n", 5), 4), np.dtype("f4")))
    after = optimized(program, sizes={"n": 3}).program
    assert not open_sizes(after)
    assert [s.storage for s in after.states] == [s.storage for s in program.states]
    same_results(specialise(program, sizes={"n": 3}), after)


def test_a_rule_that_changes_the_spec_is_refused():
    program = program_of(lambda x: x.exp(), (2, 3))
    exp = program.records[0].op
    with pytest.raises(ValueError, match=r"float32\[3, 2\] cannot stand for exp"):
        rewritten(program, {exp: lambda record, x: x.t()})


def test_what_a_rule_writes_has_the_line_of_what_it_replaces():
    program = program_of(lambda x: F.softmax(x), (2, 3))
    lines = {r.where for r in decompose(program).records}
    assert lines == {program.records[0].where}


def test_results_stay_memory_of_their_own():
    before = program_of(lambda x: (x + 0, x + 0, x.reshape([3, 2])), (2, 3))
    after = rewritten(before, {before.records[0].op: lambda record, x, y: x})
    assert body(separate(before, after)) == (
        "v1 = reshape(x, shape=(3, 2,)) : float32[3, 2]\n"
        "v2 = assign(x) : float32[2, 3]\n"
        "v3 = assign(x) : float32[2, 3]\n"
        "return v2, v3, v1"
    )


def test_all_regions_are_rewritten():
    def f(x):
        return paddle.static.nn.while_loop(
            lambda y: y.sum() < 100, lambda y: [F.softmax(y) + y.abs() * 2.0 + 1.0], [x]
        )[0]

    program = program_of(f, (2, 3))
    after = optimized(program).program
    assert "softmax" not in [r.op.name for r in everywhere(after)]
    same_results(program, after)
    assert "decompose" in PASSES
