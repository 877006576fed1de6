"""Checks of 21_eight_bits/kl_threshold."""

import numpy as np
from hypothesis import strategies as st
from scipy.stats import entropy

import minipaddle as paddle
from minipaddle.learn import Exercise, expect, expect_that
from minipaddle.quantization import observers as o

NORM = "p, q = (p / max(p.sum(), 1), q / max(q.sum(), 1))"
SAME = "the sum of p is the same for all sizes: the least divergence stays the least"
NONE = "no counts at all: infinite or not a number, which is never less"
ONE = "counts are whole numbers: a sum of 1 is one full bin, and alone"
ZERO = "the logarithm is infinite there anyway"

exercise = Exercise(
    title="The KL threshold: clip where the distribution changes least",
    level="hard",
    minutes=40,
    slots={"quantization.kl_threshold": "kl_threshold"},
    hints=(
        "Two levels for the counts [40, 30, 20, 10]: which four numbers is Q, before it is divided "
        "by its sum?",
        "`np.bincount(level, weights)` adds up weights by level; with `counts > 0` as weights it "
        "counts the bins that are not empty. Q knows nothing of what is clipped; P does.",
        "for size = levels … len(counts):\n"
        "    kept = counts[:size]; level of bin i: i · levels // size\n"
        "    q: the sum of its level / how many of its bins are not empty, 0 in empty bins\n"
        "    p: kept, and counts[size:] added to the last bin\n"
        "    both by their sums; Σ p log(p / q) where p > 0, infinite if q is 0 there\n"
        "    a smaller one than before: that size",
    ),
    wrong={
        "what is clipped is forgotten": "p[-1] += counts[size:].sum() → pass",
        "what is clipped counts for Q too": (
            "kept = counts[:size].astype('float64') → kept = counts[:size].astype('float64'); "
            "kept[-1] += counts[size:].sum()",
            "p[-1] += counts[size:].sum() → pass",
        ),
        "empty bins are filled": "np.bincount(level, full) → np.bincount(level)",
        "empty bins have a share": "share[level] * full → share[level]",
        "the divergence turned round": (
            "(p[there] * np.log(p[there] / q[there])).sum() → "
            "(q[there] * np.log(q[there] / p[there])).sum()"
        ),
        "the last of equals": "apart < least → apart <= least",
        "the largest divergence": (
            "best, least = (len(counts), np.inf) → best, least = (len(counts), -np.inf)",
            "apart < least → apart > least",
        ),
        "without the last size": "range(levels, len(counts) + 1) → range(levels, len(counts))",
        "fewer bins than levels": "range(levels, len(counts) + 1) → range(1, len(counts) + 1)",
        "an empty Q bin does not matter": ("p > 0 → (p > 0) & (q > 0)"),
        "not divided by the sums": "p, q = (p / max(p.sum(), 1), q / max(q.sum(), 1)) → pass",
        "counts that are changed": "p = kept.copy() → p = counts[:size]",
    },
    unkillable={
        f"{NORM} → p, q = (p * max(p.sum(), 1), q / max(q.sum(), 1))": SAME,
        f"{NORM} → p, q = (p / min(p.sum(), 1), q / max(q.sum(), 1))": SAME,
        f"{NORM} → p, q = (p / max(p.sum(), 2), q / max(q.sum(), 1))": SAME,
        f"{NORM} → p, q = (p / max(p.sum(), 0), q / max(q.sum(), 1))": NONE,
        f"{NORM} → p, q = (p / max(p.sum(), 1), q / max(q.sum(), 2))": ONE,
        f"{NORM} → p, q = (p / max(p.sum(), 1), q / max(q.sum(), 0))": NONE,
        "if (q[there] > 0).all(): → if (q[there] >= 0).all():": ZERO,
        "if (q[there] > 0).all(): → if (q[there] > -1).all():": ZERO,
    },
)


def right(counts, levels):
    """The same bin by bin, with SciPy's divergence."""
    found = []
    for size in range(levels, len(counts) + 1):
        p = [float(c) for c in counts[:size]]
        q = [0.0] * size
        for k in range(levels):
            own = [i for i in range(size) if i * levels // size == k and p[i] > 0]
            for i in own:
                q[i] = sum(p[j] for j in own) / len(own)
        p[-1] += float(sum(counts[size:]))
        found.append(entropy(p, q) if sum(p) and sum(q) else (np.inf if sum(p) else 0.0))
    least = min(found)
    if least == np.inf:
        return [len(counts)]
    return [levels + k for k, d in enumerate(found) if d <= least + 1e-12]


def check(yours, counts, levels):
    counts = np.asarray(counts)
    before = counts.copy()
    given = {"counts": before, "levels": levels}
    got, sizes = int(yours.kl_threshold(counts, levels)), right(before, levels)
    if got not in sizes:  # rounding decides between equals
        expect(got, sizes[0], given=given)
    expect_that(np.array_equal(counts, before), "counts were written into", given=given, got=counts)


@exercise.example
def the_example(yours):
    """A count far out is clipped."""
    check(yours, [40, 30, 20, 10, 0, 0, 0, 1], 2)


@exercise.example
def plain_cases(yours):
    """Equal counts, none at all, one bin each, an empty bin at the end of what is kept."""
    check(yours, np.full(8, 5), 4)
    none = np.zeros(6, "int64")
    expect(int(yours.kl_threshold(none, 3)), 3, given={"counts": none, "levels": 3})
    for counts, levels in (
        ([1.0, 0, 0, 0, 0, 0], 2), ([10, 9, 0, 0, 0, 0, 8, 7, 0, 0, 0, 1], 4),
        ([9, 8, 7, 0, 0, 0, 0, 0, 5], 3), ([6, 5, 9, 3, 4, 1, 2, 0, 3], 4), ([7, 1], 2),
        ([10, 5, 3, 9, 3], 3), ([0, 3, 0, 5, 0, 0, 9], 3),
        ([9, 8, 7, 6, 0, 0, 0, 3], 2), ([40, 38, 30, 25, 10, 6, 1, 0, 0, 0, 0, 0, 0, 2], 4),
    ):  # fmt: skip
        check(yours, counts, levels)


@exercise.property(
    seed=st.integers(0, 999),
    bins=st.integers(4, 12) | st.integers(4, 30),
    levels=st.integers(2, 4),
    dtype=st.sampled_from(["int64", "float32", "float64"]),
)
def any_histogram(yours, seed, bins, levels, dtype):
    """Bells with a long tail and gaps."""
    rng = np.random.default_rng(seed)
    x = abs(rng.standard_t(3, size=int(rng.integers(5, 400))))
    counts = np.histogram(x, bins, (0, x.max()))[0].astype(dtype)
    check(yours, counts, levels)


@exercise.example
def in_the_engine(yours):
    """An observer that looks at a bell with one number far out: the threshold leaves it out."""
    x = np.append(np.random.default_rng(0).normal(size=4000), 50.0).astype("f")
    observer = o.KLObserver(4, bins_count=256)._instance(None)
    with exercise.plugged(yours):
        observer(paddle.to_tensor(x))
        got = observer.scales().item()
    expect_that(2.0 < got < 5.0, "a threshold between 2 and 5", given={"numbers": x}, got=got)
