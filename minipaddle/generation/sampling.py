"""The next token, drawn by the scores of a model.

A sampler belongs to one text and has a generator of its own: what a text becomes depends on its
seed, whatever else is computed beside it.

Sources: Fan et al., "Hierarchical Neural Story Generation", 2018 (top k); Holtzman et al., "The
Curious Case of Neural Text Degeneration", 2020 (top p).
"""

from numbers import Integral, Real

import numpy as np

from ..engine.core.errors import value_error


class Sampler:
    """Draws tokens for one text.

    temperature: scores are divided by it; 0 always takes the likeliest token
    top_k: only that many of the likeliest tokens are drawn from
    top_p: only the fewest of the likeliest whose probabilities add up to it
    seed: a whole number; equal seeds draw equal tokens

    >>> from minipaddle.generation import Sampler
    >>> Sampler(temperature=0).draw([0.1, 0.7, 0.2])
    1
    >>> Sampler(top_k=2).probabilities([1.0, 2.0, 1.0, 0.0]).round(2).tolist()
    [0.27, 0.73, 0.0, 0.0]
    """

    def __init__(self, temperature=1.0, top_k=None, top_p=None, seed=None):
        for name, value, good, expected in (
            ("temperature", temperature, lambda t: is_a(Real, t) and t >= 0, "0 or more"),
            ("top_k", top_k, lambda k: k is None or (is_a(Integral, k) and k >= 1),
             "a whole number from 1 on, or None"),
            ("top_p", top_p, lambda p: p is None or (is_a(Real, p) and 0 < p <= 1),
             "above 0, at most 1, or None"),
        ):  # fmt: skip
            if not good(value):
                raise value_error(f"generate with {name}={value!r:.60}", expected)
        self.temperature, self.top_k, self.top_p = temperature, top_k, top_p
        self.random = np.random.default_rng(seed)

    def probabilities(self, scores) -> np.ndarray:
        """The probability of each token: float64 [vocab] for scores [vocab]. Raises ValueError for
        scores that say nothing, see `as_scores`.
        """
        scores = as_scores(scores)
        probabilities = np.zeros(len(scores))
        if self.temperature == 0:
            probabilities[scores.argmax()] = 1
            return probabilities
        order = np.argsort(-scores, kind="stable")  # of equal scores the first comes first
        if self.top_k is not None:
            order = order[: self.top_k]
        top = scores[order]
        with np.errstate(over="ignore"):  # a temperature near 0: less likely tokens get 0
            p = np.exp((top - top[0]) / self.temperature)
        p /= p.sum()
        if self.top_p is not None:
            n = 1 + np.searchsorted(np.cumsum(p)[:-1], self.top_p)
            order, p = order[:n], p[:n] / p[:n].sum()
        probabilities[order] = p
        return probabilities

    def draw(self, scores) -> int:
        """A token for scores [vocab]."""
        if self.temperature == 0:
            return int(np.argmax(as_scores(scores)))
        return self.draw_from(self.probabilities(scores))

    def draw_from(self, p: np.ndarray) -> int:
        """A token that is drawn with probabilities p [vocab]."""
        ends = np.cumsum(p)
        return int(np.searchsorted(ends, self.random.random() * ends[-1], side="right"))


def is_a(kind: type, x) -> bool:
    """Whether x is a number of this kind; True and False are none."""
    return isinstance(x, kind) and not isinstance(x, bool)


def as_scores(scores) -> np.ndarray:
    """Scores [..., vocab] as float64. Raises ValueError if those of a token are NaN or infinite, or
    if all tokens have -inf; those that have it cannot follow.
    """
    scores = np.asarray(scores, "float64")
    best = scores.max(-1)
    if not np.isfinite(best).all():
        worst = best[~np.isfinite(best)].flat[0]
        raise value_error(
            f"the largest score of next tokens is {worst}",
            "finite numbers, and -inf for tokens that cannot follow",
            hint="look for NaN and infinity in the weights of the model",
        )
    return scores
