"""The search: in batches, the kernel that may gain most, at the points the model prefers."""

import math
from statistics import median

from ..codegen.products.prepacking import constant_inputs
from ..engine.codegen.kernel import Kernel
from ..engine.codegen.step import kernel_of
from ..engine.core.record import Record
from ..engine.core.slots import slot
from ..engine.executors.native import Executable, threads
from ..engine.ir.program import NUMBER
from ..engine.passes.lifetimes import specs_of
from ..executors.native.trials import Trial, all_trials, machine
from .cost_model import Sample, cost_model
from .evolution import proposals
from .measure import Bench
from .space import Space
from .target import TuningTarget, kernel_seconds

BATCH = 8
"""Kernels that are compiled and measured at a time, beside the default."""

SMALL = 0.01
"""Kernels that take less than this part of a step are left alone."""

CLEARLY = 0.98
"""The part of the default's time below which a point is worth a proof."""

NAME = "tuned_kernel"


class TuningTask:
    """One kernel of the program, and the trials of it so far."""

    def __init__(self, signature: str, default: Executable, record: Record, seconds: float):
        self.signature, self.record = signature, record
        self.name, self.seconds = default.kernels.of[record].name, seconds  # in a run of `default`
        constant = default.kernels.constant_inputs_of(record)
        self.space = Space(lambda: kernel_for(record, constant))
        self.facts = facts(record)
        self.times: list[tuple[dict, float]] = []  # points, and their part of the default's time
        self.bench: Bench | None = None
        self.exhausted = not self.space.knobs(self.space.default)

    def sample(self, point: dict, seconds: float = math.nan) -> Sample:
        return Sample(self.signature, self.facts, point, seconds)

    @property
    def best(self) -> dict:
        """The fastest point so far; {} if it is not clearly faster than the default."""
        point, time = min(self.times, key=lambda t: t[1], default=({}, 1.0))
        return point if time < CLEARLY else {}

    def measure(self, points: list[dict]) -> list[tuple[float | None, float]]:
        """For each point its seconds (None: its results are wrong), and those of the default."""
        kernels = [self.space.kernel(p) for p in (self.space.default, *points)]
        names = [f"{NAME}{j}" for j in range(len(kernels))]
        kernels = [
            k._replace(name=n, source=k.source.replace(NAME, n)) for k, n in zip(kernels, names)
        ]
        default, *others = self.bench.measure(kernels)
        return [(seconds, default) for seconds in others]


def kernel_for(record: Record, constant) -> Kernel:
    """The kernel of a record; the `constant` ones of its inputs are the same in every run."""
    with constant_inputs(constant):
        return kernel_of(record, NAME)


def facts(record: Record) -> tuple[float, ...]:
    """Logarithms of sizes: of three inputs and a result, all elements and those of a row."""
    specs = [x.spec for x in record.inputs if x.op is not NUMBER][:3]
    specs += [specs_of(record)[0]] * (4 - len(specs))
    logs = []
    for spec in specs:
        logs += [math.log2(1 + spec.size) / 16, math.log2(1 + (spec.shape or (1,))[-1]) / 8]
    return tuple(logs)


@slot("tuning.next_task")
def next_task(tasks: list[TuningTask], batches: dict[str, int]) -> TuningTask | None:
    """The kernel whose turn it is: the one with most seconds for each batch it will have had.

    Source: D'Hondt's way to share out seats.
    """
    worth = lambda task: task.seconds / (1 + batches.get(task.name, 0))
    return max(tasks, key=worth, default=None)


def tasks_of(target: TuningTarget, default: Executable) -> list[TuningTask]:
    """The kernels of a program that can be written otherwise (not those inside branches and loops);
    `default` is its executable by the rules, `timed`.
    """
    (runs,) = kernel_seconds(target, [default], 5)
    seconds = {name: median(run[name] for run in runs) for name in runs[0]}
    records: dict[str, Record] = {}
    for record in default.program.records:
        name = default.kernels.signatures.get(record)
        if name in seconds and all(spec.size for spec in specs_of(record)):
            records.setdefault(name, record)
    least = SMALL * sum(seconds.values())
    tasks = [
        TuningTask(n, default, r, seconds[n]) for n, r in records.items() if seconds[n] >= least
    ]
    tasks = [t for t in tasks if not t.exhausted]
    met = target.values(default, {t.record for t in tasks})
    for t in tasks:
        t.bench = Bench(t.record, met[t.record])
    return tasks


class Search:
    """The kernels of some programs, searched batch by batch, the dearest first.

    `curves` hold for each kernel the part of the default's time that each trial took.
    """

    def __init__(self, targets: list[TuningTarget], rng):
        self.targets, self.rng, self.machine = targets, rng, machine(threads())
        self.defaults = [target.compile({}, timed=True) for target in targets]
        tasks = [t for pair in zip(targets, self.defaults, strict=True) for t in tasks_of(*pair)]
        self.tasks = sorted(tasks, key=lambda t: -t.seconds)
        for task in self.tasks if len(targets) > 1 else ():
            task.name += f"_{task.signature[:4]}"  # two programs count their kernels from 0
        self.curves: dict[str, list[float]] = {t.name: [] for t in self.tasks}
        self.batches: dict[str, int] = {}
        self.remember()

    @property
    def spent(self) -> int:
        return sum(map(len, self.curves.values()))

    def remember(self) -> None:
        """Begin with earlier measurements."""
        tasks = {t.signature: t for t in self.tasks}
        for trial in all_trials():
            task = tasks.get(trial.kernel) if trial.machine == self.machine else None
            if task and task.space.point(trial.choices) == trial.choices:
                task.times.append((trial.choices, trial.seconds / trial.default))

    def run(self, trials: int, advance) -> None:
        """Run `trials` trials, or fewer if nothing is left to try; `advance(count, text)` reports
        them.
        """
        while self.spent < trials:
            task = next_task([t for t in self.tasks if not t.exhausted], self.batches)
            if task is None:
                return
            self.batches[task.name] = self.batches.get(task.name, 0) + 1
            count = min(BATCH, trials - self.spent)
            points = proposals(task.space, task.times, self.scoring(task), count, self.rng)
            task.exhausted = not points
            if points:
                self.measure(task, points)
                best = min(t for _, t in task.times)
                advance(len(points), f"{task.name}: {best:.2f} of the default's time")

    def measure(self, task: TuningTask, points: list[dict]) -> None:
        """Measure points of a kernel, and write the measurements to disk."""
        trials = []
        for point, (seconds, default) in zip(points, task.measure(points), strict=True):
            ratio = seconds / default if seconds else math.inf
            task.times.append((point, ratio))
            self.curves[task.name].append(ratio)
            if seconds:
                trials.append(Trial(task.signature, self.machine, point, seconds, default))
        all_trials().add(*trials)

    def scoring(self, task: TuningTask):
        """The model, trained on all measurements, as a function of points of this kernel."""
        samples = [t.sample(p, s) for t in self.tasks for p, s in t.times if s < math.inf]
        score = cost_model(samples)
        return lambda points: score([task.sample(p) for p in points])
