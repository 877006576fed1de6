"""Learning-rate schedules: the rate as a function of how often `step()` was called."""

from ...core.missing import namespace as _namespace
from .cyclic import *
from .decay import *
from .plateau import ReduceOnPlateau
from .scheduler import LRScheduler

__getattr__ = _namespace("paddle.optimizer.lr", globals())
