"""Transforms that do the same to every picture.

Source: Paddle API `paddle.vision.transforms`.
"""

from ...engine.eager.tensor import Tensor
from . import functional as F
from .base import BaseTransform
from .pictures import open_picture

__all__ = ["CenterCrop", "Grayscale", "Normalize", "Pad", "Resize", "ToTensor", "Transpose"]


class ToTensor(BaseTransform):
    """`to_tensor` as a transform.

    >>> import numpy
    >>> paddle.vision.transforms.ToTensor()(numpy.ones([4, 5], "uint8")).shape
    [1, 4, 5]
    """

    def __init__(self, data_format="CHW", keys=None):
        super().__init__(keys)
        self.data_format = data_format

    def _apply_image(self, img):
        return F.to_tensor(img, self.data_format)


class Normalize(BaseTransform):
    """`normalize` as a transform.

    >>> paddle.vision.transforms.Normalize([1.0], [2.0])(paddle.full([1, 1, 2], 5.0)).tolist()
    [[[2.0, 2.0]]]
    """

    def __init__(self, mean=0.0, std=1.0, data_format="CHW", to_rgb=False, keys=None):
        super().__init__(keys)
        self.mean, self.std, self.data_format, self.to_rgb = mean, std, data_format, to_rgb

    def _apply_image(self, img):
        return F.normalize(img, self.mean, self.std, self.data_format, self.to_rgb)


class Transpose(BaseTransform):
    """Axes in another order, [h, w, channels] to [channels, h, w] if none is given.

    >>> import numpy
    >>> paddle.vision.transforms.Transpose()(numpy.ones([4, 5, 3])).shape
    (3, 4, 5)
    """

    def __init__(self, order=(2, 0, 1), keys=None):
        super().__init__(keys)
        self.order = order

    def _apply_image(self, img):
        if isinstance(img, Tensor):
            return img.transpose(list(self.order))
        return open_picture(img)[0].transpose(self.order)


class Resize(BaseTransform):
    """`resize` as a transform.

    >>> paddle.vision.transforms.Resize(4)(paddle.ones([3, 8, 16])).shape
    [3, 4, 8]
    """

    def __init__(self, size, interpolation="bilinear", keys=None):
        super().__init__(keys)
        self.size, self.interpolation = size, interpolation

    def _apply_image(self, img):
        return F.resize(img, self.size, self.interpolation)


class CenterCrop(BaseTransform):
    """`center_crop` as a transform.

    >>> paddle.vision.transforms.CenterCrop((2, 4))(paddle.ones([3, 8, 8])).shape
    [3, 2, 4]
    """

    def __init__(self, size, keys=None):
        super().__init__(keys)
        self.size = size

    def _apply_image(self, img):
        return F.center_crop(img, self.size)


class Pad(BaseTransform):
    """`pad` as a transform.

    >>> paddle.vision.transforms.Pad(1)(paddle.ones([3, 8, 8])).shape
    [3, 10, 10]
    """

    def __init__(self, padding, fill=0, padding_mode="constant", keys=None):
        super().__init__(keys)
        self.padding, self.fill, self.padding_mode = padding, fill, padding_mode

    def _apply_image(self, img):
        return F.pad(img, self.padding, self.fill, self.padding_mode)


class Grayscale(BaseTransform):
    """`to_grayscale` as a transform.

    >>> paddle.vision.transforms.Grayscale()(paddle.ones([3, 8, 8])).shape
    [1, 8, 8]
    """

    def __init__(self, num_output_channels=1, keys=None):
        super().__init__(keys)
        self.num_output_channels = num_output_channels

    def _apply_image(self, img):
        return F.to_grayscale(img, self.num_output_channels)
