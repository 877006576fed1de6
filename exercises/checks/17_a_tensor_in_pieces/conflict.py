"""Checks of 17_a_tensor_in_pieces/conflict."""

from fractions import Fraction
from itertools import product

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.distributed as dist
from minipaddle.distributed import Partial, Replicate, Shard
from minipaddle.engine.core.record import Spec
from minipaddle.engine.sharding.letters import parse
from minipaddle.engine.sharding.moves import steps_between
from minipaddle.engine.sharding.propagate import Letter, ShardingPlan, Terms
from minipaddle.learn import Exercise, expect, expect_that

exercise = Exercise(
    title="Conflict: the plan that moves fewest bytes",
    level="medium",
    minutes=30,
    before=("17_a_tensor_in_pieces/terms", "17_a_tensor_in_pieces/moves"),
    slots={"sharding.plan_for": "plan_for", "sharding.propagate": "propagate"},
    hints=(
        "x [m, k] is cut along m, w [k, n] along k, on one axis of the mesh. Which three things "
        "could it do, what has to be moved for each, and what is left to be done afterwards?",
        "plan_for has three parts: how inputs have to lie, how results will, the bytes. In "
        "propagate all axes of the mesh choose for themselves: itertools.product.",
        "plan_for: lying(...) for each input that is no number and for each result\n"
        "    cost = the bytes of moving the inputs; if there are any, or Terms among the chosen:\n"
        "    plus cost_of_next_moves of the results\n"
        "propagate: all combinations of candidates that leave enough; the least by cost, the first "
        "of equals",
    ),
    wrong={
        "the first way that works": "return min(plans, key=lambda plan: plan.cost) → "
                                    "return plans[0]",
        "the dearest": "min(plans, key=lambda plan: plan.cost) → "
                       "max(plans, key=lambda plan: plan.cost)",
        "the last of equals": "min(plans, key=lambda plan: plan.cost) → "
                              "min(plans[::-1], key=lambda plan: plan.cost)",
        "sums for nothing": "cost or any((isinstance(each, Terms) for each in chosen)) → False",
        "sums always counted": "cost or any((isinstance(each, Terms) for each in chosen)) → True",
        "kept terms are free": "cost or any((isinstance(each, Terms) for each in chosen)) → cost",
        "results as inputs": "lying(chosen, axes, spec, mesh_shape, rule.terms, None) → "
                             "lying(chosen, axes, spec, mesh_shape, {}, None)",
        "inputs as results": "lying(chosen, axes, spec, mesh_shape, {}, k) → "
                             "lying(chosen, axes, spec, mesh_shape, rule.terms, None)",
        "all inputs the first": "lying(chosen, axes, spec, mesh_shape, {}, k) → "
                                "lying(chosen, axes, spec, mesh_shape, {}, 0)",
        "numbers of moves": (
            "cost += steps_between(spec.nbytes, before, after, mesh_shape)[0] → "
            "cost += len(steps_between(spec.nbytes, before, after, mesh_shape)[1])"
        ),
        "the way back": "steps_between(spec.nbytes, before, after, mesh_shape) → "
                        "steps_between(spec.nbytes, after, before, mesh_shape)",
        "a rank may get nothing": "leaves_enough(rule, chosen, mesh_shape) → True",
        "all axes of the mesh the same": (
            "product(*choices) → [each for each in product(*choices) if len({*each}) == 1]"
        ),
        "one axis of the mesh alone": "range(len(mesh_shape)) → range(1)",
    },
)  # fmt: skip

R, P = Replicate(), Partial()


def spec(*shape, dtype="float32") -> Spec:
    return Spec(shape, np.dtype(dtype))


def matmul():
    rule = parse("mk,kn->mn")
    rule.linear = (frozenset([0]), frozenset([1]))
    return rule


def planned(yours, rule, specs, placed, results, mesh_shape):
    found = yours.propagate(rule, specs, placed, results, mesh_shape)
    given = {"shapes": [getattr(s, "shape", s) for s in specs], "placed": placed,
             "mesh_shape": mesh_shape}  # fmt: skip
    expect_that(type(found) is ShardingPlan, "a Plan", given=given, got=found)
    good = isinstance(found.cost, int | Fraction)
    expect_that(good, "an exact number of bytes", given=given, got=found.cost)
    return found, given


def fraction(x) -> Fraction:
    return Fraction(x)


@exercise.example
def in_the_task(yours):
    """A product whose inputs are cut along different letters, with few and with many rows."""
    for m, inputs, result, cost in (
        (64, [(Shard(0),), (R,)], (Shard(0),), 64),
        (2, [(Shard(1),), (Shard(0),)], (P,), 32),
    ):
        specs, placed = [spec(m, 8), spec(8, 4)], [(Shard(0),), (Shard(0),)]
        plan, given = planned(yours, matmul(), specs, placed, [spec(m, 4)], (2,))
        expect(plan.inputs, inputs, given=given, why="how the inputs have to lie")
        expect(plan.results, [result], given=given, why="how the result lies")
        expect(fraction(plan.cost) == cost, True, given=given, why=f"{cost} bytes")


@exercise.example
def nothing_has_to_move(yours):
    """What fits costs nothing, terms or not; a number has no placement."""
    for specs, placed, inputs, result in (
        ([spec(6, 8), spec(8, 4)], [(R, R), (R, R)], [(R, R), (R, R)], (R, R)),
        ([spec(6, 8), spec(8, 4)], [(Shard(0), R), (R, Shard(1))],
         [(Shard(0), R), (R, Shard(1))], (Shard(0), Shard(1))),
        ([spec(6, 8), spec(8, 4)], [(Shard(1), R), (Shard(0), R)],
         [(Shard(1), R), (Shard(0), R)], (P, R)),
        ([spec(6, 8), spec(8, 4)], [(Shard(0), Shard(1)), (R, Shard(0))],
         [(Shard(0), Shard(1)), (R, Shard(0))], (Shard(0), P)),
    ):  # fmt: skip
        plan, given = planned(yours, matmul(), specs, placed, [spec(6, 4)], (2, 2))
        expect((plan.inputs, plan.results), (inputs, [result]), given=given)
        expect(fraction(plan.cost) == 0, True, given=given, why="0 bytes")
    rule = parse("ab,->ab")
    rule.linear = (frozenset([0]),)
    plan, given = planned(yours, rule, [spec(4, 4), 2.5], [(Shard(1),), None], [spec(4, 4)], (2,))
    expect((plan.inputs, plan.results), ([(Shard(1),), None], [(Shard(1),)]), given=given)


@exercise.example
def terms_and_results(yours):
    """Terms are kept where that saves a move; several results; nothing has no maximum."""
    add = parse("a,a->a")
    add.linear = (frozenset([0, 1]),)
    two = [spec(8), spec(8)]
    plan, given = planned(yours, add, two, [(P,), (P,)], [spec(8)], (2,))
    expect((plan.inputs, plan.results, fraction(plan.cost) == 32),
           ([(P,), (P,)], [(P,)], True), given=given)  # fmt: skip
    plan, given = planned(yours, add, two, [(P,), (R,)], [spec(8)], (2,))
    expect((plan.inputs, plan.results), ([(R,), (R,)], [(R,)]), given=given)
    times = parse("a,a->a")
    times.linear = (frozenset([0]), frozenset([1]))
    plan, given = planned(yours, times, two, [(P,), (R,)], [spec(8)], (2,))
    expect(plan.inputs, [(R,), (R,)], given=given, why="of equals the first: None before Terms")
    both = parse("ab->b,b")
    plan, given = planned(yours, both, [spec(4, 6)], [(Shard(0),)], [spec(6), spec(6)], (2,))
    expect(plan.results, [(P,), (P,)], given=given)
    top = parse("ab->b|max")
    plan, given = planned(yours, top, [spec(2, 6)], [(Shard(0),)], [spec(6)], (4,))
    expect(plan.inputs, [(R,)], given=given, why="a rank without a row has no maximum")


@exercise.example
def many_axes(yours):
    """A sum of nine tensors, on a mesh of nine axes, of which one has two ranks."""
    rule, mesh = parse(",".join(["a"] * 9) + "->a"), (1,) * 8 + (2,)
    cut, whole = (R,) * 8 + (Shard(0),), (R,) * 9
    placed = [whole, *[cut] * 8]
    plan, given = planned(yours, rule, [spec(4)] * 9, placed, [spec(4)], mesh)
    expect((plan.inputs, plan.results), ([cut] * 9, [cut]), given=given)


TEXTS = ["mk,kn->mn", "ab,ab->ab", "ab,b->ab", "ab,cb->ac", "ab->b", "ab,a->b"]
WAYS = [R, P, Shard(0), Shard(1)]


@exercise.property(
    text=st.sampled_from(TEXTS),
    sizes=st.lists(st.integers(2, 40), min_size=6, max_size=6),
    mesh=st.sampled_from([(2,), (3,), (2, 2), (2, 3)]),
    ways=st.lists(st.integers(0, 3), min_size=4, max_size=4),
    examples=60,
)
def no_plan_is_cheaper(yours, text, sizes, mesh, ways):
    """Against all plans there are: each letter, terms or nothing for each axis of the mesh."""
    rule = parse(text)
    left, right = text.split("->")
    size = dict(zip("abckmn", sizes))
    inputs = left.split(",")
    specs = [spec(*(size[c] for c in axes)) for axes in inputs]
    results = [spec(*(size[c] for c in right))]
    if text in ("mk,kn->mn", "ab,cb->ac", "ab,a->b"):
        rule.linear = (frozenset([0]), frozenset([1]))
    elif text == "ab,ab->ab":
        rule.linear = (frozenset([0, 1]),)
    ways = iter([WAYS[w] for w in ways])
    placed = [tuple(fitting(next(ways), s) for _ in mesh) for s in specs]
    plan, given = planned(yours, rule, specs, placed, results, mesh)
    given["rule"] = text
    costs = {}
    for chosen in product(*(options(rule, inputs, placed, axis) for axis in range(len(mesh)))):
        cost, wanted, found = price(rule, inputs, right, specs, results, placed, mesh, chosen)
        costs.setdefault(cost, []).append((wanted, found))
    least = min(costs)
    said = {"chosen": plan, "the least": least}
    expect(fraction(plan.cost) == least, True, given=given | said, why=f"{least} bytes")
    expect((plan.inputs, plan.results) in costs[least], True, given=given | said,
           why="a plan of so many bytes")  # fmt: skip


def fitting(way, spec):
    return way if not way.is_shard() or way.dim < spec.ndim else R


def options(rule, inputs, placed, axis) -> list:
    """Letters that an input is cut along, None, and sets of terms that can stay."""
    own = [p[axis] for p in placed]
    letters = [axes[p.dim] for axes, p in zip(inputs, own) if p.is_shard()]
    kept = [group for group in rule.linear if all(own[k] == P for k in group)]
    return [*kept, None] if len(inputs) == 1 and kept else [*dict.fromkeys(letters), None, *kept]


def price(rule, inputs, right, specs, results, placed, mesh, chosen):
    """(bytes, how inputs have to lie, how results do) of a choice for each axis of the mesh."""

    def along(choice, axes, k):
        if type(choice) is frozenset:
            return P if k is None or k in choice else R
        if choice is None or (choice not in axes and k is not None):
            return R
        return Shard(axes.index(choice)) if choice in axes else P

    wanted = [tuple(along(c, axes, k) for c in chosen) for k, axes in enumerate(inputs)]
    found = [tuple(along(c, right, None) for c in chosen)]
    cost = sum(
        fraction(steps_between(s.nbytes, before, after, mesh)[0])
        for s, before, after in zip(specs, placed, wanted)
    )
    if cost or any(type(c) is frozenset for c in chosen):
        size = Fraction(results[0].nbytes)
        for p, n in zip(found[0], mesh):
            size /= n if p.is_shard() else 1
        cost += sum(2 * size * (n - 1) / n for p, n in zip(found[0], mesh) if p == P)
    return cost, wanted, found


@exercise.example
def one_choice(yours):
    """plan_for alone: letters, terms and nothing, on two axes of the mesh."""
    rule, specs, results = matmul(), [spec(8, 6), spec(6, 4)], [spec(8, 4)]
    m, k = Letter("m", 1, 8), Letter("k", 1, 6)
    terms = Terms(frozenset([0]), "sum")
    for chosen, inputs, result, cost in (
        ((m, None), [(Shard(0), R), (R, R)], (Shard(0), R), 48),
        ((m, k), [(Shard(0), Shard(1)), (R, Shard(0))], (Shard(0), P), 112),
        ((None, terms), [(R, P), (R, R)], (R, P), None),
        ((None, None), [(R, R), (R, R)], (R, R), 144),
    ):
        placed = [(Shard(0), R), (Shard(0), R)]
        if chosen[1] is terms:
            placed = [(R, P), (R, R)]
        plan = yours.plan_for(rule, specs, placed, results, (2, 2), chosen)
        given = {"chosen": chosen, "placed": placed}
        expect((plan.inputs, plan.results), (inputs, [result]), given=given)
        cost = 128 if cost is None else cost
        expect(fraction(plan.cost) == cost, True, given=given | {"got": plan.cost},
               why=f"{cost} bytes")  # fmt: skip


def on_rank(m):
    """A product of inputs cut along different letters: its collectives and its value."""
    mesh = dist.ProcessMesh([0, 1])
    x, w = np.arange(8.0 * m).reshape(m, 8), np.arange(32.0).reshape(8, 4)
    step = paddle.jit.to_static(lambda x, w: dist.reshard(x @ w, mesh, [R]))
    with paddle.no_grad():
        y = step(*(dist.shard_tensor(paddle.to_tensor(a), mesh, [Shard(0)]) for a in (x, w)))
    ((part, _),) = step.concrete_program.executables.parts.values()
    return [r.op.name for r in part.records if "group" in r.attrs], y.numpy(), x @ w


@exercise.example
def the_engine_on_it(yours):
    """Of a tall x the weight is gathered; of a flat one the rows become columns."""
    for m, expected in ((64, ["all_gather", "all_gather"]), (2, ["all_to_all", "all_reduce"])):
        with exercise.plugged(yours):
            found = dist.spawn(on_rank, args=(m,), nprocs=2, timeout=20.0).results
        for names, y, right in found:
            expect(y, right, given={"rows of x": m})
            expect(names, expected, given={"rows of x": m}, why="collectives")
