"""What Paddle's tensors can do beyond the engine's. Importing this gives `Tensor` its methods."""

from . import methods, placed, printing

__all__ = ["methods", "placed", "printing"]
