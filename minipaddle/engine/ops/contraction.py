"""Contractions: products of elements of two arrays, summed over letters that the result lacks.

    @contraction
    def gram(x, y):
        return "mk,nk->mn"

The letters are the definition, as in `einsum`: the body, the shape rule, both derivatives and the
sharding rule follow, and the compiler's product. Each derivative is a contraction again: that of
`mk,nk->mn` for x is `mn,nk->mk`.

An axis of size 1 broadcasts. What one operator can do faster or say better it may write itself.
"""

from __future__ import annotations

import inspect
from functools import cache, wraps
from math import prod
from types import SimpleNamespace
from typing import NamedTuple

from ..core.dim import is_one, prove, same
from ..core.op import Op
from ..core.record import Spec
from ..core.slots import OPS
from . import movement


class Contraction(Op):
    """An operator whose body `(x, y, **attrs)` gives letters for two arrays, "mk,kn->mn"."""

    kind, integral = "contraction", True

    def __init__(self, letters):
        def body(m, x, y, **attrs):
            return contract(m, x, y, letters(x, y, **attrs))

        signature = inspect.signature(letters)
        first = inspect.Parameter("m", inspect.Parameter.POSITIONAL_ONLY)
        parameters = [first, *signature.parameters.values()]
        body.__signature__ = signature.replace(parameters=parameters)
        super().__init__(wraps(letters)(body), promote=True)
        self.letters, self.linear = letters, tuple((name,) for name in self.inputs)
        self.routes: dict[tuple, Route] = {}
        for k in (0, 1):
            self.set_rule(k, self.derivative(k))

    def compute(self, body):
        """Decorator: a body that is faster than the one that follows from the letters."""
        self.body = body
        return body

    def infer(self, x, y, **attrs) -> Spec:
        """The spec of the result; ValueError if axes with one letter differ in size."""
        xs, ys, out = parse(self.letters(x, y, **attrs))
        for name, spec, letters in zip(self.inputs, (x, y), (xs, ys)):
            if spec.ndim != len(letters):
                raise ValueError(f"{name} {spec} must have {len(letters)} axes, {letters!r}")
        sizes = sizes_of(x.shape, xs, y.shape, ys)
        for c in set(xs) & set(ys):
            n, m = x.shape[xs.index(c)], y.shape[ys.index(c)]
            if n is not m and not (is_one(n) or is_one(m) or same(n, m)):
                first, second = self.inputs
                raise ValueError(
                    f"axis {xs.index(c)} of {first} ({n}) must equal axis {ys.index(c)} of "
                    f"{second} ({m})"
                )
        return Spec(tuple([sizes[c] for c in out]), x.dtype)

    def derivative(self, k: int):
        """The derivative for input `k`: the cotangent, contracted with the other input."""

        def rule(g, spec, other, **attrs):
            specs = (spec, other.spec) if k == 0 else (other.spec, spec)
            shapes = [specs[0].shape, specs[1].shape]
            known = INT.issuperset(map(type, shapes[0] + shapes[1]))
            key = (k, *shapes, *attrs.items()) if known else None
            route = self.routes.get(key) if known else None
            if route is None:
                *inputs, out = parse(self.letters(*specs, **attrs))
                own = drop_repeated(inputs[k], spec.shape, out, g.spec.shape)
                inputs[k], shapes[k] = out, g.spec.shape
                route = find_route(f"{inputs[0]},{inputs[1]}->{own}", *shapes, True)
                if len(own) < spec.ndim:
                    route = route._replace(out=(*route.out, ("reshape", spec.shape)))
                if known and len(self.routes) < MOST_ROUTES:
                    self.routes[key] = route
            first, second = (g, other) if k == 0 else (other, g)
            return multiply(VARS, first, second, route)

        names = ("g", f"{self.inputs[k]}_spec", self.inputs[1 - k])
        parameters = [inspect.Parameter(n, inspect.Parameter.POSITIONAL_ONLY) for n in names]
        rest = [inspect.Parameter("attrs", inspect.Parameter.VAR_KEYWORD)] * bool(self.attrs)
        rule.__signature__ = inspect.Signature([*parameters, *rest])
        return rule


contraction = Contraction


@cache
def parse(text: str) -> tuple[str, str, str]:
    """The letters of both inputs and of the result; ValueError if they say nothing."""
    inputs, arrow, out = text.partition("->")
    xs, _, ys = inputs.partition(",")
    if not arrow or any(len(set(each)) < len(each) for each in (xs, ys, out)):
        raise ValueError(f"{text!r} must be like 'mk,kn->mn', each letter once in a part")
    if alone := (set(xs) ^ set(ys) ^ set(out)) - (set(xs) & set(ys)):
        raise ValueError(f"{text!r}: {min(alone)!r} must be in two of the three parts")
    return xs, ys, out


def drop_repeated(letters: str, shape, others: str, other_shape) -> str:
    """The letters of an array but for axes of size 1 that another array repeats."""
    if INT.issuperset(map(type, shape)) and 1 not in shape:
        return letters
    sizes = dict(zip(others, other_shape, strict=True))
    pairs = zip(letters, shape, strict=True)
    return "".join([c for c, n in pairs if not repeats(n, sizes.get(c, n))])


def repeats(n, m) -> bool:
    """Whether an axis of size n is repeated along one of size m; 1 is along any open size."""
    if n is m:
        return False
    if isinstance(n, int):
        return n == 1
    if isinstance(m, int):
        return m != 1 and is_one(n)
    return not prove(n - m, "==") and is_one(n) and not is_one(m)


def sizes_of(x_shape, xs: str, y_shape, ys: str) -> dict:
    """The size of each letter."""
    sizes = dict(zip(xs, x_shape, strict=True))
    repeated = set(xs) - set(drop_repeated(xs, x_shape, ys, y_shape))
    sizes |= {c: n for c, n in zip(ys, y_shape, strict=True) if c in repeated or c not in xs}
    return sizes


# ---- a contraction as a matrix product -----------------------------------------------------------


class Arrangement(NamedTuple):
    """How an array becomes one with an axis for each group of letters.

    order: a permutation to apply first, if the letters of a group are not neighbours
    groups: the letters of each axis after it, in the array's order
    perm: the permutation of these axes that brings them into the order of the product
    """

    order: tuple | None
    groups: tuple[str, ...]
    perm: tuple[int, ...]


def arrange(letters: str, wanted: list[str]) -> Arrangement:
    """The arrangement of an array whose axes are `letters`, with the groups in the `wanted` order.

    A group without a letter is an axis of size 1.
    """
    order = None
    if not all(group in letters for group in wanted):
        order = tuple(letters.index(c) for group in wanted for c in group)
        letters = "".join(wanted)
    axes = [k for k, group in enumerate(wanted) if group]
    axes.sort(key=lambda k: letters.index(wanted[k]))
    for k, group in enumerate(wanted):
        if not group:
            axes.insert(k, k)
    return Arrangement(order, tuple(wanted[k] for k in axes), inverse(axes))


def inverse(perm) -> tuple[int, ...]:
    return movement.inverse([*perm])


@cache
def arrangements(xs: str, ys: str, out: str, loose: bool) -> tuple[Arrangement, ...]:
    """The arrangements of x, y and the result for a matrix product over the last two axes.

    Letters of both inputs and the result lead, an axis each. Those of x (or y) and the result are
    rows (or columns), those of both inputs alone are summed over. A `loose` product may have more
    axes of rows, or vectors.
    """
    lead = [c for c in out if c in xs and c in ys]
    inner = "".join([c for c in xs if c in ys and c not in out])
    rows = "".join([c for c in out if c not in ys])
    columns = "".join([c for c in out if c not in xs])
    if loose and not lead and len(inner) == 1 and len(columns) < 2:
        row, column = [*rows], [*columns]
    else:
        while rows not in xs or rows not in out:  # repeated along y, rather than moved
            lead, rows = [*lead, rows[0]], rows[1:]
        while columns not in ys or columns not in out:
            lead, columns = [*lead, columns[0]], columns[1:]
        lead.sort(key=out.index)
        row, column = [rows], [columns]
    x = arrange(xs, [*(c if c in xs else "" for c in lead), *row, inner])
    y = arrange(ys, [*(c if c in ys else "" for c in lead), inner, *column])
    return x, y, arrange(out, [*lead, *row, *column])


class Route(NamedTuple):
    """A contraction as steps ("reshape", shape) or ("transpose", perm) around a product."""

    x: tuple
    y: tuple
    perms: dict
    summed: bool
    out: tuple


MOST_ROUTES = 4096
INT = {int}
"""The types of sizes that are known."""


def find_route(text: str, x_shape: tuple, y_shape: tuple, loose: bool) -> Route:
    """The route of a contraction of two shapes; a `loose` one transposes in steps of its own."""
    xs, ys, out = parse(text)
    sizes = sizes_of(x_shape, xs, y_shape, ys)
    left = drop_repeated(xs, x_shape, ys, y_shape)
    right = drop_repeated(ys, y_shape, xs, x_shape)
    a, b, z = arrangements(left, right, out, loose)
    perms = {"x_perm": a.perm, "y_perm": b.perm, "out_perm": inverse(z.perm)}
    x, y = merge(xs, left, a, sizes), merge(ys, right, b, sizes)
    letters = out if z.order is None else "".join([out[d] for d in z.order])
    after = [] if z.order is None else [("transpose", inverse(z.order))]
    if z.groups != tuple(letters):
        after.insert(0, ("reshape", tuple([sizes[c] for c in letters])))
    summed = bool(a.groups[a.perm[-1]])
    if loose:
        x, y = [*x, ("transpose", a.perm)], [*y, ("transpose", b.perm)]
        after.insert(0, ("transpose", perms["out_perm"]))
    return Route(*map(moving, (x, y)), perms, summed, moving(after))


def merge(letters: str, kept: str, to: Arrangement, sizes: dict) -> list:
    """The steps to an axis for each group of an arrangement; only the `kept` letters are left."""
    steps = []
    if to.order is not None:
        if kept != letters:
            steps.append(("reshape", tuple([sizes[c] for c in kept])))
        steps.append(("transpose", to.order))
        letters = "".join([kept[d] for d in to.order])
    if to.groups != tuple(letters):
        steps.append(("reshape", tuple([prod([sizes[c] for c in each]) for each in to.groups])))
    return steps


def moving(steps) -> tuple:
    """The steps without transposes that change nothing."""
    return tuple([s for s in steps if s[0] == "reshape" or s[1] != tuple(range(len(s[1])))])


def follow(m, x, steps: tuple):
    """An array after the steps."""
    for name, to in steps:
        x = getattr(m, name)(x, to)
    return x


def multiply(m, x, y, route: Route):
    """A contraction along its route, by `m.matmul`."""
    x, y = follow(m, x, route.x), follow(m, y, route.y)
    return follow(m, m.matmul(x, y) if route.summed else x * y, route.out)


def contract(m, x, y, text: str, product=None):
    """The contraction `text` of two arrays of the module `m`, by a product of matrices.

    `product(x, y, x_perm=…, y_perm=…, out_perm=…)` multiplies transposed arrays, and transposes;
    without it `m.matmul` is called.
    """
    shapes = [getattr(each, "spec", each).shape for each in (x, y)]
    route = find_route(text, *shapes, product is None)
    if product is None:
        return multiply(m, x, y, route)
    return follow(
        m, product(follow(m, x, route.x), follow(m, y, route.y), **route.perms), route.out
    )


VARS = SimpleNamespace(
    reshape=lambda x, shape: movement.reshape(x, shape=shape),
    transpose=lambda x, perm: movement.transpose(x, perm=perm),
    matmul=lambda x, y: OPS["matmul"](x, y),
)
"""The array module whose arrays are Vars."""
