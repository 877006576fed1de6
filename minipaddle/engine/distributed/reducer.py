"""Gradients averaged over ranks while the backward continues.

The backward computes the gradients of the last layers first. They are collected in *buckets*; when
a bucket has all its gradients, its all-reduce starts, and the backward continues. At its end the
averages replace the gradients. All ranks start their buckets in the same order, whatever the order
in which gradients arrive.

Source: Li et al., "PyTorch Distributed: Experiences on Accelerating Data Parallel Training", 2020.
"""

from __future__ import annotations

from ..core.dispatch import current
from ..core.errors import teach
from ..eager.backward import AVERAGING
from ..eager.device import module_of
from ..eager.tensor import Parameter, Tensor, wrap
from ..sharding.buckets import BUCKET_MB, LAST_MB, MB, assign_buckets


class ReductionBucket:
    """Parameters whose gradients travel together; those given by rows follow, one by one."""

    def __init__(self, parameters: list[Parameter]):
        self.parameters = parameters
        self.gradients: dict[int, object] = {}  # number of the parameter -> array, or rows
        self.work = None

    def start(self, group) -> None:
        """Start the average; a gradient that is missing counts as zero."""
        m, parts = module_of(self.parameters[0].array), []
        for k, p in enumerate(self.parameters):
            part = self.gradients.get(k, earlier_gradient(p))
            if not isinstance(part, Tensor):
                parts.append(m.zeros_like(p.array) if part is None else part)
        if parts:
            flat = m.concatenate([part.reshape(-1) for part in parts])
            self.work = group.all_reduce(flat, "avg", wait=False)

    def finish(self, used) -> None:
        """Give each parameter its average; a parameter that no rank used keeps its gradient."""
        flat, begin = self.work and self.work.wait(), 0
        for k, p in enumerate(self.parameters):
            if isinstance(rows := self.gradients.get(k), Tensor):
                p.grad = rows.average_over_ranks(**p.averaged)
                continue
            end = begin + p.array.size
            if used(p):
                p.grad = wrap(flat[begin:end].reshape(p.array.shape))
            begin = end
        self.gradients, self.work = {}, None


def earlier_gradient(p: Parameter):
    """The gradient that an earlier backward without averaging left in `p.grad`."""
    return None if p._grad is None or p._stale else p._grad.array


def build_buckets(parameters, bucket_mb: float, last_mb: float) -> list[ReductionBucket]:
    """Buckets as the pass `async_collectives` builds them, for the order of the gradients' arrival:
    the parameters backwards.
    """
    order = list(parameters)[::-1]
    sizes, dtypes = [p.spec.nbytes for p in order], [p.spec.dtype for p in order]
    groups = assign_buckets(sizes, dtypes, [bucket_mb * MB] * len(order), last_mb * MB)
    return [ReductionBucket([order[k] for k in group]) for group in groups]


class Reducer:
    """Averages the gradients of some parameters in every backward.

    sizes: the megabytes of a bucket, and of the last one
    find_unused: whether a backward may leave some of them without a gradient.
    """

    def __init__(self, parameters, group, sizes=(BUCKET_MB, LAST_MB), find_unused=False):
        self.group, self.find_unused = group, find_unused
        self.parameters = list(parameters)
        self.buckets = build_buckets(self.parameters, *sizes)
        self.next, self.active = 0, False  # the bucket to start next; whether one has a gradient
        for bucket in self.buckets:
            for k, p in enumerate(bucket.parameters):
                p.register_hook(self.hook(bucket, k, p))

    def hook(self, bucket: ReductionBucket, k: int, p: Parameter):
        """The hook that puts the gradient of a parameter into its bucket."""

        def note_arrival(g):
            off = current.top.tracing or not AVERAGING.now or p.averaged is None
            if off or current.top.after_backward is None:
                return  # a pass averages, or the optimizer later; `paddle.grad` does not
            if not self.active:
                self.active = True
                current.top.after_backward.append(self.finish)
            before = earlier_gradient(p)
            if before is None and g.row_sparse and not self.find_unused:
                bucket.gradients[k] = g
            else:
                bucket.gradients[k] = g.array if before is None else before + g.array
            self.start_full()

        return note_arrival

    def start_full(self) -> None:
        """Start the full buckets, in order."""
        while self.next < len(self.buckets):
            bucket = self.buckets[self.next]
            if len(bucket.gradients) < len(bucket.parameters):
                return
            bucket.start(self.group)
            self.next += 1

    def finish(self) -> None:
        """Start the remaining buckets at the end of the backward, and wait for all."""
        self.active = False
        arrived_ids = {id(b.parameters[k]) for b in self.buckets for k in b.gradients}
        missing = [p for p in self.parameters if id(p) not in arrived_ids]
        if missing and not self.find_unused:
            self.reset()
            raise build_unused_error(missing)
        used = self.find_used_anywhere(arrived_ids) if self.find_unused else arrived_ids
        for bucket in self.buckets[self.next :]:
            bucket.start(self.group)
        for bucket in self.buckets:
            bucket.finish(lambda p: id(p) in used)
        self.next = 0

    def reset(self) -> None:
        """Drop all gradients of this backward."""
        self.next = 0
        for bucket in self.buckets:
            bucket.gradients, bucket.work = {}, None

    def find_used_anywhere(self, arrived_ids: set[int]) -> set[int]:
        """The ids of parameters that have a gradient in at least one rank."""
        m = module_of(self.parameters[0].array)
        flags = m.asarray([id(p) in arrived_ids for p in self.parameters])
        flags = self.group.all_reduce(flags, "max").tolist()
        return {id(p) for p, flag in zip(self.parameters, flags, strict=True) if flag}


def build_unused_error(missing: list[Parameter]) -> RuntimeError:
    """Build the error for parameters that got no gradient."""
    names = ", ".join(p.name for p in missing[:3]) + (", …" if len(missing) > 3 else "")
    return RuntimeError(
        teach(
            f"a backward gave {len(missing)} parameters of a DataParallel model no gradient "
            f"({names}); other ranks may wait for theirs",
            hint="DataParallel(model, find_unused_parameters=True)",
        )
    )
