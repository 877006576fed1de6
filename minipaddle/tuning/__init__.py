"""Auto-tuning: kernels of a native program measured with other choices than the emitters' own."""

from .tune import Tuned, tune
