"""Errors that the user's code raises under a condition on a tensor: the program raises them when it
runs, if the condition holds then.
"""

import builtins
import dis
from contextlib import contextmanager

from ..engine.core.dispatch import current, describe
from ..engine.core.errors import PACKAGE, inside
from ..engine.eager.control_flow import as_bool, is_static
from ..engine.eager.tape import LeafError
from ..engine.eager.tensor import Parameter, Tensor
from ..engine.jit.branching import CHOICES
from ..engine.jit.effects import check_held
from ..engine.jit.ignore import within
from ..engine.jit.looping import KINDS
from ..engine.jit.tree import flatten
from ..engine.ops.logic import logical_not
from .objects import CONSTANT


class Raised(Exception):
    """The user's code raises an error on one side of an `if`, or in an iteration of a loop."""

    def __init__(self, side: int, error: Exception):
        super().__init__(side, error)
        self.side, self.error = side, error

    def unless(self, held) -> None:
        """Let the program raise the error when it runs, unless `held` is true."""
        check_raised(held, self.error)


@contextmanager
def note_raised(side: int):
    """Turn the errors of a block that runs only under a condition into Raised."""
    try:
        yield
    except Exception as error:
        if is_raised_eagerly(error):
            raise Raised(side, error) from error
        raise


def is_raised_eagerly(error: Exception) -> bool:
    """Whether eager mode would raise this error too: then it does not refuse the trace.

    That holds for what `raise` and `assert` raise outside this package, for Python's own errors
    (also about an attribute that an object of the user's lacks), and for the errors of our
    operators if all sizes are known.
    """
    kind, (*_, last) = type(error), traceback_steps(error.__traceback__)
    frame, pythons = last.tb_frame, getattr(builtins, kind.__name__, None) is kind
    if frame.f_code.co_name == "assert_":
        return True
    raises = frame.f_code.co_code[last.tb_lasti] == RAISE
    if not inside(frame):
        return raises or (pythons and not issubclass(kind, REFUSING))
    runtimes = "jit" in frame.f_globals["__package__"].split(".") and not raises
    sure = pythons and issubclass(kind, MISTAKES) and (runtimes or not current.top.open_sizes())
    users = kind is AttributeError and not within(type(error.obj).__module__, PACKAGE)
    return sure or users or kind is LeafError


RAISE = dis.opmap["RAISE_VARARGS"]
MISTAKES = (ArithmeticError, LookupError, NameError, ValueError)
REFUSING = (NotImplementedError, RecursionError, MemoryError)


def check_raised(held, error: Exception) -> None:
    """Make the program raise an error like this one if `held` is false."""
    its, text = type(error), error.args[0] if error.args else ""
    text = text if isinstance(text, str) else describe(error, str)
    kind = next(k for k in its.__mro__ if getattr(builtins, k.__name__, None) is k)
    try:
        kind(text)
    except TypeError:  # it takes more than a text
        kind = RuntimeError
    if kind is not its and its.__module__.partition(".")[0] != PACKAGE:
        text = f"{its.__name__}: {describe(error, str)}"
    where, plain = line_of_error(error), CONSTANT - {Tensor, Parameter}
    own = plain.issuperset(map(type, flatten((error.args, vars(error)))[0]))
    held = check_held(held, text, kind, error, own)
    held.array.record.where = where or held.array.record.where
    if own:
        error.__traceback__ = error.__context__ = None  # they hold the trace


def line_of_error(error: Exception) -> tuple | None:
    """The user's line that raised an error, in the form that records have."""
    steps = [t for t in traceback_steps(error.__traceback__) if not inside(t.tb_frame)]
    return (steps[-1].tb_frame.f_code, steps[-1].tb_lasti) if steps else None


def traceback_steps(traceback):
    """The steps of a traceback, outermost first."""
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


class RaisingChoice(CHOICES[-1]):
    """An `if` whose sides may raise."""

    unless, guard = (Raised,), staticmethod(note_raised)

    def end(self, raised: Raised):
        """One side raises: let the program check that it is not taken, and run the other side."""
        test = as_bool(self.test)
        raised.unless(logical_not(test) if raised.side == 0 else test)
        return self.sides[1 - raised.side]()


class RaisingLoop(KINDS[-1]):
    """A loop whose iterations may raise: the error depends on no tensor, so the first raises it."""

    unless, guard = (Raised,), staticmethod(note_raised)

    def end(self, raised: Raised) -> None:
        """The program raises the error if there is a first iteration."""
        if not is_static(self.go):  # there is one for certain
            raise raised.error from None
        raised.unless(logical_not(as_bool(self.go)))


CHOICES.append(RaisingChoice)
KINDS.append(RaisingLoop)
