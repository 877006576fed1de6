"""Random numbers as one integer formula of (key, counter, index): the same bits everywhere.

Element `index` of stream `base` is SplitMix64's output for the state base + (index + 1)·GAMMA, and
the base of a stream is that same formula of its key and counter. Nothing depends on which element
is computed first, so eager NumPy, a C loop and a CUDA grid draw the same numbers.

What a module `m` must provide, beside `where` and `sqrt`: `astype` to `m.uint64`, `m.int64` and the
floats (a cast; between the two integers it keeps the 64 bits), `^ >> * +` on uint64 that wrap
around, and `m.frexp`. A compiler must not contract a * b + c into one rounding.

Sources: Steele, Lea, Flood, "Fast splittable pseudorandom number generators" (OOPSLA 2014);
Wichura, "Algorithm AS 241: the percentage points of the normal distribution" (1988).
"""

import math

from ..engine.core.dtype import bfloat16, float16, float32, float64, int64
from ..engine.core.op import elementwise, opaque
from ..engine.core.record import Spec
from ..engine.core.slots import slot

GAMMA = 0x9E3779B97F4A7C15
MASK = 2**64 - 1

DIGITS = {float16.numpy: 11, bfloat16.numpy: 8, float32.numpy: 24, float64.numpy: 53}
"""Bits in the significand: a uniform number has as many, so it never rounds up to 1."""


# ---- bits ------------------------------------------------------------------------------------


def scramble(z, wrap=lambda z: z):
    """SplitMix64's mixing of 64 bits; `wrap` cuts Python's unbounded integers back to 64."""
    z ^= z >> 30
    z *= 0xBF58476D1CE4E5B9
    z = wrap(z)
    z ^= z >> 27
    z *= 0x94D049BB133111EB
    z = wrap(z)
    z ^= z >> 31
    return z


@slot("random.bits")
def bits(m, index, base):
    """64 random bits (uint64) for each index of a stream."""
    z = index.astype(m.uint64)
    z *= GAMMA
    z = z + (base.astype(m.uint64) + GAMMA)
    return scramble(z)


def stream(key: int, counter: int) -> int:
    """The base of stream `counter` of `key`, as a signed 64-bit Python int."""
    z = scramble(key + GAMMA & MASK, MASK.__and__)
    z = scramble(z + (counter + 1) * GAMMA & MASK, MASK.__and__)
    return z - 2**64 if z >> 63 else z


@elementwise
def random_bits(m, index, base):
    """64 random bits, as a signed whole number."""
    return bits(m, index, base).astype(m.int64)


@opaque
def next_state(m, state):
    """A generator's (key, counter) after one more draw."""
    return state + m.arange(2)


next_state.shape(lambda state: state)


@opaque
def base_of(m, state):
    """The base of the stream of a generator's (key, counter): `stream`."""
    key, counter = state.astype(m.uint64).reshape(2, 1)
    return start(key, counter).astype(m.int64).reshape(())


def start(key, counter):
    """The bits of the base of stream `counter` of `key`."""
    return scramble(scramble(key + GAMMA) + (counter + 1) * GAMMA)


base_of.shape(lambda state: Spec((), int64.numpy))


# ---- distributions ---------------------------------------------------------------------------


def take_dtype(_, attrs):
    """The dtype of the attribute, whatever the dtype of the indices."""
    return attrs["dtype"]


def unit(m, index, base, dtype):
    """Uniform on [0, 1): the top bits over a power of two, so no rounding takes place."""
    digits = DIGITS[dtype]
    top = bits(m, index, base) >> (64 - digits)
    return top.astype(m.float64 if digits > 24 else m.float32) * 2.0**-digits


@elementwise(result=take_dtype)
def random_uniform(m, index, base, *, low, high, dtype):
    """Uniform on [low, high)."""
    u = unit(m, index, base, dtype)
    return u if (low, high) == (0, 1) else u * (high - low) + low


@elementwise(result=take_dtype)
def random_integers(m, index, base, *, low, high, dtype):
    """A whole number of [low, high); no value is likelier by more than (high - low) / 2^64."""
    return (bits(m, index, base) % (high - low)).astype(m.int64) + low


@elementwise(result=take_dtype)
def random_normal(m, index, base, *, mean, std, dtype):
    """Normal with mean and standard deviation, by inverting the distribution function."""
    b = bits(m, index, base)
    real, fit = (m.float64, PPND16) if DIGITS[dtype] > 24 else (m.float32, PPND7)
    tail = ((b >> 1).astype(real) + 0.5) * 2.0**-64  # in (0, 1/2], the last bit is the sign
    z = upper_quantile(m, tail, real, *fit)
    z = m.where((b & 1) == 1, z, -z)
    return z if (mean, std) == (0, 1) else z * std + mean


def upper_quantile(m, p, real, terms, center, middle, far):
    """The z ≥ 0 that a standard normal exceeds with probability p ≤ 1/2: AS 241."""
    q = 0.5 - p
    near = q * ratio(0.180625 - q * q, *center)
    r = m.sqrt(-logarithm(m, p, real, terms))
    tail = m.where(r <= 5, ratio(r - 1.6, *middle), ratio(r - 5, *far))
    return m.where(q <= 0.425, near, tail)


def logarithm(m, x, real, terms):
    """ln x from + - * / alone: x = f · 2^e and ln f = 2 artanh s, s = (f - 1) / (f + 1)."""
    f, e = m.frexp(x)
    low = f < math.sqrt(0.5)
    f, e = m.where(low, 2 * f, f), m.where(low, e - 1, e)
    s = (f - 1) / (f + 1)
    artanh = s * polynomial(s * s, [1 / (2 * k + 1) for k in range(terms)])
    return e.astype(real) * math.log(2) + 2 * artanh


def polynomial(x, coefficients):
    """Σ coefficients[k] · x^k, by Horner's scheme."""
    total = coefficients[-1] * x + coefficients[-2]  # from here on in place where x is an array
    for c in coefficients[-3::-1]:
        total *= x
        total += c
    return total


def ratio(x, above, below):
    """The quotient of two polynomials."""
    return polynomial(x, above) / polynomial(x, below)


# ---- counts and choices ----------------------------------------------------------------------


def quantile(m, below, u, high):
    """The smallest whole k of [0, high] with below(k) > u, by halving the interval."""
    low = m.zeros_like(high) - 1
    most = float(m.max(high)) if high.size else 0.0
    for _ in range(math.ceil(math.log2(most + 2))):
        middle = m.floor((low + high) / 2)
        enough = below(middle) > u
        low, high = m.where(enough, low, middle), m.where(enough, middle, high)
    return high


@opaque
def poisson_quantile(m, u, rate):
    """The count that a Poisson variable of mean `rate` exceeds with probability below 1 - u."""
    mean = rate.astype(m.float64)
    high = m.ceil(mean + 10 * m.sqrt(mean) + 40)  # exceeded with probability below 2^-53
    return quantile(m, lambda k: m.pdtr(k, mean), u, high).astype(rate.dtype)


poisson_quantile.shape(lambda u, rate: rate)


@opaque
def binomial_quantile(m, u, count, prob):
    """The same for the successes in `count` trials that each succeed with probability `prob`."""
    trials, chance = count.astype(m.int64), prob.astype(m.float64)
    high = trials.astype(m.float64)
    return quantile(m, lambda k: m.bdtr(k, trials, chance), u, high).astype(m.int64)


binomial_quantile.shape(lambda u, count, prob: count.astype(int64.numpy))


@opaque
def gamma_quantile(m, u, alpha):
    """Where the distribution function of the gamma distribution of scale 1 reaches u."""
    return m.gammaincinv(alpha.astype(m.float64), u).astype(alpha.dtype)


gamma_quantile.shape(lambda u, alpha: alpha)


@opaque
def random_permutation(m, base, *, size, dtype):
    """0, 1, … size - 1, sorted by as many random numbers."""
    keys = bits(m, m.arange(size), m.asarray(base))
    return m.argsort(keys, kind="stable").astype(dtype)


random_permutation.shape(lambda base, size, dtype: Spec((size,), dtype))


@opaque
def choose_repeatedly(m, u, weights):
    """For each u in its row: the place where the running sum of the weights passes u of it."""
    total = m.cumsum(weights.astype(m.float64), axis=-1)
    return m.sum(total[..., None, :] <= (u * total[..., -1:])[..., None], axis=-1)


choose_repeatedly.shape(lambda u, weights: u.astype(int64.numpy))


@opaque
def choose_distinct(m, u, weights, *, size):
    """The `size` places that come first when each waits an exponential time of rate its weight."""
    if m.any(m.sum(weights > 0, axis=-1) < size):
        raise ValueError(f"fewer than num_samples={size} weights are above 0")
    waiting = m.where(weights > 0, -m.log1p(-u) / weights, math.inf)
    return m.argsort(waiting, axis=-1)[..., :size]


choose_distinct.shape(lambda u, weights, size: Spec((*weights.shape[:-1], size), int64.numpy))


# Terms of the logarithm, then numerator and denominator at the center, in the tail, far out.

PPND7 = (5,
    ((3.3871327179, 50.434271938, 159.29113202, 59.10937472),
     (1.0, 17.895169469, 78.757757664, 67.1875636)),
    ((1.4234372777, 2.75681539, 1.3067284816, 0.17023821103),
     (1.0, 0.7370016425, 0.12021132975)),
    ((6.657905115, 3.081226386, 0.42868294337, 0.017337203997),
     (1.0, 0.24197894225, 0.012258202635)),
)  # fmt: skip
PPND16 = (11,
    ((3.3871328727963665, 133.14166789178438, 1971.5909503065513, 13731.69376550946,
      45921.95393154987, 67265.7709270087, 33430.57558358813, 2509.0809287301227),
     (1.0, 42.31333070160091, 687.1870074920579, 5394.196021424751, 21213.794301586597,
      39307.89580009271, 28729.085735721943, 5226.495278852854)),
    ((1.4234371107496835, 4.630337846156546, 5.769497221460691, 3.6478483247632045,
      1.2704582524523684, 0.2417807251774506, 0.022723844989269184, 0.0007745450142783414),
     (1.0, 2.053191626637759, 1.6763848301838038, 0.6897673349851, 0.14810397642748008,
      0.015198666563616457, 0.0005475938084995345, 1.0507500716444169e-09)),
    ((6.657904643501103, 5.463784911164114, 1.7848265399172913, 0.29656057182850487,
      0.026532189526576124, 0.0012426609473880784, 2.7115555687434876e-05,
      2.0103343992922881e-07),
     (1.0, 0.599832206555888, 0.1369298809227358, 0.014875361290850615, 0.0007868691311456133,
      1.8463183175100548e-05, 1.421511758316446e-07, 2.0442631033899397e-15)),
)  # fmt: skip
