"""The part of a list whose length only the program will know."""

from __future__ import annotations

from ..core.dispatch import current, note_refusal
from ..core.errors import teach
from ..ops import movement
from ..ops.var import Var

PENDING = type("Pending", (), {"spec": "known when it ends"})()
"""The stack of a Rest while the loop that appends to the list is traced."""


class Rest:
    """Stands in a list for the tensors that a loop of a program appended to it: their stack."""

    def __init__(self, stack: Var):
        self.stack = stack

    def __repr__(self) -> str:
        return f"as many tensors as the loop has iterations: {self.stack.spec}"

    def refuse(self, *args):
        """Refuse what Python would do with one item, because these are many."""
        check_ended(self)
        message = teach(
            "a list that grew in a loop on a tensor: how long it is, only the program knows, "
            "so Python cannot take it apart",
            hint="paddle.stack(items), len(items), items[k], `for item in items:`",
        )
        raise note_refusal(NotImplementedError(message))

    __getattr__ = __getitem__ = __iter__ = __len__ = __call__ = refuse
    __add__ = __sub__ = __mul__ = __truediv__ = __floordiv__ = __mod__ = __pow__ = refuse
    __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rfloordiv__ = __rmod__ = __rpow__ = refuse
    __matmul__ = __rmatmul__ = __neg__ = __abs__ = __invert__ = refuse
    __lt__ = __le__ = __gt__ = __ge__ = __and__ = __or__ = __xor__ = refuse


def check_ended(rest: Rest) -> bool:
    """True; NotImplementedError inside the loop that appends to the list."""
    if rest.stack is PENDING:
        message = teach(
            "a list that grows in a loop on a tensor is read in that loop: only the program knows "
            "what the iterations before have appended",
            hint="keep what an iteration needs in a variable: last = f(last); items.append(last)",
        )
        raise note_refusal(NotImplementedError(message))
    return True


def has_grown(x) -> bool:
    """Whether x is a list that grew in a loop of the program; an error inside that loop."""
    if not (type(x) is list and current.top.tracing):
        return False
    rests = [each for each in x if type(each) is Rest]
    return bool(rests) and all(map(check_ended, rests))


def stack_items(items, axis: int = 0) -> Var:
    """The tensors of a list, and those of the rests in it, stacked along a new axis."""
    parts = [x.stack if type(x) is Rest else movement.stack(x, axis=0) for x in items]
    whole = parts[0] if len(parts) == 1 else movement.concat(*parts, axis=0)
    return (
        whole if axis == 0 else movement.transpose(whole, perm=first_axis_at(whole.spec.ndim, axis))
    )


def concat_items(items, axis: int) -> Var:
    """The tensors of a list, and those of the rests in it, one after the other along `axis`."""
    parts = [merge_first_axis(x.stack, axis) if type(x) is Rest else x for x in items]
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
