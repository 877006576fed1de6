"""Transforms: Pillow's and SciPy's numbers, every form of a picture, and chance that follows
`paddle.seed`."""

import colorsys
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageEnhance
from scipy import ndimage

import minipaddle as paddle
from minipaddle.vision import transforms as T
from minipaddle.vision.transforms.random_transforms import draw_below, uniform

RNG = np.random.default_rng(0)
BYTES = RNG.integers(0, 256, (7, 10, 3), dtype="uint8")
FLOATS = RNG.random((7, 10, 3)).astype("float32")
GREY = RNG.integers(0, 256, (7, 10), dtype="uint8")
PICTURE = Image.fromarray(BYTES)


def chw(array):
    return paddle.to_tensor(array.transpose(2, 0, 1))


# ---- forms -----------------------------------------------------------------------------------

FUNCTIONS = {
    "hflip": lambda x: T.hflip(x),
    "vflip": lambda x: T.vflip(x),
    "crop": lambda x: T.crop(x, 1, 2, 3, 4),
    "center_crop": lambda x: T.center_crop(x, (3, 6)),
    "pad": lambda x: T.pad(x, (1, 2, 3, 4), fill=1),
    "resize": lambda x: T.resize(x, (5, 4)),
    "rotate": lambda x: T.rotate(x, 30, expand=True),
    "to_grayscale": lambda x: T.to_grayscale(x, 3),
    "adjust_brightness": lambda x: T.adjust_brightness(x, 0.5),
    "adjust_contrast": lambda x: T.adjust_contrast(x, 0.5),
    "adjust_hue": lambda x: T.adjust_hue(x, 0.2),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_form_of_a_picture_gives_the_same(name):
    function = FUNCTIONS[name]
    array = function(BYTES)
    assert (type(array), array.dtype, array.flags.c_contiguous) == (np.ndarray, np.uint8, True)
    tensor = function(chw(BYTES))
    assert isinstance(tensor, paddle.Tensor)
    np.testing.assert_array_equal(tensor.numpy().transpose(1, 2, 0), array)
    picture = function(PICTURE)
    assert isinstance(picture, Image.Image)
    np.testing.assert_array_equal(np.asarray(picture), array)
    grey = function(GREY)
    colours = 3 if name == "to_grayscale" else None
    assert grey.shape == (array.shape if colours else array.shape[:2])
    np.testing.assert_array_equal(np.asarray(function(Image.fromarray(GREY))), grey)


def test_a_grey_result_of_a_picture_is_a_grey_picture():
    assert T.to_grayscale(PICTURE).mode == "L"


@pytest.mark.parametrize("wrong", ["a name", 3, np.ones(3), np.ones([1, 2, 3, 4]), None])
def test_what_is_no_picture(wrong):
    for function in (T.hflip, T.to_tensor, lambda x: T.normalize(x, 0, 1)):
        with pytest.raises(TypeError, match=r"is no picture\n  expected: an array \[h, w\]"):
            function(wrong)


def test_a_batch_is_no_picture():
    with pytest.raises(TypeError, match=r"float32\[2, 3, 4, 4\] is no picture"):
        T.vflip(paddle.ones([2, 3, 4, 4]))


# ---- numbers ---------------------------------------------------------------------------------


def test_to_tensor():
    np.testing.assert_array_equal(
        T.to_tensor(BYTES).numpy(), (BYTES / np.float32(255)).transpose(2, 0, 1)
    )
    assert T.to_tensor(BYTES).dtype == paddle.float32
    assert T.to_tensor(GREY).shape == [1, 7, 10]
    assert T.to_tensor(PICTURE, "HWC").shape == [7, 10, 3]
    np.testing.assert_array_equal(T.to_tensor(FLOATS).numpy(), FLOATS.transpose(2, 0, 1))
    assert T.to_tensor(FLOATS.astype("float64")).dtype == paddle.float64
    assert T.to_tensor(BYTES.astype("int32")).dtype == paddle.int32
    x = paddle.ones([3, 2, 2])
    assert T.to_tensor(x) is x
    with pytest.raises(ValueError, match="data_format='CWH'\n  expected: 'CHW' or 'HWC'"):
        T.to_tensor(BYTES, "CWH")


def test_normalize():
    mean, std = np.array([1.0, 2, 3]), np.array([2.0, 4, 5])
    expected = ((BYTES - mean) / std).astype("float32")
    np.testing.assert_allclose(T.normalize(BYTES, mean, std, "HWC"), expected, rtol=1e-6)
    np.testing.assert_allclose(T.normalize(PICTURE, mean, std), expected, rtol=1e-6)
    np.testing.assert_allclose(
        T.normalize(BYTES, mean, std, "HWC", to_rgb=True),
        (BYTES[..., ::-1] - mean) / std,
        rtol=1e-6,
    )
    x = chw(FLOATS)
    x.stop_gradient = False
    y = T.Normalize(list(mean), list(std), to_rgb=True)(x)
    expected = (FLOATS[..., ::-1] - mean) / std
    np.testing.assert_allclose(y.numpy().transpose(1, 2, 0), expected, rtol=1e-5)
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy()[:, 0, 0], 1 / std[::-1], rtol=1e-6)
    np.testing.assert_allclose(T.Normalize(1.0, 2.0)(np.ones([1, 2, 2])), np.zeros([1, 2, 2]))
    with pytest.raises(ValueError, match="2 values of std for 3 channels"):
        T.normalize(BYTES, 0, [1, 1], "HWC")


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric"])
def test_pad(mode):
    widths = [(2, 4), (1, 3), (0, 0)]
    np.testing.assert_array_equal(
        T.pad(BYTES, (1, 2, 3, 4), padding_mode=mode), np.pad(BYTES, widths, mode)
    )


def test_pad_says_how_wide():
    np.testing.assert_array_equal(T.pad(GREY, 2, fill=9), np.pad(GREY, 2, constant_values=9))
    np.testing.assert_array_equal(T.pad(GREY, (1, 2)), np.pad(GREY, [(2, 2), (1, 1)]))
    assert T.pad(BYTES, 1, fill=(1, 2, 3))[0, 0].tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match="padding=\\(1, 2, 3\\)\n  expected: 1, 2 or 4 numbers"):
        T.pad(GREY, (1, 2, 3))
    with pytest.raises(ValueError, match="padding_mode='wrap'"):
        T.pad(GREY, 1, padding_mode="wrap")


@pytest.mark.parametrize("size", [(5, 5), (14, 20), (9, 3), (1, 1), (7, 10)])
@pytest.mark.parametrize("mode", ["nearest", "bilinear"])
def test_resize_as_interpolate_does(size, mode):
    expected = paddle.nn.functional.interpolate(chw(FLOATS).unsqueeze(0), size, mode=mode)
    found = T.resize(chw(FLOATS), size, mode)
    np.testing.assert_allclose(found.numpy(), expected[0].numpy(), atol=1e-6)


def test_resize_with_cubic_splines():
    expected = ndimage.zoom(
        FLOATS[..., 0].astype("float64"), (2, 3), order=3, mode="nearest", grid_mode=True
    )
    found = T.resize(FLOATS[..., 0].astype("float64"), (14, 30), "bicubic")
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_resize_of_the_shorter_side():
    assert T.resize(GREY, 14).shape == (14, 20)
    assert T.resize(GREY.T, 5).shape == (7, 5)
    assert T.resize(GREY, 7).shape == (7, 10)
    with pytest.raises(ValueError, match="interpolation='area'\n  expected: 'nearest', 'bil"):
        T.resize(GREY, 7, "area")


@pytest.mark.parametrize("angle", [30, 44, 10, 77, -120, 360])
def test_rotate_as_pillow_does(angle):
    np.testing.assert_array_equal(T.rotate(BYTES, angle), PICTURE.rotate(angle))
    np.testing.assert_array_equal(
        T.rotate(BYTES, angle, center=(2, 3), fill=(9, 8, 7)),
        PICTURE.rotate(angle, center=(2, 3), fillcolor=(9, 8, 7)),
    )
    smooth = T.rotate(BYTES, angle, "bilinear").astype(int)
    theirs = np.asarray(PICTURE.rotate(angle, Image.Resampling.BILINEAR)).astype(int)
    inside = T.rotate(np.pad(np.ones([3, 6]), 2), angle, "bilinear") > 0.999
    assert inside.sum() >= 8
    assert abs(smooth - theirs)[inside].max() <= 1  # they cut to whole numbers, we round


@pytest.mark.parametrize("turns", [1, 2, 3, 4])
def test_quarter_turns_move_pixels(turns):
    np.testing.assert_array_equal(T.rotate(BYTES, 90 * turns, expand=True), np.rot90(BYTES, turns))
    np.testing.assert_allclose(
        T.rotate(FLOATS, 90 * turns, "bilinear", expand=True), np.rot90(FLOATS, turns), atol=1e-6
    )


@given(st.floats(-180, 180), st.integers(1, 90), st.integers(1, 90))
@settings(derandomize=True, max_examples=40, deadline=None)
def test_expanding_makes_just_enough_room(angle, height, width):
    result = T.rotate(np.ones([height, width]), angle, expand=True)
    cos, sin = abs(math.cos(math.radians(angle))), abs(math.sin(math.radians(angle)))
    room = [height * cos + width * sin, height * sin + width * cos]
    assert all(n - 1 < r < n + 1e-6 for r, n in zip(room, result.shape, strict=True))
    assert result.sum() == pytest.approx(height * width, abs=2 * (height + width))


def test_colours_as_pillow_does():
    def close(ours, theirs):
        assert abs(ours.astype(int) - np.asarray(theirs)).max() <= 1  # rounded another way

    for factor in (0.0, 0.4, 1.0, 1.7):
        close(T.adjust_brightness(BYTES, factor), ImageEnhance.Brightness(PICTURE).enhance(factor))
        close(T.adjust_contrast(BYTES, factor), ImageEnhance.Contrast(PICTURE).enhance(factor))
        saturated = T.functional.adjust_saturation(BYTES, factor)
        close(saturated, ImageEnhance.Color(PICTURE).enhance(factor))
    close(T.to_grayscale(BYTES)[..., 0], PICTURE.convert("L"))


def test_floats_stay_between_black_and_white():
    np.testing.assert_allclose(T.adjust_brightness(FLOATS, 2), (2 * FLOATS).clip(0, 1), rtol=1e-6)


@pytest.mark.parametrize("turn", [-0.5, -0.2, 0.0, 0.3, 0.5])
def test_hue_as_the_standard_library_does(turn):
    def turned(pixel):
        hue, *rest = colorsys.rgb_to_hsv(*pixel)
        return colorsys.hsv_to_rgb((hue + turn) % 1, *rest)

    pixels = np.concatenate([FLOATS.reshape(-1, 3), [[0.3] * 3, [0, 0, 0], [1, 1, 1], [1, 1, 0]]])
    expected = np.apply_along_axis(turned, 1, pixels.astype("float64"))
    found = T.adjust_hue(pixels[None].astype("float32"), turn)[0]
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_what_can_not_be_done_to_colours():
    two = np.ones([4, 4, 2])
    for wrong in (lambda: T.to_grayscale(two), lambda: T.adjust_hue(two, 0.1)):
        with pytest.raises(ValueError, match="2 channels\n  expected: red, green and blue"):
            wrong()
    with pytest.raises(ValueError, match="a factor of -1"):
        T.adjust_contrast(GREY, -1)
    with pytest.raises(ValueError, match=r"hue_factor=0\.6"):
        T.adjust_hue(BYTES, 0.6)
    with pytest.raises(ValueError, match="num_output_channels=2"):
        T.to_grayscale(BYTES, 2)


def test_crop():
    np.testing.assert_array_equal(T.crop(BYTES, 1, 2, 3, 4), BYTES[1:4, 2:6])
    np.testing.assert_array_equal(T.center_crop(BYTES, 5), BYTES[1:6, 2:7])
    for place in [(5, 0), (0, 8), (-1, 0), (0, -1)]:
        with pytest.raises(ValueError, match=r"crop of 3 x 3 at .* from a picture of 7 x 10"):
            T.crop(BYTES, *place, 3, 3)


# ---- the frame -------------------------------------------------------------------------------


def test_compose():
    both = T.Compose([T.Resize((4, 4)), T.ToTensor(), T.Normalize(0.5, 0.5)])
    x = both(BYTES)
    assert x.shape == [3, 4, 4]
    assert -1 <= x.min() < x.max() <= 1
    assert repr(both).split("\n")[:2] == [
        "Compose(",
        "    Resize(size=(4, 4), interpolation='bilinear')",
    ]
    with pytest.raises(TypeError, match="is no picture") as caught:
        both("a name")
    assert caught.value.__notes__ == [
        "in the transform Resize(size=(4, 4), interpolation='bilinear')"
    ]


def test_a_tuple_goes_to_its_keys_and_the_rest_stays():
    flip = T.RandomHorizontalFlip(1.0)
    image, label = flip((GREY, 3))
    np.testing.assert_array_equal(image, GREY[:, ::-1])
    assert label == 3

    class Flip(T.RandomHorizontalFlip):
        def _apply_mask(self, mask):
            return mask[:, ::-1] if self.params else mask

    image, mask, label = Flip(1.0, keys=("image", "mask"))((GREY, GREY, 3))
    np.testing.assert_array_equal(image, mask)
    with pytest.raises(NotImplementedError, match="define _apply_mask"):
        T.RandomHorizontalFlip(keys=("image", "mask"))((GREY, GREY))
    with pytest.raises(NotImplementedError, match=r"BaseTransform defines no _apply_image"):
        T.BaseTransform()(GREY)
    with pytest.raises(ValueError, match="keys='image'"):
        T.BaseTransform(keys="image")


def test_fixed_transforms():
    assert T.Transpose()(GREY).shape == (1, 7, 10)
    assert T.Transpose((1, 0, 2))(chw(FLOATS)).shape == [7, 3, 10]
    assert T.CenterCrop(4)(BYTES).shape == (4, 4, 3)
    assert T.Pad((1, 2))(BYTES).shape == (11, 12, 3)
    assert T.Grayscale(3)(BYTES).shape == (7, 10, 3)
    assert T.ToTensor("HWC")(BYTES).shape == [7, 10, 3]


# ---- chance ----------------------------------------------------------------------------------

RANDOM = {
    "RandomHorizontalFlip": lambda: T.RandomHorizontalFlip(),
    "RandomVerticalFlip": lambda: T.RandomVerticalFlip(),
    "RandomCrop": lambda: T.RandomCrop(4),
    "RandomResizedCrop": lambda: T.RandomResizedCrop(5),
    "RandomRotation": lambda: T.RandomRotation(90),
    "ColorJitter": lambda: T.ColorJitter(0.5, 0.5, 0.5, 0.5),
    "BrightnessTransform": lambda: T.BrightnessTransform(0.5),
    "ContrastTransform": lambda: T.ContrastTransform((0.2, 1.9)),
    "SaturationTransform": lambda: T.SaturationTransform(2),
    "HueTransform": lambda: T.HueTransform(0.5),
}


@pytest.mark.parametrize("name", RANDOM)
def test_the_seed_decides(name):
    def drawn(seed):
        paddle.seed(seed)
        transform = RANDOM[name]()
        return [transform(BYTES).tolist() for _ in range(8)]

    assert drawn(3) == drawn(3) != drawn(4)
    assert any(result != drawn(3)[0] for result in drawn(3))


def test_uniform_numbers():
    paddle.seed(0)
    drawn = np.array([uniform(2, 4) for _ in range(4000)])
    assert 2 <= drawn.min() < 2.01 < 3.99 < drawn.max() < 4
    assert drawn.mean() == pytest.approx(3, abs=0.03)
    assert abs(np.corrcoef(drawn[1:], drawn[:-1])[0, 1]) < 0.05
    seen = np.bincount([draw_below(5) for _ in range(2000)], minlength=5)
    assert len(seen) == 5
    assert seen.min() > 330


@pytest.mark.parametrize(("prob", "least", "most"), [(0.0, 0, 0), (1.0, 60, 60), (0.3, 8, 30)])
def test_flips_are_as_likely_as_said(prob, least, most):
    paddle.seed(0)
    for flip in (T.RandomHorizontalFlip(prob), T.RandomVerticalFlip(prob)):
        turned = sum((flip(BYTES) != BYTES).any() for _ in range(60))
        assert least <= turned <= most


def test_random_crops_are_parts_and_reach_every_place():
    paddle.seed(0)
    array, crop = np.arange(12).reshape(3, 4), T.RandomCrop((2, 3))
    seen = {crop(array)[0, 0] for _ in range(60)}
    assert seen == {0, 1, 4, 5}
    assert T.RandomCrop((3, 4))(array).tolist() == array.tolist()


def test_random_crops_of_padded_pictures():
    padded = {T.RandomCrop(7, padding=3, fill=9)(np.zeros([7, 7])).sum() for _ in range(30)}
    assert len(padded) > 5
    assert all(value % 9 == 0 for value in padded)
    assert T.RandomCrop((9, 4), pad_if_needed=True)(GREY).shape == (9, 4)
    assert T.RandomCrop((4, 19), pad_if_needed=True)(chw(BYTES)).shape == [3, 4, 19]
    with pytest.raises(ValueError, match="pad_if_needed=True"):
        T.RandomCrop(9)(GREY)


def test_random_resized_crops_have_the_area_and_proportions_asked_for():
    paddle.seed(0)
    transform = T.RandomResizedCrop(5, scale=(0.2, 0.5), ratio=(0.5, 2.0))
    shares, ratios = [], []
    for _ in range(200):
        top, left, height, width = transform._get_params((np.zeros([80, 100]),))
        assert 0 <= top <= 80 - height
        assert 0 <= left <= 100 - width
        shares.append(height * width / 8000)
        ratios.append(math.log(width / height))
    assert 0.19 < min(shares) < 0.23 < 0.47 < max(shares) < 0.51
    assert -0.75 < min(ratios) < -0.55 < 0.55 < max(ratios) < 0.75
    assert abs(np.mean(ratios)) < 0.08


@pytest.mark.parametrize(
    ("shape", "part"), [((100, 10), (13, 10)), ((10, 100), (10, 13)), ((10, 10), (10, 10))]
)
def test_a_crop_that_never_fits_is_the_largest_in_the_middle(shape, part):
    transform = T.RandomResizedCrop(5, scale=(5.0, 6.0))
    top, left, height, width = transform._get_params((np.zeros(shape),))
    assert (height, width) == part
    assert (top, left) == ((shape[0] - height) // 2, (shape[1] - width) // 2)


def test_colour_jitter_draws_the_order_and_keeps_it_for_all_pictures_of_a_call():
    paddle.seed(0)
    jitter = T.ColorJitter(0.5, 0.5, 0.5, 0.2, keys=("image", "image"))
    first, second = jitter((BYTES, BYTES))
    np.testing.assert_array_equal(first, second)
    orders = set()
    for _ in range(30):
        jitter((BYTES, BYTES))
        orders.add(tuple(adjust.__name__ for adjust, _ in jitter.params))
    assert len(orders) > 10
    np.testing.assert_array_equal(T.ColorJitter()(BYTES), BYTES)


@pytest.mark.parametrize(
    ("kind", "value", "interval"),
    [
        (T.BrightnessTransform, 0.4, (0.6, 1.4)),
        (T.ContrastTransform, 3, (0, 4)),
        (T.SaturationTransform, (0.5, 2.0), (0.5, 2.0)),
        (T.HueTransform, 0.2, (-0.2, 0.2)),
        (T.HueTransform, (0.1, 0.3), (0.1, 0.3)),
    ],
)
def test_factors_are_drawn_from_their_interval(kind, value, interval):
    paddle.seed(0)
    transform = kind(value)
    drawn = [transform._get_params(()) for _ in range(300)]
    np.testing.assert_allclose([min(drawn), max(drawn)], interval, atol=0.02 * (1 + interval[1]))
    assert interval[0] <= min(drawn) <= max(drawn) <= interval[1]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: T.ColorJitter(-1),
        lambda: T.ColorJitter(hue=0.6),
        lambda: T.HueTransform((-0.6, 0.1)),
        lambda: T.BrightnessTransform((2, 1)),
        lambda: T.RandomRotation(-3),
        lambda: T.RandomRotation((3, 1)),
        lambda: T.RandomRotation((1, 2, 3)),
        lambda: T.RandomHorizontalFlip(1.5),
        lambda: T.RandomResizedCrop(3, scale=(2, 1)),
    ],
)
def test_settings_that_make_no_sense(wrong):
    with pytest.raises(ValueError, match="expected: "):
        wrong()


def test_random_rotation():
    paddle.seed(0)
    angles = [T.RandomRotation((10, 20))._get_params(()) for _ in range(50)]
    assert 10 <= min(angles) < 11 < 19 < max(angles) < 20
    np.testing.assert_array_equal(
        T.RandomRotation((30, 30), "bilinear", True, fill=7)(BYTES),
        T.rotate(BYTES, 30, "bilinear", True, fill=7),
    )


def test_a_missing_transform():
    with pytest.raises(AttributeError, match=r"nearest name is paddle\.vision\.transforms\.resize"):
        _ = T.Rezise
