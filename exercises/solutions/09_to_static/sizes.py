"""Sizes as polynomials: the product and the quotient.

A size that is not known is a symbol, n; what is computed from it is a polynomial in symbols. The
engine keeps a polynomial as a dict {monomial: coefficient}. A monomial is a tuple of names, sorted:
("m", "n", "n") is m·n·n, and () is the monomial of a plain number. Coefficients are whole numbers.

    2·n·m + 3   is   {("m", "n"): 2, (): 3}          0   is   {}

Write two functions of such dicts. They make new dicts; a coefficient of theirs may be 0, since
the engine drops such terms.

- `times(a, b)`: the product.
- `divided(over, under)`: (whole, rest), two dicts with over = whole · under + rest, for all sizes.
  `under` is not 0. As much as comes out even, term by term, goes into `whole`:
    - if `under` is a single term, then each term of `over` that it divides: the names of `under`
      are all there (as often), and its coefficient divides without remainder. Other terms are rest.
      But if `under` is just a number c, the number in `over` is split into whole and rest as
      `divmod` by c does it;
    - if `under` is a sum (of two terms or more) it divides itself, and nothing else.

    times({("n",): 1, (): 1}, {("n",): 1})  =  {("n", "n"): 1, ("n",): 1}         (n + 1)·n
    divided({("n",): 6}, {("n",): 2})       =  {(): 3}, {}                        6n / 2n
    divided({("n",): 4, (): 5}, {(): 2})    =  {("n",): 2, (): 2}, {(): 1}        (4n + 5) / 2
    divided({("n",): 1, (): 1}, {(): 2})    =  {}, {("n",): 1, (): 1}             stays (n + 1)//2

It is by `divided` that `reshape([-1, 6])` of float32[n, 3, 4] knows that the result has 2n rows.
Source: any book on algebra; in compilers, Shen and others, "DISC: a dynamic shape compiler", 2021.
"""


def times(a, b):
    """The product of two polynomials."""
    product = {}
    for left, c in a.items():
        for right, d in b.items():
            monomial = tuple(sorted(left + right))  # n·m and m·n are one
            product[monomial] = product.get(monomial, 0) + c * d
    return product


def divided(over, under):
    """(whole, rest) with over = whole · under + rest."""
    if len(under) != 1:
        return ({(): 1}, {}) if over == under else ({}, over)
    ((names, c),) = under.items()
    whole, rest = {}, {}
    for monomial, coefficient in over.items():
        quotient = _without(monomial, names)
        if not monomial and not names:
            whole[()], rest[()] = divmod(coefficient, c)
        elif quotient is not None and coefficient % c == 0:
            whole[quotient] = coefficient // c
        else:
            rest[monomial] = coefficient
    return whole, rest


def _without(monomial, names):
    """The monomial divided by names; None if one of them is not there."""
    left = list(monomial)
    for name in names:
        if name not in left:
            return None
        left.remove(name)  # one of them: n·n / n is n
    return tuple(left)
