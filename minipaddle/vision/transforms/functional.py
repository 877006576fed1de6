"""Functions of pictures, written for arrays [h, w, channels]; `adapt_form` brings the other forms.

Source: Paddle API `paddle.vision.transforms`.
"""

import math

import numpy

from ...core.prelude import Tensor, require_one_of, value_error
from .pictures import adapt_form, brightest, describe_no_picture, is_pil, open_picture, round_to

# ---- to numbers ------------------------------------------------------------------------------


def to_tensor(pic, data_format="CHW"):
    """A Tensor [channels, h, w] (or [h, w, channels] for "HWC") of a picture; uint8 becomes float32
    of 0..1, another dtype stays.

    >>> import numpy
    >>> white = numpy.full([2, 2, 3], 255, "uint8")
    >>> paddle.vision.transforms.to_tensor(white).shape
    [3, 2, 2]
    """
    if isinstance(pic, Tensor):
        return pic
    array, _ = open_picture(pic)
    if array.dtype == numpy.uint8:
        array = array.astype("float32") / 255
    return Tensor(array if channels_axis(data_format) == 2 else array.transpose(2, 0, 1))


def normalize(img, mean, std, data_format="CHW", to_rgb=False):
    """(img - mean) / std, channel by channel; arrays become float32.

    `mean` and `std` are numbers or one for each channel; `data_format` says where channels are;
    `to_rgb` reverses their order first.

    >>> import numpy
    >>> paddle.vision.transforms.normalize(numpy.ones([1, 1, 2]), 0.5, 0.25)
    array([[[2., 2.]]], dtype=float32)
    """
    axis = channels_axis(data_format)
    if is_pil(img):
        axis, img = 2, open_picture(img)[0]
    if not isinstance(img, Tensor | numpy.ndarray) or img.ndim != 3:
        raise TypeError(describe_no_picture(img))
    mean, std = (
        numpy.reshape(numpy.asarray(v, "float32"), [-1 if a == axis else 1 for a in range(3)])
        for v in (mean, std)
    )
    for name, v in (("mean", mean), ("std", std)):
        if v.size not in (1, img.shape[axis]):
            raise ValueError(f"{v.size} values of {name} for {img.shape[axis]} channels")
    if isinstance(img, Tensor):
        img = img.flip(axis) if to_rgb else img
        return (img - Tensor(mean)) / Tensor(std)
    img = numpy.flip(img, axis) if to_rgb else img
    return ((img - mean) / std).astype("float32")


def channels_axis(data_format: str) -> int:
    require_one_of("a transform", ("CHW", "HWC"), data_format=data_format)
    return data_format.index("C")


# ---- cutting and turning over ----------------------------------------------------------------


@adapt_form
def hflip(img):
    """Left and right exchanged.

    >>> import numpy
    >>> paddle.vision.transforms.hflip(numpy.array([[1, 2], [3, 4]]))
    array([[2, 1],
           [4, 3]])
    """
    return img[:, ::-1]


@adapt_form
def vflip(img):
    """Top and bottom exchanged.

    >>> import numpy
    >>> paddle.vision.transforms.vflip(numpy.array([[1, 2], [3, 4]]))
    array([[3, 4],
           [1, 2]])
    """
    return img[::-1]


@adapt_form
def crop(img, top, left, height, width):
    """The part of `height` x `width` whose corner is at row `top` and column `left`.

    Raises ValueError where that reaches beyond the picture.

    >>> import numpy
    >>> paddle.vision.transforms.crop(numpy.array([[1, 2], [3, 4]]), 0, 1, 2, 1)
    array([[2],
           [4]])
    """
    if min(top, left) < 0 or top + height > img.shape[0] or left + width > img.shape[1]:
        raise value_error(
            f"crop of {height} x {width} at ({top}, {left}) from a picture of "
            f"{img.shape[0]} x {img.shape[1]}",
            "a part that lies inside",
            hint="pad the picture first",
        )
    return img[top : top + height, left : left + width]


def center_crop(img, output_size):
    """The middle, of `output_size` (height, width) or one number for both.

    >>> import numpy
    >>> paddle.vision.transforms.center_crop(numpy.arange(9).reshape(3, 3), 1)
    array([[4]])
    """
    (height, width), (rows, columns) = pair(output_size), open_picture(img)[0].shape[:2]
    top, left = round((rows - height) / 2), round((columns - width) / 2)
    return crop(img, top, left, height, width)


def pair(size) -> tuple[int, int]:
    """(height, width) from either or both."""
    height, width = (size, size) if isinstance(size, int) else size
    return height, width


MODES = ("constant", "edge", "reflect", "symmetric")


@adapt_form
def pad(img, padding, fill=0, padding_mode="constant"):
    """A border of `padding` pixels: one number, (left and right, top and bottom), or (left, top,
    right, bottom). `fill` (a number or one for each channel) is its colour in mode "constant";
    "edge" repeats the outermost pixels, "reflect" and "symmetric" mirror, without and with them.

    >>> import numpy
    >>> paddle.vision.transforms.pad(numpy.array([[1, 2]]), [1, 0])
    array([[0, 1, 2, 0]])
    """
    require_one_of("pad", MODES, padding_mode=padding_mode)
    sides = [padding] * 4 if isinstance(padding, int) else list(padding)
    if len(sides) not in (2, 4):
        raise value_error(f"padding={padding}", "1, 2 or 4 numbers")
    left, top, right, bottom = sides if len(sides) == 4 else sides * 2
    widths = [(top, bottom), (left, right), (0, 0)]
    if padding_mode != "constant":
        return numpy.pad(img, widths, padding_mode)
    out = numpy.empty([sum(w) + n for w, n in zip(widths, img.shape, strict=True)], img.dtype)
    out[...] = fill
    out[top : top + img.shape[0], left : left + img.shape[1]] = img
    return out


# ---- resampling ------------------------------------------------------------------------------

ORDERS = {"nearest": 0, "bilinear": 1, "bicubic": 3}
"""The degree of the splines between pixels."""


def order_of(interpolation: str) -> int:
    require_one_of("a transform", ORDERS, interpolation=interpolation)
    return ORDERS[interpolation]


@adapt_form
def resize(img, size, interpolation="bilinear"):
    """A picture of `size` (height, width); one number is the size of the shorter side.

    Pixels are squares with the value at their centre, "nearest" takes the pixel at a square's
    corner, as in Paddle; "bicubic" draws cubic splines. Nothing is averaged when shrinking.

    >>> import numpy
    >>> paddle.vision.transforms.resize(numpy.array([[0.0, 1.0]]), (1, 4))
    array([[0.  , 0.25, 0.75, 1.  ]])
    """
    order, before = order_of(interpolation), img.shape[:2]
    after = shorter_side(before, size) if isinstance(size, int) else pair(size)
    steps = numpy.divide(before, after)
    if order == 0:
        rows, columns = ((numpy.arange(n) * s).astype(int) for n, s in zip(after, steps))
        return img[rows][:, columns]
    return resample_affine(img, numpy.diag(steps), (steps - 1) / 2, after, order, mode="nearest")


def shorter_side(shape, size: int) -> tuple[int, int]:
    """The shape with its shorter side brought to `size` and its proportions kept."""
    least = min(shape)
    height, width = (size if n == least else int(size * n / least) for n in shape)
    return height, width


@adapt_form
def rotate(img, angle, interpolation="nearest", expand=False, center=None, fill=0):
    """Turned by `angle` degrees against the clock, about the middle or `center` (x, y).

    `expand` makes room for the corners (and turns about the middle); `fill` (a number or one for
    each channel) fills the places outside the picture.

    >>> import numpy
    >>> paddle.vision.transforms.rotate(numpy.array([[1, 2], [3, 4]]), 90)
    array([[2, 4],
           [1, 3]])
    """
    order, shape = order_of(interpolation), numpy.array(img.shape[:2])
    cos, sin = (f(math.radians(angle)) for f in (math.cos, math.sin))
    back = numpy.array([[cos, sin], [-sin, cos]])  # from a place in the result to where it was
    after = numpy.ceil(abs(back) @ shape - 1e-9).astype(int) if expand else shape
    middle = (shape - 1) / 2
    pivot = middle if center is None or expand else numpy.array(center[::-1]) - 0.5
    fixed = (after - 1) / 2 if expand else pivot
    return resample_affine(img, back, pivot - back @ fixed, tuple(after), order, fill=fill)


def resample_affine(img, matrix, offset, shape, order, mode="grid-constant", fill=0):
    """The picture whose pixel at `p` is the one of `img` at `matrix @ p + offset`."""
    from scipy import ndimage  # takes a while to import, and few programs resample

    fills = numpy.broadcast_to(fill, img.shape[2:])
    source = img if order == 0 else img.astype(numpy.result_type(img.dtype, "float32"))
    channels = [
        ndimage.affine_transform(
            source[..., k], matrix, offset, shape, order=order, mode=mode, cval=fills[k]
        )
        for k in range(img.shape[2])
    ]
    return round_to(numpy.stack(channels, -1), img)


# ---- colour ----------------------------------------------------------------------------------

LUMINANCE = (0.299, 0.587, 0.114)
"""How bright red, green and blue seem (ITU-R BT.601)."""


def grey(img):
    """The luminance [h, w, 1] of a picture, not rounded."""
    if img.shape[2] == 1:
        return img.astype("float32")
    require_colours(img)
    return (img @ numpy.asarray(LUMINANCE, "float32"))[..., None]


def require_colours(img) -> None:
    if img.shape[2] != 3:
        raise value_error(f"a picture of {img.shape[2]} channels", "red, green and blue")


def blend(img, other, factor):
    """factor * img + (1 - factor) * other, kept between black and white."""
    values = factor * img.astype("float32") + (1 - factor) * other
    return round_to(values.clip(0, brightest(img)), img)


@adapt_form
def to_grayscale(img, num_output_channels=1):
    """Luminance, in one channel or repeated in three.

    >>> import numpy
    >>> paddle.vision.transforms.to_grayscale(numpy.array([[[255, 0, 0]]], "uint8"))
    array([[[76]]], dtype=uint8)
    """
    if num_output_channels not in (1, 3):
        raise value_error(f"num_output_channels={num_output_channels}", "1 or 3")
    return round_to(grey(img), img).repeat(num_output_channels, 2)


@adapt_form
def adjust_brightness(img, brightness_factor):
    """Every value times `brightness_factor`: 0 is black, 1 the picture itself.

    >>> import numpy
    >>> paddle.vision.transforms.adjust_brightness(numpy.array([[100, 200]], "uint8"), 1.5)
    array([[150, 255]], dtype=uint8)
    """
    return blend(img, 0, factor(brightness_factor))


@adapt_form
def adjust_contrast(img, contrast_factor):
    """Distances from the mean luminance times `contrast_factor`: 0 is all grey, 1 the picture.

    >>> import numpy
    >>> paddle.vision.transforms.adjust_contrast(numpy.array([[100, 200]], "uint8"), 0.5)
    array([[125, 175]], dtype=uint8)
    """
    return blend(img, grey(img).mean(), factor(contrast_factor))


@adapt_form
def adjust_saturation(img, saturation_factor):
    """Distances from the luminance times `saturation_factor`: 0 is grey, 1 the picture."""
    return blend(img, grey(img), factor(saturation_factor))


def factor(value):
    if value < 0:
        raise value_error(f"a factor of {value}", "0 or more")
    return value


@adapt_form
def adjust_hue(img, hue_factor):
    """Colours moved around the circle by `hue_factor` turns, from -0.5 to 0.5; greys stay.

    Source: Smith, "Color gamut transform pairs" (1978).

    >>> import numpy
    >>> paddle.vision.transforms.adjust_hue(numpy.array([[[255, 0, 0]]], "uint8"), 1 / 3)
    array([[[  0, 255,   0]]], dtype=uint8)
    """
    if not -0.5 <= hue_factor <= 0.5:
        raise value_error(f"hue_factor={hue_factor}", "-0.5 to 0.5")
    if img.shape[2] == 1:
        return img
    require_colours(img)
    values = img.astype("float32")
    most, least = values.max(-1), values.min(-1)
    hue = hue_of(values, most, most - least) + 6 * hue_factor
    return round_to(mix_hue(hue, most, most - least), img)


def hue_of(values, most, spread):
    """Sixths of a turn from red, 0 for greys."""
    red, green, blue = numpy.moveaxis(values, -1, 0)
    scale = numpy.where(spread > 0, spread, 1)
    towards = [(green - blue) / scale, (blue - red) / scale + 2, (red - green) / scale + 4]
    return numpy.select([red == most, green == most], towards[:2], towards[2])


def mix_hue(hue, most, spread):
    """Red, green and blue: each is brightest within a sixth of its own hue, and fades in the next.

    Channels 5, 3, 1 sixths of a turn away follow one trapezoid of the circle.
    """
    channels = ((shift + hue) % 6 for shift in (5, 3, 1))
    fall = [numpy.minimum(k, 4 - k).clip(0, 1) for k in channels]
    return most[..., None] - spread[..., None] * numpy.stack(fall, -1)


__all__ = [
    "adjust_brightness", "adjust_contrast", "adjust_hue", "center_crop", "crop", "hflip",
    "normalize", "pad", "resize", "rotate", "to_grayscale", "to_tensor", "vflip",
]  # fmt: skip
