"""Checks of 17_a_tensor_in_pieces/letters."""

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.distributed as dist
from minipaddle.distributed import Replicate, Shard
from minipaddle.engine.core.op import OPS
from minipaddle.engine.core.record import Spec
from minipaddle.engine.sharding.letters import Axis, LetterRule
from minipaddle.learn import Exercise, expect, expect_that

exercise = Exercise(
    title="Letters: sharding rules from kinds",
    level="medium",
    minutes=25,
    before=("17_a_tensor_in_pieces/pieces",),
    slots={
        "sharding.broadcast_rule": "broadcast_rule",
        "sharding.reduction_rule": "reduction_rule",
    },
    hints=(
        "An input [3] is added to one of [4, 3], whose rows are cut: which rows of [3] does a rank "
        "need? And if the columns are cut?",
        "Broadcasting: which axes of the result does an input of fewer axes have? Reduction: a "
        "letter of the input that is in the result, one that leaves terms, and one that must not "
        "be there at all.",
        "broadcast_rule: a letter for each axis of the result; an input has the last ones, None "
        "where its size is not the result's\n"
        "reduction_rule: a letter for each axis of the input, None for reduced ones if "
        "collective_of(op) is None;\n    the result has those that are not reduced, with keepdim "
        "None for the reduced ones;\n    terms: for each reduced letter collective_of(op), if it "
        "is not None",
    ),
    wrong={
        "axes counted from the first": (
            "skipped = len(shape) - spec.ndim → skipped = 0",
            "zip(spec.shape, shape[skipped:], letters[skipped:]) → "
            "zip(spec.shape, shape, letters)",
        ),
        "repeated axes with letters": "letter if n == m else None → letter",
        "no axis of size 1 has a letter": "letter if n == m else None → letter if n > 1 else None",
        "terms without a word": "LetterRule([tuple(given)], [tuple(kept)], terms) → "
                                "LetterRule([tuple(given)], [tuple(kept)])",
        "always sums": "{letters[d].letter: combine for d in over} → "
                       "{letters[d].letter: 'sum' for d in over}",
        "terms of what nobody can combine": "a if combine or d not in over else None → a",
        "sums of whole axes": "a if combine or d not in over else None → "
                              "a if d not in over else None",
        "a reduced axis that is kept has its letter": (
            "None if d in over else a → a"
        ),
        "keepdim forgotten": "attrs['keepdim'] or d not in over → d not in over",
        "a number as if it had axes": "return () → return (None,)",
    },
    unkillable={
        "letters = [Axis(c) for c in names(specs[0].ndim)] → "
        "letters = [Axis(c) for c in names(specs[-1].ndim)]": "a reduction has one input",
        "shape = results[0].shape → shape = results[-1].shape": "there is one result",
        "pairs = zip(spec.shape, shape[skipped:], letters[skipped:]) → "
        "pairs = zip(shape[skipped:], spec.shape, letters[skipped:])": "sizes are only compared",
    },
)  # fmt: skip


@exercise.mistake("nothing may be cut")
def broadcast_rule(op, specs, attrs, results):
    inputs = [(None,) * getattr(spec, "ndim", 0) for spec in specs]
    return LetterRule(inputs, [(None,) * results[0].ndim])


def spec(shape, dtype="float32") -> Spec:
    return Spec(tuple(shape), np.dtype(dtype))


def checked(rule, specs, results, given) -> tuple:
    """The letters of inputs and results as texts, `.` for an axis without one, and the terms: the
    letters of the first axes come first in the alphabet, whatever they are called.
    """
    expect_that(isinstance(rule, LetterRule), "a Rule", given=given, got=rule)
    found, known = [], {}
    for side, tensors in ((rule.inputs, specs), (rule.results, results)):
        expect_that(type(side) is list and all(type(axes) is tuple for axes in side),
                    "a list of tuples", given=given, got=side)  # fmt: skip
        expect_that(len(side) == len(tensors), "a tuple for each", given=given, got=side)
        texts = []
        for axes, each in zip(side, tensors):
            expect(len(axes), getattr(each, "ndim", 0), given=given, why="an entry for each axis")
            good = all(a is None or (type(a) is Axis and a.unit == 1) for a in axes)
            expect_that(good, "Axis(letter) or None", given=given, got=axes)
            texts.append([a and a.letter for a in axes])
        found.append(texts)
    most = max(found[1] + found[0], key=lambda text: sum(map(bool, text)))
    known = {letter: chr(ord("A") + d) for d, letter in enumerate(most) if letter}
    expect_that(len(known) == sum(map(bool, most)), "different letters", given=given, got=most)
    said = [
        ",".join("".join(known.get(a, "?") if a else "." for a in text) for text in side)
        for side in found
    ]
    return "->".join(said), {known.get(letter, "?"): how for letter, how in rule.terms.items()}


def elementwise(yours, shapes):
    """The rule of a sum (of a choice, for three) of arrays of these shapes; None is a number."""
    specs = [2.5 if shape is None else spec(shape) for shape in shapes]
    results = [spec(np.broadcast_shapes(*(s for s in shapes if s is not None)))]
    op = OPS[("neg", "add", "where")[min(len(shapes), 3) - 1]]
    given = {"op": op.name, "shapes": shapes}
    return checked(yours.broadcast_rule(op, specs, {}, results), specs, results, given)


@exercise.example
def what_is_broadcast(yours):
    """Axes from the last; sizes of 1 that are repeated, and those that are not; numbers."""
    for shapes, expected in (
        ([(4, 3), (3,)], "AB,B->AB"),
        ([(4, 3), (4, 1)], "AB,A.->AB"),
        ([(1, 3), (4, 1)], ".B,A.->AB"),
        ([(4, 1), (1, 1)], "AB,.B->AB"),
        ([(2, 4, 3), (4, 1), ()], "ABC,B.,->ABC"),
        ([(1,)], "A->A"),
        ([()], "->"),
        ([(4,), None], "A,->A"),
        ([None, (4, 2)], ",AB->AB"),
        ([(0, 3), (1, 3)], "AB,.B->AB"),
    ):
        expect(elementwise(yours, shapes), (expected, {}), given={"shapes": shapes})


@exercise.example
def nine_axes(yours):
    """Many inputs, and many axes."""
    shape, text = (1, 2, 1, 2, 1, 2, 1, 2, 3), "ABCDEFGHI"
    found = elementwise(yours, [shape, (3,), *[shape] * 7])
    expect(found[0], f"{text},I,{','.join([text] * 7)}->{text}", given="nine inputs of nine axes")
    attrs = {"axis": (0, 8), "keepdim": False}
    specs, results = [spec(shape)], [spec(shape[1:8])]
    rule = yours.reduction_rule(OPS["max"], specs, attrs, results)
    expect(checked(rule, specs, results, attrs), (f"{text}->{text[1:8]}", {"A": "max", "I": "max"}),
           given="the maximum over axes 0 and 8 of nine")  # fmt: skip


@exercise.property(
    shape=st.lists(st.integers(2, 3), max_size=4),
    drops=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 15)), min_size=1, max_size=3),
    examples=60,
)
def as_strides_say(yours, shape, drops):
    """NumPy repeats an axis by a stride of 0; where it does, there is no letter."""
    shapes = [shape]
    for fewer, ones in drops[: len(drops) - 1]:
        own = shape[min(fewer, len(shape)) :]
        shapes.append([1 if ones >> d & 1 else n for d, n in enumerate(own)])
    names, texts = "ABCD", []
    for own in shapes:
        # an array whose axes all have a stride, also those of size 1
        strides = [8 * (d + 1) for d in range(len(own))]
        array = np.lib.stride_tricks.as_strided(np.zeros(99), own, strides)
        seen = np.broadcast_to(array, shape)
        some = len(shape) - len(own)
        texts.append("".join(
            names[d] if seen.strides[d] and own[d - some] == shape[d] else "."
            for d in range(some, len(shape))
        ))  # fmt: skip
    expected = f"{','.join(texts)}->{names[: len(shape)]}"
    expect(elementwise(yours, [tuple(s) for s in shapes]), (expected, {}), given={"shapes": shapes})


HOW = {"sum": np.add, "max": np.maximum, "min": np.minimum, "prod": np.multiply}


class Norm:
    """A reduction that somebody adds to the engine: no collective joins its terms."""

    name, identity = "norm", 0.0
    combine = staticmethod(lambda m, a, b: (a * a + b * b) ** 0.5)


NAMES = ["sum", "max", "min", "prod", "all", "any", "norm"]


@exercise.property(
    shape=st.lists(st.integers(2, 4), min_size=1, max_size=4),
    name=st.sampled_from(NAMES),
    over=st.integers(1, 15),
    keepdim=st.booleans(),
    examples=100,
)
def arrays_really_cut(yours, shape, name, over, keepdim):
    """Cut along a letter, reduced, and put together again: the reduction of the whole."""
    axes = tuple(d for d in range(len(shape)) if over >> d & 1) or (0,)
    x = np.random.default_rng(over).permutation(int(np.prod(shape))).reshape(shape) + 1.0
    x = x > x.mean() if name in ("all", "any") else x

    def reduced(array):
        if name == "norm":
            return np.sqrt(np.sum(array * array, axis=axes, keepdims=keepdim))
        return getattr(np, name)(array, axis=axes, keepdims=keepdim)

    whole = reduced(x)
    attrs = {"axis": axes, "keepdim": keepdim}
    given = {"op": name, "shape": shape, **attrs}
    rule = yours.reduction_rule(OPS.get(name, Norm), [spec(shape)], attrs, [spec(whole.shape)])
    (text, terms) = checked(rule, [spec(shape)], [spec(whole.shape)], given)
    source, result = text.split("->")
    letters = "ABCD"[: len(shape)]
    must = [letters[d] if name != "norm" or d not in axes else "." for d in range(len(shape))]
    if "." in source and name != "norm":
        expect(source, "".join(must), given=given, why="all axes of the input may be cut")
    expect([c == "." for c in source], [c == "." for c in must], given=given, why="whole axes")
    for d, letter in enumerate(source):
        if letter == ".":
            continue
        halves = [reduced(half) for half in np.array_split(x, 2, axis=d)]
        if letter in result:
            joined = np.concatenate(halves, axis=result.index(letter))
        else:
            expect_that(
                letter in terms, f"how terms of {name} are combined", given=given, got=terms
            )
            expect_that(terms[letter] in HOW, "one of sum, max, min, prod", given=given, got=terms)
            joined = HOW[terms[letter]](*halves)
            if name == "sum":
                joined = joined.astype(whole.dtype)
        expect(joined.astype(float), whole.astype(float), given=given | {"cut along": d})
    expect(sorted(terms), sorted(c for c in source if c not in result and c != "."), given=given,
           why="the letters that leave terms")  # fmt: skip
    expect(sum(c != "." for c in result), len(shape) - len(axes), given=given,
           why="axes of the result that may be cut")  # fmt: skip


def on_rank(x, b):
    """A sum of squares and a maximum of x + b, where the columns of x are cut."""
    mesh = dist.ProcessMesh([0, 1])
    x = dist.shard_tensor(paddle.to_tensor(x), mesh, [Shard(1)], stop_gradient=False)
    b = dist.shard_tensor(paddle.to_tensor(b), mesh, [Replicate()])
    y = x + b
    step = paddle.jit.to_static(lambda y: ((y * y).sum(1), y.max(1), y.max(0, keepdim=True)))
    found = step(y)
    found[0].sum().backward()
    return y.placements, [dist.unshard_dtensor(t).numpy() for t in (*found, x.grad)]


@exercise.example
def the_engine_on_it(yours):
    """Columns of x + b on two ranks: sums, maxima and a gradient."""
    x, b = np.arange(12.0).reshape(2, 6) - 5, np.linspace(-3, 3, 6)
    with exercise.plugged(yours):
        found = dist.spawn(on_rank, args=(x, b), nprocs=2, timeout=20.0).results
    y = x + b
    for placements, values in found:
        expect(placements, [Shard(1)], given="x cut along its columns, plus b")
        expected = [(y * y).sum(1), y.max(1), y.max(0, keepdims=True), 2 * y]
        expect(values, expected, given="sum of squares and maxima of x + b", rtol=1e-12)
