"""Measured costs: the kernels of a step, and the time of a collective."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager
from statistics import median
from time import perf_counter, sleep

from ...engine.distributed.process_group import MappedWork, ProcessGroup, Work
from ...engine.eager.device import NUMPY, current_place
from ...engine.eager.tensor import Tensor
from ...engine.sharding.buckets import BUCKET_MB
from ...executors.native.timing import TimedExecutable
from ...jit.decorator import to_static
from .cluster import Cluster, Link
from .collectives import seconds
from .timeline import Activity, Timeline, TimelinePiece, best_of, pieces_of


def measure_step(
    step, parameters, inputs: Sequence[Tensor], *, bucket_mb=BUCKET_MB, runs: int = 3, **options
) -> tuple[list[TimelinePiece], list[int]]:
    """Measure a training step: (pieces, bytes of each bucket) for `simulate`.

    The step is compiled with averaged gradients (here over one rank alone), and each kernel is
    timed; the result is the median of some runs. The weights change as in two steps of training.
    `options` are switches of the passes.
    """
    before = [(p, p.averaged) for p in parameters]
    try:
        for p, _ in before:
            p.averaged = {"group": 0, "bucket_mb": bucket_mb}
        function = to_static(step)
        for _ in range(2):  # an optimizer's first step differs from the others
            function(*inputs)
    finally:
        for p, averaged in before:
            p.averaged = averaged
    program = function.concrete_program.program
    executable = TimedExecutable(program, options)
    arrays = [*(x.array for x in inputs), *(s.storage.read().copy() for s in program.states)]
    samples, so_far = [], [0.0] * len(executable.times())
    for _ in range(1 + runs):
        executable(program, arrays)
        times = [spent for spent, _ in executable.times()]
        samples.append([now - then for now, then in zip(times, so_far, strict=True)])
        so_far = times
    kept = [median(column) for column in zip(*samples[1:], strict=True)]
    records = [record for _, record in executable.times()]
    return pieces_of(executable.program, zip(kept, records, strict=True))


def fit_link(group: ProcessGroup, sizes: Sequence[int], *, runs: int = 7) -> Link:
    """Fit the link on which a ring of a group's ranks takes the time of its all-reduce.

    All ranks call it, on arrays of `sizes` bytes; it uses the median of some runs.
    """
    array_of = current_place().module.zeros
    times = []
    for nbytes in sizes:
        array, took = array_of(nbytes // 4, "float32"), []
        for _ in range(runs):
            group.barrier()
            begin = perf_counter()
            group.all_reduce(array)
            took.append(perf_counter() - begin)
        times.append(median(took))
    return link_of(sizes, times, group.size)


def link_of(sizes: Sequence[float], times: Sequence[float], n: int) -> Link:
    """The link on which a ring of n ranks takes about these seconds for these bytes: the least
    squares of relative errors, for at least two different sizes.

    >>> from minipaddle.distributed.simulator import link_of
    >>> link = link_of([1e6, 1e8], [0.003, 0.201], 2)
    >>> f"{link.bandwidth / 1e9:.2f} GB/s, {link.latency * 1e3:.2f} ms"
    '0.50 GB/s, 0.50 ms'
    """
    rounds, share = 2 * (n - 1), 2 * (n - 1) / n
    # t ≈ rounds·α + share·S/β, each equation divided by t
    rows = [(rounds / t, share * s / t) for s, t in zip(sizes, times, strict=True)]
    latency, slope = NUMPY.linalg.lstsq(rows, [1.0] * len(rows), rcond=None)[0].tolist()
    return Link(1 / slope, max(latency, 0.0))


@contextmanager
def slow_down(group: ProcessGroup, cluster: Cluster):
    """Slow down the all-reduces of a group in the block to their time on the links of a cluster.

    The ranks sleep until a message would have arrived: so computation overlaps with it as it would
    there.
    """
    begin, free = group.start, 0.0  # when the link is free

    def start(name: str, array, **options) -> Work:
        nonlocal free
        if name != "all_reduce":
            return begin(name, array, **options)
        cost = seconds(best_of(cluster), array.nbytes, cluster)
        free = max(free, perf_counter()) + cost
        return DelayedWork(begin(name, array, **options), free)

    group.start = start
    try:
        yield group
    finally:
        del group.start


class Watch:
    """The times of a rank in a block: of computing, waiting and communicating.

    Make one in every rank, at the same time; `timeline_of(watches)` puts them together.
    """

    def __init__(self, group: ProcessGroup):
        self.group, self.rank, self.spans = group, group.rank, []
        self.begun = self.ended = 0.0

    def __enter__(self):
        begin = self.group.start
        self.before = vars(self.group).get("start")  # one that slows down, maybe

        def start(name: str, array, **options) -> Work:
            now = perf_counter()
            work = begin(name, array, **options)
            return WatchedWork(work, self, now) if name == "all_reduce" else work

        self.group.start = start
        self.begun = perf_counter()
        return self

    def __exit__(self, *exc):
        self.ended = perf_counter()
        del self.group.start
        if self.before is not None:
            self.group.start = self.before

    def note(self, kind: str, start: float, end: float) -> None:
        if end > start:
            self.spans.append(Activity(self.rank, kind, kind, start - self.begun, end - self.begun))

    def computing(self) -> list[Activity]:
        """The spans in which the rank did not wait."""
        waits = sorted((s.start, s.end) for s in self.spans if s.kind == "idle")
        ends = [0.0, *(end for _, end in waits)]
        starts = [*(start for start, _ in waits), self.ended - self.begun]
        pairs = zip(ends, starts, strict=True)
        return [Activity(self.rank, "compute", "compute", a, b) for a, b in pairs if b > a]


class WatchedWork(MappedWork):
    """A collective that notes its time, and the time of the wait for it."""

    def __init__(self, work: Work, watch: Watch, begun: float):
        super().__init__(work, None)
        self.watch, self.begun = watch, begun

    def wait(self, timeout: float | None = None):
        begin = perf_counter()
        result = self.work.wait(timeout)
        end = perf_counter()
        self.watch.note("idle", begin, end)
        self.watch.note("communication", self.begun, getattr(self.work, "until", end))
        return result


def timeline_of(watches: Sequence[Watch]) -> Timeline:
    """The timeline of a step's ranks, from their notes."""
    spans = [span for w in watches for span in (*w.computing(), *w.spans)]
    took = max(w.ended - w.begun for w in watches)
    compute = sum(s.end - s.start for s in spans if (s.device, s.kind) == (0, "compute"))
    return Timeline(spans, took, compute)


class DelayedWork(MappedWork):
    """A collective that completes no sooner than the time `until`."""

    def __init__(self, work: Work, until: float):
        super().__init__(work, None)
        self.until = until

    def wait(self, timeout: float | None = None):
        result = super().wait(timeout)
        sleep(max(0.0, self.until - perf_counter()))
        return result

    def is_completed(self) -> bool:
        return super().is_completed() and perf_counter() >= self.until
