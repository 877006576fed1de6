"""Names that nothing else has: `fc_0`, `fc_1`. Source: Paddle API `paddle.utils.unique_name`."""

from ..core.missing import namespace as _namespace
from ..nn.names import guard, switch
from ..nn.names import unique as generate

__getattr__ = _namespace("paddle.utils.unique_name", globals())
