"""Kernels of matrix products against NumPy, on drawn shapes, orders, dtypes and thread counts."""

import ctypes
import itertools

import ml_dtypes
import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from minipaddle.codegen.machine import Facts, facts, target_facts, target_processor
from minipaddle.codegen.products import blas as library
from minipaddle.codegen.products import product_plan
from minipaddle.codegen.products.matmul import TOGETHER
from minipaddle.codegen.products.microkernel import blocks, call_blocks, heights
from minipaddle.codegen.products.product import STREAMED, choose_algorithm, product_of
from minipaddle.engine.core.record import Spec
from minipaddle.engine.core.slots import plugged
from tests.codegen.compiling import (
    call,
    flags_for,
    needs_gcc,
    on_each_processor,
    run,
    run_all,
)

pytestmark = [pytest.mark.sweep(one_in=4), needs_gcc]
SIZES = st.one_of(st.integers(1, 20), st.sampled_from([31, 32, 33, 48, 64, 65, 72, 100, 130]))
NEAR = {"float32": 1e-5, "float64": 1e-13, "float16": 1e-3, "bfloat16": 1e-2}


@st.composite
def products(draw, dtypes=("float32", "float64")):
    """(shape of x, shape of y, attributes, dtype) of a product."""
    lead = draw(st.lists(st.integers(1, 4), max_size=2))
    kept = lambda: [n if draw(st.booleans()) else 1 for n in lead]
    m, n, k = draw(SIZES), draw(SIZES), draw(SIZES)
    perm = lambda: draw(st.permutations(range(len(lead) + 2)))
    xs, ys = [*kept(), m, k], [*kept(), k, n]
    whole = draw(st.integers(0, 1))  # one of the two has the whole batch
    (xs, ys)[whole][:-2] = lead
    x_perm, y_perm, out_perm = tuple(perm()), tuple(perm()), tuple(perm())
    stored = lambda shape, order: tuple(shape[order.index(d)] for d in range(len(shape)))
    attrs = {"x_perm": x_perm, "y_perm": y_perm, "out_perm": out_perm}
    return stored(xs, x_perm), stored(ys, y_perm), attrs, draw(st.sampled_from(dtypes))


def arrays(xs, ys, dtype, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(s).astype(dtype) for s in (xs, ys)]


def expected(x, y, *, x_perm, y_perm, out_perm):
    wide = [a.astype("float64") for a in (x, y)]
    return np.matmul(wide[0].transpose(x_perm), wide[1].transpose(y_perm)).transpose(out_perm)


def check(got, want, dtype, terms):
    assert got.dtype == dtype
    error = np.abs(got.astype("float64") - want).max(initial=0)
    assert error <= NEAR[str(np.dtype(dtype))] * (4 + 2 * terms**0.5), error


@pytest.mark.parametrize("threads", [1, 2])
@settings(max_examples=6, deadline=None, derandomize=True, phases=[Phase.generate])
@given(drawn=st.lists(products(), min_size=12, max_size=16))
def test_any_shape_and_order(drawn, threads):
    calls = [call("product", arrays(xs, ys, d), attrs) for xs, ys, attrs, d in drawn]
    for one, (got,) in zip(calls, run_all(calls, threads)):
        want = expected(*one.inputs, **one.record.attrs)
        check(got, want, got.dtype, 130)


PLAIN = {"x_perm": (0, 1), "y_perm": (0, 1), "out_perm": (0, 1)}
TURNED = {"x_perm": (0, 1), "y_perm": (1, 0), "out_perm": (0, 1)}
ORDERS = [
    {"x_perm": a, "y_perm": b, "out_perm": c}
    for a, b, c in itertools.product([(0, 1), (1, 0)], repeat=3)
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("threads", [1, 2])
def test_sizes_that_are_shared_out(dtype, threads):
    """Large enough for several threads: rows, columns or a batch are shared out; k in parts."""
    sizes = [(200, 65, 70), (3, 500, 300), (5, 400, 2100), (1, 700, 600), (70, 1, 3000)]
    calls = []
    for (m, n, k), at in itertools.product(sizes, ORDERS):
        xs = (m, k) if at["x_perm"] == (0, 1) else (k, m)
        ys = (k, n) if at["y_perm"] == (0, 1) else (n, k)
        calls.append(call("product", arrays(xs, ys, dtype), at))
    batched = {"x_perm": (0, 2, 1, 3), "y_perm": (0, 2, 3, 1), "out_perm": (0, 2, 1, 3)}
    calls.append(call("product", arrays((4, 33, 4, 40), (4, 50, 4, 40), dtype), batched))
    large = {"x_perm": (0, 1, 2), "y_perm": (0, 2, 1), "out_perm": (0, 1, 2)}
    calls.append(call("product", arrays((4, 17, 400), (4, 90, 400), dtype), large))
    calls.append(call("product", arrays((2, 17, 400), (2, 90, 400), dtype), large))
    for one, (got,) in zip(calls, run_all(calls, threads)):
        check(got, expected(*one.inputs, **one.record.attrs), got.dtype, 3000)


def test_every_height_and_width_of_a_tile():
    calls = [
        call("product", arrays((m, 5), (5, n), "float32", m), PLAIN)
        for m in range(1, 25)
        for n in (1, 7, 16, 17, 31, 32, 33, 49)
    ]
    for one, (got,) in zip(calls, run_all(calls)):
        check(got, expected(*one.inputs, **PLAIN), got.dtype, 5)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("threads", [1, 2])
def test_few_rows_in_both_layouts(dtype, threads):
    """Some are large enough for chunks of columns, and for threads that share them."""
    sizes = [(64, 1), (65, 7), (100, 4), (257, 30), (1030, 203), (2100, 101)]
    calls, starts = [], []
    for m, (n, k), at in itertools.product((1, 2, 3, 4, 5, 7), sizes, (PLAIN, TURNED)):
        y = (k, n) if at is PLAIN else (n, k)
        x, y = arrays((m, k), y, dtype)
        x[0, 0], y[0, 0] = np.nan, np.inf
        rows = lambda a, b, n=n: doubled(a, b).replace("WIDE", str(n)).replace("sums", "row_sums")
        T, sums = ("float", "double")[dtype == "float64"], np.zeros(m, dtype)
        more = {"rows": rows, "parameters": (f"{T} *restrict row_sums",), "extra": (sums,)}
        starts.append(np.ones((m, n), dtype) if m % 2 else np.zeros((m, n), dtype))
        calls.append(call("product", [x, y], at, initial=[starts[-1]], add=m % 2 == 1, **more))
    for one, start, (got,) in zip(calls, starts, run_all(calls, threads)):
        with np.errstate(invalid="ignore"):
            want = 2 * (start + expected(*one.inputs, **one.record.attrs))
            sums = want.sum(1) / 2
        np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
        there = np.isfinite(want)
        np.testing.assert_array_equal(there, np.isfinite(got))
        check(got[there], want[there], got.dtype, 203)
        np.testing.assert_allclose(one.extra[0], sums, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_batch_reads_the_rows_that_it_shares_in_turn(dtype, threads):
    """Keys and values of 5 texts and 2 heads, at many places, with and without an epilogue."""
    keys = {"x_perm": (0, 1, 2, 3), "y_perm": (1, 2, 3, 0), "out_perm": (0, 1, 2, 3)}
    values, calls = keys | {"y_perm": (1, 2, 0, 3)}, []
    with target_facts(facts()._replace(second=1 << 12)):
        for m, places, at in itertools.product((1, 2, 4, 5), (4, 64, 65), (keys, values)):
            x = (5, 2, m, 67 if at is keys else places)
            x, y = arrays(x, (places, 5, 2, 67), dtype, m)
            wide = y.shape[0] if at is keys else y.shape[-1]
            T, sums = ("float", "double")[dtype == "float64"], np.zeros(10 * m, dtype)
            rows = lambda a, b, n=wide: doubled(a, b).replace("WIDE", str(n))
            more = {"rows": rows, "parameters": (f"{T} *restrict sums",), "extra": (sums,)}
            calls += [call("product", [x, y], at), call("product", [x, y], at, **more)]
            shared = f"at += {TOGETHER}" in calls[-1].kernel.source
            assert shared == (places % TOGETHER == 0 and (at is keys or m <= STREAMED))
    for one, (got,) in zip(calls, run_all(calls, threads)):
        check(
            got, (1 + bool(one.extra)) * expected(*one.inputs, **one.record.attrs), got.dtype, 260
        )


def test_a_kernel_has_the_blocks_that_it_calls_on_each_processor():
    """The same tile is the usual one on one processor, and has sizes in its names on another."""
    for registers, name in (((64, 32), "rows7_float"), ((32, 16), "rows7_float_8_0_1")):
        with target_facts(Facts(*registers)):
            found = blocks(f"rows2_double(1); {name}(2); {name}(3);")
        heads = [line for text in found for line in text.splitlines() if "ONCE void rows" in line]
        assert heads == ["ONCE void rows2_double(", f"ONCE void {name}("]
        assert len(found) == len({*found})


@pytest.mark.parametrize(
    ("columns", "T"), [(8, "float"), (4, "double"), (9, "float"), (5, "double")]
)
def test_few_columns_have_vectors_of_32_bytes(columns, T):
    """Half a register of 64; a register of 32 is as fast half empty."""
    for processor, narrow in ((Facts(64, 32), columns in (4, 8)), (Facts(32, 16), False)):
        with target_facts(processor):
            text = call_blocks(T, 8, columns, 3, 1, ("a", 3, 1, 0), ("b", 9, 0), ("c", 9), "0")
            head = "".join(blocks(text))
        assert (f"rows8_narrow_{T}(" in text) == narrow
        assert (f"typedef {T} narrow_{T};" in head) == narrow


def test_heights_differ_by_one():
    for n in range(1, 200):
        found = heights(n)
        assert sum(rows for _, rows in found) == n
        assert all(rows % height == 0 and 1 <= height <= 8 for height, rows in found)
        assert max(h for h, _ in found) - min(h for h, _ in found) <= 1


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_halves_are_summed_in_float32(dtype):
    dtype = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    calls = [
        call("product", arrays((70, 90), (90, 33), dtype), PLAIN),
        call("product", arrays((70, 90), (33, 90), dtype), TURNED),
        call("product", arrays((2, 3, 4), (2, 4, 5), dtype),
             {"x_perm": (0, 1, 2), "y_perm": (0, 1, 2), "out_perm": (2, 0, 1)}),
    ]  # fmt: skip
    for one, (got,) in zip(calls, run_all(calls)):
        x, y = (a.astype("float32") for a in one.inputs)
        want = expected(x, y, **one.record.attrs).astype("float32").astype(dtype)
        off = np.abs(got.astype("float32") - want.astype("float32"))
        assert (off <= 2 * np.abs(np.spacing(want)).astype("float32")).all()


@pytest.mark.parametrize("dtype", ["int64", "int32", "int8", "uint8", "bool"])
def test_whole_numbers_wrap_around(dtype):
    rng = np.random.default_rng(0)
    x, y = (rng.integers(0, 200, s).astype(dtype) for s in ((3, 7, 50), (50, 9)))
    at = {"x_perm": (0, 1, 2), "y_perm": (0, 1), "out_perm": (1, 0, 2)}
    (got,) = run("product", [x, y[None]], at | {"y_perm": (0, 1, 2)})
    np.testing.assert_array_equal(got, np.matmul(x, y).transpose(1, 0, 2))


def test_adding_to_what_is_there():
    calls, starts = [], []
    for at, dtype in itertools.product(ORDERS[:3], ["float32", "float64", "float16", "int32"]):
        x, y = (a.astype(dtype) for a in arrays((20, 20), (20, 20), "float64"))
        start = np.arange(400).reshape(20, 20).astype(dtype)
        calls.append(call("product", [x, y], at, initial=[start], add=True))
        starts.append(start)
    for one, start, (got,) in zip(calls, starts, run_all(calls)):
        want = start + expected(*one.inputs, **one.record.attrs).astype(start.dtype)
        np.testing.assert_allclose(got, want, rtol=2e-3, atol=1e-2)


def test_nan_and_inf_stay():
    x, y = arrays((9, 12), (12, 20), "float32")
    x[2, 3], x[4, 5], y[7, 8], y[0, :] = np.nan, np.inf, -np.inf, 0
    x[0, 0] = np.inf  # times 0: NaN
    for at in (PLAIN, TURNED):
        b = y if at is PLAIN else np.ascontiguousarray(y.T)
        (got,) = run("product", [x, b], at)
        with np.errstate(invalid="ignore"):
            np.testing.assert_array_equal(np.isnan(got), np.isnan(x @ y))
            np.testing.assert_array_equal(np.isinf(got), np.isinf(x @ y))


def test_nothing_to_sum_and_nothing_to_compute():
    (got,) = run("product", arrays((3, 0), (0, 4), "float32"), PLAIN)
    np.testing.assert_array_equal(got, np.zeros((3, 4)))
    assert run("product", arrays((0, 3), (3, 4), "float32"), PLAIN)[0].shape == (0, 4)


def doubled(first, last):
    """An epilogue: rows are doubled, and their sums written elsewhere."""
    return (
        f"for (int64_t r = {first}; r < {last}; r++) {{\n"
        f"    sums[r] = 0;\n"
        f"    for (int64_t j = 0; j < WIDE; j++) {{\n"
        f"        sums[r] += out0[r * WIDE + j];\n"
        f"        out0[r * WIDE + j] *= 2;\n    }}\n}}\n"
    )


@pytest.mark.parametrize("threads", [1, 2])
def test_epilogues_see_each_row_once_and_complete(threads):
    four = {"x_perm": (0, 2, 1, 3), "y_perm": (0, 2, 3, 1), "out_perm": (0, 2, 1, 3)}
    three = {"x_perm": (0, 1, 2), "y_perm": (0, 1, 2), "out_perm": (0, 1, 2)}
    drawn = [
        ((150, 70), (70, 40), PLAIN), ((7, 9), (30, 9), TURNED), ((200, 70), (90, 70), ORDERS[3]),
        ((4, 33, 4, 40), (4, 50, 4, 40), four), ((4, 33, 40), (1, 40, 9), three),
        ((1, 33, 40), (5, 40, 9), three), ((5, 60, 40), (5, 40, 90), three),
        ((2, 3, 4), (2, 4, 5), three | {"out_perm": (2, 1, 0)}),
        ((30, 40), (40, 1), PLAIN), ((1, 40), (40, 700), PLAIN),
    ]  # fmt: skip
    calls = []
    for xs, ys, at in drawn:
        x, y = arrays(xs, ys, "float32")
        wide = expected(x, y, **at).shape[-1]
        rows = lambda a, b, wide=wide: doubled(a, b).replace("WIDE", str(wide))
        sums = np.zeros(expected(x, y, **at).size // wide, "float32")
        more = {"rows": rows, "parameters": ("float *restrict sums",), "extra": (sums,)}
        calls.append(call("product", [x, y], at, **more))
    for one, (got,) in zip(calls, run_all(calls, threads)):
        want = expected(*one.inputs, **one.record.attrs)
        check(got, 2 * want, got.dtype, 100)
        sums = want.reshape(-1, want.shape[-1]).sum(1)
        np.testing.assert_allclose(one.extra[0], sums, rtol=1e-3, atol=1e-3)


def test_the_way_is_a_slot():
    x, y = arrays((20, 30), (30, 40), "float32")
    texts = []
    for how in ("rows", "panels"):
        with plugged("codegen.product", lambda p, dtype, how=how: how):
            one = call("product", [x, y], PLAIN)
        texts.append(one.kernel.source)
        check(run_all([one])[0][0], x @ y, x.dtype, 30)
    assert "panels_float(" in texts[1]
    assert "panels_float(" not in texts[0]


def test_large_products_are_the_librarys_if_its_vectors_are_as_wide(monkeypatch):
    at = {"x_perm": (0, 1), "y_perm": (0, 1), "out_perm": (0, 1)}
    specs = [Spec(s, np.dtype("float32")) for s in ((2048, 2048), (2048, 2048), (2048, 2048))]
    for core, vector, want in (
        ("Haswell", 64, "panels"), ("Haswell", 32, "blas"), ("Unknown", 16, "blas"),
        ("Unknown", 32, "panels"), ("SkylakeX", 64, "blas"), ("", 16, "panels"),
    ):  # fmt: skip
        monkeypatch.setattr(library, "core", lambda core=core: core)
        monkeypatch.setattr(library, "facts", lambda vector=vector: Facts(vector))
        assert choose_algorithm(product_of(*specs, **at), np.dtype("float32")) == want
        assert choose_algorithm(product_of(*specs, **at), np.dtype("float64")) == "panels"


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_slices_of_a_large_product(dtype, threads, monkeypatch):
    """Several slices of k, the last one shorter; epilogues wait for it."""
    small = facts()._replace(second=1 << 15, third=1 << 18)
    monkeypatch.setattr(product_plan, "facts", lambda: small)
    calls, wants = [], []
    with plugged("codegen.product", lambda p, dtype: "panels"):
        for (m, n, k), at in itertools.product([(90, 130, 300), (33, 97, 257)], ORDERS):
            xs, ys = (((a, b), (b, a))[at[f"{x}_perm"] == (1, 0)] for x, a, b in
                      (("x", m, k), ("y", k, n)))  # fmt: skip
            x, y = arrays(xs, ys, dtype)
            want = 2 * expected(x, y, **at)
            wide, T = want.shape[-1], ("float", "double")[dtype == "float64"]
            rows = lambda a, b, wide=wide: doubled(a, b).replace("WIDE", str(wide))
            more = {"rows": rows, "parameters": (f"{T} *restrict sums",)}
            start = np.ones(want.shape, dtype)
            sums = np.zeros(len(want), dtype)
            calls.append(call("product", [x, y], at, [start], (sums,), add=True, **more))
            wants.append(want + 2)
    assert "const int64_t terms" in calls[0].kernel.source
    for one, want, (got,) in zip(calls, wants, run_all(calls, threads)):
        check(got, want, got.dtype, 300)
        np.testing.assert_allclose(one.extra[0], want.sum(1) / 2, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("threads", [1, 2])
def test_what_lies_beyond_the_caches_is_fetched_ahead(dtype, threads, monkeypatch):
    """The next slice of k, where y is read in slices; else rows or columns far ahead."""
    small = facts()._replace(first=1 << 11, second=1 << 12)
    monkeypatch.setattr(product_plan, "facts", lambda: small)
    calls = []
    for m, (n, k), at in itertools.product((1, 3, 8, 13), [(130, 75), (600, 301)], (PLAIN, TURNED)):
        calls.append(call("product", arrays((m, k), (k, n) if at is PLAIN else (n, k), dtype), at))
    for one, (got,) in zip(calls, run_all(calls, threads)):
        m, n = one.record.shape
        sliced = one.record.attrs == PLAIN and m > 4
        assert (f" * {n} : 0)" in one.kernel.source) == sliced  # nothing after the last slice
        assert (", 0, 1);" in one.kernel.source) != sliced
        check(got, expected(*one.inputs, **one.record.attrs), got.dtype, 301)


@pytest.mark.parametrize("at", ORDERS)
def test_blas_is_called_with_the_right_leading_dimensions(at, blas):
    x, y = arrays((40, 40), (40, 40), "float32")
    rows = lambda a, b: doubled(a, b).replace("WIDE", "40")
    with plugged("codegen.product", lambda p, dtype: "blas"):
        sums = np.zeros(40, "float32")
        one = call("product", [x, y], at, rows=rows, parameters=("float *restrict sums",),
                   extra=(sums,))  # fmt: skip
    nothing = ctypes.CFUNCTYPE(None)(lambda: None)
    for threads, pointer in ((1, blas), (1, None), (2, ctypes.cast(nothing, ctypes.c_void_p))):
        # without the library, and beside other threads, the kernel does it itself
        check(run_all([one], threads, pointer)[0][0], 2 * expected(x, y, **at), x.dtype, 40)


@pytest.fixture
def blas():
    """The address of NumPy's own `cblas_sgemm`."""
    library = ctypes.CDLL(np._core._multiarray_umath.__file__)
    function = getattr(library, "scipy_cblas_sgemm64_", None)
    if function is None:
        pytest.skip("this NumPy has no OpenBLAS of its own")
    return ctypes.cast(function, ctypes.c_void_p)


@on_each_processor
@pytest.mark.parametrize("half", ["bfloat16", "float16"])
def test_floats_by_a_matrix_of_half_precision(processor, half):
    """It is widened as it is read, as it is packed, or before; if constant, packed as it is."""
    calls, sizes = (
        [],
        [(1, 70, 67), (2, 600, 130), (7, 65, 70), (40, 33, 9), (5, 300, 1), (9, 1, 50)],
    )
    with target_processor(processor):
        for (m, k, n), attrs, side, constant in itertools.product(sizes, ORDERS, (0, 1), (0, 1)):
            shapes = [(m, k), (k, n)]
            perms = attrs["x_perm"], attrs["y_perm"]
            shapes = [s[::-1] if perm == (1, 0) else s for s, perm in zip(shapes, perms)]
            given = arrays(*shapes, "float32")
            given[side] = given[side].astype(half)
            calls.append(call("product", given, attrs, constant=[side] * constant))
    texts = [one.kernel.source for one in calls if one.kernel.prepack]
    assert sum("const float *panels" in text for text in texts) < len(texts)
    for one, (got,) in zip(calls, run_all(calls, flags=flags_for(processor)), strict=True):
        check(got, expected(*one.inputs, **one.record.attrs), "float32", 600)
