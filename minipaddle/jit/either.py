"""Values that are of one kind or of another: the sides of a condition on a tensor leave tensors of
other numbers of axes, or of other dtypes.

Such a value can be kept and returned: the program computes both, a boolean says which one there is,
and once the program has run the value is that one. What is done with it is done with the one that
there is: an operator, a method, or a function of the library is a condition on that boolean, whose
sides may agree again. What Python itself would have to know of it (its truth, its length) is
refused.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from functools import lru_cache, wraps
from typing import NamedTuple

from ..engine.core.dispatch import current, note_refusal
from ..engine.eager.control_flow import is_static
from ..engine.eager.tensor import Tensor
from ..engine.jit.branching import CHOICES, ReturnPlace, learn
from ..engine.jit.leaves import PlaceState, Spec, full
from ..engine.jit.refusal import Dygraph2StaticException
from ..engine.jit.tree import FINISHED, paths, unflatten
from ..tensor.growing_lists import Refusing

LEFT, RIGHT = "._jst_left", "._jst_right"
"""Where an `Either` has its two values, as `paths` writes it."""


@dataclass(eq=False, repr=False, init=False)
class Either(Refusing):
    """The left value if `_jst_held` is true, else the right one. Names that a tensor has are those
    of the value.
    """

    _jst_left: Tensor
    _jst_right: Tensor
    _jst_held: Tensor | bool

    def __init__(self, left, right, held, reason: str):
        self._jst_left, self._jst_right, self._jst_held = left, right, held
        self.reason = reason
        if current.top.tracing and not isinstance(current.top, Choosing):
            current.top.__class__ = choosing(type(current.top))

    def __copy__(self) -> Either:
        return Either(self._jst_left, self._jst_right, self._jst_held, self.reason)

    __str__ = __format__ = __setitem__ = Refusing.use
    __hash__ = object.__hash__

    def refuse(self):
        """Refuse to use the value: which kind it is, only a run knows."""
        raise note_refusal(Dygraph2StaticException(self.reason))

    def _jst_apply(self, function):
        """The result of the function for the present value."""
        sides = [lambda x=x: function(x) for x in (self._jst_left, self._jst_right)]
        if not is_static(self._jst_held):
            return sides[not self._jst_held]()
        choice = CHOICES[-1](self._jst_held, *sides)
        choice.mismatch = lambda *_: Dygraph2StaticException(self.reason)
        return choice.write()

    def __getattr__(self, name: str):
        if name.startswith("_"):
            self.refuse()
        if not callable(getattr(Tensor, name, None)):
            return self._jst_apply(lambda x: getattr(x, name))

        def method(*args, **kwargs):
            if name == "backward":  # of one element, whichever it is
                return self._jst_apply(lambda x: x.reshape([])).backward(*args, **kwargs)
            return self._jst_apply(lambda x: getattr(x, name)(*args, **kwargs))

        return method


def forward_operator(name: str):
    function = getattr(operator, name)
    return lambda self, *args: self._jst_apply(lambda x: function(x, *args))


def reflect_operator(name: str):
    function = getattr(operator, name)
    return lambda self, other: self._jst_apply(lambda x: function(other, x))


BINARY = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor"]
OTHERS = ["lt", "le", "gt", "ge", "eq", "ne", "neg", "abs", "invert", "getitem"]

for each in (*BINARY, *OTHERS):
    setattr(Either, f"__{each}__", forward_operator(f"__{each}__"))
for each in BINARY:
    setattr(Either, f"__r{each}__", reflect_operator(f"__{each}__"))


class Choosing:
    """Further methods of a tracer, as soon as there is a value of two kinds in the trace."""

    def apply(self, op, inputs, attrs):
        either = next((x for x in inputs if type(x) is Either), None)
        if either is None:
            return super().apply(op, inputs, attrs)
        return either._jst_apply(
            lambda x: self.apply(op, replace_either([*inputs], either, x), attrs)
        )


@lru_cache
def choosing(kind: type) -> type:
    """The class of tracers that do so, besides what `kind` does."""
    return type(kind.__name__, (Choosing, kind), {})


def apply_to_either(function):
    """A function of the library, which is applied to the one that there is of an `Either`."""

    @wraps(function)
    def applied(*args, **kwargs):
        either = next(eithers([*args, *kwargs.values()]), None)
        if either is None:
            return function(*args, **kwargs)
        return either._jst_apply(
            lambda x: applied(*replace_either(args, either, x), **replace_either(kwargs, either, x))
        )

    return applied


def eithers(value):
    """The values of two kinds in lists, tuples and dicts."""
    if type(value) is Either:
        yield value
    elif type(value) in (list, tuple, dict):
        for x in value.values() if type(value) is dict else value:
            yield from eithers(x)


def replace_either(value, either: Either, x):
    """The value with x in place of a value of two kinds."""
    if type(value) in (list, tuple):
        return type(value)(replace_either(each, either, x) for each in value)
    if type(value) is dict:
        return {key: replace_either(each, either, x) for key, each in value.items()}
    return x if value is either else value


def finish(value: Either):
    """The value that there is, once the program has run; before that the `Either` itself."""
    if current.top.tracing:
        return value
    return value._jst_left if value._jst_held else value._jst_right


def one_of_both(x: Either) -> Tensor:
    """One of the two values, which are both tensors."""
    return one_of_both(x._jst_left) if type(x._jst_left) is Either else x._jst_left


class Kinds(NamedTuple):
    """The two kinds of a value, and the refusal of what uses it."""

    left: Spec
    right: Spec
    reason: str

    def either(self, x: Tensor) -> Either:
        """The tensor x, which is of one kind, as a value of both."""
        if (len(x.spec.shape), x.spec.dtype) == (len(self.left.shape), self.left.dtype):
            return Either(x, full(self.right, 0), True, self.reason)
        return Either(full(self.left, 0), x, False, self.reason)


class EitherChoice(CHOICES[-1]):
    """A choice whose sides may leave tensors of two kinds."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.kinds: dict = {}  # by place and path: the kinds of a tensor there

    def fit(self, place, i: int, k: int) -> PlaceState:
        self.states[k][i] = self.widen(place, self.states[k][i])
        return super().fit(place, i, k)

    def widen(self, place, state: PlaceState) -> PlaceState:
        """The state with an `Either` for each tensor that is of another kind on the other side."""
        while not (state.missing or state.uncertain):
            known = [self.kinds.get((place.key, path)) for path in paths(state.structure)]
            pairs = [*zip(known, state.leaves, strict=True)]
            if not any(kinds and isinstance(x, Tensor) for kinds, x in pairs):
                break
            leaves = [
                kinds.either(x) if kinds and isinstance(x, Tensor) else x for kinds, x in pairs
            ]
            state = PlaceState(unflatten(state.structure, leaves), self.outer)
        return state

    def disagreement(self, error):
        k = error.k
        for place, state in zip([*self.live_out, ReturnPlace], self.states[0], strict=True):
            if 0 <= k < len(state.leaves):
                specs = error.left.spec, error.right.spec
                if all(specs) and not state.uncertain:
                    reason = str(quietly(super().disagreement, error))
                    self.learn(place, paths(state.structure)[k], Kinds(*specs, reason))
                break
            k -= len(state.leaves)
        return super().disagreement(error)

    def check(self, place, a: PlaceState, b: PlaceState) -> None:
        if a.structure != b.structure and not (a.uncertain or b.uncertain):
            self.learn_kinds(place, a, b)
            self.learn_kinds(place, b, a)
        super().check(place, a, b)

    def learn_kinds(self, place, a: PlaceState, b: PlaceState) -> None:
        """Learn where one state has an `Either` and the other, `b`, a tensor."""
        specs = dict(zip(paths(a.structure), a.specs, strict=True))
        for path, x in zip(paths(b.structure), b.leaves, strict=True):
            kinds = specs.get(path + LEFT), specs.get(path + RIGHT)
            if isinstance(x, Tensor) and all(kinds):
                reason = quietly(self.mismatch, place, path, str(a), str(b))
                self.learn(place, path, Kinds(*kinds, str(reason)))

    def learn(self, place, path: str, kinds: Kinds) -> None:
        if (place.key, path) not in self.kinds:
            learn(self.kinds, {(place.key, path): kinds})


def quietly(create, *args) -> Exception:
    """A refusal that is not noted, because it may never be raised."""
    before = current.top.refusal
    try:
        return create(*args)
    finally:
        current.top.refusal = before


CHOICES.append(EitherChoice)
FINISHED[Either] = finish
