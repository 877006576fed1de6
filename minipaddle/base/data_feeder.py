"""Checks of arguments by type and dtype. Source: Paddle `paddle.base.data_feeder`."""

from ..core.prelude import Tensor, dt, type_error

__all__ = ["check_dtype", "check_type", "check_variable_and_dtype", "convert_dtype"]


def convert_dtype(dtype) -> str:
    """The name of a dtype. Raises TypeError for anything else.

    >>> paddle.base.data_feeder.convert_dtype(paddle.float32)
    'float32'
    """
    return dt.public(dt.resolve(dtype)).name


def check_type(input, input_name: str, expected_type, op_name: str, extra_message="") -> None:
    """Raise TypeError unless `input` is an instance of `expected_type`."""
    if not isinstance(input, expected_type):
        raise type_error(
            f"{op_name} was given {input_name} of type {type(input).__name__}",
            f"{expected_type} {extra_message}".rstrip(),
        )


def check_dtype(input_dtype, input_name: str, expected_dtype, op_name: str, extra_message=""):
    """Raise TypeError unless the dtype is among those of `expected_dtype`, by name."""
    if convert_dtype(input_dtype) not in expected_dtype:
        raise type_error(
            f"{op_name} was given {input_name} of dtype {convert_dtype(input_dtype)}",
            f"{', '.join(expected_dtype)} {extra_message}".rstrip(),
        )


def check_variable_and_dtype(
    input, input_name: str, expected_dtype, op_name: str, extra_message=""
) -> None:
    """Raise TypeError unless `input` is a tensor of one of these dtypes.

    >>> check = paddle.base.data_feeder.check_variable_and_dtype
    >>> check(paddle.ones([1]), "x", ["float32", "float64"], "my_function")
    """
    check_type(input, input_name, Tensor, op_name, extra_message)
    check_dtype(input.dtype, input_name, expected_dtype, op_name, extra_message)
