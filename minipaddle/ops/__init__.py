"""The operators beyond the book's: each defined once, with its shape rule and its derivative.

Importing a file registers its operators in `engine.core.op.OPS`.
"""

from . import (
    activations,
    affine,
    angles,
    arithmetic,
    arrangement,
    channels_last,
    counting,
    decompositions,
    gamma,
    index_arrays,
    labels,
    matrix_functions,
    mean_pooling,
    norm,
    pooling,
    products,
    quantization,
    random,
    reductions,
    resample,
    rounding,
    sampling,
    scan,
    scatter,
    sorting,
    strided,
    truth,
    weight_only,
)
