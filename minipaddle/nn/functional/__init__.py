"""The functions of `paddle.nn.functional`: one file per family."""

from ...core.missing import namespace
from ...tensor.norms import pdist
from .activation import *
from .adaptive import *
from .attention import *
from .classification import *
from .common import *
from .conv import *
from .distance import *
from .input import *
from .loss import *
from .norm import *
from .padding import *
from .pooling import *
from .regression import *
from .sampling import *
from .sequence import *
from .vision import *

MODULES = (
    activation, common, input, classification, loss, regression, sequence, distance, attention,
    conv, pooling, adaptive, norm, vision, padding, sampling,
)  # fmt: skip
__all__ = [name for module in MODULES for name in module.__all__]
__getattr__ = namespace("paddle.nn.functional", globals())
