"""Methods of Paddle's tensors beyond the engine's. Importing this gives `Tensor` its methods."""

from . import (
    custom,
    gpu,
    hosting,
    layer_changes,
    methods,
    number_operators,
    numbers,
    numpy_functions,
    placed,
    printing,
    sizes,
)

__all__ = [
    "custom", "gpu", "hosting", "layer_changes", "methods", "number_operators", "numbers",
    "numpy_functions", "placed", "printing", "sizes",
]  # fmt: skip
