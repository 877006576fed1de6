"""The learning rate as formulas read it."""

from __future__ import annotations

from ..core.errors import teach
from ..core.interpreter import current
from ..eager.tensor import Tensor


class Rate:
    """A number that is also a 0-D tensor, one for each dtype it is read in.

    A program captured from a training step has the tensor among its states. Setting the number
    writes the tensor, so a schedule goes on working without capturing the step again.
    """

    moved_in = None  # the trace in which the schedule took its step

    def __init__(self, value: float):
        self._value = float(value)
        self._tensors: dict = {}

    @property
    def value(self) -> float:
        return self._value

    @value.setter
    def value(self, value: float) -> None:
        self._value = float(value)
        for tensor in self._tensors.values():
            tensor.set_value(self._value)

    def tensor(self, dtype) -> Tensor:
        """The 0-D tensor of the NumPy dtype `dtype` that always holds the value."""
        if current.top.tracing and not current.top.by_hand and self.moved_in is current.top:
            raise NotImplementedError(
                teach(
                    "a captured step uses the learning rate after its schedule's step(), which "
                    "runs when the program has ended",
                    hint="call scheduler.step() after optimizer.step()",
                )
            )
        found = self._tensors.get(dtype)
        if found is None:
            found = self._tensors[dtype] = Tensor(self._value, dtype=dtype)
            found.name = "learning_rate"
        return found
