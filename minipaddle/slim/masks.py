"""Which weights stay: masks of ones and zeros from scores of weights.

Sources: Han et al., "Learning both weights and connections" (2015), for magnitudes; Zhu and Gupta,
"To prune, or not to prune" (2017), for the schedule; Sanh, Wolf, Rush, "Movement pruning" (2020);
Mishra et al., "Accelerating sparse deep neural networks" (2021), for n of m.
"""

from functools import cache
from itertools import chain, combinations, product
from math import comb

from ..core.prelude import Recording, Tensor, slot, value_error
from ..engine.eager.device import module_of
from ..optimizer.masked import mask_of


@slot("slim.mask_smallest")
def mask_smallest(scores, count: int):
    """An array of the scores' shape: zeros at the `count` smallest scores, else ones. Of equal
    scores the first go.
    """
    mask = scores.astype("float32") * 0 + 1
    flat = mask.reshape(-1)
    flat[scores.reshape(-1).argsort(kind="stable")[:count]] = 0
    return flat.reshape(scores.shape)


@slot("slim.gradual_ratio")
def gradual_ratio(step: int, first: int, steps: int, initial: float, final: float) -> float:
    """The part of the weights that is zero at `step`: it rises from `initial` at `first` to `final`
    after `steps` more, fast while much is superfluous: final + (initial - final)(1 - t)³.
    """
    if step < first:
        return 0.0
    left = max(0.0, 1 - (step - first) / steps)
    return final + (initial - final) * left**3


@slot("slim.movement")
def movement(scores, weight, gradient):
    """The scores after a step: a weight that moves away from zero (its gradient has the other sign)
    gains.
    """
    return scores - weight * gradient


# ---- n of m ----------------------------------------------------------------------------------


@slot("slim.mask_1d")
def mask_1d(matrix, n: int, m: int):
    """Of each m neighbours in a row the m - n smallest by magnitude are zero; m divides the columns
    of the matrix.
    """
    groups = abs(matrix).reshape(-1, m)
    mask = groups * 0 + 1
    order = groups.argsort(axis=1, kind="stable")[:, : m - n]
    mask[[[k] for k in range(len(groups))], order] = 0
    return mask.reshape(matrix.shape)


@slot("slim.mask_2d_greedy")
def mask_2d_greedy(matrix, n: int, m: int):
    """In each block of m × m at most n stay in a row and in a column: the largest first."""
    mask = abs(matrix) * 0
    for top, left in product(*(range(0, k, m) for k in matrix.shape)):
        block = abs(matrix[top : top + m, left : left + m])
        rows, columns = [0] * m, [0] * m
        for index in (-block).reshape(-1).argsort(kind="stable"):
            i, j = divmod(int(index), m)
            if rows[i] < n and columns[j] < n:
                mask[top + i, left + j] = 1
                rows[i], columns[j] = rows[i] + 1, columns[j] + 1
    return mask


@slot("slim.mask_2d_best")
def mask_2d_best(matrix, n: int, m: int):
    """In each block of m × m exactly n stay in a row and in a column: those of the greatest sum."""
    (r, c), kept = matrix.shape, patterns(n, m)
    blocks = abs(matrix).reshape(r // m, m, c // m, m).transpose(0, 2, 1, 3).reshape(-1, m * m)
    flat = module_of(matrix).asarray(kept, dtype=blocks.dtype)
    best = flat[(blocks @ flat.T).argmax(axis=1)]
    return best.reshape(r // m, c // m, m, m).transpose(0, 2, 1, 3).reshape(r, c)


@cache
def patterns(n: int, m: int) -> list:
    """All m × m patterns of ones and zeros with n ones in each row and each column: 90 of 2:4."""
    if comb(m, n) ** m > MOST_PATTERNS:
        raise value_error(f"mask_2d_best of {n} of {m}", "2 of 4", hint="use mask_2d_greedy")
    lines = [[int(k in chosen) for k in range(m)] for chosen in combinations(range(m), n)]
    every = ([*rows] for rows in product(lines, repeat=m))
    return [[*chain(*rows)] for rows in every if all(sum(c) == n for c in zip(*rows))]


MOST_PATTERNS = 100_000

ALGORITHMS = {"mask_1d": mask_1d, "mask_2d_greedy": mask_2d_greedy, "mask_2d_best": mask_2d_best}


def mask_n_of_m(weight, n: int, m: int, algorithm: str):
    """The mask of a weight array, groups along the axis that its product sums over: the rows of a
    linear layer's [in, out], the input channels of a convolution's [out, in, *kernel].

    Sizes that m does not divide are padded with zeros for the choice.
    """
    if algorithm not in ALGORITHMS:
        raise value_error(f"mask_algo={algorithm!r}", f"one of {', '.join(ALGORITHMS)}")
    if not 0 < n < m:
        raise value_error(f"n={n} of m={m}", "0 < n < m")
    axes = (1, 0) if weight.ndim == 2 else (0, *range(2, weight.ndim), 1)
    turned = weight.transpose(axes)
    matrix = turned.reshape(-1, turned.shape[-1])
    rows, columns = matrix.shape
    size = -(-rows // m) * m, -(-columns // m) * m
    padded = module_of(matrix).zeros(size, dtype=matrix.dtype)
    padded[:rows, :columns] = matrix
    mask = ALGORITHMS[algorithm](padded, n, m)[:rows, :columns]
    back = [axes.index(k) for k in range(len(axes))]
    return mask.reshape(turned.shape).transpose(back)


# ---- masked parameters -----------------------------------------------------------------------


def apply_mask(p, mask) -> Tensor:
    """Write a mask (an array) into the parameter's mask, and zeros into the parameter."""
    own = mask_of(p)
    own.set_value(mask.astype(own.spec.dtype))
    renew(p)
    return own


def renew(p) -> None:
    """Make the masked elements of a parameter zero again, in a program too."""
    if hasattr(p, "sparsity_mask"):
        with Recording(False):
            p.set_value(p * p.sparsity_mask.astype(p.dtype))
