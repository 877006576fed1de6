"""Kernels of convolutions against torch, on the operator suite's cases and on drawn ones."""

import numpy as np
import pytest
import torch

from minipaddle.engine.codegen.scalar import CannotWrite
from minipaddle.engine.core.op import OPS
from tests.codegen.compiling import call, needs_gcc, run_all
from tests.ops import cases_channels_last as suite

pytestmark = [pytest.mark.sweep(one_in=4), needs_gcc]
NAMES = ("conv_last", "conv_last_input_grad", "conv_last_weight_grad")
NEAR = {"float32": 2e-5, "float64": 1e-13}


def oracle(name, x, y, attrs):
    """The operator's body in float64, which the operator suite holds to torch."""
    return OPS[name].body(np, x.astype("float64"), y.astype("float64"), **attrs)


def three(size, kernel, stride, padding, dilation, groups=1, batch=2, channels=3, outs=4):
    """(operator, shapes, attributes) of the three operators of one convolution."""
    how = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    out = tuple(
        (n + a + b - d * (k - 1) - 1) // s + 1
        for n, k, s, (a, b), d in zip(size, kernel, stride, padding, dilation)
    )
    x, w = (batch, *size, channels * groups), (*kernel, channels, outs * groups)
    g = (batch, *out, outs * groups)
    return [
        ("conv_last", (x, w), how),
        ("conv_last_input_grad", (g, w), {"size": size, **how}),
        ("conv_last_weight_grad", (x, g), {"kernel": kernel, **how}),
    ]


def calls_of(settings, dtype, **options):
    rng = np.random.default_rng(0)
    for name, shapes, attrs in settings:
        arrays = [rng.standard_normal(s).astype(dtype) for s in shapes]
        yield call(name, arrays, attrs, **options)


def check(calls, threads=1, **options):
    for one, (got,) in zip(calls, run_all(calls, threads, **options)):
        want = oracle(one.record.op.name, *one.inputs, one.record.attrs)
        near = NEAR[str(got.dtype)] * max(np.abs(want).max(initial=0), 1)
        np.testing.assert_allclose(got, want, rtol=0, atol=near, err_msg=one.kernel.source)


@pytest.mark.parametrize("name", NAMES)
def test_the_suite_s_cases(name):
    calls = []
    for k, case in enumerate(suite.CASES[name]):
        arrays = case.build(np.random.default_rng(k))
        if arrays[0].ndim == 5:
            with pytest.raises(CannotWrite):
                call(name, arrays, case.attrs)
            continue
        calls.append(call(name, arrays, case.attrs))
        calls.append(call(name, [a.astype("float32") for a in arrays], case.attrs))
    check(calls)


def drawn(rng):
    """One convolution of random sizes."""
    kernel, size = rng.integers(1, 5, 2), rng.integers(5, 24, 2)
    stride, dilation = rng.integers(1, 4, 2), rng.integers(1, 3, 2)
    padding = rng.integers(0, 3, (2, 2))
    reach = (kernel - 1) * dilation + 1
    size = np.maximum(size, reach)
    groups = int(rng.choice([1, 1, 2, 3]))
    channels, outs = (1, 1) if groups == 3 else rng.integers(1, 40, 2)
    whole = lambda a: tuple(map(int, a))
    pads = tuple(whole(p) for p in padding)
    return three(whole(size), whole(kernel), whole(stride), pads, whole(dilation), groups,
                 int(rng.integers(1, 4)), int(channels), int(outs))  # fmt: skip


@pytest.mark.parametrize(("seed", "threads"), [(0, 1), (1, 2), (2, 1), (3, 2)])
def test_drawn_sizes(seed, threads):
    rng = np.random.default_rng(seed)
    settings = [one for _ in range(8) for one in drawn(rng)]
    check(list(calls_of(settings, ["float32", "float64"][seed % 2])), threads)


def first(operator, shapes, attrs):
    """The same convolution with the channels first."""
    name, image = operator.replace("_last", ""), lambda n, *rest: (n, rest[-1], *rest[:-1])
    kernel = lambda *shape: (shape[-1], shape[-2], *shape[:-2])
    return name, (image(*shapes[0]), (image if "weight" in name else kernel)(*shapes[1])), attrs


def depthwise(rng):
    """One depthwise convolution of random sizes, with the channels first."""
    axes = int(rng.integers(1, 3))
    kernel, stride, dilation = (rng.integers(1, n, axes) for n in (7, 4, 3))
    padding, reach = rng.integers(0, 4, (axes, 2)), (kernel - 1) * dilation + 1
    size = np.maximum(rng.integers(1, 40, axes), reach - padding.sum(1)).clip(1)
    whole = lambda a: tuple(map(int, a))
    sizes = map(whole, (size, kernel, stride)), (tuple(map(whole, padding)), whole(dilation))
    return [first(*one) for one in three(*sizes[0], *sizes[1], int(rng.integers(2, 6)), 2, 1, 1)]


@pytest.mark.parametrize(("seed", "threads"), [(0, 1), (1, 2), (2, 1), (3, 2)])
def test_planes(seed, threads):
    rng = np.random.default_rng(seed)
    settings = [one for _ in range(8) for one in depthwise(rng)]
    check(list(calls_of(settings, ["float32", "float64"][seed % 2])), threads)


PLANES = [
    *three((56, 56), (3, 3), (1, 1), ((1, 1),) * 2, (1, 1), 8, 2, 1, 1),
    *three((57, 56), (3, 3), (2, 2), ((1, 1),) * 2, (1, 1), 8, 2, 1, 1),
    *three((150, 150), (7, 7), (2, 2), ((3, 3),) * 2, (1, 1), 4, 2, 1, 1),  # several strips
    *three((2, 9000), (2, 3), (1, 1), ((0, 0),) * 2, (1, 1), 2, 2, 1, 1),  # a row is a strip
]


@pytest.mark.parametrize("threads", [1, 2])
def test_planes_that_are_shared_out(threads):
    check(list(calls_of([first(*one) for one in PLANES], "float32")), threads)


@pytest.mark.parametrize(
    ("size", "groups", "outs", "why"),
    [
        ((8, 8), 1, 1, "channels with channels"),
        ((8, 8), 2, 3, "channels with channels"),
        ((4, 4, 4), 2, 1, "channels with channels"),
        ((1, 60_000), 2, 1, "longer than the stack"),
    ],
)
def test_planes_that_no_kernel_takes(size, groups, outs, why):
    one, none = (1,) * len(size), ((0, 0),) * len(size)
    for setting in three(size, one, one, none, one, groups, 1, 1, outs):
        with pytest.raises(CannotWrite, match=why):
            list(calls_of([first(*setting)], "float32"))


def test_infinite_pixels_stay_in_their_window():
    """Of the columns 0, 3, 6 only these count: a weight's gradient must not meet the others."""
    (*_, weight) = three((7, 7), (1, 1), (3, 3), NONE, ONE, 2, 1, 1, 1)
    name, (x, g), attrs = first(*weight)
    image = np.full(x, np.inf, "float32")
    image[:, :, ::3, ::3] = 1
    one = call(name, [image, np.ones(g, "float32")], attrs)
    ((got,),) = run_all([one], 1)
    np.testing.assert_array_equal(got, np.full((2, 1, 1, 1), 9, "float32"))


ONE, EVEN, NONE = (1, 1), ((1, 1), (1, 1)), ((0, 0), (0, 0))
LARGE = [
    *three((32, 32), (3, 3), ONE, EVEN, ONE, batch=5, channels=16, outs=16),
    *three((17, 16), (3, 3), (2, 2), EVEN, ONE, batch=5, channels=16, outs=32),
    *three((8, 8), (3, 3), ONE, EVEN, ONE, batch=5, channels=64, outs=64),
    *three((16, 16), (1, 1), ONE, NONE, ONE, batch=5, channels=24, outs=33),
    *three((16, 16), (1, 1), (2, 2), NONE, ONE, batch=5, channels=24, outs=33),
    *three((28, 28), (5, 5), ONE, ((2, 2), (2, 2)), ONE, batch=5, channels=1, outs=6),
    *three((60, 60), (3, 3), ONE, EVEN, ONE, batch=1, channels=40, outs=20),  # several strips
    *three((9, 700), (3, 3), ONE, EVEN, ONE, batch=1, channels=30, outs=5),
    *three((9, 900), (7, 3), ONE, EVEN, ONE, batch=2, channels=64, outs=2),  # beyond the stack
    *three((30, 30), (3, 3), ONE, EVEN, ONE, batch=4, groups=40, channels=1, outs=1),
    *three((90, 1), (5, 1), (2, 1), ((3, 1), (0, 0)), (2, 1), channels=20, outs=30),  # a column
    *three((90, 1), (5, 1), (2, 1), ((3, 1), (0, 0)), (2, 1), groups=2, channels=5, outs=3),
]


@pytest.mark.parametrize("threads", [1, 2])
def test_sizes_that_are_shared_out(threads):
    check(list(calls_of(LARGE, "float32")), threads)


@pytest.mark.parametrize(
    "setting",
    [
        ((32, 32), (3, 3), ONE, EVEN, ONE, 1, 32, 16, 16),  # Winograd's tiles
        ((40, 150), (3, 3), (2, 2), EVEN, ONE, 1, 12, 80, 8),  # rows beyond the stack
    ],
)
def test_the_workspace_is_that_of_a_few_threads(setting):
    (high, wide), channels = setting[0], setting[-2]
    few = 4 * 4 * (high + 2) * (wide + 2) * channels
    for one in calls_of(three(*setting), "float32"):
        assert one.kernel.workspace <= few + one.record.spec.nbytes, one.kernel.source


def test_a_column_is_convolved_as_a_row():
    """Kernels go along rows: a column would be swept pixel by pixel."""
    column = three((90, 1), (5, 1), (2, 1), ((3, 1), (0, 0)), (2, 1), channels=20, outs=30)
    row = three((1, 90), (1, 5), (1, 2), ((0, 0), (3, 1)), (1, 2), channels=20, outs=30)
    for one, other in zip(calls_of(column, "float32"), calls_of(row, "float32"), strict=True):
        name = other.kernel.name
        assert one.kernel.source.replace(one.kernel.name, name) == other.kernel.source


def test_a_weight_s_gradient_does_not_depend_on_the_threads():
    calls = list(
        calls_of(three((12, 12), (3, 3), ONE, EVEN, ONE, batch=9, channels=9)[2:], "float32")
    )
    (one,), (two,) = (run_all(calls, n)[0] for n in (1, 2))
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("half", ["float16", "bfloat16"])
def test_halves_are_summed_in_float32(half):
    import ml_dtypes

    dtype = np.dtype(ml_dtypes.bfloat16 if half == "bfloat16" else half)
    calls = list(calls_of(three((7, 7), (3, 3), ONE, EVEN, ONE), dtype))
    for one, (got,) in zip(calls, run_all(calls)):
        want = oracle(one.record.op.name, *one.inputs, one.record.attrs)
        assert got.dtype == dtype
        np.testing.assert_allclose(got.astype("float64"), want, rtol=2**-7, atol=2e-2)


def test_nothing_to_sum_and_nothing_to_compute():
    settings = [
        ("conv_last", ((2, 4, 4, 0), (3, 3, 0, 5)), None),
        ("conv_last", ((0, 4, 4, 2), (3, 3, 2, 5)), None),
        ("conv_last_weight_grad", ((0, 4, 4, 2), (0, 4, 4, 5)), {"kernel": (3, 3)}),
    ]
    how = {"stride": ONE, "padding": EVEN, "dilation": ONE, "groups": 1}
    calls = list(calls_of([(n, s, how | (more or {})) for n, s, more in settings], "float32"))
    for one, (got,) in zip(calls, run_all(calls)):
        np.testing.assert_array_equal(got, np.zeros(one.record.shape))


def test_nan_and_inf_reach_what_meets_them_and_nothing_else():
    for name, shapes, attrs in three((6, 6), (3, 3), ONE, EVEN, ONE, channels=4):
        (one,) = calls_of([(name, shapes, attrs)], "float32")
        x, y = one.inputs
        x[1, 2, 3, 1], x[0, 0, 0, 0] = np.nan, np.inf
        got = run_all([one])[0][0]
        nan, inf = (oracle(name, f(x), np.ones_like(y), attrs) > 0 for f in (np.isnan, np.isinf))
        np.testing.assert_array_equal(np.isnan(got), nan)
        np.testing.assert_array_equal(np.isinf(got), inf & ~nan)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_epilogues_see_each_pixel_once_and_complete(threads, dtype):
    calls = []
    settings = [
        *LARGE[:5], *LARGE[9:11], *LARGE[12:14], *LARGE[18:20],
        *three((7, 5), (3, 2), (2, 3), EVEN, ONE)[:2],
    ]  # fmt: skip
    for name, shapes, attrs in settings:
        (plain,) = calls_of([(name, shapes, attrs)], dtype)
        wide = plain.record.shape[-1]

        def rows(first, last, wide=wide):
            at = f"out0[r * {wide} + j]"
            doubled = f"2 * {at}" if dtype == "float32" else f"narrow_half(2 * widen_half({at}))"
            return (
                f"for (int64_t r = {first}; r < {last}; r++) {{\n    seen[r]++;\n"
                f"    for (int64_t j = 0; j < {wide}; j++) {at} = {doubled};\n}}\n"
            )

        seen = np.zeros(plain.record.spec.size // wide, "int32")
        more = {"rows": rows, "parameters": ("int32_t *restrict seen",), "extra": (seen,)}
        calls.append(call(name, plain.inputs, attrs, **more))
    for one, (got,) in zip(calls, run_all(calls, threads)):
        want = 2 * oracle(one.record.op.name, *one.inputs, one.record.attrs)
        scale = np.abs(want).max()
        np.testing.assert_allclose(got, want, atol=(1e-5 if dtype == "float32" else 2e-3) * scale)
        assert (one.extra[0] == 1).all()


def test_torch_agrees():
    """Once without our own bodies between: [N, H, W, C] through torch."""
    (one,) = calls_of(three((9, 8), (3, 2), (2, 1), ((1, 1), (0, 0)), (1, 2))[:1], "float32")
    x, w = (torch.from_numpy(a) for a in one.inputs)
    want = torch.nn.functional.conv2d(
        x.permute(0, 3, 1, 2), w.permute(3, 2, 0, 1), None, (2, 1), (1, 0), (1, 2)
    )
    got = run_all([one])[0][0]
    np.testing.assert_allclose(got, want.permute(0, 2, 3, 1).numpy(), rtol=1e-4, atol=1e-5)


def test_whole_numbers_are_left_to_the_host():
    (name, (x, w), attrs), *_ = three((5, 5), (3, 3), ONE, EVEN, ONE)
    with pytest.raises(CannotWrite):
        call(name, [np.ones(x, "int64"), np.ones(w, "int64")], attrs)
