"""Lists that grow in a loop of the program: how many items they get, only a run knows.

An iteration may append tensors of one shape to a list. The loop stacks them over all iterations,
and a `Rest` stands for them in the list. `paddle.stack` and `concat`, `len`, items and `for` read
the stack; the program's results hold the items again.
"""

from dataclasses import dataclass
from operator import is_

from ..core.prelude import Dim, Spec, Tensor, Var, current, is_static, movement, note_refusal, teach
from ..engine.core.spec import scalar_dtype
from ..engine.eager.control_flow import while_loop as program_loop
from ..engine.jit import looping
from ..engine.jit.branching import describe_place, learn
from ..engine.jit.calling import LIST_METHODS
from ..engine.jit.effects import check_held
from ..engine.jit.journal import Contents
from ..engine.jit.leaves import full
from ..engine.jit.refusal import refusal
from ..engine.jit.tree import SPLICED
from .sequences import SEQUENCES, LazySequence, rows

PENDING = type("Pending", (), {"spec": "known when it ends"})()
"""The stack of a Rest while the loop that appends to the list is traced."""


class Refusing:
    """A placeholder for a value that only a run knows: `refuse` raises the error for using it."""

    def use(self, *args):
        self.refuse()

    __getattr__ = __getitem__ = __iter__ = __len__ = __call__ = __bool__ = __int__ = __float__ = use
    __add__ = __sub__ = __mul__ = __truediv__ = __floordiv__ = __mod__ = __pow__ = use
    __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rfloordiv__ = __rmod__ = __rpow__ = use
    __matmul__ = __rmatmul__ = __neg__ = __abs__ = __invert__ = use
    __lt__ = __le__ = __gt__ = __ge__ = __and__ = __or__ = __xor__ = use


@dataclass(eq=False, repr=False)
class Rest(Refusing):
    """Stands in a list for the tensors that a loop of a program appended to it: their stack."""

    stack: Var

    def __copy__(self):
        return type(self)(self.stack)

    def __repr__(self) -> str:
        return f"as many tensors as the loop has iterations: {self.stack.spec}"

    def refuse(self):
        """Refuse what Python would do with one item, because these are many."""
        check_ended(self)
        message = teach(
            "a list that grew in a loop on a tensor: Python cannot take it apart, because its "
            "length is known only when the program runs",
            hint="paddle.stack(items), len(items), items[k], `for item in items:`",
        )
        raise note_refusal(NotImplementedError(message))


class RestOfNumbers(Rest):
    """Stands for numbers of Python that a loop of a program appended to a list."""


NUMBERS: dict = {}
"""By class of the numbers that only a run knows: the function that makes one of a tensor."""


def kind_of_rest(items) -> type:
    """The placeholder in a list for items like these."""
    kinds = {*NUMBERS, RestOfNumbers, bool, int, float}
    numbers = all(type(x) in kinds for x in items)
    return RestOfNumbers if numbers else Rest


def check_ended(rest: Rest) -> bool:
    """True; NotImplementedError inside the loop that appends to the list."""
    if rest.stack is PENDING:
        message = teach(
            "a list that grows in a loop on a tensor is read in that loop: what earlier iterations "
            "have appended is known only when the program runs",
            hint="keep what an iteration needs in a variable: last = f(last); items.append(last)",
        )
        raise note_refusal(NotImplementedError(message))
    return True


def has_grown(x) -> bool:
    """Whether x is a list, or a tuple of one, that grew in a loop of the program; an error inside
    that loop.
    """
    if not (type(x) in (list, tuple) and current.top.tracing):
        return False
    rests = [each for each in x if isinstance(each, Rest)]
    return bool(rests) and all(map(check_ended, rests))


def stack_items(items, axis: int = 0) -> Var:
    """The tensors of a list, and those of the rests in it, stacked along a new axis."""
    (dtype, *_) = {x.stack.spec.dtype for x in items if isinstance(x, Rest)} or (None,)
    parts = [x.stack if isinstance(x, Rest) else as_row(x, dtype) for x in items]
    y = parts[0] if len(parts) == 1 else movement.concat(*parts, axis=0)
    return y if axis == 0 else movement.transpose(y, perm=first_axis_at(y.spec.ndim, axis))


def as_row(x, dtype) -> Var:
    """An item of a list as a stack of one; a number of Python has the dtype of a rest."""
    if not isinstance(x, Var):
        if scalar_dtype(x).kind != dtype.kind:
            raise refusal(
                f"{x!r:.60} in a list that grew in a loop on a tensor, beside items of {dtype}",
                expected="tensors of one shape and dtype, or numbers of one kind",
            )
        x = current.top.constant(x, dtype)
    return movement.stack(x, axis=0)


def concat_items(items, axis: int) -> Var:
    """The tensors of a list, and those of the rests in it, one after the other along `axis`."""
    parts = [merge_first_axis(x.stack, axis) if isinstance(x, Rest) else x for x in items]
    return parts[0] if len(parts) == 1 else movement.concat(*parts, axis=axis)


def merge_first_axis(stack: Var, axis: int) -> Var:
    """The tensors of a stack, one after the other along their axis `axis`."""
    x = movement.transpose(stack, perm=first_axis_at(stack.spec.ndim, axis))
    shape = x.spec.shape
    both = shape[axis] * shape[axis + 1]
    return movement.reshape(x, shape=(*shape[:axis], both, *shape[axis + 2 :]))


def first_axis_at(ndim: int, axis: int) -> tuple:
    """The order of the axes with the first one at `axis`."""
    rest = list(range(1, ndim))
    return (*rest[:axis], 0, *rest[axis:])


class GrowingLoop(looping.TracedLoop):
    """A loop that may append to lists: it is traced again with what an iteration appends."""

    iterations: Dim | None = None
    """How many there are, if that is a size that is known before it."""

    def __init__(self, *args):
        super().__init__(*args)
        self.growth: dict = {}  # by place: the specs of what an iteration appends to a list
        self.kinds: dict = {}  # by place: what represents it

    def run(self, slots, first: list, ends: list) -> list:
        self.rests: dict = {}  # by place: the items that the loop appended
        if not self.growth:
            return super().run(slots, first, ends)
        new = [full(spec, 0) for specs in self.growth.values() for spec in specs]
        last, before = program_loop(
            lambda go, *_: go,
            lambda _, *now: [*self.iteration(slots, now[: len(slots)]), *self.appended],
            [*first, *new],
            stacked=True,
            last=ends,
        )
        n = len(first)
        self.rests = self.build_rests(last[n:], before[n:])
        return last[:n]

    def build_rests(self, last, before) -> dict:
        """The items that iterations appended: for each new item a stack over all iterations.

        The loop gives each item as it was before an iteration: the last one is added here.
        """
        stacks = iter(
            movement.concat(b, movement.stack(x, axis=0), axis=0)[1:]
            for x, b in zip(last, before, strict=True)
        )
        rests = {}
        for key, specs in self.growth.items():
            parts = [next(stacks) for _ in specs]
            rows = movement.stack(*parts, axis=1) if len(parts) > 1 else parts[0]
            if len(parts) > 1 or self.iterations is not None:
                n, *inner = parts[0].spec.shape
                count = n if self.iterations is None else self.iterations
                rows = movement.reshape(rows, shape=(count * len(parts), *inner))
            rests[key] = self.kinds[key](rows)
        return rests

    def fill(self, i: int, slots, values, states):
        value, key = super().fill(i, slots, values, states), self.places[i].key
        if key not in self.growth:
            return value
        return [*value, self.rests.get(key, self.kinds[key](PENDING))]

    def iteration(self, slots, now) -> list:
        self.at_start: dict = {}
        return super().iteration(slots, now)

    def begin(self, i: int, place, value) -> None:
        super().begin(i, place, value)
        self.at_start[place.key] = list(value) if isinstance(value, list) else None

    def note_after(self, values: dict) -> None:
        growing = [place for place in self.places if place.key in self.growth]
        self.appended = [x for place in growing for x in self.take_appended(place, values)]
        super().note_after(values)

    def take_appended(self, place, values) -> list:
        """Take the items that an iteration appended off the value of a list, and give them."""
        before, now = self.at_start[place.key], values[place.key]
        new, values[place.key] = now[len(before) :], before[:-1]
        specs = [Spec(x.spec.shape, x.spec.dtype) for x in new if isinstance(x, Tensor)]
        same = len(now) >= len(before) and all(map(is_, before, now))
        same = same and kind_of_rest(new) is self.kinds[place.key]
        if not same or specs != self.growth[place.key] or len(specs) < len(new):
            raise refusal(
                f"{describe_place(place)} grows by other items in another iteration of a loop on "
                "a tensor",
                expected="the same number of tensors in each, of one shape and dtype",
            )
        return new

    def compare(self, i: int, place) -> None:
        if isinstance(place, Contents) and self.before[i].structure != self.after[i].structure:
            self.learn_growth(place, self.at_start[place.key], self.after[i].value)
        super().compare(i, place)

    def learn_growth(self, place, given, now) -> None:
        """If an iteration appends tensors of one kind to a list: trace again, collecting them."""
        if given is None or place.key in self.growth:
            return
        new = now[len(given) :]
        same = len(now) > len(given) and all(map(is_, given, now))
        specs = [x.spec for x in new if isinstance(x, Tensor)]
        if same and len(specs) == len(new) and len(set(specs)) == 1:
            self.kinds[place.key] = kind_of_rest(new)
            learn(self.growth, {place.key: specs})


def find_sequence(items):
    """The sequence of the items of a list that has grown; None for anything else."""
    if not has_grown(items):
        return None
    stacked = rows(stack_items(items))
    if kind_of_rest(items) is RestOfNumbers:
        (make,) = NUMBERS.values()
        return LazySequence(stacked.length, lambda k: make(stacked.at(k)), stacked.what)
    return stacked


def items_of(rest: Rest) -> list:
    """The items, once the program has run; before that the rest itself."""
    known = isinstance(rest.stack, Tensor) and not is_static(rest.stack)
    if known and type(rest) is RestOfNumbers:
        return rest.stack.tolist()
    return movement.unstack(rest.stack, axis=0) if known else [rest]


def check_method(function):
    """The method of a list; refuse the methods of a list that has grown which need its items."""
    items, name = function.__self__, function.__name__
    if name in HARMLESS or not has_grown(items):
        return function
    if name != "pop":
        refuse_of_grown(f"list.{name}")
    return lambda k=-1: pop(items, k)


def pop(items: list, k: int) -> Tensor:
    """`items.pop(k)` of a list that grew."""
    if type(k) is int and k == -1 and type(items[-1]) is not Rest:
        return items.pop()
    if type(k) is not int:
        refuse_of_grown("list.pop at a place that a tensor says")
    stack = stack_items(items)
    count = stack.spec.shape[0]
    held = current.top.constant(count) > (k if k >= 0 else -k - 1)
    check_held(held, "pop index out of range" if k != -1 else "pop from empty list", IndexError)
    rest = stack[:k] if k == -1 else movement.concat(stack[:k], stack[k + 1 :], axis=0)
    items[:] = [Rest(rest)]
    return stack[k]


def refuse_of_grown(what: str):
    """Refuse what needs the items of a list whose length only a run knows."""
    raise refusal(
        f"{what} of a list that grew in a loop on a tensor", hint="paddle.stack(items) first"
    )


HARMLESS = ("append", "clear", "copy", "extend")

looping.KINDS.append(GrowingLoop)
SEQUENCES.append(find_sequence)
SPLICED[Rest] = SPLICED[RestOfNumbers] = items_of
LIST_METHODS.append(check_method)
