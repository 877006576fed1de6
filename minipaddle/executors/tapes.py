"""The walk back through a tape, as one program in C.

The backward of a small network is a few dozen operators on small arrays, and to call them takes
longer than to compute. But a loop that trains records the same tape again and again: the same
operators, attributes, shapes and dtypes. After some walks the walk itself is traced, `pull_back`
with the derivatives of the operators on symbolic arrays, and a thread compiles the program. From a
certain walk on it serves: what the records saved goes in, the gradients come out.

Which walk that is depends on the tape alone (`Tape.mean`). So a program gives the same numbers, to
the last bit, each time it runs; those of the walk and of C differ by rounding alone. The walk
remains for what a program cannot do, or must not hide: hooks, derivatives that will be
differentiated, a PyLayer, parts that are computed again, saved tensors that are packed, overwritten
or freed, GPUs, several ranks, code of a reader. `eager_kernels.report()` says which tapes are
computed how, and with FLAGS_eager_kernels off all are walked.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from numpy import dtype, ndarray

from ..core.prelude import Spec, current
from ..engine.core.dtype import DEFAULT
from ..engine.core.grad import pull_back
from ..engine.core.record import FREED, Record, last_write
from ..engine.eager.backward import WALKS
from ..engine.eager.tensor import wrap
from ..engine.executors.native import CannotCompile, Executable
from .eager_kernels import LEAST, REPORTED, Kernel, built, serves, traced

CALL = 1 << 15
"""Elements that a walk counts for each operator, beside those of its result."""
MOST = 64
"""Tapes that are known: beyond these the oldest is forgotten."""

TAPES: dict[tuple, Tape | None] = {}
"""By `Reading.key`; None for a tape that was walked once."""


def walk(seeds, wanted=None, *, blocked=frozenset(), release: bool = False) -> dict:
    """The result of `pull_back`, computed in C if there is a program for the tape."""
    if not (current.top.recording or blocked) and serves():
        found = computed(seeds, wanted, release)
        if found is not None:
            return found
    return pull_back(seeds, wanted, blocked=blocked, release=release)


def computed(seeds, wanted, release: bool) -> dict | None:
    """The result of `pull_back` in C; None if it must walk."""
    try:
        reading = Reading(seeds, wanted)
    except Unreadable:
        return None
    key, order = tuple(reading.key), reading.order
    tape = TAPES.get(key)
    if tape is None:
        if key not in TAPES and len(TAPES) == MOST:
            del TAPES[next(iter(TAPES))]
        TAPES[key] = Tape(reading, wanted) if key in TAPES else None
        return None
    results = tape(reading.arrays, tape.mean)
    if results is None:
        return None
    if release:
        for k in tape.passed:
            order[k].saved = FREED
    return {order[k]: wrap(y) for k, y in zip(tape.found, results, strict=True)}


class Unreadable(Exception):
    """A tape holds what no program can have."""


class Reading:
    """A tape as it is found.

    `order` are its records, as they are met on the way from the seeds, and `number` their places in
    it; `arrays` are the seeds, then what records saved. `key` is all that decides the program.
    """

    __slots__ = ("arrays", "key", "number", "order", "places", "seeds")

    def __init__(self, seeds, wanted):
        self.key, self.order, self.arrays, self.seeds = key, order, _, met = [], [], [], []
        self.number, self.places = number, _ = {}, {}
        for record, g in seeds:
            if record not in number:
                number[record] = len(order)
                order.append(record)
            met.append(number[record])
            self.take(g.array)
        key += len(seeds), *met, DEFAULT.now
        for record in order:  # which grows meanwhile
            op, inputs, saved = record.op, record.inputs, record.saved
            if record.hooks or op.pull is not None or saved is FREED:
                raise Unreadable
            key += op, record.shape, record.dtype
            if not inputs:  # a leaf
                continue
            key.append(len(inputs))
            for edge in inputs:
                k = None
                if edge is not None and (k := number.get(edge)) is None:
                    k = number[edge] = len(order)
                    order.append(edge)
                key.append(k)
            key.append(frozen(record.attrs) if record.attrs else None)
            if saved:
                time = record.time
                for name, value in saved.items():
                    key.append(name)
                    self.take(value, time)
            key.append(None)
        if wanted is not None:
            key.append(tuple(sorted(number[record] for record in wanted if record in number)))

    def take(self, value, time: float = float("inf")) -> None:
        """Note an array that goes into the program, once, or what else a record saved then."""
        kind, key = type(value), self.key
        if kind is ndarray:
            place = self.places.get(id(value))
            if place is None:
                place = self.places[id(value)] = len(self.arrays)
                self.arrays.append(value)
                key += value.shape, value.dtype
            if last_write(value) > time:
                raise Unreadable
            key.append(place)
        elif kind is tuple:
            key.append(len(value))
            for each in value:
                self.take(each, time)
        else:
            key.append(value if kind is Spec else frozen(value))


def frozen(x):
    """An attribute, or a number that a record saved, such that equal ones mean the same."""
    kind = type(x)
    if kind is float:  # 0.0 == -0.0
        return repr(x)
    if kind in EXACT or isinstance(x, dtype):
        return kind, x
    if kind in (tuple, list):
        return kind, *map(frozen, x)
    if kind is dict:
        return kind, *x, *map(frozen, x.values())
    raise Unreadable


EXACT = {int, bool, str, type(None)}


class Tape(Kernel):
    """What computes the derivative of tapes that are alike: the walk, later C."""

    def __init__(self, reading: Reading, wanted):
        order, number, places = reading.order, reading.number, reading.places
        self.about = f"{len(order)} records before {order[0]}"
        self.seeds, self.found, self.passed = reading.seeds, [], []
        self.wanted = wanted and [number[record] for record in wanted if record in number]
        self.records = [  # oldest first, without the arrays they hold
            (number[r], r.op, edges(r, number), r.attrs, r.shape, r.dtype, held(r, places))
            for r in sorted(order, key=Record.time.__get__)
        ]
        self.mean = CALL + sum(map(elements, order)) // len(order)  # to compile takes longer, too
        specs = [Spec(a.shape, a.dtype) for a in reading.arrays]
        super().__init__(partial(self.compiled, specs))

    def compiled(self, specs) -> Executable:
        """The walk in C. Raises CannotCompile if NumPy shows a few numbers as large gradients: C
        would write what a view need not, such as the derivative of a sum.
        """
        program = traced("derivative", self.walk, specs, {})
        computed = sum(elements(record) for record in program.records if not record.op.view)
        if computed < LEAST <= sum(map(elements, program.outputs)):
            raise CannotCompile("its gradients are views of a few numbers")
        return built(program)

    def walk(self, *tensors) -> tuple:
        """The gradients that a walk finds through a twin of the tape, which saved these tensors."""
        twins = [None] * len(self.records)
        for k, op, inputs, attrs, *spec, saved in self.records:
            inputs = tuple(edge if edge is None else twins[edge] for edge in inputs)
            saved = saved and {name: filled(x, tensors) for name, x in saved.items()}
            twins[k] = Record(op, inputs, attrs, *spec, saved)
        seeds = [(twins[k], g) for k, g in zip(self.seeds, tensors, strict=False)]
        wanted = self.wanted and {twins[k] for k in self.wanted}
        found = pull_back(seeds, wanted, release=True)
        self.found = [*map(twins.index, found)]
        self.passed = [k for k, twin in enumerate(twins) if twin.saved is FREED]
        return tuple(found.values())


class Place(int):
    """The number of an array among those that go into a program."""


def held(record: Record, places: dict):
    """What a record saved, with places instead of arrays."""
    put = lambda x: Place(places[id(x)]) if type(x) is ndarray else x
    return record.saved and {
        name: tuple(map(put, x)) if type(x) is tuple else put(x) for name, x in record.saved.items()
    }


def filled(x, tensors):
    """A value of `held` with arrays instead of places."""
    if type(x) is tuple:
        return tuple(filled(each, tensors) for each in x)
    return tensors[x].array if type(x) is Place else x


def edges(record: Record, number: dict) -> list:
    """The numbers of the records that a record was computed from."""
    return [edge if edge is None else number[edge] for edge in record.inputs]


def elements(record: Record) -> int:
    """How many elements the result of a record has."""
    return sum(spec.size for spec in (record.shape if record.dtype is None else [record.spec]))


def report() -> Iterator[str]:
    """A line for all tapes, and one for each that was walked more than once."""
    yield "derivatives of tapes that eager mode walks often: C"
    for tape in TAPES.values():
        if tape is not None:
            yield f"  derivative of {tape.about}: {tape}"


WALKS.append(walk)
REPORTED.append(report)
