"""Tensors as text, laid out as Paddle does."""

from __future__ import annotations

import numpy


def format_tensor(tensor) -> str:
    """`Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True, [1., 2.])`."""
    head = (
        f"{'Parameter' if tensor.is_parameter else 'Tensor'}(shape={tensor.shape}, "
        f"dtype={tensor.dtype.name}, place={tensor.place!r}, "
        f"stop_gradient={tensor.stop_gradient},"
    )
    body = numpy.array2string(tensor.numpy(), separator=", ", prefix="       ")
    return f"{head}\n       {body})"
