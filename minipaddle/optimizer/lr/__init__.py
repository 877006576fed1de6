"""Learning-rate schedules: the rate as a function of how often `step()` was called."""

from .cyclic import *
from .decay import *
from .plateau import ReduceOnPlateau
from .scheduler import LRScheduler
