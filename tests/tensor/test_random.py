"""Random tensors: the bits (golden, so that every platform draws them), the distributions, the
generator's state. Fixed seeds: a test fails always or never.
"""

import threading

import numpy as np
import pytest
import scipy.special
import scipy.stats

import minipaddle as paddle
from minipaddle.engine.eager.device import NUMPY
from minipaddle.ops import random as ops


@pytest.fixture(autouse=True)
def seeded():
    state = paddle.get_rng_state()
    paddle.seed(2026)
    yield
    paddle.set_rng_state(state)


def bits_of(x) -> str:
    return x.numpy().tobytes().hex()


# ---- the formula -----------------------------------------------------------------------------


def test_splitmix_is_the_published_one():
    """The first outputs for the state 1234567, as the authors' own program prints them."""
    index, base = np.arange(5), np.asarray(1234567)
    assert ops.bits(NUMPY, index, base).tolist() == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]


def test_golden_bits():
    """What a seed draws must never change, on any platform, in any executor."""
    assert ops.stream(2026, 1) == 554938614540728688
    assert bits_of(paddle.rand([4])) == "d2f5ef3efcb10f3e80b0853b203f833c"
    assert bits_of(paddle.randn([4])) == "12de023fbb5e9f3f0c485d3fa9be0abf"
    wide = "5107a44c2753d23ff1efc404c8bdd9bf4e0314748bc1f83f"
    assert bits_of(paddle.randn([3], "float64")) == wide
    assert paddle.randint(0, 1000, [6]).tolist() == [220, 287, 696, 213, 2, 862]
    assert paddle.randperm(8).tolist() == [2, 6, 7, 5, 4, 1, 3, 0]
    assert bits_of(paddle.uniform([2], "float64", -3, 5)) == "0120d4f5223010403c03ca587456f7bf"


def test_streams_of_python_and_of_the_operator_are_one():
    for key, counter in [(0, 0), (7, 3), (-5, 2**40), (2**62, 1)]:
        first = ops.random_bits(paddle.to_tensor(0), key)
        again = ops.random_bits(paddle.to_tensor(counter), first)
        assert again.item() == ops.stream(key, counter)


def test_an_element_does_not_depend_on_the_shape():
    flat = paddle.rand([24]).numpy()
    paddle.seed(2026)
    assert paddle.rand([2, 3, 4]).numpy().ravel().tolist() == flat.tolist()
    paddle.seed(2026)
    assert paddle.rand([5]).numpy().tolist() == flat[:5].tolist()


@pytest.mark.parametrize(
    ("real", "fit", "error"), [(np.float64, ops.PPND16, 2e-15), (np.float32, ops.PPND7, 5e-7)]
)
def test_the_normal_quantile(real, fit, error):
    p = np.concatenate([np.logspace(-19.5, -1, 20001), np.linspace(1e-4, 0.5, 20001)]).astype(real)
    z = ops.upper_quantile(NUMPY, p, real, *fit)
    assert z.dtype == real
    exact = -scipy.special.ndtri(p.astype("float64"))
    assert (np.abs(z - exact) / np.maximum(exact, 0.5)).max() < error


def test_the_logarithm():
    x = np.concatenate([np.logspace(-300, 300, 10001), np.linspace(0.5, 2, 10001)])
    x = x[x != 1]
    ours = ops.logarithm(NUMPY, x, np.float64, ops.PPND16[0])
    np.testing.assert_allclose(ours, np.log(x), rtol=5e-16 * 2, atol=1e-16)


# ---- distributions ---------------------------------------------------------------------------


def fits(sample, distribution) -> bool:
    """Kolmogorov and Smirnov see no difference (at one in a thousand)."""
    return scipy.stats.kstest(sample.numpy().ravel(), distribution).pvalue > 1e-3


def counts_fit(observed, expected) -> bool:
    return scipy.stats.chisquare(observed, expected).pvalue > 1e-3


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_continuous_distributions(dtype):
    n = [20000]
    stats = scipy.stats
    assert fits(paddle.rand(n, dtype), stats.uniform.cdf)
    assert fits(paddle.uniform(n, dtype, -3.0, 5.0), stats.uniform(-3, 8).cdf)
    assert fits(paddle.randn(n, dtype), stats.norm.cdf)
    assert fits(paddle.standard_normal(n, dtype), stats.norm.cdf)
    zeros = paddle.zeros(n, dtype)
    assert fits(zeros.clone().normal_(2.0, 3.0), stats.norm(2, 3).cdf)
    assert fits(zeros.clone().uniform_(-1.0, 1.0), stats.uniform(-1, 2).cdf)
    assert fits(zeros.clone().exponential_(2.0), stats.expon(0, 0.5).cdf)
    assert fits(zeros.clone().cauchy_(1.0, 2.0), stats.cauchy(1, 2).cdf)
    assert fits(zeros.clone().log_normal_(1.0, 0.5), stats.lognorm(0.5, 0, np.e).cdf)
    assert fits(paddle.standard_gamma(zeros + 3.0), stats.gamma(3).cdf)


def test_normal_with_numbers_and_tensors():
    assert fits(paddle.normal(2.0, 3.0, [20000]), scipy.stats.norm(2, 3).cdf)
    mean = paddle.to_tensor([[0.0], [100.0]], stop_gradient=False)
    x = paddle.normal(mean, paddle.ones([5000]))
    assert x.shape == [2, 5000]
    assert fits(x[1] - 100, scipy.stats.norm.cdf)
    x.sum().backward()
    assert mean.grad.tolist() == [[5000.0], [5000.0]]
    assert paddle.normal(1.0, mean).shape == [2, 1]
    assert paddle.normal().shape == [1]
    assert fits(paddle.log_normal(1.0, 0.5, [20000]), scipy.stats.lognorm(0.5, 0, np.e).cdf)


def test_uniform_stays_inside():
    for dtype in ("float16", "bfloat16", "float32", "float64"):
        x = paddle.rand([20000], dtype)
        assert x.dtype == dtype
        assert x.astype("float64").min().item() >= 0
        assert x.astype("float64").max().item() < 1


def test_normal_reaches_far_out():
    """The tail is drawn with the full precision of a small number, not of 1 - small."""
    assert paddle.randn([1_000_000]).abs().max().item() > 4.5
    tail = np.array([2.0**-64])
    assert ops.upper_quantile(NUMPY, tail, np.float64, *ops.PPND16)[0] > 9


def test_whole_numbers():
    x = paddle.randint(-2, 3, [50000])
    assert counts_fit(np.bincount(x.numpy() + 2), [10000] * 5)
    assert x.dtype == "int64"
    assert paddle.randint(10, shape=[100]).numpy().min() >= 0
    assert paddle.randint(10).shape == [1]
    assert paddle.randint(0, 9, [4], "int32").dtype == "int32"
    assert paddle.randint_like(paddle.ones([2, 3]), 5).dtype == "float32"
    assert paddle.randint_like(paddle.ones([2, 3]), 0, 5, "int64").dtype == "int64"
    wide = paddle.randint(-(2**62), 2**62, [1000])
    assert wide.numpy().min() < -(2**60)
    with pytest.raises(ValueError, match="low < high"):
        paddle.randint(3, 3, [1])


def test_permutations():
    counts = np.zeros((5, 5))
    for _ in range(2000):
        counts[np.arange(5), paddle.randperm(5).numpy()] += 1
    assert counts_fit(counts.ravel(), [400] * 25)
    assert paddle.randperm(3, "int32").dtype == "int32"
    assert paddle.randperm(0).shape == [0]


def test_bernoulli():
    p = paddle.full([40000], 0.3)
    assert counts_fit(np.bincount(paddle.bernoulli(p).numpy().astype(int)), [28000, 12000])
    assert abs(paddle.bernoulli(p, 0.9).mean().item() - 0.9) < 0.01
    assert abs(p.clone().bernoulli_(0.2).mean().item() - 0.2) < 0.01
    assert paddle.bernoulli(paddle.to_tensor([0.0, 1.0])).tolist() == [0.0, 1.0]
    p.stop_gradient = False
    assert paddle.bernoulli(p).stop_gradient


def test_counts():
    rate = paddle.full([40000], 2.5)
    x = paddle.poisson(rate).numpy().astype(int)
    expected = scipy.stats.poisson(2.5).pmf(np.arange(9)) * 40000
    x = x[x < 9]
    assert counts_fit(np.bincount(x, minlength=9), expected / expected.sum() * len(x))
    trials = paddle.full([40000], 6, "int64")
    y = paddle.binomial(trials, paddle.to_tensor(0.4))
    assert y.dtype == "int64"
    expected = scipy.stats.binom(6, 0.4).pmf(range(7)) * 40000
    assert counts_fit(np.bincount(y.numpy(), minlength=7), expected)
    z = paddle.zeros([40000]).geometric_(0.3).numpy().astype(int)
    assert z.min() == 1
    assert abs(z.mean() - 1 / 0.3) < 0.1


def test_multinomial_with_replacement():
    weights = paddle.to_tensor([[1.0, 2.0, 0.0, 5.0], [3.0, 1.0, 4.0, 0.0]])
    x = paddle.multinomial(weights, 20000, replacement=True)
    assert x.shape == [2, 20000]
    assert x.dtype == "int64"
    for row, w in zip(x.numpy(), weights.numpy(), strict=True):
        counts, share = np.bincount(row, minlength=4), w / w.sum() * 20000
        assert counts_fit(counts[share > 0], share[share > 0])
        assert not counts[share == 0].any()


def test_multinomial_without_replacement():
    weights = np.array([1.0, 2.0, 3.0])
    rows = paddle.to_tensor(np.tile(weights, (20000, 1)))
    pairs = paddle.multinomial(rows, 2).numpy()
    assert (pairs[:, 0] != pairs[:, 1]).all()
    p = weights / weights.sum()
    seen = np.zeros((3, 3))
    np.add.at(seen, (pairs[:, 0], pairs[:, 1]), 1)
    wanted = [[p[i] * p[j] / (1 - p[i]) if i != j else 0 for j in range(3)] for i in range(3)]
    off = ~np.eye(3, dtype=bool)
    assert counts_fit(seen[off], np.array(wanted)[off] * 20000)
    with pytest.raises(ValueError, match="fewer than num_samples=3 weights are above 0"):
        paddle.multinomial(paddle.to_tensor([1.0, 0.0, 1.0]), 3)
    with pytest.raises(ValueError, match="weights in one row, or rows"):
        paddle.multinomial(paddle.ones([2, 2, 2]))


# ---- streams ---------------------------------------------------------------------------------


def test_draws_are_independent_of_each_other():
    """Neighbouring elements, neighbouring counters and neighbouring seeds do not correlate."""
    n = 20000
    draws = np.stack([paddle.rand([n]).numpy() for _ in range(8)])
    seeds = []
    for seed in range(8):
        paddle.seed(seed)
        seeds.append(paddle.rand([n]).numpy())
    limit = 4.5 / np.sqrt(n)
    for group in (draws, np.stack(seeds)):
        off = ~np.eye(8, dtype=bool)
        assert np.abs(np.corrcoef(group)[off]).max() < limit
        lagged = [np.corrcoef(row[:-1], row[1:])[0, 1] for row in group]
        assert np.abs(lagged).max() < limit


def test_every_bit_is_fair():
    words = ops.random_bits(paddle.arange(20000), ops.stream(1, 1)).numpy()
    ones = [(words >> k & 1).mean() for k in range(64)]
    assert np.abs(np.array(ones) - 0.5).max() < 4.5 * 0.5 / np.sqrt(20000)


def test_seed_and_state():
    assert repr(paddle.seed(7)) == "Generator(key=7, counter=0)"
    assert paddle.seed(7).initial_seed() == 7
    first = paddle.rand([3]).tolist()
    state = paddle.get_rng_state()
    second = paddle.rand([3]).tolist()
    assert first != second
    paddle.set_rng_state(state)
    assert paddle.rand([3]).tolist() == second
    paddle.seed(7)
    assert paddle.rand([3]).tolist() == first
    paddle.set_cuda_rng_state(state)
    assert paddle.get_cuda_rng_state() == state
    with pytest.raises(ValueError, match="the list that get_rng_state"):
        paddle.set_rng_state([])
    with pytest.raises(TypeError):
        paddle.seed(1.5)


def test_a_seed_of_its_own():
    a = paddle.uniform([4], seed=3).tolist()
    b = paddle.zeros([4]).uniform_(seed=3).tolist()
    assert a == b
    state = paddle.get_rng_state()
    paddle.uniform([4], seed=3)
    assert paddle.get_rng_state() == state


def test_threads_never_draw_the_same_stream():
    seen, lock = [], threading.Lock()

    def draw():
        mine = [paddle.rand([1]).item() for _ in range(200)]
        with lock:
            seen.extend(mine)

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert paddle.get_rng_state() == [(2026, 800)]
    paddle.seed(2026)
    assert sorted(seen) == sorted(paddle.rand([1]).item() for _ in range(800))


def test_random_tensors_want_no_gradient_and_have_any_shape():
    assert paddle.randn([2]).stop_gradient
    assert paddle.rand([]).shape == []
    assert paddle.randn([0, 3]).shape == [0, 3]
    assert paddle.poisson(paddle.zeros([0])).shape == [0]
    assert paddle.tensor.random.gaussian([2], 5.0, 0.0).tolist() == [5.0, 5.0]
