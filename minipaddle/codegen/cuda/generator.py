"""The random generator: its next state, and the stream that a state stands for."""

from __future__ import annotations

from ...engine.codegen.scalar import Text, statements
from ...engine.core import dtype as dt
from ...ops.random import start
from .calls import Work, operands, works
from .text import each, parameters


@works("next_state")
def next_state(record, name: str) -> Work:
    """The key stays, the counter is one more."""
    return Work((each(name, parameters(record), 2, "out0[i] = in0[i] + i;", operands(record)),))


@works("base_of")
def base_of(record, name: str) -> Work:
    """The formula of `ops.random`, on CUDA expressions."""
    words = (Text(f"in0[{k}]", (), dt.int64.numpy).astype("uint64") for k in range(2))
    names = iter(f"t{k}" for k in range(99))
    lines, (value,) = statements([start(*words).astype(dt.int64.numpy)], names.__next__)
    body = "\n".join([*lines, f"out0[0] = {value};"])
    return Work((each(name, parameters(record), 1, body, operands(record)),))
