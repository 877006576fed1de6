"""Observers: they look at values on their way, and choose scales.

Source: Paddle API `paddle.quantization.observers`; the names beyond Paddle's are PaddleSlim's.
"""

from typing import ClassVar

from ..core.prelude import Recording, creation, dt, e, indexing, maximum, reduction, reshape, slot
from ..engine.ops.elementwise import minimum
from ..nn.quant.weight_only import group_scales
from ..ops.quantization import width
from .base import BaseObserver, SymmetricQuanter
from .factory import FactoryOfKind
from .quanters import LEAST, channel_scales, largest, moving_average, output_axis
from .thresholds import kl_threshold, mse_threshold, percentile_threshold

FLOAT = dt.float32.numpy
UNSEEN = -1.0
"""A magnitude before any was seen."""


class Observer(SymmetricQuanter, BaseObserver):
    """The base of the observers here. A subclass defines `look`, which writes into its buffers, and
    `threshold`, the magnitude to clip at, which is negative while nothing was seen.
    """

    kept: ClassVar[dict] = {}
    """The buffers by name, with their first values."""

    def __init__(self, layer, quant_bits=8):
        super().__init__()
        self._bits = quant_bits
        for name, value in self.kept.items():
            self.register_buffer(name, creation.full(shape=(), value=value, dtype=FLOAT))

    def forward(self, input):
        with Recording(False):
            self.look(input.astype("float32"))
        return input

    def scales(self):
        threshold = self.threshold()
        return None if threshold is None or (threshold < 0).any() else maximum(threshold, LEAST)

    def cal_thresholds(self):
        """The scales are computed whenever they are asked for."""


class AbsmaxObserverLayer(Observer):
    kept: ClassVar = {"_max": UNSEEN}

    def look(self, x):
        self._max.become(maximum(self._max, largest(x)))

    def threshold(self):
        return self._max


class AVGObserverLayer(Observer):
    kept: ClassVar = {"_total": 0.0, "_count": 0.0}

    def look(self, x):
        self._total.become(self._total + largest(x))
        self._count.become(self._count + 1.0)

    def threshold(self):
        return self._total / self._count if self._count.item() else None


class MovingAverageAbsmaxObserverLayer(Observer):
    kept: ClassVar = {"_state": 0.0, "_accum": 0.0}

    def __init__(self, layer, quant_bits=8, moving_rate=0.9):
        super().__init__(layer, quant_bits)
        self._moving_rate = moving_rate

    def look(self, x):
        now = moving_average(self._state, self._accum, largest(x), self._moving_rate)
        self._state.become(now[0]), self._accum.become(now[1])

    def threshold(self):
        return self._accum / self._state if self._state.item() else None


@slot("quantization.zero_point")
def zero_point(low, high, bits: int):
    """(scale, zero) with which the least whole number stands for `low`, the largest for `high`.

    `low` <= 0 <= `high`; 0.0 is a whole number, so that zeros around an image stay zeros.
    """
    least, largest = width(bits).values()
    step = maximum((high - low) / (largest - least), LEAST)
    return step * largest, least - (low / step).round()


class MinMaxObserverLayer(Observer):
    kept: ClassVar = {"_low": 0.0, "_high": 0.0, "_count": 0.0}

    def look(self, x):
        axes = {"axis": tuple(range(x.spec.ndim)), "keepdim": False}
        self._low.become(minimum(self._low, reduction.min(x, **axes)))
        self._high.become(maximum(self._high, reduction.max(x, **axes)))
        self._count.become(self._count + 1.0)

    def threshold(self):
        seen = self._count.item()
        return zero_point(self._low, self._high, self._bits)[0] if seen else None

    def zero_points(self):
        return zero_point(self._low, self._high, self._bits)[1]


class HistogramObserver(Observer):
    """Counts magnitudes in bins; when a larger one comes, the bins become wider."""

    kept: ClassVar = {"_limit": UNSEEN}

    def __init__(self, layer, quant_bits=8, bins_count=2048):
        super().__init__(layer, quant_bits)
        self._bins = bins_count
        nothing = creation.full(shape=(bins_count,), value=0.0, dtype=FLOAT)
        self.register_buffer("_counts", nothing)

    def look(self, x):
        limit = maximum(maximum(self._limit, largest(x)), LEAST)
        middles = creation.arange(size=self._bins, dtype=FLOAT) + 0.5
        middles = middles * (maximum(self._limit, LEAST) / self._bins)
        x = reshape(e.abs(x), shape=(x.spec.size,))
        before = self.count(self._counts, middles, limit)
        self._counts.become(before + self.count(x * 0.0 + 1.0, x, limit))
        self._limit.become(limit)

    def count(self, weights, x, limit):
        """The weights of magnitudes x, added up in bins."""
        at = minimum((x / limit * self._bins).floor(), self._bins - 1.0).astype("int64")
        return indexing.scatter_sum(weights, at, shape=(self._bins,), axis=0)

    def threshold(self):
        if self._limit.item() < 0:
            return None
        levels = width(self._bits)["high"] + 1
        return self._limit * (self.bins(self._counts.numpy(), levels) / self._bins)


class HistObserverLayer(HistogramObserver):
    def __init__(self, layer, quant_bits=8, bins_count=2048, percent=0.99999):
        super().__init__(layer, quant_bits, bins_count)
        self._percent = percent

    def bins(self, counts, levels):
        return percentile_threshold(counts, levels, self._percent)


class KLObserverLayer(HistogramObserver):
    def bins(self, counts, levels):
        counts = counts.copy()
        counts[0] = counts[1]  # zeros, of a ReLU or a border, are exact at every scale
        return kl_threshold(counts, levels)


class MSEObserverLayer(HistogramObserver):
    def bins(self, counts, levels):
        return mse_threshold(counts, levels)


class OfWeight(Observer):
    """An observer of a weight, which it sees anew at every run."""

    def __init__(self, layer, quant_bits=8):
        super().__init__(layer, quant_bits)
        self.register_buffer("found", None)

    def look(self, x):
        self.found = self.scales_of(x)

    def threshold(self):
        return self.found


class AbsMaxChannelWiseWeightObserverLayer(OfWeight):
    def __init__(self, layer, quant_bits=8):
        super().__init__(layer, quant_bits)
        self._axis = output_axis(layer)

    def scales_of(self, x):
        return channel_scales(x, self._axis)


class GroupWiseWeightObserverLayer(OfWeight):
    def __init__(self, layer, quant_bits=8, group_size=128):
        super().__init__(layer, quant_bits)
        self.group_size = group_size

    def scales_of(self, x):
        return group_scales(x, self.group_size)


# ---- factories -------------------------------------------------------------------------------


class AbsmaxObserver(FactoryOfKind):
    """The scale is the largest magnitude of all.

    >>> from minipaddle.quantization.observers import AbsmaxObserver
    >>> observer = AbsmaxObserver(quant_bits=8)._instance(None)
    >>> y = observer(paddle.to_tensor([1.0, -3.0])), observer(paddle.to_tensor([2.0]))
    >>> observer.scales().item()
    3.0
    """

    kind = AbsmaxObserverLayer


class AVGObserver(FactoryOfKind):
    """The scale is the mean, over batches, of the largest magnitude."""

    kind = AVGObserverLayer


class MovingAverageAbsmaxObserver(FactoryOfKind):
    """The scale is a mean of the largest magnitudes in which older batches count less and less."""

    kind = MovingAverageAbsmaxObserverLayer


class MinMaxObserver(FactoryOfKind):
    """Whole numbers for the range from the least value to the largest, with a zero point.

    For values of one sign, as after a ReLU, steps are half as large as with `AbsmaxObserver`.
    """

    kind = MinMaxObserverLayer


class HistObserver(FactoryOfKind):
    """The scale is the magnitude below which the share `percent` of all values lies."""

    kind = HistObserverLayer


class KLObserver(FactoryOfKind):
    """The scale at which rounding changes the distribution least: see `kl_threshold`."""

    kind = KLObserverLayer


class MSEObserver(FactoryOfKind):
    """The scale at which rounding and clipping have the least mean square error."""

    kind = MSEObserverLayer


class AbsMaxChannelWiseWeightObserver(FactoryOfKind):
    """A scale for each output of a weight: the largest magnitude there."""

    kind = AbsMaxChannelWiseWeightObserverLayer


class GroupWiseWeightObserver(FactoryOfKind):
    """A scale for each group of `group_size` inputs of each output of a matrix [in, out].

    Paddle's takes 64 or 128, and forgets the argument.

    >>> from minipaddle.quantization.observers import GroupWiseWeightObserver
    >>> observer = GroupWiseWeightObserver(quant_bits=4, group_size=2)._instance(None)
    >>> y = observer(paddle.to_tensor([[1.0], [-3.0], [0.5], [0.2]]))
    >>> observer.scales().tolist()
    [[3.0], [0.5]]
    """

    kind = GroupWiseWeightObserverLayer


__all__ = ["AbsmaxObserver", "GroupWiseWeightObserver"]
