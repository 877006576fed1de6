"""`if` at run time. A Python condition runs one side; a tensor's makes both sides regions of a
program, and what they leave behind becomes the results of a `cond`.
"""

from __future__ import annotations

import builtins
import dis
import sys
from contextlib import contextmanager

from ..core.dispatch import current, note_refusal
from ..core.errors import inside, line_of
from ..core.slots import slot
from ..eager.control_flow import BranchError, as_bool, cond, is_static
from ..eager.tape import LeafError
from ..ops.logic import logical_not
from . import aliasing
from .effects import catching, check_raised, walk
from .journal import MISSING, journal, lasting, variables
from .leaves import NUMBERS, State, Undefined, replaced, same, travels
from .refusal import refusal
from .sequences import asked
from .tree import paths, unflatten
from .unsure import doubtful


@slot("jit.runtime.if_else")
def if_else(test, then, else_, keeps=(), drops=(), jumps=False) -> None:
    """`if test: then() else: else_()`; see `Choice` for a tensor as test.

    `keeps` are the variables needed afterwards, `drops` those that are not. With `jumps` one side
    leaves the block, and what it leaves undefined is not missed.
    """
    test = asked(test)
    if not is_static(test):
        if test:
            then()
        elif else_ is not None:
            else_()
        return
    else_ = else_ or nothing
    kept, dropped = variables(keeps, then, else_), variables(drops, then, else_)
    Choice(test, then, else_, kept, dropped, lenient=jumps).made()


@slot("jit.runtime.if_exp")
def if_exp(test, then, else_):
    """`then() if test else else_()`."""
    test = asked(test)
    if not is_static(test):
        return then() if test else else_()
    return Choice(test, then, else_).made()


def nothing() -> None:
    """The side that is not there."""


class Again(Exception):
    """A trace learned something that it should have known from its start."""


TRACES = 20


def trace_again(found: list, times: int):
    """A block writes to places that nobody foresaw: trace it again, but not for ever."""
    if times <= TRACES:
        raise Again
    raise refusal(
        f"{found[0].name} is written in a branch on a tensor, another one in each trace: "
        "it is made there, and something keeps it",
        hint="keep it in a variable, a list or a dict alone: no iterator over it, no method of it, "
        "no functools.partial",
    )


@contextmanager
def trying(kinds):
    """The body of a `try`; `kinds()` gives the exceptions it catches."""
    catching.open.append(kinds)
    try:
        yield
    finally:
        catching.open.pop()


def caught(kinds):
    """What a handler of `kinds` catches; nothing of the user's once the trace is refused."""
    return () if current.top.refusal and not inside(sys._getframe(1)) else kinds


class Raised(Exception):
    """The user's code raises an error on one side (of a loop: in a round)."""

    def __init__(self, side: int, error: Exception):
        super().__init__(side, error)
        self.side, self.error = side, error

    def unless(self, held) -> None:
        """Let the program raise the error when it runs, unless `held` is true."""
        check_raised(held, self.error)
        # Their frames hold the variables of the side, which `lasting` would take for kept.
        self.error.__traceback__ = self.__traceback__ = None


@contextmanager
def telling(side: int):
    """A block of the user's that runs only under a condition: what it raises is Raised."""
    try:
        yield
    except Exception as error:
        if raised_eagerly(error):
            raise Raised(side, error) from error
        raise


def raised_eagerly(error: Exception) -> bool:
    """Would eager mode raise this error, too, if it came there? Then it is no refusal to trace.

    What `raise` and `assert` raise outside this package; Python's own errors, also where the
    runtime did what was written; of ours those of operators whose sizes are known.
    """
    kind, (*_, last) = type(error), walk(error.__traceback__)
    frame, pythons = last.tb_frame, getattr(builtins, kind.__name__, None) is kind
    if frame.f_code.co_name == "assert_":
        return True
    raises = frame.f_code.co_code[last.tb_lasti] == RAISE
    if not inside(frame):
        return raises or (pythons and not issubclass(kind, REFUSING))
    package = frame.f_globals["__package__"].rpartition(".")[2]
    runtimes = package == "jit" and not raises
    sure = pythons and issubclass(kind, MISTAKES) and (runtimes or not current.top.open_sizes())
    return sure or kind is LeafError


RAISE = dis.opmap["RAISE_VARARGS"]
MISTAKES = (ArithmeticError, LookupError, NameError, ValueError)
REFUSING = (NotImplementedError, RecursionError, MemoryError)


class Result:
    """The place of what a side returns."""

    name, key = "the value", ("result",)

    def set(self, value):
        """Nobody holds it."""


class Choice:
    """Both sides of an `if` on a tensor, traced one after the other.

    A side that writes to an object nobody foresaw (an attribute, a list) is found out while it is
    traced; if it is the second, the first must give a value for that place too, and both are traced
    again.
    """

    def __init__(self, test, then, else_, keeps=(), drops=(), *, lenient=False):
        self.test, self.sides = test, (then, else_)
        self.keeps, self.drops, self.lenient = list(keeps), list(drops), lenient
        self.blanks: dict = {}  # states for the first side, by place, learned from the second
        self.poisoned: set = set()  # places that stay undefined
        self.doubts: set = set()  # those that only a run knows to be defined
        self.deep: set = set()  # ids of containers that are compared by what they hold
        self.found = 0  # how often the second side wrote to what nobody foresaw

    def made(self):
        """Trace both sides, leave behind what they leave, and give what they return."""
        while True:
            try:
                return self.attempt()
            except Again:
                continue
            except Raised as raised:
                return self.checked(raised)

    def checked(self, raised: Raised):
        """One side raises: the program checks that it is not taken, and goes on with the other."""
        test = as_bool(self.test)
        raised.unless(logical_not(test) if raised.side == 0 else test)
        return self.sides[1 - raised.side]()

    def attempt(self):
        self.states: list[list[State]] = []
        self.kept = set().union(*(p.containers() for p in self.keeps)) - self.deep
        try:
            results = cond(self.test, lambda: self.trace(0), lambda: self.trace(1))
        except BranchError as error:
            raise self.disagreement(error) from None
        places, (left, right) = [*self.keeps, Result], self.states
        values, outs = [], iter(results)
        for place, a, b in zip(places, left, right, strict=True):
            mine = [next(outs) for _ in a.leaves]
            values.append(self.merged(place, a, b, mine))
        for place, a, b, value in zip(self.keeps, left, right, values, strict=False):
            place.assign(value)
            for state in (a, b):
                aliasing.rule.replace(state.value, value, self.deep)
        return values[-1]

    def trace(self, k: int) -> list:
        """Run one side, put everything back, and give the leaves of what it left."""
        with journal([*self.keeps, *self.drops], [self.sides[k]], Raised) as noted:
            with telling(k):
                returned = self.sides[k]()
            values = noted.values()
        found = lasting(noted, values, returned, known=[*self.keeps, *self.drops])
        self.keeps += found
        if found and k:
            self.found += 1
            trace_again(found, self.found)
        with noted.ended(values):
            states = [State(values[place.key], self.kept) for place in self.keeps]
            states.append(State(returned, self.kept))
        self.states.append(states)
        places = [*self.keeps, Result]
        for i, place in enumerate(places):
            states[i] = self.fitting(place, i, k)
        return [leaf if travels(leaf) else None for state in states for leaf in state.leaves]

    def fitting(self, place, i: int, k: int) -> State:
        """A side's state of a place, made to fit the other side's where it is undefined."""
        mine = self.states[k][i]
        if place.key in self.poisoned:
            return State(MISSING)
        if not k:
            known = self.blanks.get(place.key) if mine.missing else None
            mine = self.blank(place, known) if known else mine
            return mine.doubted(place, True, "") if place.key in self.doubts else mine
        other = self.states[0][i]
        if mine.missing and other.missing:
            return mine
        if mine.missing or other.missing:
            if not self.lenient:
                self.poisoned.add(place.key)
                raise Again
            if other.missing:
                self.blanks[place.key] = mine
                raise Again
            mine = self.blank(place, other)
        if other.unsure:
            mine = mine.doubted(place, True, "")
        elif mine.unsure:
            self.doubts.add(place.key)
            raise Again
        if mine.value is not other.value:
            self.check(place, other, mine)
        return mine

    def blank(self, place, known: State) -> State:
        """The state of a side that leaves a place undefined, the other's being `known`."""
        if known.unsure or not (doubtful(place) and known.plain() and known.specs[0]):
            return known.blank()
        return known.blank().doubted(place, False, self.blame(place))

    def check(self, place, a: State, b: State) -> None:
        """Refuse two values that no program can choose between."""
        new = replaced(a, b, self.kept)
        if new:
            self.deep |= new
            raise Again
        if a.structure != b.structure:
            raise self.refused(place, "", str(a), str(b))
        for j, (x, y) in enumerate(zip(a.leaves, b.leaves, strict=True)):
            if not (travels(x) and travels(y)) and not same(x, y):
                raise self.refused(place, paths(a.structure)[j], a.told(j), b.told(j))

    def merged(self, place, a: State, b: State, outs: list):
        """What a place holds after the `if`."""
        if place.key in self.poisoned:
            return Undefined(place.name, self.blame(place))
        if a.missing:
            return a.value
        if a.value is b.value:
            return a.value
        pairs = zip(a.leaves, b.leaves, outs, strict=True)
        leaves = [x if is_plain(x) and same(x, y) else out for x, y, out in pairs]
        # a container of one side is not what both hold, even if both hold the same in it
        return a.rebuilt(leaves) if a.unsure else unflatten(a.structure, leaves)

    # ---- messages ----------------------------------------------------------------------------

    def blame(self, place) -> str:
        """Which side leaves a place undefined."""
        bound = [stored(side, place.name) for side in self.sides]
        then = self.sides[0].__code__
        which = "else" if bound[0] else "if"
        said = f"only the other side binds it ({line_of(bound[0] or bound[1] or (then, 0))})"
        return f"the `{which}` side of a condition on a tensor leaves it undefined: {said}"

    def refused(self, place, path: str, left: str, right: str):
        sides = zip((left, right), (stored(side, place.name) for side in self.sides))
        left, right = (bound_at(said, line) for said, line in sides)
        return refusal(
            f"{wording(place)}{path} is not the same kind of value on both sides of a condition on "
            f"a tensor:\n  if:   {left}\n  else: {right}",
            expected="the same structure, and tensors of the same shape and dtype",
            hint="bind it to a tensor on both sides, or make the condition a Python value",
        )

    def disagreement(self, error: BranchError):
        """The same for what the program itself refuses."""
        k = error.k
        for place, state in zip([*self.keeps, Result], self.states[0], strict=True):
            if k < len(state.leaves):
                return self.refused(
                    place, paths(state.structure)[k], str(error.left), str(error.right)
                )
            k -= len(state.leaves)
        return note_refusal(error)


def is_plain(x) -> bool:
    return type(x) in NUMBERS or not travels(x)


def wording(place) -> str:
    names = {"_jst_value": "what the function returns", "the value": "the value"}
    return names.get(place.name, f"`{place.name}`")


def bound_at(said: str, line) -> str:
    """What is said of a value, and the line that binds it, if that is another than made it."""
    where = line_of(line) if line else ""
    return said if said.endswith(where) else f"{said}, bound at {where}"


def stored(function, name: str):
    """Where a function binds a name, as (code, instruction offset); None if it does not."""
    code = function.__code__
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("STORE_DEREF", "STORE_GLOBAL") and instruction.argval == name:
            return code, instruction.offset
    return None
