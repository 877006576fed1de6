"""Names that nothing else has: `fc_0`, `fc_1`. Source: Paddle API `paddle.utils.unique_name`."""

from __future__ import annotations

from ..core.missing import namespace
from ..nn.names import guard, switch
from ..nn.names import unique as generate

__all__ = ["generate", "guard", "switch"]

__getattr__ = namespace("paddle.utils.unique_name", globals())
