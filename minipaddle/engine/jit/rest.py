"""The part of a list whose length only the program will know."""

from __future__ import annotations

from ..core.dispatch import current, note_refusal
from ..core.errors import teach
from ..ops import movement
from ..ops.var import Var

PENDING = type("Pending", (), {"spec": "known when it ends"})()
"""The stack of a rest while the loop that appends to it is traced."""


class Rest:
    """Stands in a list for the tensors that a loop of a program appended to it: a stack of them."""

    def __init__(self, stack: Var):
        self.stack = stack

    def __repr__(self) -> str:
        return f"as many tensors as the loop has rounds: {self.stack.spec}"

    def taken(self, *args):
        """What Python would do with an item: NotImplementedError, for these are many."""
        known(self)
        message = teach(
            "a list that grew in a loop on a tensor: how long it is, only the program will know, "
            "so Python can not take it apart",
            hint="paddle.stack(items), len(items), items[k], `for item in items:`",
        )
        raise note_refusal(NotImplementedError(message))

    __getattr__ = __getitem__ = __iter__ = __len__ = __call__ = taken
    __add__ = __sub__ = __mul__ = __truediv__ = __floordiv__ = __mod__ = __pow__ = taken
    __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rfloordiv__ = __rmod__ = __rpow__ = taken
    __matmul__ = __rmatmul__ = __neg__ = __abs__ = __invert__ = taken
    __lt__ = __le__ = __gt__ = __ge__ = __and__ = __or__ = __xor__ = taken


def known(rest: Rest) -> bool:
    """True; NotImplementedError in the loop that appends to the list."""
    if rest.stack is PENDING:
        message = teach(
            "a list that grows in a loop on a tensor is read in that loop: what the rounds before "
            "have appended, only the program knows",
            hint="keep what a round needs in a name of its own: last = f(last); items.append(last)",
        )
        raise note_refusal(NotImplementedError(message))
    return True


def grown(x) -> bool:
    """Is it a list that grew in a loop of a program that is traced? In that loop an error."""
    if not (type(x) is list and current.top.tracing):
        return False
    rests = [each for each in x if type(each) is Rest]
    return bool(rests) and all(map(known, rests))


def stacked(items, axis: int = 0) -> Var:
    """The tensors of a list, and the rests in it, side by side along a new axis."""
    parts = [x.stack if type(x) is Rest else movement.stack(x, axis=0) for x in items]
    whole = parts[0] if len(parts) == 1 else movement.concat(*parts, axis=0)
    return whole if axis == 0 else movement.transpose(whole, perm=moved(whole.spec.ndim, axis))


def joined(items, axis: int) -> Var:
    """The tensors of a list, and those of the rests in it, one after the other along `axis`."""
    parts = [merged(x.stack, axis) if type(x) is Rest else x for x in items]
    return parts[0] if len(parts) == 1 else movement.concat(*parts, axis=axis)


def merged(stack: Var, axis: int) -> Var:
    """The first axis of a stack, as the outer part of the axis `axis` of its tensors."""
    x = movement.transpose(stack, perm=moved(stack.spec.ndim, axis))
    shape = x.spec.shape
    both = shape[axis] * shape[axis + 1]
    return movement.reshape(x, shape=(*shape[:axis], both, *shape[axis + 2 :]))


def moved(ndim: int, axis: int) -> tuple:
    """The order of the axes with the first one at `axis`."""
    rest = list(range(1, ndim))
    return (*rest[:axis], 0, *rest[axis:])
