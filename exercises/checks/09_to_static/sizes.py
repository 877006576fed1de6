"""Checks of 09_to_static/sizes."""

import math

from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle import nn
from minipaddle.engine.core.dim import symbol
from minipaddle.learn import Exercise, expect, expect_that
from minipaddle.static import InputSpec

exercise = Exercise(
    title="Sizes as polynomials: the product and the quotient",
    level="medium",
    minutes=40,
    before=("06_programs/shape_rule",),
    slots={"dim.times": "times", "dim.divided": "divided"},
    hints=(
        "Multiply (n + 1)·(n - 1) by hand, term by term. How many products are there, and how many "
        "terms are left in the end? Then divide n·n·m by n: which names are left?",
        "Chapter 9, “A size that is not known”, has a class of its own with a sum. The engine's "
        "rules are `times` and `divided` in minipaddle/engine/core/polynomial.py.",
        "product: for each pair of terms: names joined and sorted; coefficients multiplied, and "
        "added to what is there already\n"
        "quotient by one term: for each term of over\n"
        "    a number by a number: divmod\n"
        "    all names there, and the coefficient divides: whole; otherwise: rest",
    ),
    wrong={
        "losing like terms": "product.get(monomial, 0) + c * d → c * d",
        "n·m and m·n being two things": "tuple(sorted(left + right)) → left + right",
        "a square being no square": "left + right → {*left, *right}",
        "adding coefficients": (
            "product.get(monomial, 0) + c * d → product.get(monomial, 0) + c + d"
        ),
        "rounding where it does not come out even": (
            "quotient is not None and coefficient % c == 0 → quotient is not None"
        ),
        "dividing the names away without looking": "return None → continue",
        "removing every n for one n": (
            "left.remove(name) → left = [each for each in left if each != name]"
        ),
        "losing the remainder of the number": (
            "whole[()], rest[()] = divmod(coefficient, c) → whole[()] = coefficient // c"
        ),
        "a number that is not split": (
            (
                "whole[()], rest[()] = divmod(coefficient, c) → whole[quotient] = coefficient "
                "// c"
            ),
            "if quotient is not None and coefficient % c == 0: → rest[monomial] = coefficient",
            "not monomial and (not names) → quotient is not None and coefficient % c == 0",
        ),
        "a sum that does not divide itself": (
            "({(): 1}, {}) if over == under else ({}, over) → ({}, over)"
        ),
        "a sum that divides everything": (
            "({(): 1}, {}) if over == under else ({}, over) → ({(): 1}, {})"
        ),
        "whole and rest exchanged": "return (whole, rest) → return (rest, whole)",
    },
)  # fmt: skip


def clean(terms) -> dict:
    """Without terms that are 0."""
    return {k: c for k, c in terms.items() if c}


def value(terms, sizes) -> int:
    """The number that a dict of terms is for these sizes: written independently."""
    return sum(c * math.prod(sizes[name] for name in k) for k, c in terms.items())


def format_terms(terms) -> str:
    """`2·m·n + 3`."""
    return " + ".join("·".join([str(c), *k]) for k, c in terms.items()) or "0"


NAMES = st.lists(st.sampled_from("mn"), max_size=3).map(lambda names: tuple(sorted(names)))
WHOLE = st.integers(-6, 6).filter(bool)
TERMS = st.dictionaries(NAMES, WHOLE, max_size=4)
ONE = st.dictionaries(NAMES, WHOLE, min_size=1, max_size=1)
SIZES = st.fixed_dictionaries({"m": st.integers(1, 7), "n": st.integers(1, 7)})


@exercise.example
def products(yours):
    """By hand."""
    n, m, one = ("n",), ("m",), ()
    cases = [
        ({n: 1, one: 1}, {n: 1}, {("n", "n"): 1, n: 1}),
        ({n: 1, one: 1}, {n: 1, one: -1}, {("n", "n"): 1, one: -1}),
        ({n: 2}, {m: 3}, {("m", "n"): 6}),
        ({n: 1, m: 1}, {n: 1, m: 1}, {("n", "n"): 1, ("m", "n"): 2, ("m", "m"): 1}),
        ({}, {n: 1}, {}),
        ({one: 4}, {one: 5}, {one: 20}),
        ({n * k: k + 1 for k in range(8)}, {n: 2}, {n * (k + 1): 2 * k + 2 for k in range(8)}),
    ]
    for a, b, expected in cases:
        given = {"a": format_terms(a), "b": format_terms(b)}
        expect(clean(yours.times(dict(a), dict(b))), expected, given=given)
        expect(clean(yours.times(dict(b), dict(a))), expected, given=given | {"asked": "b · a"})


@exercise.property(a=TERMS, b=TERMS, sizes=SIZES, examples=40)
def a_product_is_the_product(yours, a, b, sizes):
    """The product's value is the product of the values, for all sizes; monomials are sorted."""
    got = yours.times(dict(a), dict(b))
    given = {"a": format_terms(a), "b": format_terms(b), "sizes": sizes}
    expect(value(got, sizes), value(a, sizes) * value(b, sizes), given=given)
    expect_that(all(k == tuple(sorted(k)) for k in got), "sorted monomials", given=given, got=got)


@exercise.example
def quotients(yours):
    """By hand: what comes out even, and what stays."""
    n, m, nm, nn_, one = ("n",), ("m",), ("m", "n"), ("n", "n"), ()
    cases = [
        ({n: 6}, {n: 2}, {one: 3}, {}),
        ({n: 4, one: 5}, {one: 2}, {n: 2, one: 2}, {one: 1}),
        ({n: 1, one: 1}, {one: 2}, {}, {n: 1, one: 1}),
        ({n: 1, one: -1}, {one: 2}, {one: -1}, {n: 1, one: 1}),
        ({n: 3}, {n: 2}, {}, {n: 3}),
        ({nn_: 1}, {n: 1}, {n: 1}, {}),
        ({n: 1}, {nn_: 1}, {}, {n: 1}),
        ({nm: 4, m: 2}, {n: 2}, {m: 2}, {m: 2}),
        ({nm: 4, one: 2}, {n: 2}, {m: 2}, {one: 2}),
        ({n: 1, one: 1}, {n: 1, one: 1}, {one: 1}, {}),
        ({n: 2, one: 2}, {n: 1, one: 1}, {}, {n: 2, one: 2}),
        ({n: 1, m: 1}, {n: 1, one: 1}, {}, {n: 1, m: 1}),
        ({one: 7}, {n: 1}, {}, {one: 7}),
        ({one: 6}, {n: 3}, {}, {one: 6}),
        ({n: 6}, {one: -3}, {n: -2}, {}),
        ({}, {n: 1}, {}, {}),
        ({}, {n: 1, one: 1}, {}, {}),
        ({n * k: 2 for k in range(8)}, {n: 2}, {n * k: 1 for k in range(7)}, {one: 2}),
    ]
    for over, under, whole, rest in cases:
        got = tuple(map(clean, yours.divided(dict(over), dict(under))))
        expect(got, (whole, rest), given={"over": format_terms(over), "under": format_terms(under)})


@exercise.property(over=TERMS, under=ONE, sizes=SIZES, examples=40)
def whole_times_under_and_rest(yours, over, under, sizes):
    """over = whole · under + rest; and what could go into the whole is not in the rest."""
    whole, rest = yours.divided(dict(over), dict(under))
    given = {"over": format_terms(over), "under": format_terms(under), "sizes": sizes}
    again = value(whole, sizes) * value(under, sizes) + value(rest, sizes)
    expect(again, value(over, sizes), given=given | {"asked": "whole · under + rest"})
    again = yours.divided(clean(rest), dict(under))
    expect(clean(again[0]), {}, given=given | {"asked": "the rest, divided again"})


@exercise.property(over=TERMS, whole=TERMS, under=ONE, examples=30)
def what_was_multiplied_divides(yours, over, whole, under):
    """A product divided by one of its factors is the other."""
    product = clean(yours.times(dict(whole), dict(under)))
    given = {
        "over": f"({format_terms(whole)}) · ({format_terms(under)})",
        "under": format_terms(under),
    }
    expect(tuple(map(clean, yours.divided(product, dict(under)))), (whole, {}), given=given)


def shapes(x):
    n, k = x.shape[0], x.shape[1]
    both = paddle.concat([x, x * 2], axis=0)
    flat = both.reshape([-1])
    pairs = flat.reshape([2 * n, -1]) + (n * k) // k
    blocks = x.reshape([-1, k // 3, 3]).sum(axis=2)
    return pairs, blocks, flat.reshape([-1, n * 2]), x.mean() * (n * n * k + 3 * n) / n


@exercise.example
def one_program_for_all_sizes(yours):
    """The real to_static on your polynomials: reshapes and joins, of sizes it never saw."""
    with exercise.plugged(yours):
        static = paddle.jit.to_static(shapes, input_spec=[InputSpec([None, 6], name="x")])
        for n in (3, 1, 4, 2):
            x = paddle.arange(6 * n, dtype="float32").reshape([n, 6])
            expect(static(x), shapes(x), given={"x": f"float32[{n}, 6]"})
        expect(len(static.program_cache), 1, given="programs for four sizes")


@exercise.example
def sizes_of_the_engine(yours):
    """Dims with your rules: text, and what simplifies to a number."""
    with exercise.plugged(yours):
        n, m = symbol("n", 4), symbol("m", 6)
        found = [str(d) for d in ((n + 1) * (n - 1), (2 * n * m) // n, (6 * n) // (2 * n),
                                  (n + 1) // 2, (4 * n + 5) // 2, (n * m) % n, (2 * n + 3) % 2,
                                  (n + m) * (n + m) - n * n - m * m)]  # fmt: skip
    expected = ["n*n - 1", "2*m", "3", "((n + 1)//2)", "2*n + 2", "0", "1", "2*m*n"]
    expect(found, expected, given="n, m")


class Patches(nn.Layer):
    """Cuts digits into patches, and classifies their average."""

    def __init__(self):
        super().__init__()
        self.embed, self.out = nn.Linear(16, 12), nn.Linear(12, 3)

    def forward(self, x):
        n = x.shape[0]
        p = x.reshape([n, 2, 4, 2, 4]).transpose([0, 1, 3, 2, 4]).reshape([n * 4, 16])
        h = self.embed(p).tanh().reshape([n, -1, 12])
        return self.out(h.mean(axis=1))


@exercise.example
def a_network_trains(yours):
    """Batches of 5, 7 and 3 images: one program, and the losses of eager mode."""
    losses = []
    for static in (False, True):
        paddle.seed(0)
        net = Patches()
        adam = paddle.optimizer.Adam(0.01, parameters=net.parameters())
        with exercise.plugged(yours):
            spec = [InputSpec([None, 8, 8], name="x")]
            forward = paddle.jit.to_static(net.forward, input_spec=spec) if static else net.forward
            for n in (5, 7, 3, 5, 7, 3):
                x = paddle.arange(n * 64, dtype="float32").reshape([n, 8, 8]).sin()
                loss = F.cross_entropy(forward(x), paddle.arange(n) % 3)
                loss.backward()
                adam.step()
                adam.clear_grad()
                losses.append(loss.item())
            if static:
                expect(len(forward.program_cache), 1, given="programs for three sizes")
    expect(losses[6:], losses[:6], given="six losses", rtol=1e-4)
