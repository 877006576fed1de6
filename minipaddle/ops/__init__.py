"""Every operator, defined once: its formula or body, its shape rule, its derivative."""

from . import (  # importing a file registers its operators in core.op.OPS
    activation,
    conv,
    creation,
    elementwise,
    indexing,
    linalg,
    movement,
    nn,
    random,
    reduction,
    special,
)

__all__ = [
    "activation",
    "conv",
    "creation",
    "elementwise",
    "indexing",
    "linalg",
    "movement",
    "nn",
    "random",
    "reduction",
    "special",
]
