"""The operators beyond the book's: each defined once, with its shape rule and its derivative.

Importing a file registers its operators in `engine.core.op.OPS`.
"""

from . import (
    activations,
    angles,
    arrangement,
    channels_last,
    counting,
    decompositions,
    gamma,
    labels,
    matrix_functions,
    mean_pooling,
    norm,
    random,
    resample,
    rounding,
    sampling,
    scan,
    scatter,
    sorting,
)
