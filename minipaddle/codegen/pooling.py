"""C text of pooling with the channels last: by vectors of channels, for each window its pixels."""

from __future__ import annotations

from string import Template

from ..engine.codegen.frame import Frame
from ..engine.codegen.kernel import Kernel, emits
from ..engine.codegen.scalar import CannotWrite
from . import gemm
from .matmul import PARALLEL, indented

SERIAL = 30_000
"""Values met below which a second thread costs more than it brings."""

LARGER = Template("""\
/* The larger of each two lanes; NaN if either is. */
INLINE vector_$T larger_$T(vector_$T a, vector_$T b)
{
    typedef __typeof__(a < b) mask;
    const mask take = (b > a) | (b != b);
    return (vector_$T)(((mask)b & take) | ((mask)a & ~take));
}
INLINE vector_$T where_$T(__typeof__((vector_$T){0} < (vector_$T){0}) here, vector_$T x)
{
    return (vector_$T)(here & (__typeof__(here))x);
}
""")


def three(sizes, one) -> tuple:
    """Sizes of one, two or three axes, as of three."""
    return (*(one,) * (3 - len(sizes)), *sizes)


class Pool:
    """The loops over images, windows and channels; `image` is the large one's spec."""

    def __init__(self, frame: Frame, image, small):
        self.frame, self.T = frame, frame.T
        self.windows = three(frame.record.attrs["windows"], (1, 1, 0, 1))
        if image.ndim > 5:
            raise CannotWrite("pooling in more than three dimensions")
        self.n, self.c = image.shape[0], image.shape[-1]
        self.size = three(image.shape[1:-1], 1)
        self.out = tuple(out for *_, out in self.windows)
        pixels = self.out[0] * self.out[1] * self.out[2]
        taps = self.windows[0][0] * self.windows[1][0] * self.windows[2][0]
        self.work, self.pixels = self.n * pixels * taps * self.c, pixels

    def load(self, pointer: str, part: bool) -> str:
        return f"load_part_{self.T}({pointer}, left)" if part else f"load_{self.T}({pointer})"

    def store(self, pointer: str, value: str, part: bool) -> str:
        if part:
            return f"store_part_{self.T}({pointer}, left, {value});\n"
        return f"store_{self.T}({pointer}, {value});\n"

    def taps(self, inside: str, outside: str = "") -> str:
        """A loop over the pixels of a window: `at` is where the pixel's channels are."""
        (kd, *_), (kh, *_), (kw, *_) = self.windows
        d, h, w = self.size
        other = outside + "continue;"
        test = f"if (d < 0 || d >= {d} || h < 0 || h >= {h} || w < 0 || w >= {w}) {{ {other} }}\n"
        return (
            f"for (int64_t t = 0; t < {kd * kh * kw}; t++) {{\n"
            f"    const int64_t d = first_d + t / {kh * kw}, h = first_h + t / {kw} % {kh}, "
            f"w = first_w + t % {kw};\n"
            f"    {test}"
            f"    const int64_t at = (((n * {d} + d) * {h} + h) * {w} + w) * {self.c} + c;\n"
            f"{indented(inside, 4)}}}\n"
        )

    def kernel(self, channels, clear: str = "", before: str = "", more=()) -> Kernel:
        """The kernel: `channels(part)` is the text for the channels from c on, at window `to`."""
        frame, c = self.frame, self.c
        names = ("d", "h", "w")
        starts = "".join(
            f"const int64_t first_{a} = {index} * {s} - {low};\n"
            for a, index, (_, s, low, _) in zip(names, self.index(), self.windows)
        )
        lanes = f"LANES_{self.T}"
        loops = (
            f"int64_t c = 0;\nfor (; c + {lanes} <= {c}; c += {lanes}) {{\n"
            f"    const int64_t to = (n * {self.pixels} + p) * {c} + c;\n"
            f"{indented(channels(False), 4)}}}\n"
            f"if (c < {c}) {{\n    const int64_t left = {c} - c;\n"
            f"    const int64_t to = (n * {self.pixels} + p) * {c} + c;\n"
            f"{indented(channels(True), 4)}}}\n"
        )
        body = f"for (int64_t p = 0; p < {self.pixels}; p++) {{\n"
        body += f"{indented(starts + before + loops, 4)}}}\n"
        pragma = "    " + PARALLEL if self.work > SERIAL and self.n > 1 else ""
        text = f"{pragma}    for (int64_t n = 0; n < {self.n}; n++) {{\n"
        text += f"{indented(clear + body, 8)}    }}\n"
        helpers = (*gemm.vectors(self.T), LARGER.substitute(T=self.T), *more)
        return frame.kernel(text, helpers)

    def index(self) -> tuple[str, str, str]:
        """Which window number p is, axis by axis."""
        _, oh, ow = self.out
        return f"(p / {oh * ow})", f"(p / {ow} % {oh})", f"(p % {ow})"

    def clear(self) -> str:
        """C text: the large image is zero."""
        size = self.size[0] * self.size[1] * self.size[2] * self.c
        return f"memset({self.frame.target} + n * {size}, 0, {size} * sizeof({self.T}));\n"


@emits("max_pool_last")
def emit_max(record, name, rows=None, parameters=()) -> Kernel:
    """The kernel of `max_pool_last`."""
    frame = Frame(record, name, rows, parameters)
    if not frame.out.size:
        return frame.kernel("")
    pool, T = Pool(frame, record.inputs[0].spec, record.spec), frame.T
    x = frame.names[0]

    def channels(part):
        met = f"best = larger_{T}(best, {pool.load(f'{x} + at', part)});\n"
        return (
            f"vector_{T} best = (vector_{T}){{0}} - ({T})INFINITY;\n"
            + pool.taps(met) + pool.store(f"{frame.target} + to", "best", part)
        )  # fmt: skip

    return pool.kernel(channels)


def chosen(pool: Pool, x: str, y: str, part: bool, inside: str) -> str:
    """C text: for each pixel of a window, `here` is where the maximum y stands there: the first
    of equal ones. Outside the image there is -inf."""
    T = pool.T
    beyond = f"free &= ~(y == -({T})INFINITY); "
    met = f"const mask here = free & ({pool.load(f'{x} + at', part)} == y);\n"
    return (
        f"const vector_{T} y = {pool.load(f'{y} + to', part)};\n"
        "typedef __typeof__(y == y) mask;\nmask free = y == y;\n"
        + pool.taps(met + "free &= ~here;\n" + inside, beyond)
    )


@emits("max_pool_last_grad")
def emit_max_grad(record, name, rows=None, parameters=()) -> Kernel:
    """The kernel of `max_pool_last_grad`."""
    frame = Frame(record, name, rows, parameters)
    g, x, y = frame.names
    pool = Pool(frame, record.spec, record.inputs[0].spec)

    def channels(part):
        place = f"{frame.target} + at"
        total = f"{pool.load(place, part)} + where_{pool.T}(here, g)"
        g_text = f"const vector_{pool.T} g = {pool.load(f'{g} + to', part)};\n"
        return g_text + chosen(pool, x, y, part, pool.store(place, total, part))

    return pool.kernel(channels, pool.clear())


@emits("max_pool_last_take")
def emit_max_take(record, name, rows=None, parameters=()) -> Kernel:
    """The kernel of `max_pool_last_take`."""
    frame = Frame(record, name, rows, parameters)
    u, x, y = frame.names
    if not frame.out.size:
        return frame.kernel("")
    pool = Pool(frame, record.inputs[1].spec, record.spec)

    def channels(part):
        met = f"total += where_{pool.T}(here, {pool.load(f'{u} + at', part)});\n"
        start = f"vector_{pool.T} total = {{0}};\n"
        done = pool.store(f"{frame.target} + to", "total", part)
        return start + chosen(pool, x, y, part, met) + done

    return pool.kernel(channels)


def share(pool: Pool, image) -> str:
    """C text: `share`, 1 / how many pixels a window counts."""
    attrs, T = pool.frame.record.attrs, pool.T
    if attrs["divisor"]:
        return f"const {T} share = 1 / ({T}){attrs['divisor']};\n"
    text, sizes = "", []
    axes = zip("dhw", pool.windows, pool.size)
    real = 3 - len(attrs["windows"])  # axes of the image before these count one pixel
    for k, (a, (size, _, low, _), n) in enumerate(axes):
        if k < real:
            continue
        end = n + (0 if attrs["exclusive"] else low)
        begin = f"(first_{a} > 0 ? first_{a} : 0)" if attrs["exclusive"] else f"first_{a}"
        stop = f"(first_{a} + {size} < {end} ? first_{a} + {size} : {end})"
        text += f"const int64_t pixels_{a} = {stop} - {begin};\n"
        sizes.append(f"({T})(pixels_{a} > 1 ? pixels_{a} : 1)")
    return text + f"const {T} share = 1 / ({' * '.join(sizes)});\n"


@emits("avg_pool_last")
def emit_avg(record, name, rows=None, parameters=()) -> Kernel:
    """The kernel of `avg_pool_last`."""
    frame = Frame(record, name, rows, parameters)
    if not frame.out.size:
        return frame.kernel("")
    image = record.inputs[0].spec
    pool = Pool(frame, image, record.spec)

    def channels(part):
        met = f"total += {pool.load(f'{frame.names[0]} + at', part)};\n"
        done = pool.store(f"{frame.target} + to", "total * share", part)
        return f"vector_{pool.T} total = {{0}};\n{pool.taps(met)}{done}"

    return pool.kernel(channels, before=share(pool, image))


@emits("avg_pool_last_grad")
def emit_avg_grad(record, name, rows=None, parameters=()) -> Kernel:
    """The kernel of `avg_pool_last_grad`."""
    frame = Frame(record, name, rows, parameters)
    pool = Pool(frame, record.spec, record.inputs[0].spec)

    def channels(part):
        place = f"{frame.target} + at"
        met = pool.store(place, f"{pool.load(place, part)} + g", part)
        g = pool.load(f"{frame.names[0]} + to", part)
        return f"const vector_{pool.T} g = {g} * share;\n{pool.taps(met)}"

    return pool.kernel(channels, pool.clear(), share(pool, record.spec))
