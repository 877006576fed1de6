"""Distillation by PaddleSlim's interfaces: `Distill` from a configuration, `DML` among equals."""

from __future__ import annotations

from itertools import product

from .. import nn
from ..engine.core.errors import not_supported, value_error
from ..nn import functional as F
from .dist import Features, ShapeAlign, l2, soft_label


def mutual(act=None):
    """The mean of both Kullback-Leibler divergences, of probabilities or of what `act` makes so."""
    activate = {None: lambda x: x, "softmax": F.softmax, "sigmoid": F.sigmoid}[act]

    def loss(student, teacher):
        a, b = activate(student), activate(teacher.detach())
        both = F.kl_div(a.log(), b, "batchmean") + F.kl_div(b.log(), a, "batchmean")
        return both / 2

    return loss


def distance(mode="l2"):
    loss = {"l1": F.l1_loss, "smooth_l1": F.smooth_l1_loss}
    if mode == "l2":
        return lambda student, teacher: l2(teacher, student)
    return lambda student, teacher: loss[mode](student, teacher.detach())


LOSSES = {
    "CELoss": lambda: lambda student, teacher: soft_label(teacher, student),
    "DistanceLoss": distance,
    "DMLLoss": mutual,
}
"""PaddleSlim's name of a loss -> a function of its settings that makes it."""


class Distill(nn.Layer):
    """Students and teachers as one layer: a call gives the distillation loss and all outputs.

    distill_configs: dicts {"model_name_pairs": [["student_0", "teacher_0"]], "layers": [{
        "layers_name": [a layer of the student, one of the teacher], "loss_function": "CELoss" (of
        scores), "DMLLoss" (of probabilities; act="softmax" makes them) or "DistanceLoss"
        (mode="l1", "l2", "smooth_l1"), "weight": 1.0, "temperature": 1.0 (divides both),
        "align_params": arguments of a `ShapeAlign` of the student}]}
    convert_fn: Paddle's, to name functions that are no layers; nothing is converted here

    A call gives (loss, outputs of the students, outputs of the teachers), single ones as they are;
    the loss alone without `return_model_outputs`. `parameters()` are those to train: of students
    and alignments. Raises ValueError for a name that no model or layer has, NotImplementedError for
    other settings and for files. Source: PaddleSlim `paddleslim.dygraph.dist.Distill`.

    >>> student, teacher = paddle.vision.models.LeNet(), paddle.vision.models.LeNet()
    >>> layers = [{"layers_name": ["features.3", "features.3"], "loss_function": "DistanceLoss"}]
    >>> distill = paddle.slim.Distill([{"layers": layers}], student, teacher)
    >>> loss, scores, wanted = distill(paddle.ones([2, 1, 28, 28]))
    >>> loss.backward()
    >>> loss.item() > 0, scores.shape
    (True, [2, 10])
    """

    def __init__(
        self,
        distill_configs,
        student_models,
        teacher_models,
        convert_fn=True,
        return_model_outputs=True,
    ):
        super().__init__()
        if not isinstance(distill_configs, list):
            raise not_supported(
                f"Distill with distill_configs={distill_configs!r:.60}", "a list of dicts"
            )
        self.students, self.teachers = as_layers(student_models), as_layers(teacher_models)
        self.return_model_outputs = return_model_outputs
        self.terms, self.aligns = [], nn.LayerList()
        for config in distill_configs:
            common = {k: v for k, v in config.items() if k not in ("layers", "model_name_pairs")}
            pairs = config.get("model_name_pairs", [["student_0", "teacher_0"]])
            pairs = [pairs] if isinstance(pairs[0], str) else pairs
            for pair, one in product(pairs, config["layers"]):
                self.terms.append(self.term(pair, **{**common, **one}))

    def term(self, pair, layers_name, loss_function, weight=1.0, temperature=1.0,
             align_params=None, **settings):  # fmt: skip
        """A loss of one layer of the student and one of the teacher: a function."""
        models = {f"student_{k}": m for k, m in enumerate(self.students)}
        models |= {f"teacher_{k}": m for k, m in enumerate(self.teachers)}
        if wrong := [name for name in pair if name not in models]:
            raise value_error(f"Distill: no model {wrong[0]!r}", ", ".join(models))
        if loss_function not in LOSSES:
            raise not_supported(f"Distill: loss_function={loss_function!r}", ", ".join(LOSSES))
        allowed = {"DistanceLoss": ("mode",), "DMLLoss": ("act",)}.get(loss_function, ())
        if wrong := settings.keys() - set(allowed):
            raise not_supported(f"Distill: {min(wrong)!r} of a layer with {loss_function}")
        loss = LOSSES[loss_function](**settings)
        align = nn.Identity() if align_params is None else ShapeAlign(**align_params)
        self.aligns.append(align)
        kept = [Features(models[m], [name]) for m, name in zip(pair, layers_name, strict=True)]

        def compute():
            student, teacher = (
                f[name] / temperature for f, name in zip(kept, layers_name, strict=True)
            )
            return weight * loss(align(student), teacher)

        return compute

    def parameters(self, include_sublayers=True):
        """The parameters to train: those of the students, and of the layers that align them."""
        return self.students.parameters() + self.aligns.parameters()

    def forward(self, *inputs):
        outputs = [[m(*inputs) for m in models] for models in (self.students, self.teachers)]
        loss = sum(compute() for compute in self.terms)
        single = [each[0] if len(each) == 1 else each for each in outputs]
        return (loss, *single) if self.return_model_outputs else loss


def as_layers(models) -> nn.LayerList:
    return nn.LayerList([models] if isinstance(models, nn.Layer) else models)


class DML(nn.Layer):
    """Deep mutual learning: networks learn from labels and from each other's scores.

    `loss(scores, labels)` is for each network its cross entropy and the mean divergence of the
    others' probabilities, which are constants, from its own. Sources: PaddleSlim
    `paddleslim.dist.DML`; Zhang et al., "Deep mutual learning" (2018).

    >>> nets = [paddle.nn.Linear(4, 3), paddle.nn.Linear(4, 3)]
    >>> dml = paddle.slim.DML(nets)
    >>> sgds = dml.opt([paddle.optimizer.SGD(0.5, parameters=net.parameters()) for net in nets])
    >>> x, y = paddle.randn([8, 4]), paddle.zeros([8], "int64")
    >>> first = [loss.item() for loss in dml.loss(dml(x), y)]
    >>> for _ in range(9):
    ...     sgds.minimize(dml.loss(dml(x), y))
    >>> all(now.item() < then for now, then in zip(dml.loss(dml(x), y), first))
    True
    """

    def __init__(self, model):
        super().__init__()
        self.model = as_layers(model)

    def forward(self, input):
        return [net(input) for net in self.model]

    def loss(self, logits, labels) -> list:
        """The loss of each network."""
        losses = []
        for k, own in enumerate(logits):
            total, others = F.cross_entropy(own, labels), [*logits[:k], *logits[k + 1 :]]
            for other in others:
                wanted, log = F.softmax(other.detach()), F.log_softmax(own)
                total = total + F.kl_div(log, wanted, "batchmean") / len(others)
            losses.append(total)
        return losses

    def opt(self, optimizers) -> Optimizers:
        """The networks' optimizers as one."""
        if len(optimizers) != len(self.model):
            raise value_error(f"{len(optimizers)} optimizers", f"{len(self.model)}, as networks")
        return Optimizers(optimizers)


class Optimizers(tuple):
    """The optimizers of networks that learn from each other."""

    def minimize(self, losses) -> None:
        """A step of each, by its loss."""
        for loss, optimizer in zip(losses, self, strict=True):
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
