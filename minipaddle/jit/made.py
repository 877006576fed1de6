"""Parameters that a converted function makes: each run draws new ones, as eager mode does.

Inside the trace such a parameter is a leaf like any other. Outside nothing may hold it, or a layer
that has it: it stands for another tensor in each run, and has no value after the trace.
"""

from ..engine.core.dispatch import Recording, current
from ..engine.eager.tensor import Parameter, Tensor
from ..engine.eager.tracer import Tracer
from ..engine.jit.refusal import refusal
from ..engine.jit.tree import flatten
from ..engine.ops import creation

Tracer.made = ()
"""The parameters that the trace made."""
Tracer.begun = ()
"""(state of an optimizer that the trace made, whether it copies a parameter)"""


def make_parameter(tracer, parameter: Parameter, data, dtype):
    """The symbolic array of a parameter with these values, which the trace makes."""
    with Recording(False):
        data = data.detach() if isinstance(data, Tensor) else tracer.constant(data, dtype)
        data = creation.assign(data if dtype is None else data.astype(dtype))
    tracer.made = (*tracer.made, parameter)
    return tracer.lift(data)


Tracer.make_parameter = make_parameter


def note_first_values(tracer, states, master) -> None:
    """Note the states of an optimizer that the trace made, and its copy of a parameter or None."""
    tracer.begun = (*tracer.begun, *((state, False) for state in states))
    tracer.begun += ((master, True),) * (master is not None)


Tracer.note_first_values = note_first_values


def check_made(outside: list, returned, left: list, reach) -> None:
    """Refuse a function that keeps a parameter it made, or a layer with one: in what it returns, in
    the side effects `left`, or in an object `outside`. `reach(roots)` are objects by id.

    States of an optimizer that it does not keep have their first values in each run.
    """
    tracer = current.top
    held = [leaf for each in left for leaf in each.state.leaves]
    leaves = [x for x in flatten(returned)[0] if not isinstance(x, Tensor)]
    reached = reach([*outside, *leaves, *held])
    for parameter in tracer.made:
        if id(parameter) in reached:
            raise refusal(
                f"{parameter.name} is made by the converted function, and outlives the call: each "
                "run of the program makes another one",
                hint="make layers and parameters in __init__, or before the call",
            )
    for state, copies in tracer.begun:
        if id(state) not in reached:
            if copies:
                raise refusal(
                    "an optimizer with multi_precision is made by the converted function: its "
                    "copies of parameters would stay as they are now",
                    hint="make the optimizer before the call",
                )
            array = tracer.fetch_array(state)
            tracer.constants[id(array)] = array
