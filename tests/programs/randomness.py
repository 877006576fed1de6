"""Random numbers: what holds whichever generator makes them."""

from tests.programs.common import wave


def seeds(paddle):
    """The same seed gives the same numbers, another gives others."""

    def draw(seed):
        paddle.seed(seed)
        return paddle.rand([4]), paddle.randn([4]), paddle.randint(0, 100, [4])

    first, again, other = draw(7), draw(7), draw(8)
    same = [paddle.equal_all(a, b) for a, b in zip(first, again, strict=True)]
    return same, paddle.equal_all(first[0], other[0]), [str(v.dtype) for v in first]


def distributions(paddle):
    """Ranges and moments."""
    paddle.seed(5)
    u, n = paddle.uniform([4000], min=-1.0, max=3.0), paddle.randn([4000])
    i = paddle.randint(low=2, high=7, shape=[4000])
    g = paddle.normal(mean=2.0, std=0.5, shape=[4000])
    b = paddle.bernoulli(paddle.full([4000], 0.3))
    p = paddle.randperm(10)
    m = paddle.multinomial(paddle.to_tensor([0.1, 0.0, 0.9]), 50, replacement=True)
    return {
        "uniform": [(u >= -1).all(), (u < 3).all(), abs(u.mean().item() - 1) < 0.1],
        "normal": [abs(n.mean().item()) < 0.1, abs(n.std().item() - 1) < 0.1],
        "shifted": [abs(g.mean().item() - 2) < 0.1, abs(g.std().item() - 0.5) < 0.05],
        "integers": [i.min(), i.max(), i.dtype == paddle.int64],
        "coins": [paddle.unique(b), abs(b.mean().item() - 0.3) < 0.05],
        "permutation": paddle.sort(p),
        "chosen": [(m != 1).all(), (m == 2).astype("int64").sum().item() > 30],
        "shapes": [paddle.rand([2, 3]).shape, paddle.randint(5, shape=[1]).shape],
        "half_open": (paddle.rand([1000]) < 1).all(),
    }


def monte_carlo(paddle):
    """Pi from darts, and a walk whose spread grows with the root of time."""
    paddle.seed(1)
    x, y = paddle.rand([20000]), paddle.rand([20000])
    pi = 4 * (x * x + y * y <= 1).astype("float32").mean()
    steps = paddle.randint(0, 2, [500, 100]).astype("float32") * 2 - 1
    ends = paddle.cumsum(steps, axis=1)[:, -1]
    return abs(pi.item() - 3.1416) < 0.05, abs(ends.std().item() - 10) < 1.0


def metropolis(paddle):
    """Samples of a bell by accepting and refusing."""
    paddle.seed(2)
    x, kept = paddle.zeros([2000]), []
    for _ in range(60):
        proposal = x + 1.5 * paddle.randn([2000])
        accept = paddle.rand([2000]) < paddle.exp((x**2 - proposal**2) / 2)
        x = paddle.where(accept, proposal, x)
        kept.append(accept.astype("float32").mean())
    return abs(x.mean().item()) < 0.15, abs(x.std().item() - 1) < 0.15, len(kept)


def shuffled_batches(paddle):
    """An epoch sees every row once, in another order."""
    paddle.seed(4)
    data = paddle.to_tensor(wave(10, 2))
    seen = []
    for _ in range(2):
        order = paddle.randperm(10)
        batches = [paddle.gather(data, order[k : k + 4]) for k in range(0, 10, 4)]
        seen.append(paddle.concat(batches))
    shapes = [b.shape for b in batches]
    total = [paddle.allclose(s.sum(axis=0), data.sum(axis=0), atol=1e-5) for s in seen]
    return shapes, total, paddle.equal_all(seen[0], seen[1])
