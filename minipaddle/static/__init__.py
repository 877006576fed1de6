"""Programs by hand. Source: Paddle API `paddle.static`."""

from ..core.missing import namespace
from ..ir.input_spec import InputSpec
from ..ir.program import Program

__all__ = ["InputSpec", "Program"]

__getattr__ = namespace("paddle.static", globals())
