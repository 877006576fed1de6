"""Padding, resizing, sampling, rearranging and windows, against torch and Paddle's rules."""

import numpy as np
import pytest
import torch
import torch.nn.functional as TF
from hypothesis import given, settings
from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.nn.functional as F
from tests.nn.peers import agree, draw, near

nn = paddle.nn
SIZES = {1: (5,), 2: (4, 5), 3: (3, 4, 5)}

# ---- padding ---------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("mode", ["constant", "reflect", "replicate", "circular"])
def test_padding(n, mode):
    (x,) = draw((2, 2, *SIZES[n]))
    pads = [2, 1, 0, 2, 1, 1][: 2 * n]
    agree(lambda x: F.pad(x, pads, mode), lambda x: TF.pad(x, pads, mode), x)
    agree(
        lambda x: F.pad(x, pads, mode, data_format=("NLC", "NHWC", "NDHWC")[n - 1]),
        lambda x: TF.pad(x.movedim(-1, 1), pads, mode).movedim(1, -1),
        x.transpose(0, *range(2, n + 2), 1),
    )


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("kind", ["Zero", "Reflection", "Replication", "Circular", "Constant"])
def test_padding_layers(n, kind):
    (x,) = draw((2, 2, *SIZES[n]))
    pads, value = [2, 1, 0, 2, 1, 1][: 2 * n], [0.5] if kind == "Constant" else []
    agree(
        getattr(nn, f"{kind}Pad{n}D")(pads, *value),
        getattr(torch.nn, f"{kind}Pad{n}d")(pads, *value),
        x,
    )
    if kind != "Zero":
        assert getattr(nn, f"{kind}Pad{n}d") is getattr(nn, f"{kind}Pad{n}D")


def test_orders_of_a_long_list():
    """Measured with Paddle 3.3.1: all axes from the first on; from the last on if asked."""
    x = draw((1, 2, 3, 4))[0]
    pads = [0, 1, 1, 0, 2, 0, 0, 2]
    near(F.pad(paddle.to_tensor(x), pads), np.pad(x, [(0, 1), (1, 0), (2, 0), (0, 2)]))
    backwards = F.pad(paddle.to_tensor(x), pads, pad_from_left_axis=False)
    near(backwards, TF.pad(torch.tensor(x), pads))
    near(F.pad(paddle.ones([2, 3]), [1, 0]), np.pad(np.ones((2, 3), "float32"), [(0, 0), (1, 0)]))
    near(F.pad(paddle.to_tensor(x), paddle.to_tensor([1, 1])), TF.pad(torch.tensor(x), (1, 1)))


def test_padding_of_values_and_cuts():
    (x,) = draw((1, 1, 3, 4))
    agree(
        lambda x: F.pad(x, [-1, 2, 0, -1], value=7.0),
        lambda x: TF.pad(x, (-1, 2, 0, -1), value=7.0),
        x,
    )
    whole = F.pad(paddle.ones([1, 2], "int32"), [1, 0], value=3.0)
    assert (whole.dtype, whole.tolist()) == ("int32", [[3, 1, 1]])
    assert F.pad(paddle.ones([1, 1, 2]), [0, 0]).shape == [1, 1, 2]
    assert F.pad(paddle.to_tensor([[[0.0, 1.0]]]), [3, 0], "circular").tolist() == [
        [[1, 0, 1, 0, 1]]
    ]
    assert F.zeropad2d(paddle.ones([1, 1, 2, 2]), [1, 0, 0, 1]).tolist() == [
        [[[0, 1, 1], [0, 1, 1], [0, 0, 0]]]
    ]


# ---- resizing --------------------------------------------------------------------------------

LINEAR = {1: "linear", 2: "bilinear", 3: "trilinear"}


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("size", [1, 3, 5, 8])
@pytest.mark.parametrize("corners", [True, False])
def test_linear(n, size, corners):
    (x,) = draw((2, 2, *SIZES[n]))
    mode, wanted = LINEAR[n], [size] * n
    agree(
        lambda x: F.interpolate(x, wanted, mode=mode, align_corners=corners),
        lambda x: TF.interpolate(x, wanted, mode=mode, align_corners=corners),
        x,
    )


@pytest.mark.parametrize("corners", [True, False])
@pytest.mark.parametrize("size", [(8, 3), (1, 2), (4, 5)])
def test_cubic(size, corners):
    (x,) = draw((2, 2, 4, 5))
    agree(
        lambda x: F.interpolate(x, size, mode="bicubic", align_corners=corners),
        lambda x: TF.interpolate(x, size, mode="bicubic", align_corners=corners),
        x,
    )


@pytest.mark.parametrize("mode", ["nearest", "area"])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_nearest_and_area(n, mode):
    if mode == "nearest" and n == 1:
        pytest.skip("Paddle has no nearest in one dimension")
    (x,) = draw((2, 2, *SIZES[n]))
    for size in ((7, 3, 2)[:n], SIZES[n]):
        agree(
            lambda x, s=size: F.interpolate(x, s, mode=mode),
            lambda x, s=size: TF.interpolate(x, s, mode=mode),
            x,
        )


@settings(max_examples=30, deadline=None, derandomize=True)
@given(scale=st.floats(0.3, 4.0), mode=st.sampled_from(["nearest", "bilinear", "bicubic"]))
def test_any_factor(scale, mode):
    scale = round(scale, 2)
    (x,) = draw((1, 2, 5, 7))
    if mode == "nearest":  # torch works this out in float32: keep away from its rounding
        places = np.arange(int(7 * scale)) / scale
        if np.any(np.abs(places - np.round(places)) < 1e-4):
            scale = 2.0
    if (int(5 * scale), int(7 * scale)) == (5, 7):  # Paddle then returns x, PyTorch resamples
        scale = 2.0
    agree(
        lambda x: F.interpolate(x, scale_factor=scale, mode=mode),
        lambda x: TF.interpolate(x, scale_factor=scale, mode=mode),
        x,
        rtol=1e-6,
    )


def test_factors_and_their_recomputation():
    x = paddle.to_tensor([[[0.0, 1.0, 2.0, 3.0]]])
    given_ = F.interpolate(x, scale_factor=1.7, mode="linear").tolist()[0][0]
    assert np.allclose(given_, [0.0, 0.38235, 0.97059, 1.55882, 2.14706, 2.73529], atol=1e-4)
    again = F.interpolate(x, scale_factor=1.7, mode="linear", recompute_scale_factor=True)
    assert np.allclose(again.tolist()[0][0], [0, 0.5, 1.16667, 1.83333, 2.5, 3], atol=1e-4)
    flush = F.interpolate(x, size=[6], mode="linear", align_mode=1)
    assert np.allclose(flush.tolist()[0][0], [0, 0.66667, 1.33333, 2, 2.66667, 3], atol=1e-4)
    y = paddle.ones([1, 1, 2, 2])
    both = F.upsample(y, scale_factor=paddle.to_tensor([2.0, 1.5]), mode="bilinear")
    assert both.shape == [1, 1, 4, 3]
    assert F.interpolate(y, size=[paddle.to_tensor(3), 4]).shape == [1, 1, 3, 4]
    assert F.interpolate(y, size=paddle.to_tensor([3, 4])).shape == [1, 1, 3, 4]


def test_resizing_with_channels_last():
    (x,) = draw((1, 4, 5, 2))
    agree(
        lambda x: F.interpolate(x, [6, 6], mode="bilinear", data_format="NHWC"),
        lambda x: TF.interpolate(x.movedim(-1, 1), (6, 6), mode="bilinear").movedim(1, -1),
        x,
    )


# ---- sampling --------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("corners", [True, False])
def test_grid_sample(n, mode, padding, corners):
    x, grid = draw((2, 3, *SIZES[n]), (2, *(3, 2, 4)[:n], n))
    how = {"mode": mode, "padding_mode": padding, "align_corners": corners}
    agree(
        lambda x, g: F.grid_sample(x, g, **how),
        lambda x, g: TF.grid_sample(x, g, **how),
        x,
        grid * 1.2,
        order=1,
    )
    # Torch cannot differentiate it twice; its own derivative by central differences can.
    a = [paddle.to_tensor(v, stop_gradient=False) for v in (x, grid)]
    (gx,) = paddle.grad([(F.grid_sample(*a, **how) ** 2).sum()], [a[0]], create_graph=True)
    (second,) = paddle.grad([(gx**2).sum()], [a[0]])
    near(second, second_in_x(x, grid, how), 1e-6)


def second_in_x(x, grid, how):
    """∂ Σ (∂ Σ y² / ∂x)² / ∂x for y = A x: 8 AᵀA AᵀA x, with torch's A and Aᵀ."""
    x, grid = torch.tensor(x), torch.tensor(grid)

    def squared(v):
        y, back = torch.func.vjp(lambda t: TF.grid_sample(t, grid, **how), v)
        return back(y)[0]

    return 8 * squared(squared(x))


@pytest.mark.parametrize("corners", [True, False])
@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (2, 1, 2, 3, 4)])
def test_affine_grid(shape, corners):
    n = len(shape) - 2
    (theta,) = draw((2, n, n + 1))
    agree(
        lambda t: F.affine_grid(t, shape, corners),
        lambda t: TF.affine_grid(t, shape, corners),
        theta,
    )
    ours = F.affine_grid(paddle.to_tensor(theta), paddle.to_tensor(shape), corners)
    near(ours, TF.affine_grid(torch.tensor(theta), shape, corners))


@pytest.mark.filterwarnings("ignore:Since version 1.3.0")
def test_one_pixel():
    same = np.array([[[1.0, 0, 0], [0, 1.0, 0]]])
    grid = F.affine_grid(paddle.to_tensor(same), [1, 1, 1, 2])
    near(grid, TF.affine_grid(torch.tensor(same), (1, 1, 1, 2), True))
    x = draw((1, 1, 1, 1))[0]
    how = {"padding_mode": "reflection", "align_corners": True}
    near(
        F.grid_sample(paddle.to_tensor(x), grid, **how),
        np.broadcast_to(x, (1, 1, 1, 2)),
    )


# ---- rearranging -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ours", "theirs", "shape"),
    [
        (F.pixel_shuffle, TF.pixel_shuffle, (2, 8, 3, 2)),
        (F.pixel_unshuffle, TF.pixel_unshuffle, (2, 3, 4, 6)),
        (F.channel_shuffle, torch.channel_shuffle, (2, 6, 2, 3)),
    ],
)
def test_rearrangements(ours, theirs, shape):
    (x,) = draw(shape)
    agree(lambda x: ours(x, 2), lambda x: theirs(x, 2), x)
    last = np.moveaxis(x, 1, -1)
    y = ours(paddle.to_tensor(last), 2, data_format="NHWC")
    near(y, theirs(torch.tensor(x), 2).movedim(1, -1))


@pytest.mark.parametrize("data_format", ["NCHW", "NHWC"])
def test_temporal_shift(data_format):
    x = np.arange(48.0).reshape(6, 4, 2, 1)
    expected = np.zeros((2, 3, 4, 2, 1))
    steps = x.reshape(2, 3, 4, 2, 1)
    expected[:, 1:, 0] = steps[:, :-1, 0]
    expected[:, :-1, 1] = steps[:, 1:, 1]
    expected[:, :, 2:] = steps[:, :, 2:]
    expected = expected.reshape(x.shape)
    if data_format == "NHWC":
        x, expected = np.moveaxis(x, 1, -1), np.moveaxis(expected, 1, -1)
    near(F.temporal_shift(paddle.to_tensor(x), 3, 0.25, data_format=data_format), expected)


@pytest.mark.parametrize(
    ("kernel", "stride", "padding", "dilation"),
    [(2, 1, 0, 1), ([3, 2], [2, 1], [1, 0], [1, 2]), (2, 2, 1, 1)],
)
def test_windows_as_columns(kernel, stride, padding, dilation):
    (x,) = draw((2, 3, 6, 5))
    torchs = {"dilation": dilation, "padding": padding, "stride": stride}
    agree(
        lambda x: F.unfold(x, kernel, stride, padding, dilation),
        lambda x: TF.unfold(x, kernel, **torchs),
        x,
    )
    columns = draw(TF.unfold(torch.tensor(x), kernel, **torchs).shape)[0]
    agree(
        lambda c: F.fold(c, [6, 5], kernel, stride, padding, dilation),
        lambda c: TF.fold(c, (6, 5), kernel, **torchs),
        columns,
    )
    near(
        nn.Unfold(kernel, dilation, padding, stride)(paddle.to_tensor(x)),
        columns_of(x, kernel, torchs),
    )
    folded = nn.Fold([6, 5], kernel, dilation, padding, stride)(paddle.to_tensor(columns))
    near(folded, TF.fold(torch.tensor(columns), (6, 5), kernel, **torchs))


def columns_of(x, kernel, how):
    return TF.unfold(torch.tensor(x), kernel, **how)


def test_four_paddings_of_unfold_are_top_left_bottom_right():
    x = draw((1, 1, 3, 3))[0]
    ours = F.unfold(paddle.to_tensor(x), 2, paddings=[1, 0, 0, 2])
    near(ours, TF.unfold(TF.pad(torch.tensor(x), (0, 2, 1, 0)), 2))


# ---- layers ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("layer", "text"),
    [
        (nn.Pad1D(1), "Pad1D(padding=[1, 1], mode=constant, value=0.0, data_format=NCL)"),
        (nn.Pad2D([1, 2, 0, 1], "reflect"),
         "Pad2D(padding=[1, 2, 0, 1], mode=reflect, value=0.0, data_format=NCHW)"),
        (nn.ZeroPad3D(1, name="p"),
         "ZeroPad3D(padding=[1, 1, 1, 1, 1, 1], mode=constant, value=0.0, data_format=NCDHW, "
         "name=p)"),
        (nn.Upsample(size=[2, 2]),
         "Upsample(size=[2, 2], mode=nearest, align_corners=False, align_mode=0, "
         "data_format=None)"),
        (nn.UpsamplingNearest2D(scale_factor=2),
         "UpsamplingNearest2D(scale_factor=2, data_format=NCHW)"),
        (nn.UpsamplingBilinear2D(size=[2, 2]),
         "UpsamplingBilinear2D(size=[2, 2], data_format=NCHW)"),
        (nn.PixelShuffle(2), "PixelShuffle(upscale_factor=2)"),
        (nn.PixelUnshuffle(2, "NHWC"), "PixelUnshuffle(downscale_factor=2, data_format=NHWC)"),
        (nn.ChannelShuffle(2), "ChannelShuffle(groups=2)"),
        (nn.Unfold(2), "Unfold(kernel_size=2, dilation=1, padding=0, stride=1)"),
        (nn.Fold([4, 4], 2), "Fold(kernel_size=2, dilation=1, padding=0, stride=1)"),
    ],
)  # fmt: skip
def test_layers_say_what_they_are(layer, text):
    assert repr(layer) == text


def test_layers_compute_what_functions_do():
    x = paddle.to_tensor(draw((1, 4, 4, 4))[0])
    near(nn.Pad2D(1, "replicate")(x), F.pad(x, [1] * 4, "replicate"))
    near(nn.ZeroPad2D([1, 0, 2, 0])(x), F.pad(x, [1, 0, 2, 0]))
    near(nn.Upsample([6, 5], mode="bicubic")(x), F.interpolate(x, [6, 5], mode="bicubic"))
    near(nn.UpsamplingNearest2D([6, 5])(x), F.interpolate(x, [6, 5]))
    bilinear = F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=True)
    near(nn.UpsamplingBilinear2D(scale_factor=2)(x), bilinear)
    near(nn.PixelShuffle(2)(x), F.pixel_shuffle(x, 2))
    near(nn.PixelUnshuffle(2)(x), F.pixel_unshuffle(x, 2))
    near(nn.ChannelShuffle(2)(x), F.channel_shuffle(x, 2))


X = paddle.ones([1, 4, 4, 4])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: F.pad(X, [1, 2, 3]), "a pair"),
        (lambda: F.pad(X, [1, 1], "reflect"), "4 numbers, last axis first"),
        (lambda: F.pad(X, [1] * 10), "or 8 for all axes"),
        (lambda: F.pad(X, [4, 0, 0, 0], "reflect"), "less than the size"),
        (lambda: F.pad(paddle.ones([1, 1, 0]), [1, 1], "replicate"), "not empty"),
        (lambda: F.pad(X, [1, 1, 1, 1], "mirror"), "circular"),
        (lambda: F.pad(X, [1, 1, 1, 1], data_format="NCL"), "NCHW or NHWC"),
        (lambda: F.interpolate(X), "either size or scale_factor"),
        (lambda: F.interpolate(X, [2, 2], 2), "either size or scale_factor"),
        (lambda: F.interpolate(X, [2, 2, 2]), "2 positive numbers"),
        (lambda: F.interpolate(X, scale_factor=[1, 2, 3]), "or 2 of them"),
        (lambda: F.interpolate(X, scale_factor=-1), "a positive number"),
        (lambda: F.interpolate(X, [2, 2], mode="lanczos"), "bicubic"),
        (lambda: F.interpolate(X, [2, 2], mode="trilinear"), "5-D"),
        (lambda: F.interpolate(X, [2, 2], align_corners=True), "linear or cubic"),
        (lambda: F.interpolate(X, [2, 2], data_format="NCL"), "'NCHW' or 'NHWC'"),
        (lambda: F.grid_sample(X, paddle.ones([1, 2, 2, 3])), "a grid"),
        (lambda: F.grid_sample(X, paddle.ones([1, 2, 2, 2]), mode="cubic"), "nearest"),
        (lambda: F.grid_sample(X, paddle.ones([1, 2, 2, 2]), padding_mode="wrap"), "border"),
        (lambda: F.affine_grid(paddle.ones([1, 2, 2]), [1, 1, 2, 2]), r"\[N, 2, 3\]"),
        (lambda: F.pixel_shuffle(X, 3), "does not divide by 9"),
        (lambda: F.pixel_unshuffle(X, 3), "does not divide by 3"),
        (lambda: F.channel_shuffle(X, 3), "does not divide by 3"),
        (lambda: F.pixel_shuffle(X, 2, data_format="NCL"), "NCHW or NHWC"),
        (lambda: F.pixel_shuffle(X[0], 2), "4 dimensions"),
        (lambda: F.temporal_shift(X, 2), "does not divide by 2"),
        (lambda: F.unfold(X, 6), "does not fit"),
        (lambda: F.unfold(X, 2, paddings=[1, 1, 1]), "1, 2 or 4 numbers"),
        (lambda: F.unfold(X[0], 2), "4 dimensions"),
        (lambda: F.fold(X[0, :, :3], [3, 3], 2), "to fold into"),
    ],
)
def test_mistakes_are_explained(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_antialias_is_refused_by_name():
    with pytest.raises(NotImplementedError, match="antialias"):
        F.interpolate(X, [2, 2], mode="bilinear", antialias=True)
