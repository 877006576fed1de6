"""One network that holds many: subnetworks are slices of its channels, and leave layers out.

All are trained at once, on common weights; then the best that fits a budget is searched by the
tuner's evolution, without further training, and cut out. Sources: Cai et al., "Once-for-all"
(2020); Yu and Huang, "Universally slimmable networks" (2019), for largest, smallest and some
between in one step. PaddleSlim `paddleslim.nas.ofa.OFA` has the same idea on layers of its own.
"""

from collections.abc import Callable
from contextlib import ExitStack, contextmanager
from copy import deepcopy

import numpy as np

from ..core.prelude import current, indexing, not_supported, value_error, wrap
from ..engine.codegen.kernel_schedule import pick
from ..nn import Identity, Layer
from ..tuning.evolution import proposals
from ..tuning.space import Space
from .channels import Axes, spec_of, work_of
from .dist import soft_label
from .filters import L1NormFilterPruner, filter_axis, l1_scores
from .shrink import ShrinkPlan, find_removed_rows, program_of


class Supernet(Layer):
    """A network of which parts can be left out: channels to `expand_ratio` of each layer's, and the
    layers named in `depth`, which must keep shapes (residual blocks).

    A call runs the subnetwork of `set_net_config`, at first the whole network. A configuration is a
    dict: for each weight that is cut the part that stays, for each layer of `depth` whether it
    stays.
    Channels of least absolute weights are left out first. Gradients reach the common weights.
    Sources: PaddleSlim `supernet`, `OFA`.

    >>> net = paddle.slim.Supernet(paddle.vision.models.LeNet(), [1, 1, 28, 28], (0.5, 1.0))
    >>> small = {name: 0.5 for name in net.get_current_config()}
    >>> net.set_net_config(small)
    >>> net(paddle.ones([2, 1, 28, 28])).shape, net.export(small).fc[0].weight.shape
    ([2, 10], [200, 60])
    """

    def __init__(self, model: Layer, inputs, expand_ratio=(0.25, 0.5, 0.75, 1.0), depth=()):
        super().__init__()
        self.model, self.ratios = model, tuple(sorted({*expand_ratio, 1.0}))
        if not self.ratios[0] > 0 or self.ratios[-1] > 1:
            raise value_error(f"expand_ratio={expand_ratio}", "numbers above 0, up to 1")
        self.pruner = L1NormFilterPruner(model, inputs)
        self.names, self.depth = [*self.pruner.prunable()], tuple(depth)
        layers = dict(model.named_sublayers())
        if wrong := [name for name in depth if name not in layers]:
            raise value_error(
                f"no layer {wrong[0]!r} in the network", f"one of {', '.join(layers)}"
            )
        self.order = {name: self.rank(name) for name in self.names}
        self.space, self.plans = Space(self.ask), {}
        self.net_config = self.space.default

    def rank(self, name: str) -> list[int]:
        """The labels of a weight's channels, the least first."""
        pruner, value = self.pruner, self.pruner.values[name]
        axis, channels = filter_axis(spec_of(value)), pruner.channels(name)
        labels = channels.of(value, axis)
        rows = np.moveaxis(pruner.axes.states[value].storage.tensor.numpy(), axis, 0)
        groups = pruner.groups(channels, value, axis)
        scores = l1_scores(np.stack([rows[labels == g].ravel() for g in groups]))
        return [groups[k] for k in scores.argsort(kind="stable")]

    def ask(self) -> dict:
        """The questions that a configuration answers; the default is the whole network."""
        widths = {name: pick(name, 1.0, self.ratios) for name in self.names}
        return widths | {name: pick(name, True, (True, False)) for name in self.depth}

    # ---- subnetworks -------------------------------------------------------------------------

    def get_current_config(self) -> dict:
        """The configuration that calls run."""
        return dict(self.net_config)

    def set_net_config(self, net_config: dict) -> None:
        """Let calls run this configuration; parts that it does not name are whole.

        Raises ValueError for a name or a part that the supernet has not.
        """
        point = self.space.point(net_config)
        if wrong := [k for k, v in net_config.items() if point.get(k) != v]:
            raise value_error(f"{wrong[0]}: {net_config[wrong[0]]}",
                              f"parts {self.ratios} of {', '.join(self.names)}, or True and False "
                              f"of {', '.join(self.depth)}")  # fmt: skip
        self.net_config = point

    def sample(self, rng) -> dict:
        """A configuration at random."""
        return self.space.sample(rng)

    @property
    def smallest(self) -> dict:
        """The configuration of least parts."""
        return self.space.point(
            dict.fromkeys(self.names, self.ratios[0]) | dict.fromkeys(self.depth, False)
        )

    def plan(self, config: dict) -> ShrinkPlan:
        """The channels that a configuration takes from the network."""
        key = tuple(config[name] for name in self.names)
        if key not in self.plans:
            gone: dict = {}
            for name, ratio in zip(self.names, key):
                order = self.order[name]
                labels = order[: len(order) - max(1, round(ratio * len(order)))]
                gone |= find_removed_rows(self.pruner.found[name, filter_axis(
                    spec_of(self.pruner.values[name]))], labels)  # fmt: skip
            self.plans[key] = ShrinkPlan(self.model, self.pruner.inputs, self.pruner.axes, gone)
        return self.plans[key]

    def forward(self, *inputs):
        if current.top.tracing:
            raise not_supported("a program of a Supernet",
                                hint="capture what export(config) gives")  # fmt: skip
        plan = self.plan(self.net_config)
        with slice_weights(self.model, plan), self.shallow(self.net_config):
            return self.model(*inputs)

    @contextmanager
    def shallow(self, config: dict):
        """Within the block the layers that a configuration leaves out pass their input on."""
        layers, before = dict(self.model.named_sublayers(include_self=True)), []
        for name in self.depth:
            if not config[name]:
                parent, _, own = name.rpartition(".")
                before.append((layers[parent]._sub_layers, own, layers[name]))
                layers[parent]._sub_layers[own] = Identity()
        try:
            yield
        finally:
            for parts, own, layer in before:
                parts[own] = layer

    def export(self, net_config: dict) -> Layer:
        """A network of its own for a configuration, smaller and without slices.

        Source: PaddleSlim `OFA.export`.
        """
        config = self.space.point(net_config)
        plan = self.plan(config).apply()
        try:
            with self.shallow(config):
                return deepcopy(self.model)
        finally:
            plan.restore()

    def work(self, config: dict) -> float:
        """The part of the whole network's products that a configuration computes."""
        pruner = self.pruner
        with slice_weights(self.model, self.plan(config)), self.shallow(config):
            program = Axes(program_of(self.model, pruner.inputs)).program
        return work_of(program) / work_of(pruner.axes.program)


@contextmanager
def slice_weights(model: Layer, plan: ShrinkPlan):
    """Within the block layers compute with slices of their weights; gradients reach the weights."""
    cut = {id(x): (x, gone) for x, gone in plan.map_to_weights().items()}
    with ExitStack() as undo:
        for layer in model.sublayers(include_self=True):
            for parts in (layer._parameters, layer._buffers):
                for name, x in parts.items():
                    if id(x) in cut:
                        undo.callback(parts.__setitem__, name, x)
                        parts[name] = rows_of(*cut[id(x)])
        for layer, groups in plan.removal.groups.items():
            undo.callback(setattr, layer, "_groups", layer._groups)
            layer._groups = groups
        yield


def rows_of(x, gone: dict):
    """A tensor without some rows, on the tape."""
    for d, rows in gone.items():
        x = indexing.take(x, wrap(np.flatnonzero(~rows)), axis=d)
    return x


class OFA(Layer):
    """Trains a `Supernet`, and searches in it.

    `teacher` is a trained network (or None): then its scores are learned, at `temperature`.
    Sources: PaddleSlim `paddleslim.nas.ofa.OFA`; Cai et al. (2020).
    """

    def __init__(self, supernet: Supernet, teacher: Layer | None = None, temperature=1.0, seed=0):
        super().__init__()
        self.supernet, self.teacher, self.temperature = supernet, teacher, temperature
        self.rng = np.random.default_rng(seed)

    def forward(self, *inputs):
        return self.supernet(*inputs)

    def backward(self, x, loss: Callable, between: int = 1) -> float:
        """The gradients of a step: of the whole network, of the smallest, and of some at random.

        `loss(scores)` is that of a batch x; smaller networks learn the teacher's scores, without
        one those of the whole network. Returns the whole network's loss.
        """
        net = self.supernet
        net.set_net_config({})
        scores = net(x)
        largest = loss(scores)
        largest.backward()
        wanted = scores.detach() if self.teacher is None else self.teacher(x).detach()
        for config in (net.smallest, *(net.sample(self.rng) for _ in range(between))):
            net.set_net_config(config)
            t = self.temperature
            (soft_label(wanted, net(x), t, t) * t**2).backward()
        net.set_net_config({})
        return largest.item()

    def search(
        self, eval_func: Callable, condition: Callable, generations: int = 6, count: int = 8
    ) -> list[tuple[dict, float]]:
        """Configurations with what `eval_func()` says of them (more is better), the best first.

        `condition(config)` says whether one fits. Each generation has `count` new ones: mutants and
        children of the best so far, by the evolution that tunes kernels.
        Source: PaddleSlim `OFA.search`.
        """
        scored, points = [], [self.supernet.smallest]
        for _ in range(generations + 1):
            scored += [(p, self.score(p, eval_func) if condition(p) else np.inf) for p in points]
            same = lambda points: [0.0] * len(points)
            points = proposals(self.supernet.space, scored, same, count, self.rng)
        good = [(p, -x) for p, x in scored if x < np.inf]
        return sorted(good, key=lambda pair: -pair[1])

    def score(self, config: dict, eval_func: Callable) -> float:
        """Minus the score of a configuration."""
        self.supernet.set_net_config(config)
        try:
            return -float(eval_func())
        finally:
            self.supernet.set_net_config({})
