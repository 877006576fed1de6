"""Random operators: the bits against SplitMix64 written with Python's integers, distributions
against SciPy's quantile functions. (Statistics are in tests/tensor/test_random.py.)
"""

import numpy as np
import scipy.special
import scipy.stats

from tests.ops.cases import Case, draw, fixed, together, uniform, whole

FLOAT32, FLOAT64, INT64 = map(np.dtype, ("float32", "float64", "int64"))
HALF = np.dtype("float16")


def splitmix(base: int, count: int) -> list[int]:
    """`count` outputs of the generator of Steele, Lea and Flood from the state `base`."""
    mask, out = 2**64 - 1, []
    for k in range(1, count + 1):
        z = (base + k * 0x9E3779B97F4A7C15) & mask
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        out.append(z ^ (z >> 31))
    return out


def words(index, base):
    """The generator's words at `index`, as exact Python integers."""
    stream = splitmix(int(base), int(index.max()) + 1) if index.size else []
    return [stream[i] for i in index.ravel()]


def bits(index, base):
    signed = [w - 2**64 if w >> 63 else w for w in words(index, base)]
    return np.array(signed, "int64").reshape(index.shape)


def uniforms(low, high, digits, dtype):
    def oracle(index, base):
        u = np.array([(w >> (64 - digits)) / 2**digits for w in words(index, base)])
        return (low + (high - low) * u).astype(dtype).reshape(index.shape)

    return oracle


def uniform_halves(results, inputs):
    np.testing.assert_array_equal(results[0], uniforms(0, 1, 11, HALF)(*inputs))


def integers(low, high):
    def oracle(index, base):
        return np.array([low + w % (high - low) for w in words(index, base)]).reshape(index.shape)

    return oracle


def normals(mean, std, dtype):
    def oracle(index, base):
        tails = np.array([((w >> 1) + 0.5) / 2**64 for w in words(index, base)])
        signs = np.array([1 if w & 1 else -1 for w in words(index, base)])
        return (mean + std * signs * -scipy.special.ndtri(tails)).astype(dtype)

    return oracle


def permuted(results, inputs):
    assert sorted(results[0].tolist()) == list(range(50))
    assert results[0].tolist() != list(range(50))


def chosen(results, inputs):
    weights = inputs[1]
    for row, places in zip(weights, results[0], strict=True):
        assert len(set(places.tolist())) == len(places)
        assert (row[places] > 0).all()


def choose(u, weights):
    total = np.cumsum(weights, -1)
    return np.stack([np.searchsorted(t, v * t[-1], "right") for t, v in zip(total, u, strict=True)])


INDEX = fixed(np.arange(200), -1234567890123456789)
UNIT = uniform(0.0, 1.0, 60)
WEIGHTS = draw(lambda rng, shape: np.maximum(rng.normal(size=shape), 0) + np.eye(*shape), [(3, 6)])


def base(state):
    """The stream `counter` of a key, from two rounds of the generator."""
    key, counter = map(int, state)
    last = splitmix(splitmix(key % 2**64, 1)[0], counter + 1)[-1]
    return np.array(last - 2**64 if last >> 63 else last, "int64")


CASES = {
    "next_state": Case(fixed(np.array([7, 3])), numpy=lambda state: state + np.arange(2)),
    "base_of": [
        Case(fixed(np.array([key, k])), numpy=base) for key, k in ((0, 1), (7, 3), (-1, 9))
    ],
    "random_bits": [
        Case(INDEX, numpy=bits),
        Case(fixed(np.array(5), 99), numpy=bits),
        Case(fixed(np.zeros((0, 2), "int64"), 1), numpy=bits),
    ],
    "random_uniform": [
        Case(
            INDEX, numpy=uniforms(0, 1, 24, FLOAT32), attrs={"low": 0, "high": 1, "dtype": FLOAT32}
        ),
        Case(
            INDEX, numpy=uniforms(0, 1, 53, FLOAT64), attrs={"low": 0, "high": 1, "dtype": FLOAT64}
        ),
        Case(INDEX, check=uniform_halves, attrs={"low": 0, "high": 1, "dtype": HALF}),
        Case(
            INDEX,
            numpy=uniforms(-2, 3, 53, FLOAT64),
            attrs={"low": -2, "high": 3, "dtype": FLOAT64},
        ),
    ],
    "random_integers": [
        Case(INDEX, numpy=integers(0, 10), attrs={"low": 0, "high": 10, "dtype": INT64}),
        Case(
            INDEX,
            numpy=integers(-(2**62), 2**62),
            attrs={"low": -(2**62), "high": 2**62, "dtype": INT64},
        ),
    ],
    "random_normal": [
        Case(INDEX, numpy=normals(0, 1, FLOAT64), attrs={"mean": 0, "std": 1, "dtype": FLOAT64}),
        Case(INDEX, numpy=normals(0, 1, FLOAT32), attrs={"mean": 0, "std": 1, "dtype": FLOAT32}),
        Case(
            INDEX, numpy=normals(5, 0.1, FLOAT64), attrs={"mean": 5, "std": 0.1, "dtype": FLOAT64}
        ),
    ],
    "random_permutation": Case(fixed(7), check=permuted, attrs={"size": 50, "dtype": INT64}),
    "poisson_quantile": [
        Case(
            together(UNIT, uniform(0.0, 900.0, 60)),
            numpy=lambda u, rate: scipy.stats.poisson.ppf(u, rate),
            dtypes=("float64",),
        ),
        Case(fixed(np.zeros(0), np.zeros(0)), numpy=lambda u, rate: u, dtypes=("float64",)),
        Case(fixed(0.5 * np.ones(2), np.zeros(2)), numpy=lambda u, rate: rate, dtypes=("float64",)),
    ],
    "binomial_quantile": Case(
        together(UNIT, whole(0, 90, 60), uniform(0.0, 1.0, 60)),
        numpy=lambda u, count, prob: scipy.stats.binom.ppf(u, count, prob).astype("int64"),
        dtypes=("float64",),
    ),
    "gamma_quantile": Case(
        together(UNIT, uniform(0.1, 9.0, 60)),
        numpy=lambda u, alpha: scipy.stats.gamma.ppf(u, alpha),
        dtypes=("float64",),
    ),
    "choose_repeatedly": Case(
        together(uniform(0.0, 1.0, 3, 20), WEIGHTS), numpy=choose, dtypes=("float64",)
    ),
    "choose_distinct": Case(
        together(uniform(0.0, 1.0, 3, 6), WEIGHTS),
        check=chosen,
        attrs={"size": 1},
        dtypes=("float64",),
    ),
}
