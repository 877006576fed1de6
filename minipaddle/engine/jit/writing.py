"""Writes at run time: the journal notes an object's state before converted code changes it."""

from __future__ import annotations

from ..core.dispatch import current
from ..core.slots import slot
from ..eager.tensor import Tensor
from .journal import Attribute, Global, Variable, before_write, note
from .leaves import Undefined
from .maybe_undefined import MaybeUndefined
from .refusal import refusal


@slot("jit.runtime.writing")
def writing(owner, attribute: str | None = None):
    """`owner`; an attribute or an item of it is about to be written."""
    before_write(owner)
    gradient = attribute == "grad" and isinstance(owner, Tensor)  # the tracer minds those
    if current.top.journals and attribute is not None and not gradient:
        note(Attribute(owner, attribute))
    return owner


def writing_names(names) -> None:
    """Note variables of other scopes that are about to be written: those that `names` uses."""
    if not current.top.journals:
        return
    code = names.__code__
    for name, cell in zip(code.co_freevars, names.__closure__ or (), strict=True):
        note(Variable(name, cell))
    for name in code.co_names:
        note(Global(name, names.__globals__))


@slot("jit.runtime.require_defined")
def require_defined(value):
    """`value`; an error if one side of a condition leaves the variable undefined.

    If only a run knows whether it is defined, the program checks it.
    """
    if type(value) is MaybeUndefined:
        return value.use()
    if type(value) is Undefined:
        raise refusal(
            f"`{value.name}` may be undefined here: {value.reason}",
            hint=f"bind `{value.name}` on both sides, or before",
        )
    return value
