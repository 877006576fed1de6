"""The operators of the book, each defined once: its formula, its shape rule, its derivative."""

from . import (
    activation,
    conv,
    creation,
    elementwise,
    gather,
    linalg,
    logic,
    marks,
    movement,
    nn,
    reduction,
    special,
)
