"""Checks of 17_a_tensor_in_pieces/terms."""

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.distributed as dist
from minipaddle.distributed import Partial, Replicate, Shard
from minipaddle.engine.core.op import OPS
from minipaddle.engine.core.record import Spec
from minipaddle.engine.sharding.letters import LetterRule, parse, rule_of
from minipaddle.engine.sharding.propagate import Letter, Terms
from minipaddle.learn import Exercise, expect, expect_that

exercise = Exercise(
    title="Terms: when a sum must be added up",
    level="medium",
    minutes=20,
    before=("17_a_tensor_in_pieces/propagate",),
    slots={"sharding.candidates": "candidates"},
    hints=(
        "Rank 0 has a, rank 1 has b, and a + b is meant. Of -(a + b), (a + b)·c and (a + b)² which "
        "can they compute without a message, so that again the sum of what they have is meant?",
        "Look at one set of `rule.linear` at a time. What must hold of the placements of all its "
        "inputs along our axis? And of those of the other inputs: nothing, they will lie whole.",
        "for each set of rule.linear: the placements of its inputs along our axis, as a set;\n"
        "    if there is one alone, a term with the op sum or avg: Terms(the set, its op)\n"
        "one input and some to keep: these, then None; else letters, None, these",
    ),
    wrong={
        "terms always kept": "first.op in ('sum', 'avg') → True",
        "sums alone": "first.op in ('sum', 'avg') → first.op == 'sum'",
        "some of the inputs terms": "not others and first and first.is_partial() and "
                                    "first.op in ('sum', 'avg') → any(p is not None and "
                                    "p.is_partial() for p in own) and first is not None and "
                                    "first.is_partial()",
        "the first axis of the mesh": "placed[k] and placed[k][axis] → placed[k] and placed[k][0]",
        "always a sum": "Terms(together, first.op) → Terms(together, 'sum')",
        "every input a term": "Terms(together, first.op) → "
                              "Terms(frozenset(range(len(specs))), first.op)",
        "joined first": "if len(specs) == 1 and kept: → if False:",
        "never joined": "return [*kept, None] → return kept",
        "kept first, with several inputs, too": "if len(specs) == 1 and kept: → if kept:",
        "terms before letters": (
            "return [*letters_to_cut(rule, specs, placed, axis), None, *kept] → "
            "return [*kept, *letters_to_cut(rule, specs, placed, axis), None]"
        ),
        "nothing is no choice": (
            "return [*letters_to_cut(rule, specs, placed, axis), None, *kept] → "
            "return [*letters_to_cut(rule, specs, placed, axis), *kept] or [None]"
        ),
        "pieces as terms": (
            "not others and first and first.is_partial() and first.op in ('sum', 'avg') → "
            "not others and first and not first.is_replicated()",
            "Terms(together, first.op) → Terms(together, getattr(first, 'op', 'sum'))",
        ),
    },
    unkillable={
        "candidates: right only for positive axes": "axes of a mesh are 0 and more",
    },
)  # fmt: skip


@exercise.mistake("everything is joined before it is used")
def candidates(rule, specs, placed, axis):
    from minipaddle.engine.sharding.propagate import letters_to_cut

    return [*letters_to_cut(rule, specs, placed, axis), None]


@exercise.mistake("terms stay, whatever the operator")
def candidates(rule, specs, placed, axis):  # noqa: F811
    own = [p[axis] if p else None for p in placed]
    terms = frozenset(k for k, p in enumerate(own) if p is not None and p.is_partial())
    from minipaddle.engine.sharding.propagate import Terms, letters_to_cut

    found = [*letters_to_cut(rule, specs, placed, axis), None]
    return [Terms(terms, "sum"), *found] if terms else found


R, P = Replicate(), Partial()


def spec(*shape) -> Spec:
    return Spec(shape, np.dtype("float32"))


def rule_with(text, *linear) -> LetterRule:
    rule = parse(text)
    rule.linear = tuple(map(frozenset, linear))
    return rule


def terms(*inputs, op="sum") -> Terms:
    return Terms(frozenset(inputs), op)


def listed(yours, rule, specs, placed, axis):
    found = yours.candidates(rule, specs, placed, axis)
    given = {"linear in": [set(s) for s in rule.linear], "placed": placed, "axis": axis}
    kinds = {type(None), Letter, Terms}
    expect_that(type(found) is list and {*map(type, found)} <= kinds,
                "a list of Letters, Terms and None", given=given, got=found)  # fmt: skip
    expect_that(all(type(e.inputs) is frozenset for e in found if type(e) is Terms), "frozensets",
                given=given, got=found)  # fmt: skip
    return found, given


@exercise.example
def one_input(yours):
    """A movement keeps terms of sums and averages; a GELU does not."""
    linear, not_linear = rule_with("ab->ba", [0]), rule_with("ab->ab")
    for rule, p, expected in (
        (linear, P, [terms(0), None]),
        (linear, Partial("avg"), [terms(0, op="avg"), None]),
        (linear, Partial("max"), [None]),
        (linear, Partial("min"), [None]),
        (linear, Partial("prod"), [None]),
        (linear, R, [None]),
        (linear, Shard(1), [Letter("b", 1, 5), None]),
        (not_linear, P, [None]),
        (not_linear, Shard(0), [Letter("a", 1, 4), None]),
    ):
        for axis in (0, 1):
            placed = [(p, R)] if axis == 0 else [(R, p)]
            found, given = listed(yours, rule, [spec(4, 5)], placed, axis)
            expect(found, expected, given=given)
    found, given = listed(yours, linear, [spec(4, 5)], [(Shard(0), P)], 1)
    expect(found, [terms(0), None], given=given)


@exercise.example
def several_inputs(yours):
    """A sum, a product, a choice, and a number among the inputs."""
    add, times = rule_with("a,a->a", [0, 1]), rule_with("a,a->a", [0], [1])
    where, scaled = rule_with("a,a,a->a", [1, 2]), rule_with("a,->a", [0])
    a, m = Letter("a", 1, 6), Partial("max")
    for rule, ways, expected in (
        (add, [P, P], [None, terms(0, 1)]),
        (add, [P, R], [None]),
        (add, [R, P], [None]),
        (add, [P, Partial("avg")], [None]),
        (add, [Partial("avg")] * 2, [None, terms(0, 1, op="avg")]),
        (add, [m, m], [None]),
        (add, [P, Shard(0)], [a, None]),
        (add, [Shard(0), Shard(0)], [a, None]),
        (times, [P, R], [None, terms(0)]),
        (times, [R, P], [None, terms(1)]),
        (times, [P, P], [None, terms(0), terms(1)]),
        (times, [Shard(0), P], [a, None, terms(1)]),
        (where, [R, P, P], [None, terms(1, 2)]),
        (where, [P, P, R], [None]),
        (where, [P, R, R], [None]),
        (scaled, [P, None], [None, terms(0)]),
        (scaled, [R, None], [None]),
        (rule_with(",a->a", [1]), [None, P], [None, terms(1)]),
        (rule_with("a,->a", [0, 1]), [P, None], [None]),
        (rule_with(",a->a", [0, 1]), [None, P], [None]),
    ):
        specs = [2.0 if p is None else spec(6) for p in ways]
        placed = [None if p is None else (p,) for p in ways]
        found, given = listed(yours, rule, specs, placed, 0)
        expect(found, expected, given=given)


@exercise.example
def many_inputs(yours):
    """A sum of nine tensors, on a mesh of nine axes."""
    rule = rule_with(",".join(["a"] * 9) + "->a", range(9))
    placed = [(R,) * 8 + (P,)] * 9
    found, given = listed(yours, rule, [spec(6)] * 9, placed, 8)
    expect(found, [None, terms(*range(9))], given=given)


NAMES = ["add", "subtract", "multiply", "divide", "neg", "abs", "exp", "tanh", "where", "maximum",
         "relu", "square"]  # fmt: skip


@exercise.property(
    name=st.sampled_from(NAMES),
    ways=st.lists(st.sampled_from([R, P]), min_size=3, max_size=3),
    examples=40,
)
def sums_of_terms(yours, name, ways):
    """Two ranks' terms, computed with the operator and added up: what may stay is the whole."""
    op, draw = OPS[name], np.random.default_rng(len(name))
    count = len(op.inputs)
    ways = [R, *ways[:2]] if name == "where" else ways[:count]
    specs = [spec(5)] * count
    if name == "where":
        specs = [Spec((5,), np.dtype(bool)), *specs[1:]]
    rule = rule_of(op, specs, {}, [spec(5)])
    found, given = listed(yours, rule, specs, [(p,) for p in ways], 0)
    given["op"] = name
    for choice in found:
        if type(choice) is not Terms:
            continue
        pieces = []  # of each input what the two ranks have
        for k in range(count):
            a, b = draw.normal(size=(2, 5))
            a = a > 0 if name == "where" and k == 0 else a
            if k in choice.inputs:
                expect_that(ways[k].is_partial(), "inputs that are terms", given=given, got=choice)
            pieces.append((a, b) if k in choice.inputs else (a, a))
        wholes = [a + b if k in choice.inputs else a for k, (a, b) in enumerate(pieces)]
        computed = [op.body(np, *own) for own in zip(*pieces)]
        expect(sum(computed), op.body(np, *wholes), given=given | {"kept": choice}, rtol=1e-9)


def on_rank(x, w, v, function):
    """A product whose terms go through a function, and its gradient; how both lie."""
    mesh = dist.ProcessMesh([0, 1])
    x = dist.shard_tensor(paddle.to_tensor(x), mesh, [Shard(1)], stop_gradient=False)
    w = dist.shard_tensor(paddle.to_tensor(w), mesh, [Shard(0)])
    v = dist.shard_tensor(paddle.to_tensor(v), mesh, [R])
    y = function(x @ w, v)
    lies = y.placements
    (y * y).sum().backward()
    return lies, [dist.unshard_dtensor(t).numpy() for t in (y, x.grad)]


def counted(function):
    """The collectives of the program of a rank."""
    mesh = dist.ProcessMesh([0, 1])
    x, w = paddle.ones([4, 6]), paddle.ones([6, 4])
    step = paddle.jit.to_static(lambda x, w: dist.reshard(function(x, w), mesh, [R]))
    with paddle.no_grad():
        step(dist.shard_tensor(x, mesh, [Shard(1)]), dist.shard_tensor(w, mesh, [Shard(0)]))
    ((part, _),) = step.concrete_program.executables.parts.values()
    return [r.op.name for r in part.records if "group" in r.attrs]


@exercise.example
def the_engine_on_it(yours):
    """Terms go through what is linear, and are joined before a GELU; the numbers of one process."""
    draw = np.random.default_rng(0)
    x, w, v = draw.normal(size=(3, 4)), draw.normal(size=(4, 5)), draw.normal(size=5)
    y, one = x @ w, np.ones(5)
    for name, function, value, slope, lies in (
        ("-y", lambda y, v: -y, -y, -one, P),
        ("y + y", lambda y, v: y + y, 2 * y, 2 * one, P),
        ("y v: joined, for it costs the same", lambda y, v: y * v, y * v, v, R),
        ("tanh(y)", lambda y, v: paddle.tanh(y), np.tanh(y), 1 - np.tanh(y) ** 2, R),
        ("y + v", lambda y, v: y + v, y + v, one, R),
    ):
        with exercise.plugged(yours):
            found = dist.spawn(on_rank, args=(x, w, v, function), nprocs=2, timeout=20.0).results
        for placements, values in found:
            given = {"y = x @ w, in terms": name}
            expect(values, (value, (2 * value * slope) @ w.T), given=given, rtol=1e-9)
            expect(placements, [lies], given=given, why="how it lies")


@exercise.example
def what_travels(yours):
    """Three products of terms, added up: one all-reduce."""
    for name, function in (
        ("x @ w + x @ w + x @ w", lambda x, w: (x @ w + x @ (w * 2)) + x @ (w * 3)),
        ("the transpose of x @ w", lambda x, w: (x @ w).transpose([1, 0])),
    ):
        with exercise.plugged(yours):
            found = dist.spawn(counted, args=(function,), nprocs=2, timeout=20.0).results
        expect(found[0], ["all_reduce"], given=name, why="collectives")
