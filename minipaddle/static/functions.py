"""Functions that write a program, beside operators: data, gradients, names, places."""

from contextlib import contextmanager

from ..eager.curvature import as_list
from ..engine.core.dtype import default
from ..engine.eager.backward import grad
from ..engine.eager.device import CPUPlace
from ..ir.input_spec import InputSpec
from ..nn.names import unique
from ..tensor.creation import full
from .mode import Mode, outside, writing

__all__ = [
    "Scope", "append_backward", "cpu_places", "create_global_var", "data", "global_scope",
    "gradients", "name_scope",
]  # fmt: skip


def data(name: str, shape, dtype=None, lod_level=0):
    """An input of the program, by name; None or -1 is a size that varies from run to run.

    Open first sizes are all the same, the batch; one that is not has a name in the place of None.
    Its dtype is the default dtype unless one is given.

    >>> paddle.enable_static()
    >>> with paddle.static.program_guard(paddle.static.Program()):
    ...     paddle.static.data("x", [None, 3]).shape
    [batch, 3]
    >>> paddle.disable_static()
    """
    return writing("static.data").data(name, InputSpec(shape, dtype or default(), name))


def create_global_var(shape, value, dtype, persistable=False, force_cpu=False, name=None):
    """A tensor full of `value` that keeps what runs of the program write into it.

    >>> paddle.enable_static()
    >>> with paddle.static.program_guard(paddle.static.Program()):
    ...     count = paddle.static.create_global_var([1], 0, "int64", persistable=True, name="count")
    ...     found = paddle.assign(count + 1, count)
    ...     exe = paddle.static.Executor()
    ...     [exe.run(fetch_list=[count])[0].tolist() for _ in range(2)]
    [[1], [2]]
    >>> paddle.disable_static()
    """
    tracer = writing("static.create_global_var")
    with outside():
        variable = full(shape, value, dtype)
    variable.name = unique("global_var") if name is None else name
    tracer.tensors[variable.name] = variable
    return variable


def append_backward(
    loss, parameter_list=None, no_grad_set=None, callbacks=None, checkpoints=None,
    distop_context=None,
):  # fmt: skip
    """Write the walk back from `loss`; pairs (parameter, gradient)."""
    return writing("append_backward").append_backward(loss, parameter_list, no_grad_set)


def gradients(targets, inputs, target_gradients=None, no_grad_set=None) -> list:
    """The gradients of `inputs`, None where there is none.

    Data stops gradients unless its `stop_gradient` was set to False.
    """
    writing("static.gradients")
    lists = [None if v is None else as_list(v) for v in (targets, inputs, target_gradients)]
    return grad(*lists, create_graph=True, allow_unused=True)


@contextmanager
def name_scope(prefix=None):
    """A part of a program, in name only.

    >>> with paddle.static.name_scope("encoder"):
    ...     y = paddle.ones([1])
    """
    yield


def cpu_places(device_count=None) -> list:
    """As many CPU places.

    >>> paddle.static.cpu_places(2)
    [Place(cpu), Place(cpu)]
    """
    return [CPUPlace() for _ in range(device_count or 1)]


class Scope:
    """Where variables are found by name. Source: Paddle API `static.global_scope`."""

    def find_var(self, name: str):
        """The state of that name in the default program; None if there is none."""
        tensor = Mode.main.state_dict().get(name)
        return None if tensor is None else ScopeVariable(tensor)


class ScopeVariable:
    """A variable of a scope."""

    def __init__(self, tensor):
        self.tensor = tensor

    def get_tensor(self):
        """Its tensor."""
        return self.tensor


SCOPE = Scope()


def global_scope() -> Scope:
    """The scope of all programs.

    >>> paddle.static.global_scope().find_var("nothing") is None
    True
    """
    return SCOPE
