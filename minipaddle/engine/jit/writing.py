"""Writes at run time: the region around is told before something outside it changes."""

from __future__ import annotations

from ..core.slots import slot
from ..eager.tensor import Tensor
from .journal import Attribute, Global, Variable, before_write, journals, note
from .leaves import Undefined
from .refusal import refusal
from .unsure import Unsure


@slot("jit.runtime.writing")
def writing(owner, attribute: str | None = None):
    """`owner`, of which an attribute or an item is about to be written."""
    before_write(owner)
    gradient = attribute == "grad" and isinstance(owner, Tensor)  # the tracer minds those
    if journals.open and attribute is not None and not gradient:
        note(Attribute(owner, attribute))
    return owner


def writing_names(names) -> None:
    """Variables of other scopes are about to be written: those the function `names` uses."""
    if not journals.open:
        return
    code = names.__code__
    for name, cell in zip(code.co_freevars, names.__closure__ or (), strict=True):
        note(Variable(name, cell))
    for name in code.co_names:
        note(Global(name, names.__globals__))


@slot("jit.runtime.defined")
def defined(value):
    """`value`, or an error that says which side of a condition left the name undefined.

    Where only a run knows whether it is defined, the program checks that.
    """
    if type(value) is Unsure:
        return value.use()
    if type(value) is Undefined:
        raise refusal(
            f"`{value.name}` may be undefined here: {value.reason}",
            hint=f"bind `{value.name}` on both sides, or before",
        )
    return value
