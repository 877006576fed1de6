"""The dtype of Python floats, as users read and set it."""

from ..engine.core.dtype import DEFAULT, FLOATS, public, resolve


def set_default_dtype(d) -> None:
    """Make `d` the dtype of Python floats, of fresh parameters and of `paddle.ones([2])`.

    >>> paddle.set_default_dtype("float64")
    >>> paddle.ones([1]).dtype
    paddle.float64
    >>> paddle.set_default_dtype("float32")
    """
    dtype = resolve(d)
    if dtype not in FLOATS:
        raise TypeError(f"set_default_dtype takes a floating dtype, not {public(dtype)}")
    DEFAULT.now = dtype


def get_default_dtype() -> str:
    """The name of the default floating dtype.

    >>> paddle.get_default_dtype()
    'float32'
    """
    return public(DEFAULT.now).name
