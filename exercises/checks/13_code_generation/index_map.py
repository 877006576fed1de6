"""Checks of 13_code_generation/index_map."""

import itertools
import random

import numpy as np
from hypothesis import strategies as st

from minipaddle.engine.codegen.nest_kernel import emit_nest
from minipaddle.engine.core.polynomial import Polynomial, loop
from minipaddle.engine.core.record import Spec
from minipaddle.engine.core.symbols import Composite, Loop
from minipaddle.engine.eager.tracer import trace
from minipaddle.engine.passes.manager import optimized
from minipaddle.learn import Exercise, expect, expect_that
from minipaddle.testing import run_c

BOTH = "return (quotient + low // n, rest - low // n * n)"
ZERO = "a loop begins at 0, where the rest is less than n: a common quotient is 0"

exercise = Exercise(
    title="Where an element comes from: quotients and remainders",
    level="hard",
    minutes=45,
    before=("12_fusion/index_map",),
    slots={"index.divide_by": "divide_by"},
    hints=(
        "Take 12·i + 8·j + 5, divided by 4. Which part of it cannot influence the remainder?",
        "Two dicts over self.terms, by `factor % n`. Python's // rounds down, also below 0: "
        "compare low // n with high // n.",
        "quotient = self.like(multiples of n, each // n, and constant // n)\n"
        "rest = the others, constant % n; low, high = bounds(rest)\n"
        "low // n, the same for high? → quotient + low // n, rest - (low // n)·n\n"
        "shared = gcd(n, all factors of the rest): divide n, the rest and low by it\n"
        "low < 0? lift the rest by the smallest multiple of n that makes it 0 or more\n"
        "→ quotient + composite('//', rest, n), composite('%', rest, n)·shared",
    ),
    unkillable={
        f"{BOTH} → return (quotient + low // n, rest + low // n * n)": ZERO,
        f"{BOTH} → return (quotient - low // n, rest - low // n * n)": ZERO,
        f"{BOTH} → return (quotient + low // n, rest - low // n / n)": ZERO,
        "if low < 0: → if low < 1:": "0 is lifted by 0",
        "if low < 0: → if low <= 0:": "0 is lifted by 0",
    },
    wrong={
        "multiples of n do not leave": (
            (
                "{m: factor // n for m, factor in self.terms.items() if factor % n == 0} → {m: "
                "factor // n for m, factor in self.terms.items() if False}"
            ),
            (
                "{m: factor for m, factor in self.terms.items() if factor % n} → {m: factor "
                "for m, factor in self.terms.items()}"
            ),
        ),
        "the constant stays whole": (
            "{**leaving, (): constant // n} → {**leaving, (): 0}",
            "constant % n → constant",
            "low < 0 → False",
        ),
        "the constant lost": "{**staying, (): constant % n} → {**staying, (): 0}",
        "the rest is below n": "high // n == low // n → high < n",
        "never one quotient": "high // n == low // n → n == 1",
        "always one quotient": "high // n == low // n → True",
        "what is shared stays": "gcd(n, *rest.terms.values()) → 1",
        "the constant does not count for what is shared": (
            "gcd(n, *rest.terms.values()) → gcd(n, *(f for m, f in rest.terms.items() if m))"
        ),
        "the remainder not multiplied": (
            "composite('%', rest, n) * shared → composite('%', rest, n)"
        ),
        "a negative rest as it is": "low < 0 → False",
        "lifted too far": "-(low // n) → 1 - low // n",
        "lifted, and not taken back": (
            "rest, quotient = (rest + lift * n, quotient - lift) → rest = rest + lift * n"
        ),
    },
)

I, J, K = Loop("i", 5), Loop("j", 4), Loop("k", 8)


def value(index, at):
    """An index at a place, worked out from its terms alone."""
    return sum(f * symbol_value(*m, at=at) if m else f for m, f in index.terms.items())


def symbol_value(symbol, at):
    if not isinstance(symbol, Composite):
        return at[symbol]
    over = value(symbol.over, at)
    return over // symbol.under if symbol.sign == "//" else over % symbol.under


def sum_of(factors, constant):
    return Polynomial({(a,): factor for a, factor in factors.items()} | {(): constant})


def agrees(index, n, found, given):
    """Quotient and remainder have the values of // and % everywhere; C can compute them."""
    quotient, remainder = found
    loops = sorted({*index.loops, *quotient.loops, *remainder.loops})
    for where in itertools.product(*(range(a.extent) for a in loops)):
        at = dict(zip(loops, where, strict=True))
        got = value(quotient, at), value(remainder, at)
        here = given | {"where": {str(a): x for a, x in at.items()}}
        expect(got, divmod(value(index, at), n), given=here, why="quotient and remainder")
    for part in (a for x in found for a in x.atoms if isinstance(a, Composite)):
        expect_that(part.over.low >= 0, "nothing negative is divided in C", given=given,
                    got=str(part))  # fmt: skip
        expect_that(part.over.low < part.under, "lifted no further than needed", given=given,
                    got=str(part))  # fmt: skip
    return str(quotient), str(remainder)


@exercise.example
def sums_of_loops(yours):
    """What is a sum stays a sum, and is written as one."""
    for terms, constant, n, expected in (
        ({I: 4, J: 1}, 0, 4, ("i", "j")),
        ({I: 4, K: 1}, 0, 4, ("(k//4) + i", "(k%4)")),
        ({I: 4, J: 2}, 0, 8, ("((2*i + j)//4)", "2*((2*i + j)%4)")),
        ({I: 12, J: 8}, 5, 4, ("3*i + 2*j + 1", "1")),
        ({I: 3}, 0, 1, ("3*i", "0")),
        ({J: 1}, 4, 4, ("1", "j")),
        ({J: 1}, 6, 4, ("((j + 2)//4) + 1", "((j + 2)%4)")),
        ({J: -1}, 3, 4, ("0", "-j + 3")),
        ({J: -1}, 0, 4, ("((-j + 4)//4) - 1", "((-j + 4)%4)")),
        ({}, 11, 4, ("2", "3")),
        ({K: 2}, 1, 4, ("((2*k + 1)//4)", "((2*k + 1)%4)")),
        ({K: 6}, 3, 9, ("((2*k + 1)//3)", "3*((2*k + 1)%3)")),
        ({K: 1}, -8, 8, ("-1", "k")),
        ({J: 1, K: -4}, 0, 8, ("((j - 4*k + 32)//8) - 4", "((j - 4*k + 32)%8)")),
    ):
        index = sum_of(terms, constant)
        given = {"index": str(index), "n": n, "loops": "0 ≤ i < 5, 0 ≤ j < 4, 0 ≤ k < 8"}
        found = yours.divide_by(index, n)
        expect_that(isinstance(found, tuple) and len(found) == 2, "a pair", given=given, got=found)
        message = agrees(index, n, found, given)
        expect(message, expected, given=given, why="as simple as it can be")


@exercise.property(seed=st.integers(0, 9999), examples=60)
def any_sum(yours, seed):
    """Random factors, also negative ones, and constants: // and % at each place."""
    draw = random.Random(seed)
    loops = draw.sample([I, J, K, Loop("m", 3)], draw.randint(0, 3))
    scale = draw.choice((1, 1, 2, 3, 4))
    index = sum_of({a: scale * draw.randint(-6, 6) for a in loops}, draw.randint(-20, 20))
    n = draw.randint(1, 12)
    agrees(index, n, yours.divide_by(index, n), {"index": str(index), "n": n})


@exercise.example
def parts_are_atoms(yours):
    """What could not be simplified can be divided once more."""
    with exercise.plugged(yours):
        index = (loop("k", 8) + 3) // 3 * 4 + loop("j", 4)
        found = index.divide_by(4)
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
        run_c(source, x.reshape(-1)[kernel.starts[0] :].copy(), y)
        expect(y.reshape(expected.shape), expected, given=source, rtol=1e-5)
        count = source.count("/") + source.count("%")
        expect_that(count <= divisions, f"at most {divisions} divisions", given=source, got=count)
