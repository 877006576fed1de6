"""Every public function that takes a tensor first is a method of Var too."""

import inspect
from functools import partial
from importlib import import_module

from ..core.missing import missing
from ..engine.ops.var import Var
from . import attribute, composed, creation, manipulation

NAMES = """
    attribute composed creation decompositions einsum inplace linalg logic manipulation math
    matrices norms random reduce search stat"""
MODULES = [import_module(f"{__package__}.{name}") for name in NAMES.split()]
FIRST = ("x", "input", "arr", "condition", "sorted_sequence")
ALSO = """
    add_n atleast_1d atleast_2d atleast_3d block_diag broadcast_shape broadcast_shapes
    cumulative_trapezoid multiplex scatter_nd trapezoid"""
"""Methods in Paddle too, though their first argument is no tensor, or has a name of its own."""


def methods(*modules) -> dict:
    """The functions of `modules` whose first parameter is a tensor, by name."""
    table = {}
    for module in modules:
        for name in module.__all__:
            function = getattr(module, name)
            if inspect.isfunction(function) and takes_tensor(function):
                table[name] = function
    return table


def takes_tensor(function) -> bool:
    first = next(iter(inspect.signature(function).parameters), None)
    return first in FIRST or function.__name__ in ALSO.split()


class TorchMethods:
    """Methods that are not functions of `paddle` too, most of them PyTorch's names of others."""

    def new_full(self, size, fill_value, *, dtype=None):
        """`paddle.full` in this tensor's dtype."""
        return creation.full(size, fill_value, self.spec.dtype if dtype is None else dtype)

    def new_zeros(self, size, *, dtype=None):
        """`paddle.zeros` in this tensor's dtype."""
        return self.new_full(size, 0, dtype=dtype)

    def new_ones(self, size, *, dtype=None):
        """`paddle.ones` in this tensor's dtype."""
        return self.new_full(size, 1, dtype=dtype)

    def new_empty(self, size, *, dtype=None):
        """`paddle.empty` in this tensor's dtype."""
        return creation.empty(size, self.spec.dtype if dtype is None else dtype)

    def repeat(self, *repeats):
        """`paddle.tile`."""
        return manipulation.tile(self, repeats[0] if len(repeats) == 1 else list(repeats))

    def split_with_sizes(self, split_sizes, dim=0):
        """`paddle.split` into parts of these sizes."""
        return manipulation.split(self, list(split_sizes), dim)

    def fill_diagonal_tensor(self, y, offset=0, dim1=0, dim2=1, name=None):
        """`paddle.diagonal_scatter`."""
        return composed.diagonal_scatter(self, y, offset, dim1, dim2)

    def fill_diagonal_tensor_(self, y, offset=0, dim1=0, dim2=1, name=None):
        """The same in place."""
        return self.become(self.fill_diagonal_tensor(y, offset, dim1, dim2))

    def _inplace_assign(self, other):
        """Become a copy of `other`, whatever its shape. Source: Paddle `Tensor._inplace_assign`."""
        return self.become(creation.assign(other), reshaped=True)

    def is_same_shape(self, y) -> bool:
        """Has `y` the same shape?"""
        return self.spec.shape == y.spec.shape

    def get_device(self) -> int:
        """The number of the GPU it is on; -1 on the CPU."""
        return self.place.get_device_id() if self.place.is_gpu_place() else -1


def own_members(kind: type) -> dict:
    """The attributes that a class defines itself."""
    return {name: member for name, member in vars(kind).items() if name not in vars(Empty)}


class Empty:
    """Has what every class has; from Python 3.13 on, also where its statement begins."""


def raise_missing(self, name: str):
    """The error for a method that is not here, with the nearest name."""
    raise missing(name, "Tensor", partial(dir, type(self)))


Var.register(own_members(attribute.Attributes) | own_members(TorchMethods) | methods(*MODULES))
Var.register({"__getattr__": raise_missing})
