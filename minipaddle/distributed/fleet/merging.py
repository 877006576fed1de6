"""Gradients of several steps merged into one update, and averaged over the ranks once for it."""

from ...engine.core.dispatch import Recording
from ...engine.core.slots import slot
from ...engine.distributed.reducer import build_buckets
from ...engine.eager.control_flow import cond
from ...engine.eager.tensor import Tensor
from ...tensor.creation import zeros_like
from ..collectives.operators import finish_all_reduce, start_all_reduce
from ..ranks.known_groups import group_of


class GradientMerge:
    """`optimizer` with an update at every `k_steps`-th `step()` alone, by the gradients of all.

    A step adds the gradients to their sums; with `avg` an update divides these by the steps. (With
    a mean loss and equal batches this is the gradient of the k batches joined.) A backward averages
    nothing over the ranks: an update averages the sums, in buckets of `bucket_mb`. The number of
    steps is a tensor, and the update a `cond`: a captured step stays one program. All else is the
    optimizer's; its saved state has no sums in it, so save after an update. Source: Paddle API
    `paddle.incubate.optimizer.GradientMergeOptimizer`.
    """

    def __init__(self, optimizer, k_steps: int, avg: bool, bucket_mb: float, last_mb: float):
        self.inner_optimizer, self.k_steps, self.avg = optimizer, k_steps, avg
        self.sizes = bucket_mb, last_mb
        self.steps = Tensor(0, dtype="int64")  # since the last update
        self.merged: dict[Tensor, Tensor] = {}
        self.average_later()

    def __getattr__(self, name: str):
        if name.startswith("__"):  # what copying asks for, before there is an optimizer
            raise AttributeError(name)
        return getattr(self.inner_optimizer, name)

    def average_later(self) -> None:
        """Stop backwards from averaging the gradients of these parameters."""
        for p in self._parameter_list:
            p.averaged = None

    def step(self) -> None:
        """Merge the gradients; update at every `k_steps`-th step."""
        with Recording(False):
            for p in self._parameter_list:
                if p.grad is not None and not p.stop_gradient:
                    self.merge(p)
            steps = self.steps + 1
            self.steps.set_value(steps % self.k_steps)
            cond(steps == self.k_steps, self.update, list)

    @slot("fleet.merge")
    def merge(self, p: Tensor) -> None:
        """Add the gradient of a parameter to its merged sum, and clear it."""
        merged = self.sum_of(p)
        merged.set_value(merged + p.grad)
        p.clear_gradient(set_to_zero=False)

    def sum_of(self, p: Tensor) -> Tensor:
        """The tensor with the merged sum of a parameter; zeros at first."""
        if p not in self.merged:  # made outside any program, as states are
            zeros = p.place.module.zeros(p.spec.shape, p.spec.dtype)
            self.merged[p] = Tensor(zeros, p.spec.dtype, p.place)
        return self.merged[p]

    @slot("fleet.update")
    def update(self) -> list:
        """Step the optimizer by the averages of the merged sums; then clear them."""
        for p, g in self.average_sums():
            p.grad = g / self.k_steps if self.avg else g
        self.inner_optimizer.step()
        for p, merged in self.merged.items():
            p.clear_gradient(set_to_zero=False)
            merged.set_value(zeros_like(merged))
        return []

    def average_sums(self) -> list[tuple]:
        """Pairs (parameter, the sum of its gradients, averaged over the ranks)."""
        group = group_of(None)
        if group.size == 1:
            return [*self.merged.items()]
        buckets = [b.parameters for b in build_buckets([*self.merged], *self.sizes)]
        tickets = [
            start_all_reduce(*(self.merged[p] for p in bucket), op="avg", group=group.id)
            for bucket in buckets
        ]
        pairs = []
        for bucket, ticket in zip(buckets, tickets, strict=True):
            shapes = tuple(p.spec.shape for p in bucket)
            averages = finish_all_reduce(ticket, shapes=shapes, dtype=bucket[0].spec.dtype)
            pairs += zip(bucket, averages, strict=True)
        return pairs

    def minimize(self, loss, startup_program=None, parameters=None, no_grad_set=None):
        """`Optimizer.minimize` with this `step`."""
        return type(self.inner_optimizer).minimize(
            self, loss, startup_program, parameters, no_grad_set
        )
