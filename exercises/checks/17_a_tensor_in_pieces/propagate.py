"""Checks of 17_a_tensor_in_pieces/propagate."""

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.distributed as dist
from minipaddle.distributed import Partial, Replicate, Shard
from minipaddle.engine.core.record import Spec
from minipaddle.engine.sharding.letters import Axis, LetterRule, parse
from minipaddle.engine.sharding.propagate import Letter, Terms
from minipaddle.learn import Exercise, expect, expect_that

exercise = Exercise(
    title="Propagate: from pieces of inputs to pieces of results",
    level="medium",
    minutes=25,
    before=("17_a_tensor_in_pieces/letters",),
    slots={"sharding.letters_to_cut": "letters_to_cut", "sharding.placement_for": "placement_for"},
    hints=(
        "mk,kn->mn, and our axis of the mesh cuts k. Along which of their axes do x and w lie in "
        "pieces, and what does a rank have of the result?",
        "letters_to_cut looks at one placement of each input, the one along our axis. "
        "placement_for knows three kinds of choice; for a Letter: does the tensor have it, and if "
        "not, do terms have it?",
        "letters_to_cut: for each input in pieces along our axis, on an axis with a letter:\n"
        "    Letter(letter, p.unit // unit of the axis, rows of the input // (both units)), once\n"
        "placement_for: None → REPLICATE; Terms → Partial(choice.op) if k is None or an input of it"
        "\n    Letter: Shard(d, axis.unit · choice.unit) if an axis has it; else a term, or whole",
    ),
    wrong={
        "whatever the axis of the mesh": "p = placements[axis] → p = placements[0]",
        "axes that have to be whole are cut": "if axes[p.dim] is None: → if False:",
        "a letter for each input that has it": "if candidate not in found: → if True:",
        "blocks of rows, not of blocks": "p.unit // rows if p.unit % rows == 0 else 1 → p.unit",
        "rows, not groups": "spec.shape[p.dim] // (rows * unit) → spec.shape[p.dim]",
        "the last input's letters first": (
            "zip(rule.inputs, specs, placed) → "
            "[*zip(rule.inputs, specs, placed)][::-1]"
        ),
        "a sum whose terms nobody knows of": (
            "Partial(terms[choice.letter]) if choice.letter in terms else REPLICATE → REPLICATE"
        ),
        "always a sum": "Partial(terms[choice.letter]) → Partial()",
        "a term wherever the letter is missing": (
            "Partial(terms[choice.letter]) if choice.letter in terms else REPLICATE → Partial()"
        ),
        "the unit of the axis alone": "axis.unit * choice.unit → axis.unit",
        "all inputs terms": "k is None or k in choice.inputs → True",
        "results that are no terms": "k is None or k in choice.inputs → k in choice.inputs",
        "what is not cut, a term": "if choice is None: → if choice is None and axes:",
    },
    unkillable={
        f"{name}: right only for positive axes": "axes of a mesh are 0 and more"
        for name in ("letters_to_cut", "placement_for")
    },
)  # fmt: skip


@exercise.mistake("the letter's own axis number, from the result")
def placement_for(choice, axes, terms, k):
    if choice is None:
        return Replicate()
    if isinstance(choice, Terms):
        return Partial(choice.op) if k is None or k in choice.inputs else Replicate()
    return Shard(0, choice.unit)


R = Replicate()


def spec(*shape) -> Spec:
    return Spec(shape, np.dtype("float32"))


def letters(yours, rule, specs, placed, axis):
    found = yours.letters_to_cut(rule, specs, placed, axis)
    given = {"inputs": rule.inputs, "shapes": [getattr(s, "shape", s) for s in specs],
             "placed": placed, "axis": axis}  # fmt: skip
    good = type(found) is list and all(type(each) is Letter for each in found)
    expect_that(good, "a list of Letters", given=given, got=found)
    return [tuple(each) for each in found], given


@exercise.example
def a_product(yours):
    """mk,kn->mn: along each axis of the mesh another letter, or two, or none."""
    rule, specs = parse("mk,kn->mn"), [spec(6, 8), spec(8, 4)]
    for placed, first, second in (
        ([(R, R), (R, R)], [], []),
        ([(Shard(0), R), (R, Shard(1))], [("m", 1, 6)], [("n", 1, 4)]),
        ([(Shard(1), Shard(0)), (Shard(0), Shard(0))], [("k", 1, 8)], [("m", 1, 6), ("k", 1, 8)]),
        ([(Partial(), Shard(1)), (Shard(1), Partial("max"))], [("n", 1, 4)], [("k", 1, 8)]),
        ([(Shard(0), Shard(0)), (Shard(1), R)], [("m", 1, 6), ("n", 1, 4)], [("m", 1, 6)]),
    ):
        for axis, expected in enumerate((first, second)):
            found, given = letters(yours, rule, specs, placed, axis)
            expect(found, expected, given=given)


@exercise.example
def blocks_numbers_and_axes_without_letters(yours):
    """Units of axes and of cuts; a number among the inputs; an axis that has to be whole."""
    blocks = LetterRule([(Axis("h", 4), Axis("c"))], [(Axis("h"), None, Axis("c"))])
    for p, expected in (
        (Shard(0), [("h", 1, 6)]), (Shard(0, 4), [("h", 1, 6)]), (Shard(0, 8), [("h", 2, 3)]),
        (Shard(0, 6), [("h", 1, 6)]), (Shard(0, 20), [("h", 5, 1)]), (Shard(0, 2), [("h", 1, 6)]),
        (Shard(1, 3), [("c", 3, 1)]), (Shard(1, 2), [("c", 2, 2)]),
    ):  # fmt: skip
        found, given = letters(yours, blocks, [spec(24, 5)], [(p,)], 0)
        expect(found, expected, given=given)
    found, given = letters(yours, parse("a,->a"), [spec(5), 2.5], [(Shard(0),), None], 0)
    expect(found, [("a", 1, 5)], given=given)
    found, given = letters(yours, parse(",a->a"), [2.5, spec(5)], [None, (Shard(0),)], 0)
    expect(found, [("a", 1, 5)], given=given)
    found, given = letters(yours, parse("a.,a->a."), [spec(6, 3), spec(6)],
                           [(Shard(1),), (Shard(0),)], 0)  # fmt: skip
    expect(found, [("a", 1, 6)], given=given)
    found, given = letters(yours, parse("a.->a."), [spec(6, 3)], [(Shard(1),)], 0)
    expect(found, [], given=given)
    # the same letter, cut otherwise, is another candidate
    two, placed = [spec(6), spec(6)], [(Shard(0, 2),), (Shard(0),)]
    found, given = letters(yours, parse("a,a->a"), two, placed, 0)
    expect(found, [("a", 2, 3), ("a", 1, 6)], given=given)


def placement(yours, choice, axes, terms, k):
    given = {"choice": choice, "axes": axes, "terms": terms, "k": k}
    return yours.placement_for(choice, axes, terms, k), given


@exercise.example
def three_kinds_of_choice(yours):
    """Letters, terms, nothing; for inputs and for results."""
    x, w, y = (tuple(map(Axis, text)) for text in ("mk", "kn", "mn"))
    m, k2, kept = Letter("m", 1, 6), Letter("k", 2, 4), Terms(frozenset([0, 2]), "avg")
    sums = {"k": "sum"}
    for choice, axes, terms, k, expected in (
        (m, x, {}, 0, Shard(0)), (m, w, {}, 1, R), (m, y, sums, None, Shard(0)),
        (k2, x, {}, 0, Shard(1, 2)), (k2, w, {}, 1, Shard(0, 2)), (k2, y, sums, None, Partial()),
        (k2, y, {"k": "max"}, None, Partial("max")), (k2, y, {}, None, R),
        (k2, (None, Axis("k", 3)), {}, 1, Shard(1, 6)), (k2, (), {}, 0, R),
        (k2, (), sums, None, Partial()), (m, (None, None), {}, 0, R),
        (kept, x, {}, 0, Partial("avg")), (kept, x, {}, 1, R), (kept, x, {}, 2, Partial("avg")),
        (kept, y, {"k": "max"}, None, Partial("avg")), (kept, (), {}, None, Partial("avg")),
        (None, x, {}, 0, R), (None, y, sums, None, R), (None, (), {}, None, R),
        (Letter("m", 1, 6), (Axis("m", 5),), {}, 0, Shard(0, 5)),
    ):  # fmt: skip
        found, given = placement(yours, choice, axes, terms, k)
        expect(found, expected, given=given)


@exercise.example
def many_axes(yours):
    """Nine inputs, a mesh of nine axes, a tensor of nine."""
    text = "abcdefghi"
    rule, specs = parse(",".join([text] * 9) + f"->{text}"), [spec(*range(2, 11))] * 9
    placed = [(R,) * 8 + (Shard(k),) for k in range(8, -1, -1)]
    found, given = letters(yours, rule, specs, placed, 8)
    expect(found, [(text[k], 1, k + 2) for k in range(8, -1, -1)], given=given)
    axes, sums = tuple(map(Axis, text)), dict.fromkeys(text + "z", "max")
    for choice, k, expected in (("i", 0, Shard(8)), ("z", None, Partial("max"))):
        found, given = placement(yours, Letter(choice, 1, 2), axes, sums if k is None else {}, k)
        expect(found, expected, given=given)


@exercise.property(
    text=st.sampled_from(["mk,kn->mn", "abk,kc->abc", "ab,b->ab", "ab->", "ab,cb->ac", "a,a->"]),
    letter=st.integers(0, 9),
    parts=st.integers(1, 3),
    seed=st.integers(0, 999),
    examples=40,
)
def arrays_really_cut(yours, text, letter, parts, seed):
    """Inputs cut as you say, each piece computed, the results joined as you say: the whole."""
    rule, draw = parse(text), np.random.default_rng(seed)
    sizes = {c: int(draw.integers(1, 7)) for c in "abckmn"}
    names = sorted({c for c in text if c.isalpha()})
    letter = names[letter % len(names)]
    left = text.split("->")[0]
    wholes = [draw.normal(size=[sizes[c] for c in axes]) for axes in left.split(",")]
    choice = Letter(letter, 1, sizes[letter])
    ways = [yours.placement_for(choice, axes, {}, k) for k, axes in enumerate(rule.inputs)]
    result = yours.placement_for(choice, rule.results[0], rule.terms, None)
    given = {"rule": text, "letter": letter, "inputs": ways, "result": result}
    pieces = [
        np.array_split(x, parts, axis=way.dim) if way.is_shard() else [x] * parts
        for x, way in zip(wholes, ways)
    ]
    found = [np.einsum(text, *own) for own in zip(*pieces)]
    if result.is_shard():
        joined = np.concatenate(found, axis=result.dim)
    else:
        joined = sum(found) if result.is_partial() else found[0]
    expect(joined, np.einsum(text, *wholes), given=given, rtol=1e-9)
    for k, (axes, way) in enumerate(zip(left.split(","), ways)):
        expect(
            way.is_shard(), letter in axes, given=given | {"k": k}, why="cut, if it has the letter"
        )


def on_rank(x, w, b, ways):
    """A layer of two products on 2 by 2 ranks, its gradients, and how they lie."""
    mesh = dist.ProcessMesh([[0, 1], [2, 3]])
    x, w, b = (
        dist.shard_tensor(paddle.to_tensor(a), mesh, list(way), stop_gradient=False)
        for a, way in zip((x, w, b), ways)
    )
    y = x @ w
    lies = y.placements  # before its terms are joined, for the sum
    z = paddle.tanh(y + b)
    (z * z).sum().backward()
    wholes = [dist.unshard_dtensor(t).numpy() for t in (z, x.grad, w.grad, b.grad)]
    return lies, wholes


@exercise.example
def the_engine_on_it(yours):
    """tanh(x @ w + b) on 2 by 2 ranks, cut in several ways, with its gradients."""
    draw = np.random.default_rng(0)
    x, w, b = draw.normal(size=(4, 6)), draw.normal(size=(6, 4)), draw.normal(size=4)
    z = np.tanh(x @ w + b)
    g = 2 * z * (1 - z * z)
    expected = z, g @ w.T, x.T @ g, g.sum(0)
    for ways, lies in (
        ([(Shard(0), R), (R, Shard(1)), (R, Shard(0))], [Shard(0), Shard(1)]),
        ([(Shard(0), Shard(1)), (R, Shard(0)), (R, R)], [Shard(0), Partial()]),
        ([(R, R), (Shard(1), R), (Shard(0), R)], [Shard(1), R]),
    ):
        with exercise.plugged(yours):
            found = dist.spawn(on_rank, args=(x, w, b, ways), nprocs=4, timeout=20.0).results
        for placements, values in found:
            expect(placements, lies, given={"x, w, b": ways}, why="how x @ w lies")
            expect(values, expected, given={"x, w, b": ways}, rtol=1e-9)
