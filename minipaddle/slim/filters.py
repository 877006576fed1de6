"""Pruners of whole channels: which filters matter least, and how many of which layer may go.

Sources: PaddleSlim `paddleslim.L1NormFilterPruner`, `L2NormFilterPruner`, `FPGMFilterPruner`; Li et
al., "Pruning filters for efficient ConvNets" (2017), for norms and sensitivity; He et al., "Filter
pruning via geometric median" (2019).
"""

import json
from pathlib import Path

import numpy as np

from ..core.prelude import Tensor, require_one_of, slot, value_error, wrap
from ..nn import Layer
from .channels import Axes, CannotFollow, Channels, spec_of
from .shrink import ShrinkPlan, find_removed_rows, program_of

RATIOS = tuple(k / 10 for k in range(1, 10))


@slot("slim.l1_scores")
def l1_scores(filters):
    """Of filters [n, size] the sums of absolute values."""
    return abs(filters).sum(1)


@slot("slim.l2_scores")
def l2_scores(filters):
    """Of filters [n, size] the lengths."""
    return (filters**2).sum(1) ** 0.5


@slot("slim.fpgm_scores")
def fpgm_scores(filters):
    """Of filters [n, size] the sums of distances to all others: one near to their geometric
    median can be replaced by the others.
    """
    return np.stack([((filters - f) ** 2).sum(1) ** 0.5 for f in filters]).sum(0)


@slot("slim.least")
def least(scores, ratio: float) -> list[int]:
    """The numbers of the filters that go: round(ratio · n) of the least scores, but not all."""
    count = min(round(ratio * len(scores)), len(scores) - 1)
    return np.argsort(scores, kind="stable")[:count].tolist()


class FilterPruner:
    """The base of pruners of channels; a subclass gives `scores`.

    `inputs` is a shape, or the tensors of a call; `opt` an optimizer whose states are cut too;
    `sen_file` holds sensitivities as JSON. The axis of a weight that is pruned is that of its
    filters: 0 of a convolution's, 1 of a linear layer's. What goes with it (norms, the next layer's
    weights, what is added to it) follows from the operators' sharding rules; what cannot be
    followed raises `CannotFollow`, a NotImplementedError that names the operator and its layer.
    """

    scores = staticmethod(l1_scores)

    def __init__(self, model: Layer, inputs, sen_file=None, opt=None, skip_leaves=True):
        self.model, self.opt, self.plan = model, opt, None
        self.inputs = as_inputs(inputs)
        self.sensitivities: dict = {}
        self.load(sen_file)
        self.axes = None
        self.look()

    def look(self) -> None:
        """Trace the network, if its weights have other shapes than before."""
        states = self.axes.states.values() if self.axes else ()
        if not states or any(s.storage.tensor.spec != s.record.spec for s in states):
            self.axes = Axes(program_of(self.model, self.inputs))
            self.values = {s.storage.tensor.name: v for v, s in self.axes.states.items()}
            self.found: dict[tuple, Channels] = {}

    # ---- prunable weights --------------------------------------------------------------------

    def channels(self, name: str, axis: int | None = None) -> Channels:
        """The channels that begin at an axis of a parameter."""
        if name not in self.values:
            raise value_error(f"no parameter {name!r} in the network's program",
                              f"one of {', '.join(self.values)}")  # fmt: skip
        value = self.values[name]
        axis = filter_axis(spec_of(value)) if axis is None else axis
        if (name, axis) not in self.found:
            self.found[name, axis] = self.axes.follow(value, axis)
        return self.found[name, axis]

    def prunable(self) -> dict[str, int]:
        """{name: channels} of a weight for each set of weights that are pruned together."""
        self.look()
        counts, covered = {}, set()
        for name, value in self.values.items():
            spec = spec_of(value)
            if spec.ndim < 2 or (value, filter_axis(spec)) in covered:
                continue
            try:
                channels = self.channels(name)
            except CannotFollow:
                continue
            covered |= set(channels.labels)
            counts[name] = len(self.groups(channels, value, filter_axis(spec)))
        return {name: n for name, n in counts.items() if n > 1}

    def groups(self, channels: Channels, value, axis: int) -> list[int]:
        """The labels of the channels along an axis, in their order."""
        return [label for label in dict.fromkeys(channels.of(value, axis).tolist()) if label]

    # ---- pruning -----------------------------------------------------------------------------

    def choose(self, name: str, axis: int | None, ratio: float) -> dict:
        """The rows to remove with a part of the channels of a weight."""
        if not 0 <= ratio < 1:
            raise value_error(f"the ratio {ratio} of {name}", "0 or more, and below 1")
        channels, value = self.channels(name, axis), self.values[name]
        axis = filter_axis(spec_of(value)) if axis is None else axis
        labels, weight = channels.of(value, axis), self.axes.states[value].storage.tensor
        rows = np.moveaxis(weight.numpy(), axis, 0).reshape(len(labels), -1)
        groups = self.groups(channels, value, axis)
        filters = np.stack([rows[labels == g].ravel() for g in groups])
        gone = [groups[k] for k in least(self.scores(filters), ratio)]
        return find_removed_rows(channels, gone)

    def plan_for(self, ratios: dict, axis=None) -> ShrinkPlan:
        """A plan for several weights; of those that go together the first counts."""
        self.look()
        axis = axis[0] if isinstance(axis, list | tuple) else axis
        gone: dict = {}
        for name, ratio in ratios.items():
            value = self.values.get(name)
            own = filter_axis(spec_of(value)) if axis is None and value else axis
            if (value, own) in gone:
                continue
            for place, rows in self.choose(name, own, ratio).items():
                gone[place] = gone[place] | rows if place in gone else rows
        return ShrinkPlan(self.model, self.inputs, self.axes, gone, self.opt)

    def prune_vars(self, ratios: dict, axis=None, apply="impretive") -> ShrinkPlan:
        """Remove a part of the channels of weights, {name: ratio}, everywhere.

        `apply` is "impretive" (PaddleSlim's spelling), "lazy" (they become zeros), or None (only a
        plan). Source: PaddleSlim `Pruner.prune_vars`.
        """
        require_one_of("prune_vars", ("impretive", "imperative", "lazy", None), apply=apply)
        plan = self.plan_for(ratios, axis)
        if apply is not None:
            self.plan = plan.apply(lazy=apply == "lazy")
        return plan

    def prune_var(
        self, var_name: str, pruned_axis, pruned_ratio: float, apply="impretive"
    ) -> ShrinkPlan:
        """`prune_vars` of one weight."""
        return self.prune_vars({var_name: pruned_ratio}, pruned_axis, apply)

    def restore(self) -> None:
        """Undo the last pruning."""
        if self.plan is not None:
            self.plan.restore()
            self.plan = None

    # ---- sensitivity -------------------------------------------------------------------------

    def sensitive(
        self, eval_func=None, sen_file=None, target_vars=None, skip_vars=(), ratios=RATIOS
    ) -> dict:
        """The loss of `eval_func()`, relative to the whole network's, if one weight alone is
        pruned: {name: {ratio: loss}}.

        Channels are set to zero, which gives what removing them would. With `sen_file` what is
        measured is kept, and a search that was cut off goes on. Source: PaddleSlim.
        """
        from rich.console import Console
        from rich.progress import track

        self.load(sen_file)
        if eval_func is None:
            return self.sensitivities
        names = [n for n in (target_vars or self.prunable()) if n not in skip_vars]
        todo = [(n, r) for n in names for r in ratios if r not in self.sensitivities.get(n, {})]
        base, console = eval_func() if todo else 0.0, Console(stderr=True)
        quiet = not console.is_terminal
        for name, ratio in track(todo, "sensitivity", console=console, disable=quiet):
            plan = self.plan_for({name: ratio}).apply(lazy=True)
            try:
                loss = (base - eval_func()) / base
            finally:
                plan.restore()
            self.sensitivities.setdefault(name, {})[ratio] = float(loss)
            if sen_file is not None:
                Path(sen_file).write_text(json.dumps(self.sensitivities), encoding="utf-8")
        return self.sensitivities

    def load(self, sen_file) -> None:
        """Take over earlier measurements."""
        if sen_file is not None and Path(sen_file).is_file():
            kept = json.loads(Path(sen_file).read_text(encoding="utf-8"))
            self.sensitivities |= {n: {float(r): v for r, v in d.items()} for n, d in kept.items()}

    def get_ratios_by_sensitivity(
        self, pruned_flops: float, align=None, dims=None, skip_vars=(), of="flops"
    ) -> tuple[dict, float]:
        """(ratios, part that goes): each weight loses the channels that cost the same accuracy
        alone; together a part `pruned_flops` of the products' work goes (of="parameters": of
        the weights). `align` leaves a multiple of `align` channels.

        Raises ValueError without sensitivities, or where the budget is out of reach.
        Source: PaddleSlim `FilterPruner.get_ratios_by_sensitivity`.
        """
        require_one_of("get_ratios_by_sensitivity", ("flops", "parameters"), of=of)
        measured = {n: d for n, d in self.sensitivities.items() if n not in skip_vars}
        if not measured:
            raise value_error("there are no sensitivities", hint="call sensitive(eval_func) first")
        losses = [0.0, *(loss for d in measured.values() for loss in d.values())]
        low, high, best = min(losses), max(losses) + 1e-6, None
        for _ in range(24):
            loss = (low + high) / 2
            ratios = {n: ratio_within(d, loss) for n, d in measured.items()}
            if align:
                ratios = {n: self.align(n, r, align) for n, r in ratios.items()}
            plan = self.plan_for(ratios, dims)
            gone = plan.pruned_flops if of == "flops" else plan.pruned_parameters
            if gone >= pruned_flops:
                high, best = loss, (ratios, gone)
            else:
                low = loss
        if best is None:
            expected = f"at most {gone:.0%}, as far as sensitivities were measured"
            raise value_error(f"{pruned_flops:.0%} of the {of} cannot go", expected)
        return best

    def align(self, name: str, ratio: float, align: int) -> float:
        """The ratio nearest to one given that leaves a multiple of `align` channels."""
        value = self.values[name]
        n = len(self.groups(self.channels(name), value, filter_axis(spec_of(value))))
        left = min(n, max(align, round((1 - ratio) * n / align) * align))
        return (n - left) / n

    def sensitive_prune(self, pruned_flops: float, skip_vars=(), align=None) -> ShrinkPlan:
        """Remove channels until a part `pruned_flops` of the work is gone, where it hurts least."""
        self.restore()
        ratios, _ = self.get_ratios_by_sensitivity(pruned_flops, align, skip_vars=skip_vars)
        return self.prune_vars(ratios)


class L1NormFilterPruner(FilterPruner):
    """Removes the filters of the least sum of absolute values. Source: PaddleSlim.

    >>> net = paddle.vision.models.LeNet()
    >>> pruner = paddle.slim.L1NormFilterPruner(net, [1, 1, 28, 28])
    >>> plan = pruner.prune_vars({net.features[3].weight.name: 0.5}, axis=0)
    >>> net.features[3].weight.shape, net.fc[0].weight.shape
    ([8, 6, 5, 5], [200, 120])
    >>> round(plan.pruned_flops, 2)
    0.42
    """


class L2NormFilterPruner(FilterPruner):
    """Removes the shortest filters. Source: PaddleSlim."""

    scores = staticmethod(l2_scores)


class FPGMFilterPruner(FilterPruner):
    """Removes the filters nearest to all others. Source: PaddleSlim; He et al. (2019)."""

    scores = staticmethod(fpgm_scores)


def filter_axis(spec) -> int:
    """The axis of a weight's filters: 1 of a matrix [in, out], else 0."""
    return 1 if spec.ndim == 2 else 0


def as_inputs(inputs) -> list[Tensor]:
    """The tensors of a call: given so, or as a shape."""
    if isinstance(inputs, Tensor):
        return [inputs]
    if all(isinstance(n, int) for n in inputs):
        return [wrap(np.zeros(inputs, dtype="float32"))]
    return [x if isinstance(x, Tensor) else Tensor(x) for x in inputs]


def ratio_within(losses: dict, loss: float) -> float:
    """The largest ratio up to which no more than `loss` is lost, between two that were measured."""
    ratio, lost = 0.0, 0.0
    for r, after in sorted(losses.items()):
        if after > loss:
            return ratio + (r - ratio) * max(0.0, loss - lost) / (after - lost)
        ratio, lost = r, after
    return ratio
