"""Kernels for VNNI and BF16: their instructions emulated, and found in the compiler's assembly."""

import itertools
import platform
import re
import subprocess
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import minipaddle as paddle
from minipaddle import nn
from minipaddle.codegen import machine
from minipaddle.codegen.convolutions import integer_convolution
from minipaddle.codegen.machine import facts, target_processor
from minipaddle.codegen.products import grouped_tiles, microkernel
from minipaddle.engine.codegen.translation_unit import with_prologue
from tests.codegen import test_integer_products as whole
from tests.codegen import test_product as product
from tests.codegen.compiling import (
    FLAGS,
    STRICT,
    call,
    file_of,
    flags_for,
    needs_gcc,
    on_each_processor,
    run_all,
)
from tests.codegen.test_convolution import calls_of, oracle, three
from tests.processors import processors

pytestmark = [
    needs_gcc,
    pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="flags of x86"),
]
EMULATED = (*FLAGS, "-include", str(Path(__file__).with_name("few_bits.h")))
WAYS = {"emulated": EMULATED, **{name: flags_for(name) for name in processors()}}
"""Flags to compile kernels of VNNI and BF16 with: with their instructions, or without."""
in_all_ways = pytest.mark.parametrize("flags", WAYS.values(), ids=WAYS)
SIZES = [(8, 2, 3), (9, 33, 70), (50, 130, 32), (97, 7, 65)]


def test_a_processor_by_its_name():
    with target_processor("x86-64-v3"):
        assert (facts().vector, facts().registers, facts().vnni, facts().bf16) == (
            32, 16, False, False)  # fmt: skip
    with target_processor("icelake-server"):
        assert (facts().vector, facts().vnni, facts().bf16) == (64, True, False)
    with target_processor("cooperlake"):
        assert (facts().bf16, facts().amx) == (True, False)
    with target_processor("sapphirerapids"):
        assert (facts().bf16, facts().amx) == (True, True)
    with pytest.raises(ValueError, match="no processor is called 'z80'"):
        target_processor("z80")


@in_all_ways
def test_four_bytes_at_once_make_the_same_sums(flags):
    """The kernels of VNNI, also compiled for processors without it."""
    with target_processor("icelake-server"):
        some = whole.calls()
    assert sum("uint8_t wide" in one.kernel.source for one in some) > 5
    assert not any("winograd" in one.kernel.source for one in some)
    whole.check(some, flags=flags)


@in_all_ways
def test_tiles_of_the_processor_make_the_same_sums(flags):
    """AMX, also compiled for processors without it; rows of 64 terms are read as they lie."""
    at = dict(zip(whole.NAMES, ((1, 1), ((0, 0), (0, 0)), (1, 1), 1), strict=True))
    with target_processor("sapphirerapids"):
        some = whole.calls()
        for m, k, n in [(8, 64, 3), (33, 64, 40), (17, 128, 31), (130, 192, 64)]:
            arrays = whole.bytes_of((m, k)), whole.bytes_of((k, n))
            some += [call("product_integer", arrays, product.PLAIN, constant=c) for c in ([], [1])]
        arrays = whole.bytes_of((2, 9, 5, 64)), whole.bytes_of((1, 1, 64, 70))
        some.append(call("conv_last_integer", arrays, at, constant=[1]))
    assert sum("integer_rows_tiles(" in one.kernel.source for one in some) > 14
    assert sum("wide, " not in one.kernel.source for one in some[-9:]) == 9
    whole.check(some, flags=flags)
    whole.check(some, threads=2, flags=flags)


@in_all_ways
def test_winograds_sums_of_two_products_at_once_are_exact(flags):
    with target_processor("icelake-server"):
        some = whole.tiled_calls()
    assert all("integer_panel_twos(" in one.kernel.source for one in some)
    whole.check(some, flags=flags)


@pytest.mark.parametrize(
    ("name", "size", "channels", "tiled"),
    [("icelake-server", 56, 64, True), ("icelake-server", 7, 512, False),
     ("sapphirerapids", 56, 64, False)],
)  # fmt: skip
def test_when_winograd_beats_several_bytes_at_once(name, size, channels, tiled):
    """Not where its kernels, eight times as large, are read for a few pixels, and not the tiles of
    the processor.
    """
    at = dict(zip(whole.NAMES, ((1, 1), ((1, 1), (1, 1)), (1, 1), 1), strict=True))
    x, w = np.zeros((1, size, size, channels), "int8"), np.zeros((3, 3, channels, channels), "int8")
    with target_processor(name):
        one = call("conv_last_integer", [x, w], at, constant=[1])
    assert ("integer_winograd_input_4(" in one.kernel.source) == tiled


def behind_a_relu() -> list:
    """Products and convolutions of bytes from 0 to 127, as the emitters believe."""
    rng, some = np.random.default_rng(0), []
    for m, k, n in SIZES:
        x, y = (
            rng.integers(low, 128, s).astype("int8") for low, s in ((0, (m, k)), (-128, (k, n)))
        )
        some.append(call("product_integer", [x, y], product.PLAIN))
        least = [np.full_like(x, 127), np.full_like(y, -128)]
        some.append(call("product_integer", least, product.PLAIN, constant=[1]))
        x = x.copy()
        x[-1, -1] = -128  # NaN became it: the block is multiplied in plain C
        some.append(call("product_integer", [x, y], product.PLAIN))
    at = dict(zip(whole.NAMES, ((2, 1), ((1, 1), (0, 2)), (1, 1), 1), strict=True))
    for channels in (4, 5):
        image = rng.integers(0, 128, (2, 7, 9, channels)).astype("int8")
        kernel = rng.integers(-128, 128, (3, 2, channels, 21)).astype("int8")
        some.append(call("conv_last_integer", [image, kernel], at))
    return some


@pytest.mark.parametrize(
    ("processor", "form"), [("x86-64-v3", "bytes"), ("x86-64", "bytes"), ("cooperlake", "fours")]
)
def test_the_form_behind_a_relu(processor, form, monkeypatch):
    monkeypatch.setattr(grouped_tiles, "is_known_unsigned", lambda edge: True)
    with target_processor(processor):
        some = behind_a_relu()
    assert all(f"integer_rows_{form}(" in one.kernel.source for one in some)


@on_each_processor
def test_four_bytes_behind_a_relu(processor, monkeypatch):
    """The largest of both sides, too, whose pairs of products just fit int16."""
    monkeypatch.setattr(grouped_tiles, "is_known_unsigned", lambda edge: True)
    with target_processor(processor):
        some = behind_a_relu()
    whole.check(some, flags=flags_for(processor))


WINDOWS = [  # channels, kernel, stride, padding, dilation
    (32, (3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1)),
    (37, (2, 2), (2, 1), ((0, 1), (0, 0)), (1, 2)),
    (80, (5, 3), (1, 2), ((2, 1), (0, 2)), (1, 1)),
    (64, (1, 2), (1, 1), ((0, 0), (0, 0)), (1, 1)),
]


@on_each_processor
def test_four_taps_behind_a_relu(processor, monkeypatch):
    """Depthwise: whole windows and parts of them, the largest of both sides, a negative number."""
    monkeypatch.setattr(integer_convolution, "is_known_unsigned", lambda edge: True)
    rng, some = np.random.default_rng(0), []
    for channels, window, *how in WINDOWS:
        at = dict(zip(whole.NAMES, (*how, channels), strict=True))
        x = rng.integers(0, 128, (2, 7, 9, channels)).astype("int8")
        w = rng.integers(-128, 128, (*window, 1, channels)).astype("int8")
        negative = x.copy()
        negative[1, 3, 4, -1] = -128  # NaN became it
        largest = np.full_like(x, 127), np.full_like(w, -128)
        with target_processor("x86-64-v3"):
            some += [call("conv_last_integer", [x, w], at, constant=c) for c in ([], [1])]
            some += [call("conv_last_integer", [*xs], at) for xs in (largest, (negative, w))]
    assert all("int8_t *kernels" in one.kernel.source for one in some)
    whole.check(some, flags=flags_for(processor))


def halves(*shapes) -> list:
    """Random arrays of bfloat16."""
    rng = np.random.default_rng(0)
    return [rng.normal(size=s).astype(ml_dtypes.bfloat16) for s in shapes]


PAIRED = [(8, 2, 3), (50, 130, 70), (98, 1026, 65), (33, 64, 84)]
of_each_kind = pytest.mark.parametrize("name", ["cooperlake", "sapphirerapids"])
"""Processors that multiply pairs in vectors, and in tiles."""


def products(name: str, op: str = "wide_product", sizes=PAIRED) -> list:
    """Products of bfloat16 in each order of axes, and with a constant right side, for a
    processor."""
    some = []
    for (m, k, n), order, constant in itertools.product(sizes, product.ORDERS, ([], [1])):
        perms = order["x_perm"], order["y_perm"]
        shapes = [s[::-1] if perm == (1, 0) else s for s, perm in zip(((m, k), (k, n)), perms)]
        with target_processor(name):
            some.append(call(op, halves(*shapes), order, constant=constant))
    return some


def check_products(some, flags, rounding=0.0) -> None:
    """Within the bound of a float32 sum, and of one rounding of the result."""
    for one, (got,) in zip(some, run_all(some, flags=flags), strict=True):
        at = one.record.attrs
        x, y = (a.astype("float64").transpose(at[f"{k}_perm"]) for a, k in zip(one.inputs, "xy"))
        sums, sizes = ((f(x) @ f(y)).transpose(at["out_perm"]) for f in (np.asarray, abs))
        bound = x.shape[1] * 2.0**-24 * sizes + rounding * abs(sums)
        assert np.all(abs(got.astype("float64") - sums) <= bound)


@pytest.mark.sweep(one_in=5)
@in_all_ways
@of_each_kind
def test_pairs_of_halves(name, flags):
    some = products(name)
    used = [one for one in some if "_pairs(" in one.kernel.source]
    assert len(used) > len(some) / 2
    assert all((" tiled_pairs(" in one.kernel.source) == (name != "cooperlake") for one in used)
    assert all(one.record.dtype == np.float32 for one in some)
    check_products(some, flags)


@in_all_ways
@of_each_kind
def test_pairs_whose_sums_are_rounded(name, flags):
    some = products(name, "product", PAIRED[1:2])
    assert any("_pairs(" in one.kernel.source for one in some)
    check_products(some, flags, rounding=2.0**-8)


def test_halves_without_pairs():
    """An odd number of terms, rows that begin in the middle of a pair, few rows."""
    some = products("sapphirerapids", sizes=[(9, 33, 70), (2, 34, 70), (9, 34, 1)])
    check_products(some, EMULATED)


ONE, EVEN, NONE = (1, 1), ((1, 1), (1, 1)), ((0, 0), (0, 0))
CONVOLUTIONS = [
    *three((7, 8), (3, 3), ONE, EVEN, ONE, channels=6, outs=10),
    *three((17, 16), (3, 3), (2, 2), EVEN, ONE, batch=3, channels=16, outs=32),
    *three((16, 16), (3, 2), (2, 2), EVEN, ONE, batch=5, channels=12, outs=34),
    *three((16, 16), (1, 1), ONE, NONE, ONE, batch=5, channels=24, outs=34),
    *three((16, 16), (1, 1), (2, 2), NONE, ONE, batch=5, channels=24, outs=34),
    *three((90, 1), (5, 1), (2, 1), ((3, 1), (0, 0)), (2, 1), channels=20, outs=30),  # a column
    *three((9, 900), (7, 3), ONE, EVEN, ONE, batch=2, channels=64, outs=2),  # beyond the stack
    *three((11, 10), (5, 4), (3, 2), ((2, 1), (0, 3)), ONE, channels=8, outs=66),
    *three((8, 10), (3, 3), ONE, EVEN, ONE, channels=5, outs=7),  # the last one and a zero
    *three((9, 8), (3, 2), (2, 1), EVEN, ONE, channels=1, outs=33),
    *three((12, 12), (3, 3), ONE, NONE, ONE, batch=2, channels=3, outs=65),
    *three((8, 9), (3, 3), ONE, EVEN, ONE, channels=5, outs=7),  # an odd number of pixels
    *three((8, 9), (3, 3), ONE, EVEN, ONE, channels=17, outs=7),
    *three((11, 13), (3, 4), (3, 2), ((2, 1), (0, 3)), (2, 3), channels=20, outs=34),
]


@pytest.mark.sweep(one_in=5)
@in_all_ways
@of_each_kind
def test_convolutions_of_pairs(name, flags):
    """Of channels, or of pixels for a weight's gradient; kernels may be packed before the run."""
    with target_processor(name):
        some = list(calls_of(CONVOLUTIONS, np.dtype(ml_dtypes.bfloat16)))
        forward = [one for one in some if one.record.op.name == "conv_last"]
        some += [call("conv_last", one.inputs, one.record.attrs, constant=[1]) for one in forward]
    assert sum("_pairs(" in one.kernel.source for one in some) > len(some) / 2
    assert any("turn_pairs(" in one.kernel.source for one in some) == (name != "cooperlake")
    for threads in (1, 2):
        for one, (got,) in zip(some, run_all(some, threads, flags=flags), strict=True):
            op, inputs = one.record.op.name, [a.astype("float64") for a in one.inputs]
            sums, sizes = (oracle(op, *map(f, inputs), one.record.attrs) for f in (np.asarray, abs))
            bound = 2.0**-8 * abs(sums) + 2.0**-16 * sizes
            assert np.all(abs(got.astype("float64") - sums) <= bound)


def test_mixed_precision_multiplies_halves(monkeypatch):
    """A step multiplies what is stored in bfloat16, forward and backward; what it returns is the
    interpreter's up to the order of float32 sums.
    """
    paddle.seed(0)
    net, x = nn.Sequential(nn.Linear(40, 70), nn.ReLU(), nn.Linear(70, 34)), paddle.randn([50, 40])
    with target_processor("sapphirerapids"):
        known = facts()
    monkeypatch.setattr(machine, "facts_here", lambda: known)

    def step(x):
        with paddle.amp.auto_cast(dtype="bfloat16"):
            loss = (net(x) ** 2).mean()
        return loss, *paddle.grad(loss, net.parameters())

    found = []
    for backend in ("native", "interpreter"):
        run = paddle.jit.to_static(step, backend=backend)
        found.append([y.numpy() for y in run(x)])
        if backend == "native":
            assert run.executables[0].source.own.count("from bfloat16") == 5
    for got, want in zip(*found, strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-2, atol=1e-3 * abs(want).max())


@pytest.mark.parametrize("name", ["x86-64-v4", "icelake-server", "sapphirerapids"])
def test_kernels_compile_for_processors_that_are_not_here(name, tmp_path):
    """Without a warning; nothing of it is run."""
    with target_processor(name):
        some = [*whole.calls()[4::3], *products(name)[4:12]]
    (tmp_path / "k.c").write_text(file_of([one.kernel for one in some]))
    command = ["gcc", *flags_for(name), *STRICT, "-c", "k.c"]
    subprocess.run(command, cwd=tmp_path, check=True)


def test_other_processors_multiply_halves_as_floats():
    assert not any("pairs" in one.kernel.source for one in products("x86-64-v3"))


@pytest.mark.parametrize(
    ("form", "name", "instruction"),
    [(grouped_tiles.FOURS, "icelake-server", "vpdpbusd"),
     (grouped_tiles.TWOS, "icelake-server", "vpdpwssd"),
     (grouped_tiles.PAIRS, "x86-64-v3", "vpmaddwd")],
)  # fmt: skip
def test_the_inner_loop_of_a_tile(form, name, instruction, tmp_path):
    """It has a multiplication for each of the tile's vectors, and no access to the stack."""
    use = f"void use(const {form.A} *a, const {form.B} *b, int32_t *c, long k)\n"
    use += f"{{ integer_panel_{form.F}({form.rows}, {form.panel}, k, a, 4 * k, b, c, 64); }}\n"
    check_loop(form.tile, use, name, instruction, 2 * form.rows, tmp_path)


def test_the_inner_loop_of_pairs(tmp_path):
    use = "void use(const pairs *a, const pairs *b, float *c, long k)\n"
    use += "{ rows8_pairs(8, 32, k, 1, a, k, 1, 0, b, 32, 0, 32 * k, c, 32, 0, 0, 0, 0); }\n"
    with target_processor("cooperlake"):
        helpers = microkernel.blocks(use)
    check_loop(helpers, use, "cooperlake", "vdpbf16ps", 16, tmp_path)


def check_loop(helpers, use: str, name: str, instruction: str, count: int, folder) -> None:
    """A loop of what `use` calls has so many of these instructions, and does not use the stack."""
    text = with_prologue(["#include <stdint.h>\n#include <string.h>", *helpers])
    (folder / "tile.c").write_text(text + use)
    done = subprocess.run(
        ["gcc", *flags_for(name), "-S", "-o", "-", str(folder / "tile.c")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    loops = re.findall(r"^(\.L\d+):\n((?:(?!^\.L).*\n)*?)\tj\w+\t\1\n", done.stdout, re.MULTILINE)
    counts = {body.count(instruction): body for _, body in loops}
    assert count in counts
    assert "rsp" not in counts[count]
