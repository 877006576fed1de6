"""The base of observers and quanters."""

from abc import ABC, abstractmethod

from ..nn import Layer


class BaseQuanter(Layer, ABC):
    """A layer that rounds its input in `forward`, and says by which scales."""

    def __init__(self):
        super().__init__()

    @abstractmethod
    def forward(self, input):
        """The input, rounded, or as it is."""

    @abstractmethod
    def scales(self):
        """The magnitude that the largest whole number stands for; None if there is none yet."""

    @abstractmethod
    def zero_points(self):
        """The whole numbers that stand for 0.0; None where that is 0."""

    @abstractmethod
    def quant_axis(self):
        """The axis along which scales differ; -1 for one scale."""

    @abstractmethod
    def bit_length(self):
        """The number of bits of a whole number."""


class BaseObserver(BaseQuanter, ABC):
    """A quanter that passes its input on, and looks at it: what `PTQ` needs."""

    def __init__(self):
        super().__init__()

    @abstractmethod
    def cal_thresholds(self):
        """Compute the scales from all that was seen."""


class SymmetricQuanter(BaseQuanter):
    """A quanter of `_bits` bits, with scales along `_axis`, that needs no zero points."""

    _axis = -1

    def zero_points(self):
        return None

    def quant_axis(self):
        return self._axis

    def bit_length(self):
        return self._bits
