"""Generated names: `linear_0` for a layer, `linear_0.w_0` for its first weight."""

import re
from collections import Counter
from contextlib import contextmanager

from ..engine.core.rank import per_rank


class Names(Counter):
    """How often each key was asked for a name; all names start with `prefix`."""

    def __init__(self, prefix: str = ""):
        super().__init__()
        self.prefix = prefix

    def __copy__(self) -> "Names":
        """Those of a new rank: it counts from zero, as a process of its own does."""
        return Names(self.prefix)


_names = per_rank(Names())


def unique(key: str) -> str:
    """`key_0`, then `key_1`, …: a name that is unique in this rank.

    Source: Paddle API `paddle.utils.unique_name.generate`.

    >>> from minipaddle.nn.names import guard, unique
    >>> with guard():
    ...     unique("linear"), unique("linear"), unique("conv2d")
    ('linear_0', 'linear_1', 'conv2d_0')
    """
    names = _names.now
    number = names[key]
    names[key] += 1
    return f"{names.prefix}{key}_{number}"


def switch(new_generator: Names | None = None, new_para_name_checker=None) -> tuple:
    """Count from zero, or on with an earlier result of `switch`; returns the counter before.

    The checker of Paddle's names is handed through: a name that two parameters have is no error.

    >>> before, checker = paddle.utils.unique_name.switch()
    >>> paddle.utils.unique_name.generate("fc")
    'fc_0'
    >>> _ = paddle.utils.unique_name.switch(before, checker)
    """
    before, _names.now = _names.now, Names() if new_generator is None else new_generator
    return before, new_para_name_checker


@contextmanager
def guard(new_generator: Names | str | bytes | None = None):
    """Count from zero inside the block: two models built alike get the same names.

    A string is put before each name.

    >>> with paddle.utils.unique_name.guard("teacher_"):
    ...     paddle.utils.unique_name.generate("fc")
    'teacher_fc_0'
    """
    if isinstance(new_generator, bytes):
        new_generator = new_generator.decode()
    if isinstance(new_generator, str):
        new_generator = Names(new_generator)
    before, _ = switch(new_generator)
    try:
        yield
    finally:
        switch(before)


def snake(name: str) -> str:
    """`LSTMCell` as `lstm_cell`, `Conv2D` as `conv2d`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=.)(?=[A-Z][a-z])", "_", name).lower()
