"""Compare two runs of a program, with a tolerance that the program itself decides.

`Noisy` is an interpreter that makes every choice which no specification fixes (rounding, order of
a sum, sign of a NaN) at random. A result is accepted if it lies within ten times the distance
between the interpreter and some noisy run. See README.md.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from types import ModuleType
from typing import NamedTuple

import numpy as np

from minipaddle.engine.core.dtype import HALVES
from minipaddle.engine.eager.device import NUMPY, QUIET
from minipaddle.engine.ir.interpreter import Run
from minipaddle.engine.ir.program import NUMBER, Program
from minipaddle.engine.ops import conv
from minipaddle.engine.ops.elementwise import cast
from minipaddle.ops import channels_last as last
from tests.jit.fuzz_compare import alike
from tests.near import room

NOISY_RUNS = 200
"""How often the noisy interpreter runs at most."""
ROUNDING = {"float64": 2e-15, "float32": 1e-6, "bfloat16": 8e-3, "float16": 1e-3}
FACTORS = [1, 1 / 12]
"""The scales of the noise. The second is one bit: tanh(9.4) is 1, or the float before it."""


class Outcome(NamedTuple):
    """What a run gave: its results, or what it raised; and what it printed."""

    results: list
    error: Exception | None
    printed: str


def outcome(run: Callable, program: Program, arrays) -> Outcome:
    """The outcome of `run` on a program; the arrays stay as they are."""
    printed, own = io.StringIO(), [np.array(a) for a in arrays]
    try:
        with contextlib.redirect_stdout(printed):
            results = QUIET.copy().run(run, program, own)
    except Exception as error:
        spoilt = any(a.tobytes() != b.tobytes() for a, b in zip(arrays, own, strict=True))
        changed = AssertionError("a run that failed has changed what it was given")
        return Outcome([], changed if spoilt else error, printed.getvalue())
    return Outcome([np.array(x) for x in results], None, printed.getvalue())


# ---- what is left open -----------------------------------------------------------------------

CANCELLING = {"add", "subtract", "matmul", "einsum"}
"""NumPy functions whose terms may cancel, and may be added in any order."""
SELECTING = {"maximum", "minimum", "fmax", "fmin", "clip"}
EXACT = {
    "negative", "positive", "absolute", "fabs", "sign", "copysign", "heaviside", "nan_to_num",
    "floor", "ceil", "trunc", "rint", "frexp", "ldexp",
    "where", "kept", "sort", "unique", "max", "min", "take", "take_along_axis",
    "asarray", "array", "ascontiguousarray", "concatenate", "stack", "as_strided", "broadcast_to",
    "expand_dims", "reshape", "transpose", "moveaxis", "swapaxes", "flip", "roll", "tile",
    "tril", "triu", "zeros", "zeros_like", "ones", "empty", "full", "eye",
}  # fmt: skip
"""What rounds nothing; every other function of floats does, so also those that nobody listed."""
PADDED_CONVOLUTIONS = (
    conv.conv, conv.conv_input_grad, conv.conv_weight_grad,
    last.conv_last, last.conv_last_input_grad, last.conv_last_weight_grad,
)  # fmt: skip


class Unspecified(ValueError):
    """No specification says what a program does here."""

    record = None  # the interpreter passes it on as it is


class Noisy(Run):
    """An interpreter that decides at random what no specification fixes:

    - how floats are rounded by what computes, also inside an operator: x - tanh(x) of a small x is
      nothing but that; what is left of terms that cancel, and the sign of a sum that is 0; whether
      what is nearly too small to be a float is 0;
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
        super().__init__(Functions(self, NUMPY))
        self.loose = type("RoundedArray", (RoundedArray,), {"run": self})
        self.rng, self.wide = np.random.default_rng(seed), seed % 2 == 1
        self.often = self.rng.choice([1.0, 0.5, 0.1])  # noise early on may hide what it does later
        self.exact = True  # has the operator at work rounded nothing yet?

    def __call__(self, program, arrays):
        self.begin(program, arrays)
        inputs = (self.noisy(np.asarray(x)) for x in arrays)
        values = dict(zip(program.given, inputs, strict=True))

        def value(r):
            return r.attrs["value"] if r.op is NUMBER else self.read_operand(values[r], r.dtype)

        for record in program.records:
            values[record] = self.compute(program, record, [*map(value, record.inputs)])
        return [self.number(round_to_storage(value(r), r)) for r in program.results]

    def compute(self, program, record, inputs):
        self.exact = True
        y = super().compute(program, record, [*map(self.track_rounding, inputs)])
        if record.op.kind == "control":
            return y
        if record.op is cast:
            return self.open(np.asarray(y), *inputs)
        if (
            record.op in PADDED_CONVOLUTIONS
            and not np.isfinite(y).all()
            and self.rng.random() < 0.5
        ):
            y = without_zeros(record, *inputs).astype(y.dtype)
        return tuple(map(self.result, y)) if type(y) is tuple else self.result(y)

    def result(self, y):
        """A result of an operator; noisy unless it is known that nothing was rounded."""
        return (
            np.asarray(y)
            if isinstance(y, RoundedArray) and self.exact
            else self.noisy(np.asarray(y))
        )

    def read_operand(self, x, dtype):
        """What a record finds: of a half the float32, rounded or not."""
        if not self.wide or dtype not in HALVES:
            return x
        wide = np.asarray(x).astype("float32")
        return wide if self.rng.random() < 0.5 else wide.astype(dtype).astype("float32")

    def open(self, y, x):
        """A cast as far as C says what it gives."""
        x = np.asarray(x)
        if y.dtype.kind in "iu" and x.dtype.name in ROUNDING and not np.isfinite(x).all():
            raise Unspecified("a NaN, or infinity, as a whole number")
        if self.wide and y.dtype in HALVES:
            y = x.astype("float32")
        if x.dtype.kind in "iub" and y.dtype.name in ROUNDING:
            return self.signed(y, y == 0)
        exact = x.dtype.itemsize <= y.dtype.itemsize or x.dtype.name not in ROUNDING
        return y if exact else self.noisy(y)

    # ---- inside of an operator ---------------------------------------------------------------

    def track_rounding(self, x):
        """An array as one whose functions come here; anything else is itself."""
        if isinstance(x, tuple | list):
            return [*map(self.track_rounding, x)]
        return np.asarray(x).view(self.loose) if isinstance(x, np.ndarray | np.generic) else x

    def rounded(self, name: str, y, size: Callable):
        """What a NumPy function gave, as it might be rounded; `size()` is that of its terms."""
        if isinstance(y, tuple | list):
            return [self.rounded(name, x, size) for x in y]
        if not hasattr(y, "dtype") or y.dtype.name not in ROUNDING or name in EXACT:
            return y
        if name in SELECTING:
            return self.signed(y, (y == 0) & (size() == 0))
        self.exact = False
        return self.noisy(y, size() if name in CANCELLING else None)

    def noisy(self, y, size=None):
        """Floats that are rounded otherwise; what is left of terms of a `size` may also be 0."""
        if y.dtype.name not in ROUNDING:
            return y
        y = self.signed(y, np.isnan(y) if size is None else np.isnan(y) | (y == 0))
        if self.rng.random() > self.often:
            return y
        wide = np.float64 if y.dtype == np.float64 else np.float32
        x, size = y.astype(wide), np.abs(y if size is None else size).astype(wide)
        grain = np.where(np.isfinite(size), size, 0) * wide(ROUNDING[y.dtype.name])
        x = x + grain * self.drawn([-1, 0, 1], x).astype(wide) * wide(self.rng.choice(FACTORS))
        small = (np.abs(x) < 4 * np.finfo(wide).tiny) | (np.abs(x) <= 4 * grain)  # e^-90 may be 0
        return np.where(small & self.drawn([False, True], x), x * 0, x).astype(y.dtype)

    def signed(self, y, at):
        """Any sign in some places."""
        if not at.any():
            return y
        return np.where(at, np.copysign(y, self.drawn([-1, 1], y).astype(y.dtype)), y)

    def drawn(self, values, y):
        """One of the values for each element, or the same one for all."""
        return self.rng.choice(values, y.shape if self.rng.random() < 0.5 else (1,) * y.ndim)


class RoundedArray(np.ndarray):
    """An array whose every NumPy function is rounded as its `run` decides."""

    def __array_ufunc__(self, ufunc, method, *inputs, out=(), **options):
        function, inputs = getattr(ufunc, method), [*map(as_ndarray, inputs)]

        def size():
            if method == "__call__" and ufunc is not np.matmul:
                pair = inputs[:1] if ufunc.nin == 3 else inputs  # of `clip` the bounds do not count
                return np.maximum.reduce([*np.broadcast_arrays(*map(np.abs, pair))])
            terms = [magnitude(x) for x in inputs]
            of_sizes = np.minimum if ufunc.__name__ in SELECTING else ufunc  # 0: some are
            sizes = getattr(of_sizes, method)(*terms, **options)
            return terms[0] if method == "at" else sizes

        into = {"out": tuple(map(as_ndarray, out))} if out else {}
        y = function(*inputs, **options, **into)
        y = self.run.rounded(ufunc.__name__, inputs[0] if method == "at" else y, size)
        if method == "at" or out:
            (inputs if method == "at" else into["out"])[0][...] = y
            return None if method == "at" else out[0]
        return self.run.track_rounding(y)


class Functions:
    """A module of NumPy or SciPy whose functions of arrays round as a run decides."""

    def __init__(self, run: Noisy, module):
        self.run, self.module = run, module

    def __getattr__(self, name):
        original = getattr(self.module, name)
        if isinstance(original, ModuleType):
            return Functions(self.run, original)
        if isinstance(original, type) or hasattr(original, "reduce") or not callable(original):
            return original  # ufuncs, and what stands for one, ask the arrays

        def function(*arguments, **options):
            def size():
                return original(*map(magnitude, arguments), **options)

            y = original(*arguments, **options)
            if not any(isinstance(x, RoundedArray) for x in flat(arguments)):
                return y  # of places and sizes only
            return self.run.track_rounding(self.run.rounded(name, y, size))

        return function


def flat(values) -> list:
    return [y for x in values for y in (x if isinstance(x, tuple | list) else [x])]


def as_ndarray(x):
    return x.view(np.ndarray) if isinstance(x, RoundedArray) else x


def magnitude(x):
    """A copy, all positive, of an array of floats."""
    return np.abs(as_ndarray(x)) if hasattr(x, "dtype") and x.dtype.name in ROUNDING else x


def round_to_storage(x, record):
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


def distances(x, y):
    """How far apart two arrays are, elementwise; equal infinities are not, nor are two NaN."""
    x, y = x.astype("f8"), y.astype("f8")
    with np.errstate(all="ignore"):
        gaps = np.where((x == y) | np.isnan(x) & np.isnan(y), 0.0, np.abs(x - y))
    return np.where(np.isnan(gaps), np.inf, gaps)


def size(x):
    """How large numbers are; those that are not finite give no room."""
    x = np.abs(x.astype("f8"))
    return np.where(np.isfinite(x), x, 0.0)


def allowed(distance, a, b, c):
    """Where a result b may differ from a, because a run of the noisy interpreter gives c. The
    difference may be 10 times that of c. Where only one of a and c is finite, b must be close to
    c, or at least within a factor of 20, as after a division by a rounding error.
    """
    spread, small, large = distances(a, c), size(c) / 20, size(c) * 20
    near = (distances(b, c) <= size(c) / 10 + 1e-3) | (small < size(b)) & (size(b) <= large)
    return np.where(np.isinf(spread), near, distance <= 10 * spread)


def difference_of(
    expected: Outcome, actual: Outcome, program: Program, arrays
) -> tuple[str, str] | None:
    """(kind, message) of the first thing that differs."""
    if expected.error is not None or actual.error is not None:
        wrong = error_difference(expected.error, actual.error)
        noisy = (
            outcome(Noisy(seed), program, arrays).error
            for seed in range(NOISY_RUNS if wrong else 0)
        )
        same = any(error_difference(error, actual.error) is None for error in noisy)
        return None if same else wrong
    if actual.printed != expected.printed and not alike(actual.printed, expected.printed):
        return "prints", f"{actual.printed!r:.300} instead of {expected.printed!r:.300}"
    far = []
    for k, (a, b) in enumerate(zip(expected.results, actual.results, strict=True)):
        if a.shape != b.shape or a.dtype != b.dtype:
            return "spec", f"result {k}: {b.dtype}{b.shape} instead of {a.dtype}{a.shape}"
        rtol, atol = room(a.dtype)
        distance = distances(a, b)
        distance[distance <= rtol * size(a) + atol] = 0
        far.append(distance)
    for seed in range(NOISY_RUNS):
        if not any(d.any() for d in far):
            return None
        noisy = outcome(Noisy(seed), program, arrays)
        if isinstance(noisy.error, Unspecified):
            return None
        if noisy.error is not None:
            continue  # an index that rounding has put out of range, say
        triples = zip(expected.results, actual.results, noisy.results, strict=True)
        for distance, (a, b, c) in zip(far, triples, strict=True):
            distance[allowed(distance, a, b, c)] = 0
    k = next((k for k, d in enumerate(far) if d.any()), None)
    if k is None:
        return None
    at = tuple(int(n) for n in np.unravel_index(np.argmax(far[k] > 0), far[k].shape))
    a, b = expected.results[k], actual.results[k]
    many = f"{np.count_nonzero(far[k])} of {a.size} differ"
    return "value", f"result {k}{list(at)} is {b[at]} instead of {a[at]}; {many}"


def error_difference(expected, actual) -> tuple[str, str] | None:
    if expected is None and actual is None:
        return None
    if expected is None:
        return "raises", f"{actual!r:.500}"
    if actual is None:
        return "does not raise", f"{expected!r:.300}"
    if type(actual) is not type(expected):
        return "raises another", f"{actual!r:.200} instead of {expected!r:.200}"
    return None
