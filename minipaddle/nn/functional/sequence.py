"""Functions of sequences: padding masks, beams, connectionist temporal classification."""

import math

from ...core.prelude import (
    dt,
    e,
    movement,
    refuse_unsupported,
    same_shape,
    slot,
    value_error,
    whole,
)
from ...engine.eager.control_flow import while_loop
from ...engine.ops.gather import take
from ...ops import arrangement
from ...ops.arithmetic import logaddexp
from ...ops.labels import pick
from ...tensor import creation
from .activation import log_softmax
from .classification import check_reduction

__all__ = ["ctc_loss", "gather_tree", "sequence_mask"]


def sequence_mask(x, maxlen=None, dtype="int64", name=None):
    """1 at the places before each length in x, along a new last axis of size `maxlen`.

    Without `maxlen` the longest decides.

    >>> paddle.nn.functional.sequence_mask(paddle.to_tensor([1, 3])).tolist()
    [[1, 0, 0], [1, 1, 1]]
    """
    maxlen = whole(x.max() if maxlen is None else maxlen)
    return (creation.arange(0, maxlen, dtype=x.dtype) < x.unsqueeze(-1)).astype(dtype)


def gather_tree(ids, parents):
    """The full beams [time, batch, beam] from the ids chosen and the beams they came from.

    >>> ids = paddle.to_tensor([[[5, 6]], [[7, 8]]])
    >>> parents = paddle.to_tensor([[[0, 0]], [[1, 0]]])
    >>> paddle.nn.functional.gather_tree(ids, parents).tolist()
    [[[6, 5]], [[7, 8]]]
    """
    if ids.spec.ndim != 3 or not same_shape(ids.spec.shape, parents.spec.shape):
        raise value_error(
            f"gather_tree was given ids {ids.spec} and parents {parents.spec}",
            "two of shape [time, batch, beam]",
        )
    beams = ids.spec.shape[2]
    beam = creation.arange(0, beams, dtype=parents.dtype).expand(ids.spec.shape[1:])
    tokens = []
    steps = zip(movement.unstack(ids, axis=0), movement.unstack(parents, axis=0), strict=True)
    for step_ids, step_parents in reversed(list(steps)):
        tokens.append(choose(step_ids, beam))
        beam = choose(step_parents, beam)
    return movement.stack(*reversed(tokens), axis=0)


def choose(x, index):
    """x[..., index[..., k]] along the last axis."""
    return x.take_along_axis(index, -1)


IMPOSSIBLE = -1e30
"""The logarithm of no probability: not -inf, whose differences are nan."""


def ctc_loss(
    log_probs, labels, input_lengths, label_lengths, blank=0, reduction="mean", norm_by_times=False,
    zero_infinity=False,
):  # fmt: skip
    """-log of the probability, summed over all alignments, that the outputs spell the labels.

    `log_probs` [time, batch, classes] is not normalised: softmax is taken here. `labels` [batch,
    longest]. The mean is over losses divided by their label lengths. An impossible label costs inf,
    or 0 with `zero_infinity`. `norm_by_times` is refused. Source: Graves et al. 2006.

    >>> logits, label = paddle.zeros([2, 1, 2]), paddle.to_tensor([[1]])
    >>> times, letters = paddle.to_tensor([2]), paddle.to_tensor([1])
    >>> loss = paddle.nn.functional.ctc_loss(logits, label, times, letters)
    >>> round(loss.exp().item(), 4)  # 3 of 4 outputs of length 2 spell it
    1.3333
    """
    check_reduction("ctc_loss", reduction)
    refuse_unsupported("ctc_loss", norm_by_times=norm_by_times)
    spelled, can_skip = insert_blanks(labels.astype("int64"), blank)
    log_p = log_softmax(log_probs)
    places = spelled.unsqueeze(0).expand([log_p.spec.shape[0], *spelled.spec.shape])
    emitted = choose(log_p, places).transpose([0, 2, 1])
    alpha = forward_scores(emitted, can_skip.transpose([1, 0]), input_lengths.astype("int64"))
    loss = -total_score(alpha, label_lengths.astype("int64"))
    loss = e.where(loss > -0.1 * IMPOSSIBLE, 0.0 if zero_infinity else math.inf, loss)
    if reduction == "mean":
        return (loss / label_lengths.astype(loss.spec.dtype).clip(1.0)).mean()
    return loss.sum() if reduction == "sum" else loss


@slot("ctc.insert_blanks")
def insert_blanks(labels, blank: int):
    """(the labels [batch, 2L + 1] with blanks around each, where a blank before may be skipped)."""
    rows, length = labels.spec.shape
    between = creation.full_like(labels, blank)
    spelled = movement.stack(labels, between, axis=2).reshape([rows, 2 * length])
    spelled = arrangement.pad(spelled, widths=((0, 0), (1, 0)), value=blank)
    _, before_blank = shift(spelled, 1, blank)
    return spelled, (spelled != blank) & (spelled != before_blank)


def shift(x, axis: int, fill):
    """x moved one place and two places along `axis`, `fill` coming in."""
    rest, n = movement.WHOLE[:axis], x.spec.shape[axis]
    widths = [(0, 0)] * axis + [(2, 0)] + [(0, 0)] * (x.spec.ndim - axis - 1)
    wide = arrangement.pad(x, widths=tuple(widths), value=fill)
    return [movement.slice_(wide, index=(*rest, (2 - by, 2 - by + n, 1))) for by in (1, 2)]


def forward_scores(emitted, can_skip, input_lengths):
    """log of the probability of reaching each place [2L + 1, batch] by the end of the input."""
    states = creation.arange(0, can_skip.spec.shape[0], dtype=dt.int64).unsqueeze(1)
    alpha = e.where(states < 2, movement.slice_(emitted, index=(0,)), IMPOSSIBLE)
    lengths, steps = input_lengths.expand(alpha.spec.shape), emitted.spec.shape[0]

    def step(time, alpha):
        arrived = advance(alpha, can_skip, take(emitted, time, axis=0))
        return time + 1, e.where(lengths > time, arrived, alpha)

    begin, going_on = creation.full([], 1, dt.int64), lambda time, _: time < steps
    return while_loop(going_on, step, [begin, alpha], trip_count=steps - 1)[1]


@slot("ctc.advance")
def advance(alpha, can_skip, emitted):
    """The scores of the places [2L + 1, batch] a column later: each is reached from itself, from
    the one before, and over a blank that may be skipped.
    """
    moved, skipped = shift(alpha, 0, IMPOSSIBLE)
    skipped = e.where(can_skip, skipped, IMPOSSIBLE)
    return logaddexp(logaddexp(alpha, moved), skipped) + emitted


def total_score(alpha, label_lengths):
    """The last label or the blank after it must be reached."""
    alpha = alpha.transpose([1, 0])
    at_blank = pick(alpha, 2 * label_lengths, ignore_index=-1)
    at_label = pick(alpha, (2 * label_lengths - 1).clip(0), ignore_index=-1)
    return logaddexp(at_blank, e.where(label_lengths > 0, at_label, IMPOSSIBLE))
