"""Losses against torch: values, gradients, gradients of gradients; and Paddle's own rules."""

import numpy as np
import pytest
import torch
import torch.nn.functional as T

import minipaddle as paddle
from minipaddle.nn import functional as F
from tests.nn.oracle import agree, values

X, Y = values(4, 5), values(4, 5, seed=1)
P = values(4, 5, seed=2, low=0.05, high=0.95)
Q = P / P.sum(1, keepdims=True)
BITS = (values(4, 5, seed=3) > 0).astype("float64")
SIGNS = np.sign(values(4, 5, seed=4))
ROW_SIGNS = np.sign(values(4, seed=4))
LABEL = np.array([1, 0, 4, 2])
WEIGHT = values(5, seed=6, low=0.5, high=2.0)
IMAGE, PIXELS = values(2, 4, 3), np.array([[0, 3, 1], [2, 2, 0]])
REDUCTIONS = ["mean", "sum", "none"]

# name: (ours, torch's, arrays). Each is tried with every reduction, to second order.
LOSSES = {
    "cross_entropy": (F.cross_entropy, T.cross_entropy, (X, LABEL)),
    "cross_entropy of pixels": (
        lambda x, y, **k: F.cross_entropy(x, y, axis=1, **k),
        T.cross_entropy,
        (IMAGE, PIXELS),
    ),
    "cross_entropy, smooth": (
        lambda x, y, reduction: reshaped(
            F.cross_entropy(x, y, label_smoothing=0.1, reduction=reduction)
        ),
        lambda x, y, **k: T.cross_entropy(x, y, label_smoothing=0.1, **k),
        (X, LABEL),
    ),
    "cross_entropy, soft": (
        lambda x, y, reduction: reshaped(
            F.cross_entropy(x, y, soft_label=True, reduction=reduction)
        ),
        T.cross_entropy,
        (X, Q),
    ),
    "cross_entropy of probabilities": (
        lambda x, y, **k: F.cross_entropy(x, y, use_softmax=False, **k),
        lambda x, y, **k: T.nll_loss(x.log(), y, **k),
        (Q, LABEL),
    ),
    "nll_loss": (F.nll_loss, T.nll_loss, (X, LABEL)),
    "nll_loss of pixels": (F.nll_loss, T.nll_loss, (IMAGE, PIXELS)),
    "nll_loss, ignoring": (
        lambda x, y, **k: F.nll_loss(x, y, ignore_index=2, **k),
        lambda x, y, **k: T.nll_loss(x, y, ignore_index=2, **k),
        (X, LABEL),
    ),
    "binary_cross_entropy": (F.binary_cross_entropy, T.binary_cross_entropy, (P, BITS)),
    "binary_cross_entropy_with_logits": (
        F.binary_cross_entropy_with_logits,
        T.binary_cross_entropy_with_logits,
        (X, BITS),
    ),
    "mse_loss": (F.mse_loss, T.mse_loss, (X, Y)),
    "l1_loss": (F.l1_loss, T.l1_loss, (X, Y)),
    "smooth_l1_loss": (
        lambda x, y, **k: F.smooth_l1_loss(x, y, delta=0.7, **k),
        lambda x, y, **k: T.huber_loss(x, y, delta=0.7, **k),
        (X, Y),
    ),
    "smooth_l1_loss, not huber": (
        lambda x, y, **k: F.smooth_l1_loss(x, y, delta=0.7, is_huber=False, **k),
        lambda x, y, **k: T.smooth_l1_loss(x, y, beta=0.7, **k),
        (X, Y),
    ),
    "kl_div": (F.kl_div, T.kl_div, (X, Q)),
    "kl_div of logarithms": (
        lambda x, y, **k: F.kl_div(x, y, log_target=True, **k),
        lambda x, y, **k: T.kl_div(x, y, log_target=True, **k),
        (X, Y),
    ),
    "margin_ranking_loss": (
        lambda x, y, s, **k: F.margin_ranking_loss(x, y, s, 0.3, **k),
        lambda x, y, s, **k: T.margin_ranking_loss(x, y, s, 0.3, **k),
        (X, Y, SIGNS),
    ),
    "hinge_embedding_loss": (F.hinge_embedding_loss, T.hinge_embedding_loss, (X, SIGNS)),
    "cosine_embedding_loss": (
        lambda x, y, s, **k: F.cosine_embedding_loss(x, y, s, 0.1, **k),
        lambda x, y, s, **k: T.cosine_embedding_loss(x, y, s, 0.1, **k),
        (X, Y, ROW_SIGNS),
    ),
    "triplet_margin_loss": (F.triplet_margin_loss, T.triplet_margin_loss, (X, Y, P)),
    "triplet_margin_loss, swapped": (
        lambda *xs, **k: F.triplet_margin_loss(*xs, p=3, swap=True, **k),
        lambda *xs, **k: T.triplet_margin_loss(*xs, p=3, swap=True, **k),
        (X, Y, P),
    ),
    "triplet_margin_with_distance_loss": (
        lambda *xs, **k: F.triplet_margin_with_distance_loss(
            *xs, lambda a, b: ((a - b) ** 2).sum(-1), margin=2.0, **k
        ),
        lambda *xs, **k: T.triplet_margin_with_distance_loss(
            *xs, distance_function=lambda a, b: ((a - b) ** 2).sum(-1), margin=2.0, **k
        ),
        (X, Y, P),
    ),
    "soft_margin_loss": (F.soft_margin_loss, T.soft_margin_loss, (X, SIGNS)),
    "multi_label_soft_margin_loss": (
        F.multi_label_soft_margin_loss,
        T.multilabel_soft_margin_loss,
        (X, BITS),
    ),
    "multi_label_margin_loss": (
        F.multi_label_margin_loss,
        T.multilabel_margin_loss,
        (X, np.array([[1, 3, -1, 0, 2], [0, -1, 1, 1, 1], [-1, 0, 0, 0, 0], [4, 3, 2, 1, 0]])),
    ),
    "multi_margin_loss": (F.multi_margin_loss, T.multi_margin_loss, (X, LABEL)),
    "multi_margin_loss, squared": (
        lambda x, y, **k: F.multi_margin_loss(x, y, p=2, margin=0.5, **k),
        lambda x, y, **k: T.multi_margin_loss(x, y, p=2, margin=0.5, **k),
        (X, LABEL),
    ),
    "gaussian_nll_loss": (F.gaussian_nll_loss, T.gaussian_nll_loss, (X, Y, P)),
    "gaussian_nll_loss, full": (
        lambda *xs, **k: F.gaussian_nll_loss(*xs, full=True, **k),
        lambda *xs, **k: T.gaussian_nll_loss(*xs, full=True, **k),
        (X, Y, P),
    ),
    "poisson_nll_loss": (F.poisson_nll_loss, T.poisson_nll_loss, (X, 3 * P)),
    "poisson_nll_loss, full": (
        lambda *xs, **k: F.poisson_nll_loss(*xs, full=True, log_input=False, **k),
        lambda *xs, **k: T.poisson_nll_loss(*xs, full=True, log_input=False, **k),
        (P, 3 * P),
    ),
    "sigmoid_focal_loss": (
        F.sigmoid_focal_loss,
        lambda x, y, **k: reduce(focal(x, y), **k),
        (X, BITS),
    ),
}
# torch has no second derivative of these.
FIRST_ONLY = {name for name in LOSSES if name.startswith("multi") and "margin" in name}
FIRST_ONLY -= {"multi_label_soft_margin_loss"}


def reshaped(loss):
    """Paddle keeps the axis of soft labels."""
    return loss.squeeze(-1) if loss.ndim else loss


def reduce(loss, reduction):
    return {"mean": loss.mean, "sum": loss.sum, "none": lambda: loss}[reduction]()


def focal(x, y, alpha=0.25, gamma=2.0):
    p = x.sigmoid()
    right = p * y + (1 - p) * (1 - y)
    a = alpha * y + (1 - alpha) * (1 - y)
    return -a * (1 - right) ** gamma * right.log()


@pytest.mark.filterwarnings("ignore:reduction. 'mean' divides")  # torch's of its own kl_div
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("name", LOSSES)
def test_against_torch(name, reduction):
    ours, theirs, arrays = LOSSES[name]
    agree(
        lambda *xs: ours(*xs, reduction=reduction),
        lambda *xs: theirs(*xs, reduction=reduction),
        *arrays,
        wrt=[0],
        order=1 if name in FIRST_ONLY else 2,
    )


@pytest.mark.parametrize("name", ["mse_loss", "gaussian_nll_loss, full", "triplet_margin_loss"])
def test_gradients_of_all_inputs(name):
    ours, theirs, arrays = LOSSES[name]
    agree(ours, theirs, *arrays, order=2)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_class_weights(reduction):
    ignoring = np.array([1, -100, 4, 2])
    for label in (LABEL, ignoring):
        agree(
            lambda x, w, label=label: F.cross_entropy(
                x, paddle.to_tensor(label), w, reduction=reduction
            ),
            lambda x, w, label=label: T.cross_entropy(
                x, torch.from_numpy(label), w, reduction=reduction
            ),
            X,
            WEIGHT,
            wrt=[0],
            order=2,
        )
    agree(
        lambda x, w: F.nll_loss(x, paddle.to_tensor(LABEL), w, 4, reduction),
        lambda x, w: T.nll_loss(x, torch.from_numpy(LABEL), w, ignore_index=4, reduction=reduction),
        X,
        WEIGHT,
        wrt=[0],
    )
    agree(
        lambda x, w: F.multi_margin_loss(x, paddle.to_tensor(LABEL), weight=w, reduction=reduction),
        lambda x, w: T.multi_margin_loss(x, torch.from_numpy(LABEL), weight=w, reduction=reduction),
        X,
        WEIGHT,
        wrt=[0],
    )


@pytest.mark.sweep
def test_element_weights():
    y, w = paddle.to_tensor(BITS), paddle.to_tensor(WEIGHT)
    agree(
        lambda x: F.binary_cross_entropy_with_logits(x, y, w, pos_weight=w),
        lambda x: T.binary_cross_entropy_with_logits(
            x, torch.from_numpy(BITS), torch.from_numpy(WEIGHT), pos_weight=torch.from_numpy(WEIGHT)
        ),
        X,
        order=2,
    )
    agree(
        lambda x: F.binary_cross_entropy(x, y, w),
        lambda x: T.binary_cross_entropy(x, torch.from_numpy(BITS), torch.from_numpy(WEIGHT)),
        P,
    )
    agree(
        lambda x: F.multi_label_soft_margin_loss(x, y, w),
        lambda x: T.multilabel_soft_margin_loss(
            x, torch.from_numpy(BITS), torch.from_numpy(WEIGHT)
        ),
        X,
    )


def test_soft_labels_with_class_weights():
    """Paddle's mean: Σ w·loss / Σ w, the weight of a row being its labels' mean weight."""
    x, q, w = (paddle.to_tensor(a) for a in (X, Q, WEIGHT))
    per_row = (Q * WEIGHT).sum(1)
    plain = -(Q * T.log_softmax(torch.from_numpy(X), -1).numpy()).sum(1)
    got = F.cross_entropy(x, q, w, soft_label=True)
    assert got.item() == pytest.approx((per_row * plain).sum() / per_row.sum())
    got = F.cross_entropy(x, q, w, soft_label=True, reduction="none")
    np.testing.assert_allclose(got.numpy()[:, 0], per_row * plain)


# ---- Paddle's own rules, measured on 3.3.1 -----------------------------------------------------


def test_mean_over_ignored_labels():
    """A negative ignore_index counts in the mean, a non-negative one does not."""
    x = paddle.to_tensor(X)
    label = paddle.to_tensor([1, -100, 4, -100])
    assert F.cross_entropy(x, label).item() == pytest.approx(
        F.cross_entropy(x, label, reduction="sum").item() / 4
    )
    label = paddle.to_tensor([1, 3, 4, 3])
    assert F.cross_entropy(x, label, ignore_index=3).item() == pytest.approx(
        F.cross_entropy(x, label, ignore_index=3, reduction="sum").item() / 2
    )


def test_all_labels_ignored():
    x = paddle.to_tensor(X, stop_gradient=False)
    for label, index in (([-100] * 4, -100), ([3] * 4, 3)):
        loss = F.cross_entropy(x, paddle.to_tensor(label), ignore_index=index)
        loss.backward()
        assert loss.item() == 0
        assert x.grad.abs().max().item() == 0


@pytest.mark.filterwarnings("ignore:cross_entropy was given labels")
@pytest.mark.parametrize(
    ("kwargs", "label", "shape"),
    [
        ({}, LABEL, [4]),
        ({}, LABEL[:, None], [4, 1]),
        ({"soft_label": True}, Q, [4, 1]),
        ({"label_smoothing": 0.1}, LABEL, [4, 1]),
        ({}, LABEL.astype("int32"), [4]),
        ({}, LABEL.astype("float32"), [4]),
    ],
)
def test_shape_without_reduction(kwargs, label, shape):
    loss = F.cross_entropy(paddle.to_tensor(X), paddle.to_tensor(label), reduction="none", **kwargs)
    assert loss.shape == shape


def test_axis_of_soft_labels():
    x, q = paddle.to_tensor(IMAGE), F.softmax(paddle.to_tensor(values(2, 4, 3, seed=9)), axis=1)
    loss = F.cross_entropy(x, q, soft_label=True, axis=1, reduction="none")
    want = T.cross_entropy(torch.from_numpy(IMAGE), torch.from_numpy(q.numpy()), reduction="none")
    np.testing.assert_allclose(loss.numpy()[:, 0], want.numpy())
    hard = F.cross_entropy(x, paddle.to_tensor(PIXELS[:, None]), axis=1, reduction="none")
    assert hard.shape == [2, 1, 3]


def test_softmax_with_cross_entropy():
    x, label = paddle.to_tensor(X), paddle.to_tensor(LABEL[:, None])
    loss, p = F.softmax_with_cross_entropy(x, label, return_softmax=True)
    want = T.cross_entropy(torch.from_numpy(X), torch.from_numpy(LABEL), reduction="none")
    np.testing.assert_allclose(loss.numpy()[:, 0], want.numpy())
    np.testing.assert_allclose(p.numpy(), T.softmax(torch.from_numpy(X), -1).numpy())
    assert F.softmax_with_cross_entropy(x, paddle.to_tensor(LABEL)).shape == [4, 1]


def test_batchmean():
    agree(
        lambda x, q: F.kl_div(x, q, "batchmean"),
        lambda x, q: T.kl_div(x, q, reduction="batchmean"),
        X,
        Q,
        wrt=[0],
    )


def test_kl_div_of_a_zero_label_is_zero():
    loss = F.kl_div(paddle.to_tensor([-1.0, -2.0]), paddle.to_tensor([0.0, 1.0]), "none")
    assert loss.tolist() == [0.0, 2.0]


def test_extreme_logits():
    x = paddle.to_tensor([[1e4, -1e4]], stop_gradient=False)
    loss = F.cross_entropy(x, paddle.to_tensor([1]))
    loss.backward()
    assert loss.item() == 2e4
    assert x.grad.tolist() == [[1.0, -1.0]]
    y = paddle.to_tensor([1.0, 0.0])
    got = F.binary_cross_entropy_with_logits(paddle.to_tensor([-1e4, 1e4]), y, reduction="none")
    assert got.tolist() == [1e4, 1e4]
    certain = F.binary_cross_entropy(paddle.to_tensor([0.0, 1.0]), y, reduction="none")
    assert certain.tolist() == [100.0, 100.0]


# ---- formulas of those torch does not have ------------------------------------------------------


def test_square_error_cost_and_log_loss():
    agree(F.square_error_cost, lambda x, y: (x - y) ** 2, X, Y, order=2)
    e = 1e-4
    agree(
        F.log_loss,
        lambda p, y: -y * (p + e).log() - (1 - y) * (1 - p + e).log(),
        P,
        BITS,
        wrt=[0],
        order=2,
    )


def test_dice_loss():
    hot = np.eye(5)[LABEL]

    def theirs(p):
        both, total = (p * torch.from_numpy(hot)).sum(1), p.sum(1) + torch.from_numpy(hot).sum(1)
        return (1 - 2 * both / (total + 1e-5)).mean()

    agree(lambda p: F.dice_loss(p, paddle.to_tensor(LABEL[:, None])), theirs, Q, order=2)


def test_npair_loss():
    group = np.array([0.0, 1.0, 0.0, 2.0])
    same = torch.from_numpy((group[:, None] == group).astype("float64"))

    def theirs(a, p):
        loss = T.cross_entropy(a @ p.T, same / same.sum(1, keepdim=True))
        return loss + ((a**2).sum() + (p**2).sum()) * 0.25 * 0.002 / 4

    agree(lambda a, p: F.npair_loss(a, p, paddle.to_tensor(group)), theirs, X, Y, order=2)


def test_focal_loss_with_a_normalizer():
    x, y = paddle.to_tensor(X), paddle.to_tensor(BITS)
    whole = F.sigmoid_focal_loss(x, y)
    part = F.sigmoid_focal_loss(x, y, paddle.to_tensor([4.0], dtype="float64"))
    assert part.item() == pytest.approx(whole.item() / 4)


# ---- layers ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("layer", "arrays", "theirs"),
    [
        (paddle.nn.CrossEntropyLoss(), (X, LABEL), T.cross_entropy),
        (
            paddle.nn.NLLLoss(reduction="sum"),
            (X, LABEL),
            lambda *a: T.nll_loss(*a, reduction="sum"),
        ),
        (paddle.nn.BCELoss(), (P, BITS), T.binary_cross_entropy),
        (paddle.nn.BCEWithLogitsLoss(), (X, BITS), T.binary_cross_entropy_with_logits),
        (paddle.nn.MSELoss("sum"), (X, Y), lambda *a: T.mse_loss(*a, reduction="sum")),
        (paddle.nn.L1Loss(), (X, Y), T.l1_loss),
        (paddle.nn.SmoothL1Loss(delta=0.5), (X, Y), lambda *a: T.huber_loss(*a, delta=0.5)),
        (paddle.nn.KLDivLoss("batchmean"), (X, Q), lambda *a: T.kl_div(*a, reduction="batchmean")),
        (paddle.nn.GaussianNLLLoss(full=True), (X, Y, P), lambda *a: T.gaussian_nll_loss(*a, True)),
        (paddle.nn.PoissonNLLLoss(), (X, P), T.poisson_nll_loss),
        (
            paddle.nn.MarginRankingLoss(0.1),
            (X, Y, SIGNS),
            lambda *a: T.margin_ranking_loss(*a, 0.1),
        ),
        (paddle.nn.HingeEmbeddingLoss(), (X, SIGNS), T.hinge_embedding_loss),
        (paddle.nn.CosineEmbeddingLoss(), (X, Y, ROW_SIGNS), T.cosine_embedding_loss),
        (paddle.nn.TripletMarginLoss(), (X, Y, P), T.triplet_margin_loss),
        (paddle.nn.TripletMarginWithDistanceLoss(), (X, Y, P), T.triplet_margin_loss),
        (paddle.nn.SoftMarginLoss(), (X, SIGNS), T.soft_margin_loss),
        (paddle.nn.MultiLabelSoftMarginLoss(), (X, BITS), T.multilabel_soft_margin_loss),
        (paddle.nn.MultiMarginLoss(), (X, LABEL), T.multi_margin_loss),
        (
            paddle.nn.MultiLabelMarginLoss(),
            (X, np.tile(np.arange(5), (4, 1))),
            T.multilabel_margin_loss,
        ),
    ],
    ids=lambda v: type(v).__name__,
)
def test_layers(layer, arrays, theirs):
    agree(layer, theirs, *arrays, wrt=[0])


def test_weight_of_a_loss_layer_may_be_a_tensor():
    w = paddle.to_tensor(WEIGHT)
    loss = paddle.nn.CrossEntropyLoss(weight=w, ignore_index=2)
    assert loss.weight is w
    x, label = paddle.to_tensor(X), paddle.to_tensor(LABEL)
    assert loss(x, label).item() == F.cross_entropy(x, label, w, 2).item()


# ---- mistakes ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (
            lambda x: F.cross_entropy(x, paddle.to_tensor([0, 1, 5, 2])),
            IndexError,
            "5 is no number",
        ),
        (lambda x: F.cross_entropy(x, paddle.to_tensor([0, -1, 1, 2])), IndexError, "-1 is no"),
        (lambda x: F.cross_entropy(x, paddle.to_tensor([0, 1])), ValueError, "one class number"),
        (
            lambda x: F.cross_entropy(x, paddle.to_tensor(1)),
            ValueError,
            "2 dimensions|1 dimensions",
        ),
        (lambda x: F.cross_entropy(x, x, reduction="avg", soft_label=True), ValueError, "'mean'"),
        (
            lambda x: F.cross_entropy(x, paddle.to_tensor(LABEL), paddle.ones([3], "float64")),
            ValueError,
            "one per class",
        ),
        (lambda x: F.nll_loss(x[0], paddle.to_tensor(1)), ValueError, "N, C"),
        (lambda x: F.mse_loss(x, x, "avg"), ValueError, "avg"),
        (lambda x: F.kl_div(x, x, "avg"), ValueError, "batchmean"),
        (lambda x: F.binary_cross_entropy(x, x[0]), ValueError, "equal shapes"),
        (lambda x: F.soft_margin_loss(x, x[:2]), ValueError, "equal shapes"),
        (lambda x: paddle.nn.MSELoss("mean", 3, 4), TypeError, "MSELoss"),
    ],
)
def test_mistakes_are_explained(call, error, says):
    with pytest.raises(error, match=says):
        call(paddle.to_tensor(X))


# ---- connectionist temporal classification -----------------------------------------------------


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_ctc_loss(reduction):
    logits, labels = values(7, 3, 5), np.array([[1, 2, 2], [3, 4, 0], [4, 4, 1]])
    inputs, lengths = np.array([7, 5, 7]), np.array([3, 1, 2])
    agree(
        lambda x: F.ctc_loss(
            x, *map(paddle.to_tensor, (labels, inputs, lengths)), reduction=reduction
        ),
        lambda x: T.ctc_loss(
            x.log_softmax(-1),
            *map(torch.from_numpy, (labels, inputs, lengths)),
            reduction=reduction,
        ),
        logits,
    )


def test_ctc_loss_of_the_impossible():
    logits = paddle.to_tensor(values(2, 1, 3), stop_gradient=False)
    label, lengths = paddle.to_tensor([[1, 1]]), [paddle.to_tensor([2]), paddle.to_tensor([2])]
    assert F.ctc_loss(logits, label, *lengths).item() == np.inf
    loss = paddle.nn.CTCLoss(zero_infinity=True)(logits, label, *lengths)
    loss.backward()
    assert loss.item() == 0
    assert logits.grad.abs().max().item() == 0


def test_ctc_loss_of_no_label():
    logits = values(3, 1, 4)
    loss = F.ctc_loss(
        paddle.to_tensor(logits),
        *map(paddle.to_tensor, ([[1]], [3], [0])),
        blank=2,
        reduction="sum",
    )
    assert loss.item() == pytest.approx(-T.log_softmax(torch.from_numpy(logits), -1)[:, 0, 2].sum())


def test_norm_by_times_is_refused():
    with pytest.raises(NotImplementedError, match="norm_by_times"):
        F.ctc_loss(paddle.ones([2, 1, 3]), *[None] * 3, norm_by_times=True)
