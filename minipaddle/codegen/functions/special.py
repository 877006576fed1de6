"""Special functions of SciPy as C text, in double precision.

There are no tables of digits: coefficients are computed by their formulas. Numbers of formulas
refer to the NIST Digital Library of Mathematical Functions (DLMF), https://dlmf.nist.gov.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from textwrap import fill, indent

import numpy as np

from ...engine.codegen.kernel import read_template
from ...engine.codegen.scalar import FUNCTIONS
from ...engine.codegen.translation_unit import register
from .formulas import compute_in_double

SPECIAL = ("gammaln", "digamma", "zeta", "erfinv", "i0e", "i1e", "gammainc", "gammaincc")
"""The functions, by SciPy's names."""

FUNCTIONS.update((name, compute_in_double(name)) for name in SPECIAL)

TEXT = read_template("special.c", __file__).replace("PI", str(math.pi))


def bernoulli(n: int) -> list[Fraction]:
    """B₂, B₄, … B₂ₙ: DLMF 24.5.3."""
    numbers = [Fraction(1)]
    for k in range(1, 2 * n + 1):
        known = sum(math.comb(k + 1, j) * b for j, b in enumerate(numbers))
        numbers.append(-known / (k + 1))
    return numbers[2::2]


def erfinv(low: float, high: float, of) -> np.ndarray:
    """erfinv(x) / x as a polynomial of w = -log(1 - x²), or of its root, from erfinv's values."""
    y = (low + high - (high - low) * np.cos(np.pi * (np.arange(60) + 0.5) / 60)) / 2
    x, rest = np.array([(math.erf(v), math.erfc(v)) for v in y]).T
    return np.polyfit(of(-np.log(rest * (1 + x))), y / x, 10)


def uniform(n: int) -> list[float]:
    """f₀, f₁, … of f(η) = η / (λ - 1) = dλ/dη - η, where η² / 2 = λ - 1 - log λ: DLMF 8.12.2.

    λ = 1 + Σ aₖ ηᵏ solves η λ = (λ - 1) dλ/dη.
    """
    a = [0.0, 1.0]
    for k in range(2, n + 1):
        known = sum(a[j] * (k + 1 - j) * a[k + 1 - j] for j in range(2, k))
        a.append((a[k - 1] - known) / (k + 1))
    return [k * x - (k == 2) for k, x in enumerate(a)][1:]


def bernoulli_table(of) -> list:
    """The Bernoulli numbers, each with a factor of its index."""
    return [b * of(2 * k) for k, b in enumerate(bernoulli(10), 1)]


TABLES = {
    "ERFINV_LOW": lambda: erfinv(0, 1.75, lambda w: w),
    "ERFINV_HIGH": lambda: erfinv(1.65, 5.95, np.sqrt),
    "DIGAMMA": lambda: bernoulli_table(lambda n: Fraction(1, n)),
    "STIRLING": lambda: bernoulli_table(lambda n: Fraction(1, n * (n - 1))),
    "ZETA": lambda: bernoulli_table(lambda n: Fraction(1, math.factorial(n))),
    "UNIFORM": lambda: uniform(30),
}


@cache
def fill_tables(text: str) -> str:
    """A part of the text, with the tables that it names filled in."""
    for name, numbers in TABLES.items():
        if f"= {name};" in text:
            table = fill(", ".join(str(float(x)) for x in numbers()), 88)
            text = text.replace(f"= {name};", f"= {{\n{indent(table, 8 * ' ')}\n    }};")
    return text


register(TEXT, fill_tables)
