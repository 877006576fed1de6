"""C text of the random generator: its next state, and the stream that a state stands for."""

from __future__ import annotations

import numpy as np

from ..engine.codegen.kernel import Kernel, emits, function
from ..engine.codegen.scalar import Text, statements
from ..ops.random import start


@emits("next_state")
def next_state(record, name: str, rows=None, parameters=()) -> Kernel:
    """The key stays, the counter is one more."""
    body = "    out0[0] = in0[0];\n    out0[1] = in0[1] + 1;"
    return Kernel(name, function(record, name, body, parameters=parameters))


@emits("base_of")
def base_of(record, name: str, rows=None, parameters=()) -> Kernel:
    """The formula of `ops.random`, on C expressions."""
    key, counter = (Text(f"in0[{k}]", (), np.int64).astype(np.uint64) for k in range(2))
    names = iter(f"t{k}" for k in range(99))
    lines, (value,) = statements([start(key, counter).astype(np.int64)], names.__next__)
    body = "\n".join(f"    {line}" for line in [*lines, f"out0[0] = {value};"])
    return Kernel(name, function(record, name, body, parameters=parameters))
