"""The beginning of every C file: headers, vector mathematics, and what NumPy has and C has not."""

from __future__ import annotations

from functools import cache

from ..core import dtype as dt
from .kernel import BFLOAT16, C_TYPES, FLOAT16

WHOLE = """\
static inline TYPE floor_divide_TYPE(TYPE x, TYPE y)  /* by 0: 0, as in NumPy */
{
    if (y == 0) return 0;
    TYPE q = x / y;
    return q - (q * y != x && (x < 0) != (y < 0));
}

static inline TYPE remainder_TYPE(TYPE x, TYPE y)  /* has the sign of y */
{
    if (y == 0) return 0;
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
    TYPE q = (x - remainder_TYPE(x, y)) / y, whole = floorF(q);
    if (q == 0) return copysignF((TYPE)0, x / y);
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

SIMD = """\
/* The vector forms that glibc has of these: they keep NaN and Inf. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define VECTOR __attribute__((__simd__("notinbranch"))) extern
FUNCTIONS
#endif

/* e^x far below 0, as for masked scores, takes glibc's vectors ten times as long: there it is 0.
 * (The bound is a variable: with a constant gcc makes a branch, and computes e^x after all.) */
__attribute__((visibility("hidden"))) float lowest_exponentf = -87.0f;
__attribute__((visibility("hidden"))) double lowest_exponent = -708.0;

static inline float exp_or_0f(float x)
{
    const float y = expf(x < lowest_exponentf ? lowest_exponentf : x);
    return y < 2e-38f ? 0 : y;
}

static inline double exp_or_0(double x)
{
    const double y = exp(x < lowest_exponent ? lowest_exponent : x);
    return y < 4e-308 ? 0 : y;
}

#define expf(x) exp_or_0f(x)
#define exp(x) exp_or_0(x)
"""


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


VECTORIZED = ("exp", "log", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh",
              "asinh", "acosh", "atanh", "expm1", "log1p", "log2", "log10", "erf")  # fmt: skip


@cache
def prologue() -> str:
    """What stands before the kernels of a file."""
    lines = [f"VECTOR float {f}f(float);\nVECTOR double {f}(double);" for f in VECTORIZED]
    lines += [f"VECTOR {t} pow{s}({t}, {t});" for t, s in (("float", "f"), ("double", ""))]
    simd = SIMD.replace("FUNCTIONS", "\n".join(lines))
    headers = ("math", "stdbool", "stddef", "stdint", "stdlib", "string")
    included = [f"#include <{h}.h>" for h in headers]
    return "\n".join([*included, "", simd, FLOAT16, BFLOAT16, helpers()])
