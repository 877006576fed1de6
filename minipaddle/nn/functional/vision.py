"""Images resized, rearranged, cut into windows."""

from fractions import Fraction

from ...core.checks import require_one_of
from ...core.prelude import (
    Dim,
    as_operator,
    creation,
    elementwise,
    int64,
    movement,
    not_supported,
    value_error,
)  # fmt: skip
from ...engine.core.dim import never, suppose
from ...engine.ops import gather as indexing
from ...ops import resample as ops
from ...tensor import manipulation
from .padding import add_border
from .pooling import area
from .windows import LAYOUTS, channels_last, image, numbers, to_first, to_last, whole_numbers

# ---- resizing --------------------------------------------------------------------------------

MODES = {  # mode -> (numbers of image axes it takes, how one axis is resampled)
    "nearest": ((2, 3), "nearest"),
    "linear": ((1,), "linear"),
    "bilinear": ((2,), "linear"),
    "trilinear": ((3,), "linear"),
    "bicubic": ((2,), "cubic"),
    "area": ((1, 2, 3), "area"),
}
RESIZED_LAYOUTS = {1: ("NCW", "NWC"), 2: LAYOUTS[2], 3: LAYOUTS[3]}


def target_sizes(x, n, size, scale_factor, *, recompute) -> list:
    """(pixels after, step between their sources) for each image axis."""
    if (size is None) == (scale_factor is None):
        raise value_error(
            "interpolate takes either size or scale_factor",
            hint=f"size={size!r}, scale_factor={scale_factor!r}",
        )
    before = x.spec.shape[2:]
    if size is not None:
        after = whole_numbers(size)
        if len(after) != n or any(never(o, ">=", 1) for o in after):
            raise value_error(f"size={after} for {x.spec}", f"{n} positive numbers")
        for o in after:
            suppose(o, ">=", 1)
        return [(o, ratio(m, o)) for m, o in zip(before, after)]
    if hasattr(scale_factor, "spec"):
        scale_factor = scale_factor.tolist()
    many = isinstance(scale_factor, list | tuple)
    scales = [float(s) for s in scale_factor] if many else [float(scale_factor)] * n
    if len(scales) != n or min(scales) <= 0:
        raise value_error(
            f"scale_factor={scale_factor!r} for {x.spec}", f"a positive number, or {n} of them"
        )
    after = [scale_size(m, s) for m, s in zip(before, scales)]
    steps = [ratio(m, o) if recompute else 1 / s for m, o, s in zip(before, after, scales)]
    return list(zip(after, steps))


def ratio(m, o):
    """m / o; None where only the program will know."""
    return None if isinstance(m, Dim) or isinstance(o, Dim) else m / o


def scale_size(m, s: float):
    """The whole part of m · s."""
    if not isinstance(m, Dim):
        return int(m * s)
    s = Fraction(s).limit_denominator(1000)
    return m * s.numerator // s.denominator


@as_operator("interpolate")
def interpolate(
    x, size=None, scale_factor=None, mode="nearest", align_corners=False, align_mode=0,
    data_format=None, recompute_scale_factor=None, antialias=False, name=None,
):  # fmt: skip
    """The image of x resampled to `size`, or to `scale_factor` times its size.

    `mode` is nearest, linear (3-D x), bilinear (4-D), trilinear (5-D), bicubic (4-D) or area (a
    mean, as `adaptive_avg_pool`). Output pixel i comes from (i + ½) · step - ½; with `align_mode=1`
    from i · step; with `align_corners` first and last pixels keep their places. The step is in/out,
    or 1/scale_factor where that is given, unless `recompute_scale_factor`. Source: for bicubic
    Keys, "Cubic convolution interpolation for digital image processing", 1981, with a = -0.75.

    >>> x = paddle.to_tensor([[[[1.0, 3.0]]]])
    >>> paddle.nn.functional.interpolate(x, size=[1, 4], mode="bilinear").tolist()
    [[[[1.0, 1.5, 2.5, 3.0]]]]
    """
    mode = str(mode).lower()
    require_one_of("interpolate", MODES, mode=mode)
    n, (ranks, method) = x.spec.ndim - 2, MODES[mode]
    if n not in ranks:
        wanted = " or ".join(f"{k + 2}-D" for k in ranks)
        raise value_error(f"interpolate with mode={mode!r} was given {x.spec}", f"{wanted} x")
    if align_corners and method in ("nearest", "area"):
        raise value_error(f"align_corners with mode={mode!r}", "a linear or cubic mode")
    if antialias:
        raise not_supported("interpolate has no antialias", hint='mode="area"')
    layouts = RESIZED_LAYOUTS[n]
    if data_format is not None:
        require_one_of("interpolate", layouts, data_format=data_format)
    last = data_format == layouts[1]
    x = to_first(x) if last else x
    targets = target_sizes(x, n, size, scale_factor, recompute=recompute_scale_factor)
    y = resize(x, targets, method, align_corners, align_mode == 0)
    return to_last(y) if last else y


def resize(x, targets, method, corners, centers):
    """Each image axis of x resampled in turn. As in Paddle an unchanged size changes nothing."""
    if [o for o, _ in targets] == list(x.spec.shape[2:]):
        return x
    if method == "area":
        return area(x, [o for o, _ in targets])
    for d, (o, step) in enumerate(targets):
        m, axis = x.spec.shape[d + 2], d + 2
        if method == "nearest":
            x = nearest(x, axis, m, o, step)
        else:
            centred = centers or method == "cubic"
            how = {"method": method, "corners": bool(corners), "centers": centred, "step": step}
            x = ops.resample(x, axis=axis, size=m, to=o, adjoint=False, **how)
    return x


def nearest(x, axis: int, m, o, step):
    """Pixel ⌊i · step⌋ of m at each place i of o."""
    if not isinstance(m, Dim) and not isinstance(o, Dim):
        places = tuple(min(int(i * step), m - 1) for i in range(o))
        return ops.remap(x, axis=axis, index=places)
    i = creation.arange(size=o, dtype=int64.numpy)
    if step is None:
        places = i * m // o
    else:
        places = (i.astype("float64") * step).astype("int64")
    return indexing.take(x, elementwise.minimum(places, m - 1), axis=axis)


def upsample(
    x, size=None, scale_factor=None, mode="nearest", align_corners=False, align_mode=0,
    data_format=None, name=None,
):  # fmt: skip
    """`interpolate` under its older name.

    >>> paddle.nn.functional.upsample(paddle.ones([1, 1, 2, 2]), scale_factor=2).shape
    [1, 1, 4, 4]
    """
    return interpolate(x, size, scale_factor, mode, align_corners, align_mode, data_format)


# ---- rearranging -----------------------------------------------------------------------------


def divide(what: str, size: int, factor: int) -> int:
    """size / factor; raises ValueError unless the factor divides it."""
    if factor < 1 or size % factor:
        raise value_error(f"{what} of {size} does not divide by {factor}")
    return size // factor


def apply_channels_first(x, data_format, rearrange):
    """`rearrange` applied to x in NCHW."""
    last = channels_last(data_format, 2)
    image("this function", x, 2)
    return to_last(rearrange(to_first(x))) if last else rearrange(x)


def pixel_shuffle(x, upscale_factor, data_format="NCHW", name=None):
    """Channels spread over the image: [N, C · r², H, W] to [N, C, H · r, W · r].

    Source: Shi et al., "Real-time single image super-resolution", 2016.

    >>> x = paddle.arange(4, dtype="float32").reshape([1, 4, 1, 1])
    >>> paddle.nn.functional.pixel_shuffle(x, 2).tolist()
    [[[[0.0, 1.0], [2.0, 3.0]]]]
    """
    r = upscale_factor

    def shuffle(x):
        n, c, h, w = x.spec.shape
        c = divide("a number of channels", c, r * r)
        x = movement.reshape(x, shape=(n, c, r, r, h, w))
        x = movement.transpose(x, perm=(0, 1, 4, 2, 5, 3))
        return movement.reshape(x, shape=(n, c, h * r, w * r))

    return apply_channels_first(x, data_format, shuffle)


def pixel_unshuffle(x, downscale_factor, data_format="NCHW", name=None):
    """Blocks of the image into channels: [N, C, H · r, W · r] to [N, C · r², H, W].

    >>> paddle.nn.functional.pixel_unshuffle(paddle.ones([1, 1, 4, 4]), 2).shape
    [1, 4, 2, 2]
    """
    r = downscale_factor

    def unshuffle(x):
        n, c, h, w = x.spec.shape
        h, w = divide("a height", h, r), divide("a width", w, r)
        x = movement.reshape(x, shape=(n, c, h, r, w, r))
        x = movement.transpose(x, perm=(0, 1, 3, 5, 2, 4))
        return movement.reshape(x, shape=(n, c * r * r, h, w))

    return apply_channels_first(x, data_format, unshuffle)


def channel_shuffle(x, groups, data_format="NCHW", name=None):
    """Channels dealt out: of `groups` groups first all first members, then all second ones.

    Source: Zhang et al., "ShuffleNet", 2018.

    >>> x = paddle.arange(4, dtype="float32").reshape([1, 4, 1, 1])
    >>> paddle.nn.functional.channel_shuffle(x, 2).flatten().tolist()
    [0.0, 2.0, 1.0, 3.0]
    """

    def shuffle(x):
        n, c, h, w = x.spec.shape
        x = movement.reshape(x, shape=(n, groups, divide("a number of channels", c, groups), h, w))
        return movement.reshape(movement.transpose(x, perm=(0, 2, 1, 3, 4)), shape=(n, c, h, w))

    return apply_channels_first(x, data_format, shuffle)


def temporal_shift(x, seg_num, shift_ratio=0.25, name=None, data_format="NCHW"):
    """Some channels moved one step on in time, as many one step back, zeros coming in.

    x is [N · seg_num, C, H, W]; the first `shift_ratio` of the channels take their value from the
    step before, the next ones from the step after. Source: Lin et al., "TSM", 2019.

    >>> x = paddle.arange(4, dtype="float32").reshape([2, 2, 1, 1])
    >>> paddle.nn.functional.temporal_shift(x, 2, 0.5).flatten().tolist()
    [0.0, 3.0, 0.0, 0.0]
    """

    def shift(x):
        batch, c, h, w = x.spec.shape
        n = divide("a batch", batch, seg_num)
        x = movement.reshape(x, shape=(n, seg_num, c, h, w))
        first, second = int(c * shift_ratio), int(c * 2 * shift_ratio)
        still = (0, 0)
        moved = [
            add_border(x, [still, (1, -1), (0, first - c), still, still], 0),
            add_border(x, [still, (-1, 1), (-first, second - c), still, still], 0),
            add_border(x, [still, still, (-second, 0), still, still], 0),
        ]
        return movement.reshape(manipulation.concat(moved, axis=2), shape=(batch, c, h, w))

    return apply_channels_first(x, data_format, shift)


# ---- windows as columns ----------------------------------------------------------------------


def window_sizes(kernel_sizes, strides, paddings, dilations) -> dict:
    """The sizes of `unfold` and `fold` in two dimensions; paddings are top, left, bottom, right."""
    flat = whole_numbers(paddings)
    top, left, bottom, right = {1: flat * 4, 2: flat * 2, 4: flat}.get(len(flat), [-1] * 4)
    if min(top, left, bottom, right) < 0:
        raise value_error(f"paddings={paddings!r}", "1, 2 or 4 numbers, none negative")
    return {
        "kernel": numbers("kernel_sizes", kernel_sizes, 2),
        "stride": numbers("strides", strides, 2),
        "padding": ((top, bottom), (left, right)),
        "dilation": numbers("dilations", dilations, 2),
    }


def unfold(x, kernel_sizes, strides=1, paddings=0, dilations=1, name=None):
    """The windows of x [N, C, H, W] as columns [N, C · KH · KW, positions].

    `paddings` is a number, [height, width] or [top, left, bottom, right].

    >>> paddle.nn.functional.unfold(paddle.ones([1, 3, 4, 4]), 2).shape
    [1, 12, 9]
    """
    image("unfold", x, 2)
    return ops.unfold(x, **window_sizes(kernel_sizes, strides, paddings, dilations))


def fold(x, output_sizes, kernel_sizes, strides=1, paddings=0, dilations=1, name=None):
    """Columns [N, C · KH · KW, positions] added up into images [N, C, *output_sizes].

    It is the adjoint of `unfold`: where windows overlap, their values add.

    >>> paddle.nn.functional.fold(paddle.ones([1, 4, 4]), [3, 3], 2).tolist()
    [[[[1.0, 2.0, 1.0], [2.0, 4.0, 2.0], [1.0, 2.0, 1.0]]]]
    """
    size = numbers("output_sizes", output_sizes, 2)
    return ops.fold(x, size=size, **window_sizes(kernel_sizes, strides, paddings, dilations))


__all__ = [
    "channel_shuffle", "fold", "interpolate", "pixel_shuffle", "pixel_unshuffle", "temporal_shift",
    "unfold", "upsample",
]  # fmt: skip
