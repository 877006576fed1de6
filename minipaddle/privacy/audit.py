"""Attacks that say what a trained network gives away of its data, with intervals.

An attack says of samples whether a network was trained on them; the area under its curve (AUC) is
the probability that it ranks one that was above one that was not: 0.5 is a guess. `train(inputs,
labels, seed)` is the user's function, which returns a trained module. One that trains nothing is
the control: its AUC must be 0.5 within the interval.

Sources: Carlini et al., "The secret sharer" (2019), for canaries and exposure; Carlini et al.,
"Membership inference attacks from first principles" (2022), for the likelihood ratio.
"""

from __future__ import annotations

from typing import NamedTuple

from ..eager.modes import no_grad
from ..engine.core.errors import value_error
from ..engine.eager.device import NUMPY as np
from ..tensor.creation import to_tensor


class Estimate(NamedTuple):
    """A mean of repetitions, and the interval that holds the true one with probability 0.95."""

    mean: float
    low: float
    high: float

    def contains(self, value: float) -> bool:
        """Whether `value` is within the interval: a difference to it is not significant."""
        return self.low <= value <= self.high


def estimate(values) -> Estimate:
    """The mean of repetitions and its interval, by Student's t.

    Raises ValueError for less than two.

    >>> mean, low, high = paddle.privacy.estimate([0.4, 0.5, 0.6])
    >>> round(mean, 3), round(low, 3), round(high, 3)
    (0.5, 0.252, 0.748)
    """
    values = np.asarray(values, "float64")
    if values.size < 2:
        raise value_error(f"an interval of {values.size} repetitions", "two or more")
    error = values.std(ddof=1) / values.size**0.5 * np.stdtrit(values.size - 1, 0.975)
    mean = values.mean()
    return Estimate(float(mean), float(mean - error), float(mean + error))


def auc_of(members, others) -> float:
    """The probability that a score of `members` is above one of `others`; a tie is one half.

    >>> paddle.privacy.auc_of([3, 2], [1, 2])
    0.875
    """
    members, others = np.asarray(members), np.sort(np.asarray(others))
    sides = [np.searchsorted(others, members, side) for side in ("left", "right")]
    return float(np.mean(sides) / len(others))


def confidences(module, inputs, labels):
    """log p / (1 - p) of each sample, float64: p is the probability of its label, by softmax.

    inputs: arrays of n samples; labels: n whole numbers; the module gives scores (n, classes)

    >>> import numpy as np
    >>> scores = paddle.nn.Identity()
    >>> paddle.privacy.confidences(scores, np.eye(2, dtype="float32"), np.array([0, 0]))
    array([ 1., -1.])
    """
    module.eval()
    with no_grad():
        scores = module(to_tensor(inputs)).numpy().astype("float64")
    rows = np.arange(len(labels))
    own = scores[rows, labels].copy()
    scores[rows, labels] = -np.inf
    largest = scores.max(axis=1)
    return own - largest - np.log(np.exp(scores - largest[:, None]).sum(axis=1))


class CanaryAudit(NamedTuple):
    """Exposure in bits, what it is of a network that saw no canary, and the AUC."""

    exposure: Estimate
    chance: float
    auc: Estimate


def audit_canaries(train, inputs, labels, classes: int, canaries=20, seeds=range(5)) -> CanaryAudit:
    """Compare canaries in the training data with others that are left out.

    A canary is an input with a label drawn at random, which only memory can know. For each seed
    `canaries` rows of the data become canaries, and as many rows are left out, with random labels,
    too. The exposure of a canary is log₂ (n + 1) - log₂ r, where r is its rank by confidence among
    itself and the n left out: at most log₂ (n + 1), without memory `chance` in the mean.

    Raises ValueError where the data have less than 2 · canaries rows.

    >>> import numpy as np
    >>> x, y = np.random.default_rng(0).normal(size=(40, 4)).astype("float32"), np.arange(40) % 2
    >>> untrained = lambda inputs, labels, seed: paddle.nn.Linear(4, 2)
    >>> audit = paddle.privacy.audit_canaries(untrained, x, y, 2, canaries=8)
    >>> audit.auc.low < audit.auc.mean < audit.auc.high, round(audit.chance, 2)
    (True, 1.12)
    """
    if 2 * canaries > len(labels):
        raise value_error(f"{canaries} canaries of {len(labels)} rows", f"{len(labels) // 2}")
    exposures, aucs = [], []
    for seed in seeds:
        chance = np.random.default_rng(seed)
        order = chance.permutation(len(labels))
        drawn, rows = labels.copy(), order[canaries:]
        drawn[order[: 2 * canaries]] = chance.integers(0, classes, 2 * canaries)
        module = train(inputs[rows], drawn[rows], seed)
        scores = confidences(module, inputs[order], drawn[order])
        left, kept = scores[:canaries], scores[canaries : 2 * canaries]
        ranks = 1 + (left[None] > kept[:, None]).sum(axis=1)
        exposures.append(np.mean(np.log2(canaries + 1) - np.log2(ranks)))
        aucs.append(auc_of(kept, left))
    ranks = np.arange(1, canaries + 2)
    unknown = float(np.mean(np.log2(canaries + 1) - np.log2(ranks)))
    return CanaryAudit(estimate(exposures), unknown, estimate(aucs))


def audit_membership(train, inputs, labels, models: int = 16, seeds=range(5)) -> Estimate:
    """The AUC of a likelihood ratio for each sample: LiRA, with few shadow models.

    Each of `models` networks is trained on a half of the data, drawn anew. Each in turn is
    attacked with the help of all others: the confidences of a sample in networks that saw it, and
    in those that did not, give two normal densities, whose ratio at the attacked network's
    confidence is its score. The standard deviations are common to all samples, as few models
    call for. For each seed all of that is done anew, as attacked networks that share their shadows
    are no repetitions.

    Raises ValueError for less than four models.

    >>> import numpy as np
    >>> x, y = np.random.default_rng(0).normal(size=(40, 4)).astype("float32"), np.arange(40) % 2
    >>> untrained = lambda inputs, labels, seed: paddle.nn.Linear(4, 2)
    >>> auc = paddle.privacy.audit_membership(untrained, x, y, models=8)
    >>> auc.low < auc.mean < auc.high
    True
    """
    if models < 4:
        raise value_error(f"models={models}", "four or more")
    aucs = []
    for seed in seeds:
        inside = np.random.default_rng(seed).random((models, len(labels))) < 0.5
        scores = []
        for k, rows in enumerate(inside):
            module = train(inputs[rows], labels[rows], seed * models + k)
            scores.append(confidences(module, inputs, labels))
        ratios = likelihood_ratios(np.stack(scores), inside)
        aucs.append(np.mean([auc_of(r[rows], r[~rows]) for r, rows in zip(ratios, inside)]))
    return estimate(aucs)


def likelihood_ratios(scores, inside):
    """Log ratios (models, n) of scores (models, n), each by all other models' scores.

    inside (models, n): whether a model saw a sample; without two models of either kind the ratio
    of a sample is 0

    >>> import numpy as np
    >>> scores = np.array([[2.0], [3.0], [4.0], [-2.0], [-3.0], [-4.0]])
    >>> np.sign(paddle.privacy.likelihood_ratios(scores, scores > 0)).ravel().tolist()
    [1.0, 1.0, 1.0, -1.0, -1.0, -1.0]
    """
    ratios = np.zeros(scores.shape)
    for k in range(len(scores)):
        others = np.arange(len(scores)) != k
        sides, known = [], np.ones(scores.shape[1], bool)
        for side in (inside[others], ~inside[others]):
            count = side.sum(axis=0)
            mean = (scores[others] * side).sum(axis=0) / np.maximum(count, 1)
            spread = ((scores[others] - mean) * side) ** 2
            variance = spread.sum() / max(1, (count - 1).clip(0).sum())
            sides.append(-((scores[k] - mean) ** 2) / (2 * variance) - np.log(variance) / 2)
            known &= count >= 2
        ratios[k] = np.where(known, sides[0] - sides[1], 0.0)
    return ratios
