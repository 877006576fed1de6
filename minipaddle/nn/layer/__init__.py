"""The classes of `paddle.nn`: one file per family."""

from .activation import *
from .attention import *
from .batch_norm import *
from .common import *
from .container import *
from .conv import *
from .distance import *
from .layers import *
from .loss import *
from .norm import *
from .pooling import *
from .rnn import *
from .transformer import *
from .vision import *

MODULES = (
    layers, container, common, activation, loss, distance, rnn, attention, transformer,
    conv, pooling, batch_norm, norm, vision,
)  # fmt: skip
__all__ = [name for module in MODULES for name in module.__all__]
