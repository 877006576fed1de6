"""The learning rate as formulas read it."""

from weakref import ref

from ..core.prelude import Tensor, current, not_supported, note_refusal
from ..engine.core import dtype


class Rate:
    """A number that is also a 0-D tensor, one for each dtype it is read in.

    A program captured from a training step has the tensor among its states. Setting the number
    writes the tensor, so a schedule goes on working without capturing the step again.
    """

    moved_in = None  # the trace in which it changes after each run
    home = None  # a weak reference to the builder of the program that makes it anew in every run

    def __init__(self, value: float):
        self.number = float(value)
        self._tensors: dict = {}
        if traces():
            self.home = ref(current.top.builder)

    @property
    def value(self):
        """The number; in a program, whose runs come later, the tensor that will hold it."""
        return self.tensor(dtype.default()) if self.is_outside() else self.number

    def is_outside(self) -> bool:
        """Is a program being traced that a rate made elsewhere will change between its runs?"""
        if not traces():
            return False
        builder, home = current.top.builder, self.home and self.home()
        while builder is not None and builder is not home:
            builder = builder.parent
        return builder is None

    def waits(self) -> bool:
        """Whether a change waits for the end of each run, because a traced program asks for it.

        From then on the program may not use the rate.
        """
        if not current.top.tracing:
            return False
        if traces() and self.home and self.home() is current.top.builder:
            return False
        self.moved_in = current.top
        return True

    @value.setter
    def value(self, value: float) -> None:
        self.number = float(value)
        for tensor in self._tensors.values():
            tensor.set_value(self.number)

    def tensor(self, dtype) -> Tensor:
        """The 0-D tensor of the NumPy dtype `dtype` that always holds the value."""
        if self.moved_in is not None and traces() and self.moved_in is current.top:
            raise note_refusal(
                not_supported(
                    "a captured step uses the learning rate after its schedule's step() or "
                    "after set_lr(), which run when the program has ended",
                    hint="call them after what uses the rate, as optimizer.step()",
                )
            )
        tensor = self._tensors.get(dtype)
        if tensor is None:
            own = traces() and not self.is_outside()
            new = current.top.constant if own else Tensor
            tensor = self._tensors[dtype] = new(self.number, dtype)
            tensor.name = "learning_rate"
        return tensor


def traces() -> bool:
    """Whether Python is being traced into a program (a static program written by hand is not
    traced).
    """
    return current.top.tracing and not current.top.by_hand
