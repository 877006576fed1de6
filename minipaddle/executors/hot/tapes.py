"""The walk back through a tape, as one program in C.

The backward of a small network is a few dozen operators on small arrays, and to call them takes
longer than to compute. But a loop that trains records the same tape again and again: the same
operators, attributes, shapes and dtypes. With FLAGS_eager_programs, and on a GPU, a tape that is
walked again is hot code (`hot`): the walk itself is traced, `pull_back` with the derivatives of the
operators on symbolic arrays. Its program takes the arrays that the records saved, and returns the
gradients. The work of a walk depends on the tape alone (`Tape.mean`).

The walk remains for what a program cannot do, or must not hide: hooks, derivatives that will be
differentiated, a PyLayer, parts that are computed again, saved tensors that are packed, overwritten
or freed, several ranks, code of a reader.
"""

from __future__ import annotations

from functools import partial
from math import inf

from numpy import dtype

from ...core.prelude import Spec, current
from ...engine.core.dtype import DEFAULT
from ...engine.core.grad import pull_back
from ...engine.core.op import Op
from ...engine.core.record import FREED, Record, last_write
from ...engine.eager.backward import WALKS
from ...engine.eager.tensor import wrap
from ...engine.executors.native import CannotCompile, Executable
from ..gpu.gpu_program import device_of
from . import EagerKernel, HotCache, eager_is_compiled
from .eager_kernels import build_executable, trace_function

CALL = 1 << 15
"""Elements that a walk counts for each operator, beside those of its result."""
TAPES = HotCache()
"""By `TapeReading.key`."""


def walk(seeds, wanted=None, *, blocked=frozenset(), release: bool = False) -> dict:
    """The result of `pull_back`, computed in C if there is a program for the tape."""
    recording = current.top.recording
    if seeds and not (recording or blocked) and eager_is_compiled(seeds[0][1].array):
        gradients = compute(seeds, wanted, release)
        if gradients is not None:
            return gradients
    return pull_back(seeds, wanted, blocked=blocked, release=release)


def compute(seeds, wanted, release: bool) -> dict | None:
    """The result of `pull_back` in C; None if it must walk."""
    try:
        reading = TapeReading(seeds, wanted)
    except UnreadableTape:
        return None
    key, order = (*reading.key, device_of(reading.arrays[0])), reading.order
    tape = TAPES.find(key, partial(Tape, reading, wanted))
    results = tape and tape(reading.arrays, tape.mean)
    if results is None:
        return None
    if release:
        for k in tape.passed:
            order[k].saved = FREED
    return {order[k]: wrap(y) for k, y in zip(tape.found, results, strict=True)}


class UnreadableTape(Exception):
    """A tape holds what no program can have."""


class TapeReading:
    """A tape as it is found.

    `order` are its records, as they are met on the way from the seeds, and `number` their places in
    it; `arrays` are the seeds, then what records saved. `key` is all that decides the program.
    """

    __slots__ = ("arrays", "key", "kind", "number", "order", "places", "seeds")

    def __init__(self, seeds, wanted):
        self.key, self.order, self.arrays, self.seeds = key, order, _, met = [], [], [], []
        self.number, self.places = number, _ = {}, {}
        self.kind = type(seeds[0][1].array)
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
                raise UnreadableTape
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
            key.append(freeze(record.attrs) if record.attrs else None)
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
        if kind is self.kind:
            place = self.places.get(id(value))
            if place is None:
                place = self.places[id(value)] = len(self.arrays)
                self.arrays.append(value)
                key += value.shape, value.dtype
            if last_write(value) > time:
                raise UnreadableTape
            key.append(place)
        elif kind is tuple:
            key.append(len(value))
            for each in value:
                self.take(each, time)
        else:
            key.append(value if kind is Spec else freeze(value))


def freeze(x):
    """An attribute, or a number that a record saved, such that equal ones mean the same."""
    kind = type(x)
    if kind is float:  # 0.0 == -0.0
        return repr(x)
    if kind in EXACT or isinstance(x, dtype):
        return kind, x
    if kind in (tuple, list):
        return kind, *map(freeze, x)
    if kind is dict:
        return kind, *x, *map(freeze, x.values())
    raise UnreadableTape


EXACT = {int, bool, str, type(None)}


class Tape(EagerKernel):
    """The derivative of tapes that are alike: the walk, later C."""

    room = inf

    def __init__(self, reading: TapeReading, wanted):
        order, number, places = reading.order, reading.number, reading.places
        self.seeds, self.found, self.passed = reading.seeds, [], []
        self.wanted = wanted and [number[record] for record in wanted if record in number]
        self.records = [  # oldest first, without the arrays they hold
            (number[r], r.op, edges(r, number), r.attrs, r.shape, r.dtype, take_out(r, places))
            for r in sorted(order, key=Record.time.__get__)
        ]
        self.device = device_of(reading.arrays[0])
        self.mean = CALL + sum(map(elements, order)) // len(order)  # to compile takes longer, too
        specs = [Spec(a.shape, a.dtype) for a in reading.arrays]
        about = f"derivative of {len(order)} records before {order[0]}"
        super().__init__(partial(self.compile, specs), about, self.device)

    def compile(self, specs) -> Executable:
        """The walk in C. Raises CannotCompile if NumPy shows a few numbers as large gradients: C
        would write what a view need not, such as the derivative of a sum.
        """
        program = trace_function("derivative", self.walk, specs, {})
        computed = sum(elements(record) for record in program.records if not record.op.view)
        if computed < Op.least <= sum(map(elements, program.outputs)):
            raise CannotCompile("its gradients are views of a few numbers")
        return build_executable(program, self.device)

    def walk(self, *tensors) -> tuple:
        """The gradients that a walk finds through a twin of the tape, which saved these tensors."""
        twins = [None] * len(self.records)
        for k, op, inputs, attrs, *spec, saved in self.records:
            inputs = tuple(edge if edge is None else twins[edge] for edge in inputs)
            saved = saved and {name: fill(x, tensors) for name, x in saved.items()}
            twins[k] = Record(op, inputs, attrs, *spec, saved)
        seeds = [(twins[k], g) for k, g in zip(self.seeds, tensors, strict=False)]
        wanted = self.wanted and {twins[k] for k in self.wanted}
        gradients = pull_back(seeds, wanted, release=True)
        self.found = [*map(twins.index, gradients)]
        self.passed = [k for k, twin in enumerate(twins) if twin.saved is FREED]
        return tuple(gradients.values())


class ArrayNumber(int):
    """The number of an array among those that go into a program."""


def take_out(record: Record, places: dict):
    """The saved values of a record, with places instead of arrays."""
    put = lambda x: ArrayNumber(places[id(x)]) if id(x) in places else x
    return record.saved and {
        name: tuple(map(put, x)) if type(x) is tuple else put(x) for name, x in record.saved.items()
    }


def fill(x, tensors):
    """A value of `take_out` with arrays instead of places."""
    if type(x) is tuple:
        return tuple(fill(each, tensors) for each in x)
    return tensors[x].array if type(x) is ArrayNumber else x


def edges(record: Record, number: dict) -> list:
    """The numbers of the records that a record was computed from."""
    return [edge if edge is None else number[edge] for edge in record.inputs]


def elements(record: Record) -> int:
    """How many elements the result of a record has."""
    return sum(spec.size for spec in (record.shape if record.dtype is None else [record.spec]))


WALKS.append(walk)
