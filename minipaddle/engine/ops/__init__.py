"""The operators of the book, each defined once: its formula, its shape rule, its derivative."""

from . import (  # importing a file registers its operators in core.op.OPS
    activation,
    conv,
    creation,
    elementwise,
    gather,
    gradient,
    linalg,
    logic,
    movement,
    nn,
    pooling,
    reduction,
    special,
    strided,
)

__all__ = [
    "activation",
    "conv",
    "creation",
    "elementwise",
    "gather",
    "gradient",
    "linalg",
    "logic",
    "movement",
    "nn",
    "pooling",
    "reduction",
    "special",
    "strided",
]
