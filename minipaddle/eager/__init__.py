"""What Paddle's tensors can do beyond the engine's. Importing this gives `Tensor` its methods."""

from . import gpu, methods, placed, printing

__all__ = ["gpu", "methods", "placed", "printing"]
