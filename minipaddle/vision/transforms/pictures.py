"""The forms of pictures, and the one form that functions of pictures work on.

| form          | axes                       | values                          |
|---------------|----------------------------|---------------------------------|
| NumPy array   | [h, w] or [h, w, channels] | uint8 of 0..255, floats of 0..1 |
| Tensor        | [channels, h, w]           | the same                        |
| PIL image     | its own                    | uint8                           |
"""

import functools

import numpy

from ...core.prelude import Tensor, describe, teach


def adapt_form(function):
    """`function(img [h, w, channels], ...)` for every form; the result has the form it was given.

    A picture is data: no gradient flows through.
    """

    @functools.wraps(function)
    def wrapped(img, *args, **kwargs):
        array, restored = open_picture(img)
        return restored(numpy.ascontiguousarray(function(array, *args, **kwargs)))

    return wrapped


def open_picture(img):
    """An array [h, w, channels], and the function that gives another one the form of `img`."""
    if isinstance(img, Tensor) and img.ndim == 3:
        return img.numpy().transpose(1, 2, 0), lambda y: Tensor(y.transpose(2, 0, 1))
    if isinstance(img, numpy.ndarray) and img.ndim == 3:
        return img, lambda y: y
    if isinstance(img, numpy.ndarray) and img.ndim == 2:
        return img[..., None], squeeze_grey
    if is_pil(img):
        array, restored = open_picture(numpy.asarray(img))
        return array, lambda y: pil(restored(y) if y.shape[2] > 1 else y[..., 0])
    raise TypeError(describe_no_picture(img))


def describe_no_picture(img) -> str:
    """The error message for a value that is not a picture."""
    if isinstance(img, numpy.ndarray):
        what = f"an array of shape {list(img.shape)}"
    else:
        what = describe(img) if isinstance(img, Tensor) else type(img).__name__
    return teach(
        f"{what} is no picture",
        "an array [h, w] or [h, w, channels], a Tensor [channels, h, w], or a PIL image",
    )


def squeeze_grey(y):
    return y[..., 0] if y.shape[2] == 1 else y


def is_pil(img) -> bool:
    return any(base.__module__ == "PIL.Image" for base in type(img).__mro__)


def pil(array):
    from PIL import Image  # here only when the caller has it

    return Image.fromarray(array)


def size_of(img) -> tuple[int, int]:
    """(height, width)"""
    return open_picture(img)[0].shape[:2]


def round_to(values, img):
    """Computed values in the dtype of `img`, whole numbers rounded and kept in range."""
    if img.dtype.kind not in "iu":
        return values.astype(img.dtype)
    limits = numpy.iinfo(img.dtype)
    return numpy.rint(values).clip(limits.min, limits.max).astype(img.dtype)


def brightest(img) -> int:
    """The value of white."""
    return 255 if img.dtype.kind in "iu" else 1
