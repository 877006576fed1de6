"""Gradients averaged over ranks while the backward goes on.

The backward makes the gradients of the last layers first. They are gathered in *buckets*; a bucket
whose gradients are all there starts its all-reduce, and the backward computes on. At its end the
averages take the place of the gradients. All ranks start their buckets in one order, whatever
order the gradients come in.

Source: Li et al., "PyTorch Distributed: Experiences on Accelerating Data Parallel Training", 2020.
"""

from __future__ import annotations

from ..core.dispatch import current
from ..core.errors import teach
from ..eager.backward import ENDING
from ..eager.device import module_of
from ..eager.tensor import Parameter, wrap
from ..ops.gradient import AVERAGING

MB = 1 << 20


class Bucket:
    """Parameters whose gradients travel together."""

    def __init__(self, parameters: list[Parameter]):
        self.parameters = parameters
        self.gradients: dict[int, object] = {}  # place -> what has come
        self.work = None

    def start(self, group) -> None:
        """Begin the average; what has not come counts as zero."""
        m, parts = module_of(self.parameters[0].array), []
        for k, p in enumerate(self.parameters):
            part = self.gradients.get(k, waiting(p))
            parts.append(m.zeros_like(p.array) if part is None else part)
        whole = m.concatenate([part.reshape(-1) for part in parts])
        self.work = group.all_reduce(whole, "avg", wait=False)

    def finish(self, used) -> None:
        """Give each parameter the average; one that no rank has used keeps what it has."""
        whole, begin = self.work.wait(), 0
        for p in self.parameters:
            end = begin + p.array.size
            if used(p):
                p.grad = wrap(whole[begin:end].reshape(p.array.shape))
            begin = end
        self.gradients, self.work = {}, None


def waiting(p: Parameter):
    """The gradient that a backward which did not average left at `p`."""
    return None if p._grad is None or p._stale else p._grad.array


def buckets_of(parameters, megabytes: float, last: float) -> list[Bucket]:
    """Buckets of one dtype and at most so many MB, in the order in which gradients come: that of
    the parameters, backwards. The last bucket is smaller: nothing is left to compute while it
    travels.
    """
    first, room = [], last * MB  # the first parameters get their gradients last
    for p in parameters:
        room -= p.spec.nbytes
        if room < 0 or p.spec.dtype != parameters[0].spec.dtype:
            break
        first.append(p)
    groups: list[list[Parameter]] = [[]]
    for p in reversed(parameters[len(first) :]):
        size = sum(q.spec.nbytes for q in groups[-1]) + p.spec.nbytes
        alike = all(q.spec.dtype == p.spec.dtype for q in groups[-1])
        if groups[-1] and (size > megabytes * MB or not alike):
            groups.append([])
        groups[-1].append(p)
    return [Bucket(group) for group in [*groups, first[::-1]] if group]


class Reducer:
    """Averages the gradients of some parameters at every backward.

    find_unused: may a backward leave some of them without a gradient?
    """

    def __init__(self, parameters, group, megabytes=25.0, last=1.0, find_unused=False):
        self.group, self.find_unused = group, find_unused
        self.parameters = list(parameters)
        self.buckets = buckets_of(self.parameters, megabytes, last)
        self.next = 0  # the bucket to start next
        self.at_work = False
        for bucket in self.buckets:
            for k, p in enumerate(bucket.parameters):
                p.register_hook(self.hook(bucket, k, p))

    def hook(self, bucket: Bucket, k: int, p: Parameter):
        """What is done with the gradient of a parameter, once it is known."""

        def arrived(g):
            if current.top.tracing or not AVERAGING.now or ENDING.calls is None:
                return  # a program averages by a pass; `paddle.grad` leaves gradients alone
            if p.averaged is None:
                return  # an optimizer does, when it has merged those of several steps
            if not self.at_work:
                self.at_work = True
                ENDING.calls.append(self.finish)
            before = waiting(p)
            bucket.gradients[k] = g.array if before is None else before + g.array
            self.start_full()

        return arrived

    def start_full(self) -> None:
        """Start the buckets that are full, each after those before it."""
        while self.next < len(self.buckets):
            bucket = self.buckets[self.next]
            if len(bucket.gradients) < len(bucket.parameters):
                return
            bucket.start(self.group)
            self.next += 1

    def finish(self) -> None:
        """The backward is over: send what is left, and wait for all."""
        self.at_work = False
        come = {id(b.parameters[k]) for b in self.buckets for k in b.gradients}
        missing = [p for p in self.parameters if id(p) not in come]
        if missing and not self.find_unused:
            self.forget()
            raise unused(missing)
        used = self.used_somewhere(come) if self.find_unused else come
        for bucket in self.buckets[self.next :]:
            bucket.start(self.group)
        for bucket in self.buckets:
            bucket.finish(lambda p: id(p) in used)
        self.next = 0

    def forget(self) -> None:
        """Nothing of this backward is left."""
        self.next = 0
        for bucket in self.buckets:
            bucket.gradients, bucket.work = {}, None

    def used_somewhere(self, come: set[int]) -> set[int]:
        """The parameters that have a gradient in some rank."""
        m = module_of(self.parameters[0].array)
        flags = m.asarray([id(p) in come for p in self.parameters])
        flags = self.group.all_reduce(flags, "max").tolist()
        return {id(p) for p, flag in zip(self.parameters, flags, strict=True) if flag}


def unused(missing: list[Parameter]) -> RuntimeError:
    """The error for parameters that got no gradient."""
    names = ", ".join(p.name for p in missing[:3]) + (", …" if len(missing) > 3 else "")
    return RuntimeError(
        teach(
            f"a backward gave {len(missing)} parameters of a DataParallel model no gradient "
            f"({names}); other ranks may wait for theirs",
            hint="DataParallel(model, find_unused_parameters=True)",
        )
    )
