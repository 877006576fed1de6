"""Paddle's `InputSpec`: the engine's, and ways to make and to change one."""

from __future__ import annotations

from ..engine.core.errors import value_error
from ..engine.ir import input_spec


class InputSpec(input_spec.InputSpec):
    __doc__ = input_spec.InputSpec.__doc__

    @classmethod
    def from_tensor(cls, tensor, name=None) -> InputSpec:
        """The spec of a tensor. Source: Paddle API `InputSpec.from_tensor`."""
        return cls(tensor.shape, tensor.dtype, name or tensor.name, tensor.stop_gradient)

    @classmethod
    def from_numpy(cls, ndarray, name=None) -> InputSpec:
        """The spec of an array. Source: Paddle API `InputSpec.from_numpy`."""
        return cls(ndarray.shape, ndarray.dtype, name)

    def batch(self, batch_size) -> InputSpec:
        """With another size in front. Source: Paddle API `InputSpec.batch`."""
        self.shape = (-1 if batch_size is None else batch_size, *self.shape)
        return self

    def unbatch(self) -> InputSpec:
        """Without the first size. Source: Paddle API `InputSpec.unbatch`."""
        if not self.shape:
            raise value_error("unbatch of an InputSpec without sizes")
        self.shape = self.shape[1:]
        return self
