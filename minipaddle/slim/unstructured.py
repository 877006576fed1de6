"""Pruners of single weights: by magnitude, gradually, by movement.

Sources: PaddleSlim `paddleslim.UnstructuredPruner`, `paddleslim.GMPUnstructuredPruner`; Sanh, Wolf,
Rush, "Movement pruning" (2020).
"""

from ..core.prelude import Recording, current, require_one_of, value_error
from ..engine.eager.device import module_of
from ..tensor.creation import zeros_like
from .masks import apply_mask, gradual_ratio, mask_of, mask_smallest, movement, renew


def renew_all(layer, inputs) -> None:
    """Before a forward: make masked elements zero again. Programs for evaluation write nothing."""
    if layer.training or not current.top.tracing:
        for p in layer.parameters(include_sublayers=False):
            renew(p)


def is_norm(layer) -> bool:
    return "Norm" in type(layer).__name__


class UnstructuredPruner:
    """Sets the weights of least magnitude to zero: a part `ratio` of all, or those below
    `threshold`.

    `step()` chooses the masks by today's weights; call it after the optimizer's. Every forward of
    the model applies them (not a captured one in evaluation mode: `update_params()` goes before);
    an optimizer that `paddle.incubate.asp.decorate` was given keeps the zeros itself. Biases and
    norms stay, `skip_params_func(model)` gives other names that do. `local_sparsity`: each weight
    has the ratio, else all together. `prune_params_type`
    "conv1x1_only" takes convolutions of size 1 alone. Source: PaddleSlim.

    >>> from minipaddle.slim import UnstructuredPruner
    >>> net = paddle.nn.Linear(10, 10)
    >>> pruner = UnstructuredPruner(net, "ratio", ratio=0.75)
    >>> pruner.step()
    >>> int((net.weight == 0).sum())
    75
    """

    def __init__(
        self, model, mode, threshold=0.01, ratio=0.55, prune_params_type=None,
        skip_params_func=None, local_sparsity=False, sparse_block=[1, 1],  # noqa: B006 Paddle's
    ):  # fmt: skip
        require_one_of(type(self).__name__, ("ratio", "threshold"), mode=mode)
        require_one_of(
            type(self).__name__, (None, "conv1x1_only"), prune_params_type=prune_params_type
        )
        if list(sparse_block) != [1, 1]:
            raise value_error(f"sparse_block={sparse_block}", "[1, 1]", hint="asp prunes n of m")
        if not 0 <= ratio < 1:
            raise value_error(f"ratio={ratio}", "0 or more, and below 1")
        if local_sparsity and mode == "threshold":
            raise value_error("local_sparsity with a threshold", 'mode="ratio"')
        self.model, self.mode, self.ratio, self.threshold = model, mode, ratio, threshold
        self.local_sparsity = local_sparsity
        skipped = set(skip_params_func(model)) if skip_params_func else set()
        weights = [
            p for layer in model.sublayers(include_self=True) if not is_norm(layer)
            for p in layer.parameters(include_sublayers=False)
            if p.trainable and p.ndim > 1 and p.name not in skipped
            and (prune_params_type is None or is_pointwise(p))
        ]  # fmt: skip
        self.parameters = [*dict.fromkeys(weights)]  # one that two layers share counts once
        if not weights:
            raise value_error(f"{type(self).__name__} found no weight to prune in the model")
        for p in self.parameters:
            mask_of(p)  # outside of any program
        for layer in model.sublayers(include_self=True):
            if any(hasattr(p, "sparsity_mask") for p in layer.parameters(include_sublayers=False)):
                layer.register_forward_pre_hook(renew_all)

    def scores(self) -> list:
        """An array of scores for each parameter: the least are pruned."""
        return [abs(p.numpy()) for p in self.parameters]

    def step(self) -> None:
        """Choose the masks anew, and apply them."""
        scores = self.scores()
        if self.mode == "threshold":
            masks = [s >= self.threshold for s in scores]
        elif self.local_sparsity:
            masks = [mask_smallest(s, round(self.ratio * s.size)) for s in scores]
        else:
            every = module_of(scores[0]).concatenate([s.reshape(-1) for s in scores])
            mask, masks = mask_smallest(every, round(self.ratio * every.size)), []
            for s in scores:
                masks.append(mask[: s.size].reshape(s.shape))
                mask = mask[s.size :]
        self.apply(masks)

    def apply(self, masks: list) -> None:
        for p, mask in zip(self.parameters, masks, strict=True):
            apply_mask(p, mask)

    def update_params(self) -> None:
        """Set the masked weights to zero again."""
        for p in self.parameters:
            renew(p)

    def set_static_masks(self) -> None:
        """Masks where weights are zero now: of a pruned model that was loaded."""
        self.apply([p.numpy() != 0 for p in self.parameters])

    @staticmethod
    def total_sparse(model) -> float:
        """The part of all parameters of a model that is zero."""
        return sparsity(model.parameters())

    @staticmethod
    def total_sparse_conv1x1(model) -> float:
        """The part of the weights of 1 × 1 convolutions that is zero."""
        return sparsity([p for p in model.parameters() if is_pointwise(p)])


def is_pointwise(p) -> bool:
    """Whether a parameter is the weight of a 1 × 1 convolution."""
    return p.ndim == 4 and p.shape[2:] == [1, 1]


def sparsity(parameters) -> float:
    """The part of these parameters that is zero."""
    size = sum(p.size for p in parameters)
    return sum(int((p.numpy() == 0).sum()) for p in parameters) / max(1, size)


CONFIGS = {
    "stable_iterations": 0, "pruning_iterations": None, "tunning_iterations": 0,
    "resume_iteration": 0, "pruning_steps": None, "initial_ratio": 0.15,
}  # fmt: skip
"""PaddleSlim's names of the numbers of a gradual schedule; None: has to be given."""


class GMPUnstructuredPruner(UnstructuredPruner):
    """Sets more and more weights to zero, from `initial_ratio` to `ratio` in `pruning_steps` steps.

    `configs` are iterations: `stable_iterations` dense ones, `pruning_iterations`, then
    `tunning_iterations` at the final ratio (PaddleSlim's spelling); `resume_iteration` is where a
    training goes on. Call `step()` in each. Raises ValueError where `configs` lack a number.
    Sources: PaddleSlim; Zhu and Gupta (2017).

    >>> from minipaddle.slim import GMPUnstructuredPruner
    >>> how = {"pruning_iterations": 40, "pruning_steps": 4, "initial_ratio": 0.0}
    >>> pruner = GMPUnstructuredPruner(paddle.nn.Linear(10, 10), ratio=0.8, configs=how)
    >>> found = []
    >>> for _ in range(41):
    ...     pruner.step()
    ...     found.append(round(pruner.ratio, 2))
    >>> found[::10]
    [0.0, 0.46, 0.7, 0.79, 0.8]
    """

    def __init__(
        self, model, ratio=0.55, prune_params_type=None, skip_params_func=None,
        local_sparsity=False, sparse_block=[1, 1], configs=None,  # noqa: B006 Paddle's
    ):  # fmt: skip
        settings = CONFIGS | (configs or {})
        settings.pop("pruning_strategy", None)  # "gmp", in PaddleSlim's examples
        if wrong := [k for k, v in settings.items() if v is None or k not in CONFIGS]:
            expected = f"numbers for {', '.join(CONFIGS)}"
            raise value_error(f"configs={configs}: {wrong[0]}", expected)
        super().__init__(
            model, "ratio", 0.0, ratio, prune_params_type, skip_params_func, local_sparsity,
            sparse_block,
        )  # fmt: skip
        self.configs, self.target_ratio, self.ratio = settings, ratio, None
        self.cur_iteration = settings["resume_iteration"]

    def ratio_at(self, iteration: int) -> float:
        """The ratio of an iteration, constant within each of the `pruning_steps`."""
        c, period = self.configs, self.period
        first = c["stable_iterations"]
        now = first + (iteration - first) // period * period
        return gradual_ratio(now, first, c["pruning_iterations"], c["initial_ratio"],
                             self.target_ratio)  # fmt: skip

    @property
    def period(self) -> int:
        return max(1, self.configs["pruning_iterations"] // self.configs["pruning_steps"])

    def step(self) -> None:
        """Choose the masks anew, if the ratio has grown."""
        before, self.ratio = self.ratio, self.ratio_at(self.cur_iteration)
        self.cur_iteration += 1
        if self.ratio != before:
            super().step()


class MovementPruner(GMPUnstructuredPruner):
    """Sets the weights to zero that training moves towards zero, more and more as the parent does.

    Call `accumulate()` when the gradients are there (in a captured step, too), `step()` after the
    optimizer's. A weight that was set to zero keeps its value aside, is scored on, and may return.
    Source: Sanh, Wolf, Rush, "Movement pruning: adaptive sparsity by fine-tuning" (2020).
    """

    def __init__(self, model, ratio=0.55, configs=None, **kwargs):
        super().__init__(model, ratio, configs=configs, **kwargs)
        self.moved = [zeros_like(p) for p in self.parameters]
        self.aside = [p.detach().clone() for p in self.parameters]

    def accumulate(self) -> None:
        """Add what this step's gradients say to the scores."""
        with Recording(False):
            for p, score, aside in zip(self.parameters, self.moved, self.aside, strict=True):
                kept = mask_of(p).astype(p.dtype)
                aside.set_value(p * kept + aside * (1 - kept))
                score.set_value(movement(score, aside, p.grad))

    def scores(self) -> list:
        return [score.numpy() for score in self.moved]

    def apply(self, masks: list) -> None:
        with Recording(False):
            for p, aside in zip(self.parameters, self.aside, strict=True):
                kept = mask_of(p).astype(p.dtype)
                aside.set_value(p * kept + aside * (1 - kept))
                p.set_value(aside)
        super().apply(masks)
