"""Do two runs of a program give the same? And what is left open, so that both may be right?

What is open is said in one place, by `Noisy`: an interpreter that decides it otherwise, at random.
Results may lie as far from the interpreter's as some of its runs do, twenty times over.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from minipaddle.core.dtype import HALVES
from minipaddle.eager.device import NUMPY, QUIET
from minipaddle.ir.interpreter import Run
from minipaddle.ir.program import ITEM, NUMBER, Program
from minipaddle.ops import channels_last as last
from minipaddle.ops import conv, norm, pooling, reduction
from minipaddle.ops.elementwise import add, cast, subtract
from tests.jit.fuzz_compare import alike
from tests.near import room

RUNS = 200
"""Of the noisy interpreter, at most."""
ROUNDING = {"float64": 2e-15, "float32": 1e-6, "bfloat16": 8e-3, "float16": 1e-3}
UNITS = [1, 1 / 12]
"""Of it; the second is one bit: tanh(9.4) is 1, or the float before it."""


class Outcome(NamedTuple):
    """What a run gave: its results, or what it raised; and what it printed."""

    results: list
    error: Exception | None
    printed: str


def outcome(run: Callable, program: Program, arrays) -> Outcome:
    """What `run` makes of a program; the arrays stay as they are."""
    printed, own = io.StringIO(), [np.array(a) for a in arrays]
    try:
        with contextlib.redirect_stdout(printed):
            found = QUIET.copy().run(run, program, own)
    except Exception as error:
        spoilt = any(a.tobytes() != b.tobytes() for a, b in zip(arrays, own, strict=True))
        changed = AssertionError("a run that failed has changed what it was given")
        return Outcome([], changed if spoilt else error, printed.getvalue())
    return Outcome([np.array(x) for x in found], None, printed.getvalue())


# ---- what is left open -----------------------------------------------------------------------

ROUNDED = {
    "exp", "expm1", "log", "log1p", "log2", "log10", "sin", "cos", "tan", "sinh", "cosh", "tanh",
    "arcsin", "arccos", "arctan", "arctan2", "arcsinh", "arccosh", "arctanh", "hypot", "logaddexp",
    "erf", "erfinv", "i0e", "i1e", "digamma", "gammaln", "zeta", "gammainc", "gammaincc", "sinc",
}  # fmt: skip
"""What libraries compute differently in the last bits."""
ADDING = {"sum", "matmul", "einsum"}
"""What adds up, in any order."""
SUMS = (
    reduction.sum, reduction.mean,
    norm.standardize, norm.standardize_grad, norm.scale_grad, pooling.avg_pool,
)  # fmt: skip
"""What does so without these; x·f - mean·f too is a sum whose terms may cancel."""
PAIRS = {np.maximum, np.minimum, np.fmax, np.fmin}
CHOOSING = {"maximum", "minimum", "fmax", "fmin", "max", "min"}
AROUND = (
    conv.conv, conv.conv_input_grad, conv.conv_weight_grad,
    last.conv_last, last.conv_last_input_grad, last.conv_last_weight_grad,
)  # fmt: skip


class Noisy(Run):
    """An interpreter that decides at random what nothing says:

    - how floats are rounded, also inside an operator: x - tanh(x) of a small x is nothing but that;
      whether what is nearly too small to be a float is 0, and what is left of two numbers that
      differ by their rounding;
    - whether a half is rounded (in every other run): it is stored so, but a kernel that has just
      computed it goes on with its float32, a cast to a half included;
    - the sign of a NaN; that of a zero which a maximum or a minimum chose among zeros, or that was
      a whole number (GCC makes trunc(x) of (float)(int)x);
    - what a NaN or an infinity is as a whole number: C leaves it open;
    - whether the zeros around an image are multiplied by weights that are not finite, or left out.
      PyTorch with oneDNN leaves them out, without it and Paddle on the CPU multiply in `conv` and
      in the weight's gradient, and leave them out in the image's.
    """

    def __init__(self, seed: int):
        super().__init__(Functions(self))
        self.rng, self.wide = np.random.default_rng(seed), seed % 2 == 1
        self.often = self.rng.choice([1.0, 0.5, 0.1])  # noise early on may hide what it does later

    def __call__(self, program, arrays):
        self.begin(program, arrays)
        values = dict(zip(program.given, map(self.noisy, arrays), strict=True))

        def value(r):
            return r.attrs["value"] if r.op is NUMBER else self.seen(values[r], r.dtype)

        for record in program.records:
            given = [*map(value, record.inputs)]
            y = self.compute(program, record, given)
            if record.op is not ITEM and not record.op.view:
                several = type(y) is tuple
                y = tuple(self.rounded(x, given) for x in y) if several else self.rounded(y, given)
            values[record] = y
        return [self.number(stored(value(r), r)) for r in program.results]

    def compute(self, program, record, given):
        if record.op in SUMS:
            y = self.added(lambda *x: Run.compute(self, program, record, x), *given)
            if record.op is not norm.standardize:
                return y
            x, weight, bias, mean, *rest = given  # nothing cancels with the mean's sign turned
            sizes = [abs(x), abs(weight), abs(bias), -abs(mean), *rest]
            return self.cancelled(y, lambda: Run.compute(self, program, record, sizes))
        y = super().compute(program, record, given)
        if record.op is cast:
            return self.open(y, *given)
        if record.op in (add, subtract):
            return self.cancelled(y, lambda: np.maximum(*map(np.abs, given)))
        if record.op in AROUND and not np.isfinite(y).all() and self.rng.random() < 0.5:
            return without_zeros(record, *given).astype(y.dtype)
        return y

    def seen(self, x, dtype):
        """What a record finds: of a half the float32, rounded or not."""
        if not self.wide or dtype not in HALVES:
            return x
        wide = np.asarray(x).astype("float32")
        return wide if self.rng.random() < 0.5 else wide.astype(dtype).astype("float32")

    def added(self, function, *given, **options):
        """A sum in another order: its terms may be far larger than what is left of them."""

        def each(f):
            return [f(x) if hasattr(x, "dtype") else x for x in given]

        y = function(*(each(self.noisy) if self.rng.random() < 0.5 else given), **options)
        return self.cancelled(y, lambda: function(*each(np.abs), **options))

    def cancelled(self, y, size):
        """A sum of terms of `size()` without what is no more than rounding, in every other run."""
        if y.dtype.name not in ROUNDING or self.rng.random() < 0.5:
            return y
        return np.where(np.abs(y) <= 4 * ROUNDING[y.dtype.name] * size(), y * 0, y)

    def open(self, y, x):
        """A cast as far as C says what it gives."""
        x = np.asarray(x)
        if y.dtype.kind in "iu" and x.dtype.name in ROUNDING and not np.isfinite(x).all():
            raise ValueError("a NaN, or infinity, as a whole number")
        if x.dtype.kind in "iub" and y.dtype.name in ROUNDING:
            return self.signed(y, y == 0)
        return x if self.wide and y.dtype in HALVES and x.dtype == np.float32 else y

    def signed(self, y, at):
        """Any sign in some places."""
        if not at.any():
            return y
        return np.where(at, np.copysign(y, self.drawn([-1.0, 1.0], y).astype(y.dtype)), y)

    def drawn(self, values, y):
        """One of the values for each element, or the same one for all."""
        return self.rng.choice(values, y.shape if self.rng.random() < 0.5 else (1,) * y.ndim)

    def rounded(self, y, given):
        """A result, noisy where it was computed: what is one of the values given was chosen."""
        y = np.asarray(y)
        if y.dtype.name not in ROUNDING:
            return y
        floats = (x for x in map(np.asarray, given) if x.dtype.name in ROUNDING)
        values = np.concatenate([[], *(np.ravel(x).astype("f8") for x in floats)])
        chosen = np.isin(y.astype("f8"), values)
        return np.where(chosen, y, self.noisy(y))

    def noisy(self, x):
        x = np.asarray(x)
        if x.dtype.name not in ROUNDING or self.rng.random() > self.often:
            return x
        tiny = np.abs(x) < 4 * np.finfo("float64" if x.dtype == np.float64 else "float32").tiny
        x = np.where(tiny & (self.rng.random(x.shape) < 0.5), x * 0, x)  # e^-90 may be 0
        by = 1 + self.rng.choice(UNITS) * ROUNDING[x.dtype.name] * self.drawn([-1.0, 0.0, 1.0], x)
        wide = "float64" if x.dtype == np.float64 else "float32"
        y = np.asarray(x.astype(wide) * by.astype(wide)).astype(x.dtype)
        return self.signed(y, np.isnan(y))


class Functions:
    """NumPy for the bodies of operators, noisy where libraries differ."""

    def __init__(self, run: Noisy):
        self.run = run

    def __getattr__(self, name):
        function = getattr(NUMPY, name)
        if name in ROUNDED:
            return self.rounding(function)
        if name in ADDING:
            return partial(self.run.added, function)
        return self.choosing(function) if name in CHOOSING else function

    def rounding(self, function):
        def rounded(*given, out=None, **options):
            y = function(*given, **options)
            y = self.run.noisy(y) if self.run.rng.random() < 0.5 else y  # erf(-9) is -1 often
            if out is None:
                return y
            out[...] = y
            return out

        return rounded

    def choosing(self, function):
        def chosen(*given, **options):
            y = np.asarray(function(*given, **options))
            if y.dtype.name not in ROUNDING:
                return y
            zeros = (given[0] == 0) & (given[1] == 0) if function in PAIRS else y == 0
            return self.run.signed(y, zeros)

        return chosen


def stored(x, record):
    return np.asarray(x).astype(record.dtype) if record.dtype in HALVES else x


def without_zeros(record, a, b):
    """A convolution, or an adjoint, of pairs that are there: no 0·∞ around an image."""
    a, b = (np.asarray(x, "float64") for x in (a, b))
    inf = np.inf

    def times(x, y):
        return record.op.evaluate(NUMPY, [np.asarray(x, "f8"), np.asarray(y, "f8")], record.attrs)

    def meet(*pairs):
        return sum(times(x, y) for x, y in pairs) > 0.5

    everywhere = np.ones_like
    plus = meet((a == inf, b > 0), (a == -inf, b < 0), (a > 0, b == inf), (a < 0, b == -inf))
    minus = meet((a == inf, b < 0), (a == -inf, b > 0), (a > 0, b == -inf), (a < 0, b == inf))
    none = meet(
        (np.isnan(a), everywhere(b)), (everywhere(a), np.isnan(b)),
        (np.isinf(a), b == 0), (a == 0, np.isinf(b)),
    )  # fmt: skip
    y = times(*(np.where(np.isfinite(x), x, 0) for x in (a, b)))
    y = np.where(plus, inf, np.where(minus, -inf, y))
    return np.where(none | plus & minus, np.nan, y)


# ---- comparing -------------------------------------------------------------------------------


def apart(x, y):
    """How far two arrays are apart; equal infinities are not, nor are two NaN."""
    x, y = x.astype("f8"), y.astype("f8")
    with np.errstate(all="ignore"):
        found = np.where((x == y) | np.isnan(x) & np.isnan(y), 0.0, np.abs(x - y))
    return np.where(np.isnan(found), np.inf, found)


def size(x):
    """How large numbers are; those that are not finite give no room."""
    x = np.abs(x.astype("f8"))
    return np.where(np.isfinite(x), x, 0.0)


def allowed(distance, a, b, c):
    """Where a result b may be so far from a, because a run of the noisy interpreter gives c: up to
    20 times as far as c; where only one of a and c is finite, b must be about what c is, or, as
    what was divided by such a rounding is, as large or small as c is, 20 times over.
    """
    spread, small, large = apart(a, c), size(c) / 20, size(c) * 20
    near = (apart(b, c) <= size(c) / 10 + 1e-3) | (small < size(b)) & (size(b) <= large)
    return np.where(np.isinf(spread), near, distance <= 20 * spread)


def unlike(wanted: Outcome, found: Outcome, program: Program, arrays) -> tuple[str, str] | None:
    """(kind, message) of the first thing that differs."""
    if wanted.error is not None or found.error is not None:
        wrong = unlike_errors(wanted.error, found.error)
        noisy = (
            outcome(Noisy(seed), program, arrays).error for seed in range(RUNS if wrong else 0)
        )
        same = any(unlike_errors(error, found.error) is None for error in noisy)
        return None if same else wrong
    if found.printed != wanted.printed and not alike(found.printed, wanted.printed):
        return "prints", f"{found.printed!r:.300} instead of {wanted.printed!r:.300}"
    far = []
    for k, (a, b) in enumerate(zip(wanted.results, found.results, strict=True)):
        if a.shape != b.shape or a.dtype != b.dtype:
            return "spec", f"result {k}: {b.dtype}{b.shape} instead of {a.dtype}{a.shape}"
        rtol, atol = room(a.dtype)
        distance = apart(a, b)
        distance[distance <= rtol * size(a) + atol] = 0
        far.append(distance)
    for seed in range(RUNS):
        if not any(d.any() for d in far):
            return None
        noisy = outcome(Noisy(seed), program, arrays)
        if noisy.error is not None:
            return None
        triples = zip(wanted.results, found.results, noisy.results, strict=True)
        for distance, (a, b, c) in zip(far, triples, strict=True):
            distance[allowed(distance, a, b, c)] = 0
    k = next((k for k, d in enumerate(far) if d.any()), None)
    if k is None:
        return None
    at = tuple(int(n) for n in np.unravel_index(np.argmax(far[k] > 0), far[k].shape))
    a, b = wanted.results[k], found.results[k]
    many = f"{np.count_nonzero(far[k])} of {a.size} differ"
    return "value", f"result {k}{list(at)} is {b[at]} instead of {a[at]}; {many}"


def unlike_errors(wanted, found) -> tuple[str, str] | None:
    if wanted is None and found is None:
        return None
    if wanted is None:
        return "raises", f"{found!r:.500}"
    if found is None:
        return "does not raise", f"{wanted!r:.300}"
    if type(found) is not type(wanted):
        return "raises another", f"{found!r:.200} instead of {wanted!r:.200}"
    return None
