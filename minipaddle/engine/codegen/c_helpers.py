"""The beginning of every C file: headers, vector mathematics, and what NumPy has and C has not."""

from __future__ import annotations

import re
from functools import cache

from ..core import dtype as dt
from .fold import reductions
from .kernel import BFLOAT16, C_TYPES, FLOAT16
from .scalar import PAIRED, PLAIN

WHOLE = """\
static inline TYPE floor_divide_TYPE(TYPE x, TYPE y)  /* by 0: 0, as in NumPy */
{
    if (y == 0) return 0;
    if (y == -1) return (TYPE)-(uint64_t)x;  /* a processor traps at the smallest number */
    TYPE q = x / y;
    return q - (q * y != x && (x < 0) != (y < 0));
}

static inline TYPE remainder_TYPE(TYPE x, TYPE y)  /* has the sign of y */
{
    if (y == 0 || y == -1) return 0;
    TYPE r = x % y;
    return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

static inline TYPE power_TYPE(TYPE x, TYPE n)
{
    TYPE y = 1;
    for (; n > 0; n >>= 1, x *= x)
        if (n & 1) y *= x;
    return y;
}

static inline TYPE gcd_TYPE(TYPE x, TYPE y)
{
    uint64_t a = (uint64_t)x, b = (uint64_t)y;
    a = x < 0 ? -a : a;
    b = y < 0 ? -b : b;
    while (b != 0) {
        const uint64_t r = a % b;
        a = b;
        b = r;
    }
    return (TYPE)a;
}

static inline TYPE lcm_TYPE(TYPE x, TYPE y)
{
    const TYPE d = gcd_TYPE(x, y), m = d == 0 ? 0 : x / d * y;
    return (x < 0) != (y < 0) ? -m : m;
}
"""

REAL = """\
static inline TYPE remainder_TYPE(TYPE x, TYPE y)  /* has the sign of y */
{
    TYPE r = fmodF(x, y);
    if (r == 0) return copysignF((TYPE)0, y);
    return (r < 0) != (y < 0) ? r + y : r;
}

static inline TYPE floor_divide_TYPE(TYPE x, TYPE y)
{
    if (y == 0) return x / y;
    TYPE r = fmodF(x, y), q = (x - r) / y;
    if (r != 0 && (r < 0) != (y < 0)) q -= 1;  /* also of 3 by -inf */
    if (q == 0) return copysignF((TYPE)0, x / y);
    TYPE whole = floorF(q);
    return q - whole > (TYPE)0.5 ? whole + 1 : whole;
}

static inline TYPE logaddexp_TYPE(TYPE x, TYPE y)
{
    TYPE high = x >= y || x != x ? x : y, apart = fabsF(x - y);
    return x == y ? x + (TYPE)0.693147180559945309 : high + log1pF(expF(-apart));
}

static inline INT exponent_TYPE(TYPE x)  /* of a fraction in [1/2, 1) */
{
    INT bits;
    memcpy(&bits, &x, sizeof x);
    return x == 0 ? 0 : (bits >> MANTISSA & EXPONENTS) - BIAS;
}

static inline TYPE fraction_TYPE(TYPE x)
{
    INT bits;
    memcpy(&bits, &x, sizeof x);
    bits = (bits & ~((INT)EXPONENTS << MANTISSA)) | (INT)BIAS << MANTISSA;
    TYPE y;
    memcpy(&y, &bits, sizeof y);
    return x == 0 ? x : y;
}
"""

VECTOR = """\
/* glibc has a vector form of it, which keeps NaN and Inf */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define VECTOR __attribute__((__simd__("notinbranch")))
#else
#define VECTOR
#endif
"""

MACROS = {
    "INFINITY": "__builtin_inff()",
    "NAN": '__builtin_nanf("")',
    "signbit": "__builtin_signbit",
}

EXPONENTIAL = """\
/* e^x = 2^n e^r, |r| <= log(2) / 2, within 1 ulp, and 0 below 2e-38. glibc's vectors take four
 * times as long where a lane is far below 0, as for masked scores, or above all numbers. */
static inline float exp_float(float x)
{
    x = x < -87.0f ? -87.0f : x;
    x = x > 89.0f ? 89.0f : x;
    const float n = (x * 1.44269504f + 0x1.8p23f) - 0x1.8p23f;  /* no fraction fits beside it */
    const float r = (x - n * 0.693145752f) - n * 1.42860682e-6f;
    float p = 0.00138145405f;
    p = p * r + 0.00836874512f;
    p = p * r + 0.0416683908f;
    p = p * r + 0.166665204f;
    p = p * r + 0.499999934f;
    p = (p * (r * r) + r) + 1;
    const uint32_t bits = (uint32_t)((int32_t)n + 126) << 23;  /* of 2^(n - 1) */
    float half;
    memcpy(&half, &bits, sizeof half);
    const float y = (p + p) * half;
    return y < 2e-38f ? 0 : y;
}

#define expf(x) exp_float(x)
"""

ERROR_FUNCTION = """\
/* erf x = x p(x^2) / q(x^2) up to 4.1, where it is 1: within 7 ulp, in half of glibc's time. */
static inline float erf_float(float x)
{
    x = x < -4.1f ? -4.1f : x;
    x = x > 4.1f ? 4.1f : x;
    const float t = x * x;
    float p = 2.04196739e-6f, q = 3.80040224e-5f;
    p = p * t + 2.84808277e-4f, q = q * t + 1.16521164e-3f;
    p = p * t + 3.77960691e-3f, q = q * t + 1.49974329e-2f;
    p = p * t + 5.27902778e-2f, q = q * t + 0.114257511f;
    p = p * t + 0.190783817f, q = q * t + 0.502410475f;
    p = p * t + 1.12837915f, q = q * t + 1;
    const float y = x * p / q;
    return y < -1 ? -1 : y > 1 ? 1 : y;
}

#define erff(x) erf_float(x)
"""

LONG_EXPONENTIAL = """\
/* e^x far below 0 takes glibc's vectors ten times as long: there it is 0.
 * (The bound is a variable: with a constant gcc makes a branch, and computes e^x after all; a weak
 * one, as all parts of a program share it.) */
__attribute__((weak, visibility("hidden"))) double lowest_exponent = -708.0;

static inline double exp_double(double x)
{
    const double y = exp(x < lowest_exponent ? lowest_exponent : x);
    return y < 4e-308 ? 0 : y;
}

#define exp(x) exp_double(x)
"""

WORD = re.compile(r"\w+")


@cache
def helpers() -> str:
    """The functions that formulas call beside those of C, for each dtype."""
    integers = [C_TYPES[d.numpy] for d in (dt.uint8, dt.int8, dt.int16, dt.int32, dt.int64)]
    texts = [WHOLE.replace("TYPE", t) for t in integers]
    for real, suffix, whole, mantissa in (
        ("float", "f", "int32_t", 23),
        ("double", "", "int64_t", 52),
    ):
        text = REAL.replace("MANTISSA", str(mantissa)).replace("TYPE", real)
        bits, bias = ("0xff", "126") if suffix else ("0x7ff", "1022")
        text = text.replace("EXPONENTS", bits).replace("BIAS", bias).replace("INT", whole)
        for f in ("fmod", "copysign", "floor", "fabs", "log1p", "exp"):
            text = text.replace(f"{f}F(", f"{f}{suffix}(")
        texts.append(text)
    return "\n".join(texts)


FURTHER: list[tuple] = []


def register(text: str, complete=str) -> None:
    """Let formulas call the C functions in `text`; `complete` computes the tables they name."""
    FURTHER.append((text, complete))
    parts.cache_clear()


UNARY = sorted({*PLAIN.values(), "erfc", "fabs", "lgamma", "rint"})
BINARY = sorted({*PAIRED.values(), "fmod", "pow"})
VECTORIZED = {
    "exp", "log", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh",
    "acosh", "atanh", "expm1", "log1p", "log2", "log10", "erf", "pow",
}  # fmt: skip
"""Of these glibc has a vector form."""


def mathematics(words: set[str] | None) -> list[str]:
    """The declarations of what `words` name of C's mathematics, or of all of it. To read math.h
    takes a compiler as long as to start."""
    found = [f"#define {x} {text}" for x, text in MACROS.items() if words is None or x in words]
    for name, arguments in [*((f, 1) for f in UNARY), *((f, 2) for f in BINARY)]:
        vector = "VECTOR " if name in VECTORIZED else ""
        for kind, suffix in (("float", "f"), ("double", "")):
            if words is None or name + suffix in words:
                given = ", ".join([kind] * arguments)
                found.append(f"{vector}{kind} {name}{suffix}({given});")
    form = [VECTOR] if any("VECTOR" in line for line in found) else []
    return [*form, *found, ""] if found else []


@cache
def parts() -> list[tuple]:
    """What a file may begin with, in order: (names, text, what completes the text); who says one of
    the names needs it.
    """
    found = [({"expf"}, EXPONENTIAL), ({"erff"}, ERROR_FUNCTION), ({"exp"}, LONG_EXPONENTIAL)]
    found += [({"_Float16"}, FLOAT16), ({"bfloat16", "widen", "narrow"}, BFLOAT16)]
    found = [(names, text, str) for names, text in found]
    for text, complete in [(helpers(), str), *FURTHER]:
        for f in text.split("\n\n"):
            found.append(({re.search(r"\w+(?=\()", f)[0]}, f"{f.strip()}\n", complete))
    return found


def prologue(text: str | None = None) -> str:
    """What stands before the kernels of a file: what `text` needs, or all there is."""
    found, words = [], set(WORD.findall(text or ""))
    further = [(names, part, str) for names, part in reductions()]
    for names, part, complete in reversed([*parts(), *further]):
        if text is None or not words.isdisjoint(names):
            found.append(complete(part))
            words.update(WORD.findall(part))
    headers = [f"#include <{name}.h>" for name in ("stdbool", "stdint", "string")]
    return "\n".join(
        [*headers, "", *mathematics(words if text is not None else None), *reversed(found)]
    )
