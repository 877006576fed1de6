"""Checks of 13_code_generation/index_map."""

import itertools
import random

import numpy as np
from hypothesis import strategies as st

from minipaddle.engine.codegen.group import emit_nest
from minipaddle.engine.core.record import Spec
from minipaddle.engine.eager.tracer import trace
from minipaddle.engine.passes.index import Index, Loop, Part, loop
from minipaddle.engine.passes.manager import optimized
from minipaddle.learn import Exercise, expect, expect_that
from minipaddle.testing import played

BOTH = "return (quotient + turn, rest - turn * n)"
ZERO = "a loop begins at 0, where the rest is less than n: a common quotient is 0"

exercise = Exercise(
    title="Where an element comes from: quotients and remainders",
    level="hard",
    minutes=45,
    before=("12_fusion/index_map",),
    slots={"index.divided": "divided"},
    hints=(
        "Take 12·i + 8·j + 5, divided by 4. Which part of it can not influence the remainder?",
        "Two dicts over self.terms, by `factor % n`. Python's // rounds down, also below 0: "
        "compare rest.low // n with rest.high // n.",
        "quotient = Index(multiples of n, each // n, constant // n)\n"
        "rest = the others, constant % n\n"
        "turn = rest.low // n, the same for rest.high? → quotient + turn, rest - turn·n\n"
        "shared = gcd(n, constant, all factors): divide all three by it\n"
        "rest.low < 0? lift the rest by the smallest multiple of n that makes it 0 or more\n"
        "→ quotient + atom(rest, '/', n), atom(rest, '%', n)·shared",
    ),
    unkillable={
        f"{BOTH} → return (quotient + turn, rest + turn * n)": ZERO,
        f"{BOTH} → return (quotient - turn, rest - turn * n)": ZERO,
        f"{BOTH} → return (quotient + turn, rest - turn / n)": ZERO,
        "if rest.low < 0: → if rest.low < 1:": "0 is lifted by 0",
        "if rest.low < 0: → if rest.low <= 0:": "0 is lifted by 0",
    },
    wrong={
        "multiples of n do not leave": (
            (
                "{a: factor // n for a, factor in self.terms.items() if factor % n == 0} → {a: "
                "factor // n for a, factor in self.terms.items() if False}"
            ),
            (
                "{a: factor for a, factor in self.terms.items() if factor % n} → {a: factor "
                "for a, factor in self.terms.items()}"
            ),
        ),
        "the constant stays whole": (
            "Index(leaving, self.constant // n) → Index(leaving)",
            "self.constant % n → self.constant",
            "rest.low < 0 → False",
        ),
        "the constant lost": "Index(staying, self.constant % n) → Index(staying)",
        "the rest is below n": "turn = rest.low // n → turn = 0",
        "never within one turn": "rest.high // n == turn → n == 1",
        "always within one turn": "rest.high // n == turn → True",
        "what is shared stays": "gcd(n, rest.constant, *staying.values()) → 1",
        "the constant does not count for what is shared": (
            "gcd(n, rest.constant, *staying.values()) → gcd(n, *staying.values())"
        ),
        "the remainder not multiplied": "atom(rest, '%', n) * shared → atom(rest, '%', n)",
        "a negative rest as it is": "rest.low < 0 → False",
        "lifted too far": "-(rest.low // n) → 1 - rest.low // n",
        "lifted, and not taken back": (
            "rest, quotient = (rest + lift * n, quotient - lift) → rest = rest + lift * n"
        ),
    },
)

I, J, K = Loop("i", 5), Loop("j", 4), Loop("k", 8)


def value(index, at):
    """An index at a place, worked out from its terms alone."""
    return index.constant + sum(f * atom_value(a, at) for a, f in index.terms.items())


def atom_value(a, at):
    if not isinstance(a, Part):
        return at[a]
    whole = value(a.whole, at)
    return whole // a.n if a.sign == "/" else whole % a.n


def agrees(index, n, found, given):
    """Quotient and remainder have the values of // and % everywhere; C can compute them."""
    quotient, remainder = found
    loops = sorted({*index.loops, *quotient.loops, *remainder.loops})
    for where in itertools.product(*(range(a.extent) for a in loops)):
        at = dict(zip(loops, where, strict=True))
        got = value(quotient, at), value(remainder, at)
        here = given | {"where": {str(a): x for a, x in at.items()}}
        expect(got, divmod(value(index, at), n), given=here, why="quotient and remainder")
    for part in (t for x in found for t in x.terms if isinstance(t, Part)):
        expect_that(part.whole.low >= 0, "nothing negative is divided in C", given=given,
                    got=str(part))  # fmt: skip
        expect_that(part.whole.low < part.n, "lifted no further than needed", given=given,
                    got=str(part))  # fmt: skip
    return str(quotient), str(remainder)


@exercise.example
def sums_of_loops(yours):
    """What is a sum stays a sum, and is written as one."""
    for terms, constant, n, expected in (
        ({I: 4, J: 1}, 0, 4, ("i", "j")),
        ({I: 4, K: 1}, 0, 4, ("i + ((k) / 4)", "(k) % 4")),
        ({I: 4, J: 2}, 0, 8, ("(i * 2 + j) / 4", "((i * 2 + j) % 4) * 2")),
        ({I: 12, J: 8}, 5, 4, ("i * 3 + j * 2 + 1", "1")),
        ({I: 3}, 0, 1, ("i * 3", "0")),
        ({J: 1}, 4, 4, ("1", "j")),
        ({J: 1}, 6, 4, ("(j + 2) / 4 + 1", "(j + 2) % 4")),
        ({J: -1}, 3, 4, ("0", "-j + 3")),
        ({J: -1}, 0, 4, ("(-j + 4) / 4 - 1", "(-j + 4) % 4")),
        ({}, 11, 4, ("2", "3")),
        ({K: 2}, 1, 4, ("(k * 2 + 1) / 4", "(k * 2 + 1) % 4")),
        ({K: 6}, 3, 9, ("(k * 2 + 1) / 3", "((k * 2 + 1) % 3) * 3")),
        ({K: 1}, -8, 8, ("-1", "k")),
        ({J: 1, K: -4}, 0, 8, ("(j - k * 4 + 32) / 8 - 4", "(j - k * 4 + 32) % 8")),
    ):
        index = Index(terms, constant)
        given = {"index": str(index), "n": n, "loops": "0 ≤ i < 5, 0 ≤ j < 4, 0 ≤ k < 8"}
        found = yours.divided(index, n)
        expect_that(isinstance(found, tuple) and len(found) == 2, "a pair", given=given, got=found)
        said = agrees(index, n, found, given)
        expect(said, expected, given=given, why="as simple as it can be")


@exercise.property(seed=st.integers(0, 9999), examples=60)
def any_sum(yours, seed):
    """Random factors, also negative ones, and constants: // and % at each place."""
    draw = random.Random(seed)
    loops = draw.sample([I, J, K, Loop("m", 3)], draw.randint(0, 3))
    scale = draw.choice((1, 1, 2, 3, 4))
    index = Index({a: scale * draw.randint(-6, 6) for a in loops}, draw.randint(-20, 20))
    n = draw.randint(1, 12)
    agrees(index, n, yours.divided(index, n), {"index": str(index), "n": n})


@exercise.example
def parts_are_atoms(yours):
    """What could not be simplified can be divided once more."""
    with exercise.plugged(yours):
        index = (loop("k", 8) + 3) // 3 * 4 + loop("j", 4)
        found = index.divided(4)
        agrees(index, 4, found, {"index": str(index), "n": 4})
        expect(str(found[1]), "j", given=str(index), why="the remainder by 4")
        flat = loop("i", 5) * 24 + loop("k", 8) * 3 + loop("m", 3)
        got = [str(x) for x in (flat // 24, flat // 3 % 8, flat % 3)]
    expect(got, ["i", "k", "m"], given=str(flat), why="unravelled into 5, 8 and 3")


@exercise.example
def movements_of_the_engine(yours):
    """Reshapes, transposes and slices in one kernel: at each place the right element is read."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4, 6)).astype("float32")
    for function, expected, divisions in (
        (lambda x: [x.reshape([4, 2, 3]).transpose([0, 2, 1]).reshape([12, 2]) + 1.0],
         x.reshape(4, 2, 3).transpose(0, 2, 1).reshape(12, 2) + 1, 2),
        (lambda x: [x.reshape([3, 8]).transpose([1, 0]).reshape([6, 4]) * 2.0],
         x.reshape(3, 8).T.reshape(6, 4) * 2, 6),
        (lambda x: [x[::-1, 1::2].exp()], np.exp(x[::-1, 1::2]), 0),
        (lambda x: [x.transpose([1, 0])[::2, 1:].exp()], np.exp(x.T[::2, 1:]), 0),
    ):  # fmt: skip
        with exercise.plugged(yours):
            program = trace(function, [Spec((4, 6), x.dtype)], names="x").program
            program = optimized(program).program
            kernel = emit_nest(program.records[0], "k")
        y, source = np.zeros(expected.size, "float32"), kernel.source
        played(source, x.reshape(-1)[kernel.starts[0] :].copy(), y)
        expect(y.reshape(expected.shape), expected, given=source, rtol=1e-5)
        count = source.count(") / ") + source.count(") % ")
        expect_that(count <= divisions, f"at most {divisions} divisions", given=source, got=count)
