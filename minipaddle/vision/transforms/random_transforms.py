"""Random transforms, drawn again for each picture; the draws follow `paddle.seed`.

Source: Paddle API `paddle.vision.transforms`.
"""

import math

from ...engine.core.errors import value_error
from ...tensor.generator import GENERATOR
from . import functional as F
from .base import BaseTransform
from .pictures import size_of


def uniform(low=0.0, high=1.0) -> float:
    """A number of [low, high): the top 53 bits of one draw."""
    return low + (high - low) * (GENERATOR.draw() % 2**64 >> 11) * 2.0**-53


def draw_below(n: int) -> int:
    """A whole number of 0, …, n - 1."""
    return int(uniform(0, n))


# ---- random places ---------------------------------------------------------------------------


class RandomHorizontalFlip(BaseTransform):
    """Left and right exchanged with probability `prob`.

    >>> import numpy
    >>> paddle.vision.transforms.RandomHorizontalFlip(1.0)(numpy.array([[1, 2]]))
    array([[2, 1]])
    """

    flip = staticmethod(F.hflip)

    def __init__(self, prob=0.5, keys=None):
        super().__init__(keys)
        if not 0 <= prob <= 1:
            raise value_error(f"prob={prob}", "a probability, 0 to 1")
        self.prob = prob

    def _get_params(self, inputs):
        return uniform() < self.prob

    def _apply_image(self, img):
        return self.flip(img) if self.params else img


class RandomVerticalFlip(RandomHorizontalFlip):
    """Top and bottom exchanged with probability `prob`.

    >>> import numpy
    >>> paddle.vision.transforms.RandomVerticalFlip(1.0)(numpy.array([[1], [2]]))
    array([[2],
           [1]])
    """

    flip = staticmethod(F.vflip)


class RandomCrop(BaseTransform):
    """A part of `size` from anywhere, after `pad`ding if asked for; `pad_if_needed` widens a
    picture that is too small.

    >>> paddle.vision.transforms.RandomCrop(8, padding=2)(paddle.ones([3, 8, 8])).shape
    [3, 8, 8]
    """

    def __init__(
        self, size, padding=None, pad_if_needed=False, fill=0, padding_mode="constant", keys=None
    ):
        super().__init__(keys)
        self.size, self.padding, self.pad_if_needed = F.pair(size), padding, pad_if_needed
        self.fill, self.padding_mode = fill, padding_mode

    def _get_params(self, inputs):
        return uniform(), uniform()

    def _apply_image(self, img):
        if self.padding is not None:
            img = F.pad(img, self.padding, self.fill, self.padding_mode)
        rows, columns = (s - n for s, n in zip(size_of(img), self.size, strict=True))
        if self.pad_if_needed and (rows < 0 or columns < 0):
            img = F.pad(img, (max(-columns, 0), max(-rows, 0)), self.fill, self.padding_mode)
            rows, columns = (s - n for s, n in zip(size_of(img), self.size, strict=True))
        if rows < 0 or columns < 0:
            raise value_error(
                f"RandomCrop({self.size}) of a picture of {size_of(img)}", hint="pad_if_needed=True"
            )
        top, left = (int(u * (n + 1)) for u, n in zip(self.params, (rows, columns), strict=True))
        return F.crop(img, top, left, *self.size)


class RandomResizedCrop(BaseTransform):
    """A part of random area and proportions, brought to `size`.

    Its share of the area is drawn from `scale`, the logarithm of width / height from that of
    `ratio`; where ten draws do not fit, the largest central part of allowed proportions is taken.
    Source: Szegedy et al., "Going deeper with convolutions" (2014).

    >>> paddle.vision.transforms.RandomResizedCrop(4)(paddle.ones([3, 8, 8])).shape
    [3, 4, 4]
    """

    def __init__(
        self, size, scale=(0.08, 1.0), ratio=(3.0 / 4, 4.0 / 3), interpolation="bilinear", keys=None
    ):
        super().__init__(keys)
        if scale[0] > scale[1] or ratio[0] > ratio[1]:
            raise value_error(f"scale={scale}, ratio={ratio}", "(low, high)")
        self.size, self.scale, self.ratio = F.pair(size), scale, ratio
        self.interpolation = interpolation

    def _get_params(self, inputs):
        rows, columns = size_of(inputs[self.keys.index("image")])
        for _ in range(10):
            area = rows * columns * uniform(*self.scale)
            ratio = math.exp(uniform(*map(math.log, self.ratio)))
            height, width = round(math.sqrt(area / ratio)), round(math.sqrt(area * ratio))
            if 0 < height <= rows and 0 < width <= columns:
                return draw_below(rows - height + 1), draw_below(columns - width + 1), height, width
        low, high = self.ratio
        height, width = min(rows, round(columns / low)), min(columns, round(rows * high))
        return (rows - height) // 2, (columns - width) // 2, height, width

    def _apply_image(self, img):
        return F.resize(F.crop(img, *self.params), self.size, self.interpolation)


class RandomRotation(BaseTransform):
    """Turned by an angle drawn from `degrees` (low, high); one number is (-degrees, degrees).

    The rest is as in `rotate`.

    >>> paddle.vision.transforms.RandomRotation(30)(paddle.ones([3, 8, 8])).shape
    [3, 8, 8]
    """

    def __init__(
        self, degrees, interpolation="nearest", expand=False, center=None, fill=0, keys=None
    ):
        super().__init__(keys)
        self.degrees = (-degrees, degrees) if isinstance(degrees, int | float) else degrees
        if len(self.degrees) != 2 or self.degrees[0] > self.degrees[1]:
            raise value_error(f"degrees={degrees}", "a number, not negative, or (low, high)")
        self.interpolation, self.expand = interpolation, expand
        self.center, self.fill = center, fill

    def _get_params(self, inputs):
        return uniform(*self.degrees)

    def _apply_image(self, img):
        return F.rotate(img, self.params, self.interpolation, self.expand, self.center, self.fill)


# ---- random colours --------------------------------------------------------------------------


class Factor(BaseTransform):
    """A colour changed by a factor drawn from `value` (low, high), or from within one number of
    what leaves the picture as it is."""

    neutral, least, most = 1.0, 0.0, math.inf
    adjust = None

    def __init__(self, value, keys=None):
        super().__init__(keys)
        if isinstance(value, int | float):
            distance, value = value, (max(self.neutral - value, self.least), self.neutral + value)
        else:
            distance = 0
        if distance < 0 or not self.least <= value[0] <= value[1] <= self.most:
            raise value_error(
                f"{type(self).__name__} was given {value}",
                f"a number, not negative, or {self.least} <= low <= high <= {self.most}",
            )
        self.value = tuple(value)

    def _get_params(self, inputs):
        return uniform(*self.value)

    def _apply_image(self, img):
        return self.adjust(img, self.params)


class BrightnessTransform(Factor):
    """`adjust_brightness` by a random factor: of 1 - value to 1 + value, or of `value` (low, high).

    >>> paddle.vision.transforms.BrightnessTransform((0.5, 0.5))(paddle.ones([1, 1, 1])).item()
    0.5
    """

    adjust = staticmethod(F.adjust_brightness)


class ContrastTransform(Factor):
    """`adjust_contrast` by a random factor: of 1 - value to 1 + value, or of `value` (low, high).

    >>> paddle.vision.transforms.ContrastTransform(0.4)(paddle.ones([3, 1, 1])).shape
    [3, 1, 1]
    """

    adjust = staticmethod(F.adjust_contrast)


class SaturationTransform(Factor):
    """Distances from grey times a random factor: of 1 - value to 1 + value, or of `value`.

    >>> paddle.vision.transforms.SaturationTransform(0.4)(paddle.ones([3, 1, 1])).shape
    [3, 1, 1]
    """

    adjust = staticmethod(F.adjust_saturation)


class HueTransform(Factor):
    """`adjust_hue` by a random part of a turn: of -value to value, or of `value` (low, high).

    >>> paddle.vision.transforms.HueTransform(0.4)(paddle.ones([3, 1, 1])).shape
    [3, 1, 1]
    """

    neutral, least, most = 0.0, -0.5, 0.5
    adjust = staticmethod(F.adjust_hue)


class ColorJitter(BaseTransform):
    """Brightness, contrast, saturation and hue changed at random, in random order.

    Each argument is that of the transform of its name; 0 changes nothing.

    >>> paddle.vision.transforms.ColorJitter(0.4, 0.4, 0.4, 0.1)(paddle.ones([3, 2, 2])).shape
    [3, 2, 2]
    """

    def __init__(self, brightness=0, contrast=0, saturation=0, hue=0, keys=None):
        super().__init__(keys)
        self.brightness, self.contrast = brightness, contrast
        self.saturation, self.hue = saturation, hue
        kinds = (BrightnessTransform, ContrastTransform, SaturationTransform, HueTransform)
        values = (brightness, contrast, saturation, hue)
        self._parts = [kind(value) for kind, value in zip(kinds, values, strict=True) if value]

    def _get_params(self, inputs):
        order = sorted(self._parts, key=lambda part: uniform())
        return [(part.adjust, part._get_params(inputs)) for part in order]

    def _apply_image(self, img):
        for adjust, factor in self.params:
            img = adjust(img, factor)
        return img


__all__ = [
    "BrightnessTransform", "ColorJitter", "ContrastTransform", "HueTransform", "RandomCrop",
    "RandomHorizontalFlip", "RandomResizedCrop", "RandomRotation", "RandomVerticalFlip",
    "SaturationTransform",
]  # fmt: skip
