"""Values that a program computes from its weights alone: once before the first run, and again when
a weight has changed.

The pass `folding` makes them states of the program. Some kernels want such a state in another form
(`codegen.products.prepacking`); then C computes this form in advance, too, and the kernels read it.
"""

from __future__ import annotations

import ctypes
import threading
from functools import partial
from operator import attrgetter, is_, itemgetter
from weakref import WeakValueDictionary

from ...codegen.products.prepacking import PackingKernels
from ...engine.core import record
from ...engine.core.record import Spec
from ...engine.eager.device import NUMPY
from ...engine.executors.arrays import address, as_c
from ...engine.executors.native import ALIGNMENT, WEIGHTS, Constants, Executable
from ...passes.frozen_states import BorrowedWeight, Prepared

FORMS: WeakValueDictionary = WeakValueDictionary()
"""Borrowed weights in the form that kernels want: programs of one model share them. The key has the
`id` of what the weight's storage holds (its tensor), which lives as long as a form that it made,
and the statement that computes the form."""

ARRAY = attrgetter("tensor.array")

CHANGES_IN_A_ROW = 4
"""After this number of runs, each with changed weights, they are not folded any more."""


def empty_aligned(spec):
    """An empty array like a spec or an array, aligned as kernels need it."""
    room = NUMPY.empty(spec.nbytes + ALIGNMENT, "uint8")
    start = -address(room) % ALIGNMENT
    return room[start : start + spec.nbytes].view(spec.dtype).reshape(spec.shape)


class FoldedWeights(Constants):
    """The states that passes added to a program. `changes` counts consecutive runs that found a
    changed weight. (Writes by another library, through DLPack, are not noticed.)
    """

    def __init__(self, states):
        super().__init__(states)  # kernels read `inputs`: some arrays in another form
        origins = {s.record: s.storage.record for s in states if isinstance(s.storage, Prepared)}
        constants = [state.record for state in states]
        self.kernels = partial(PackingKernels, constants=constants, made=origins)
        self.storages = [state.storage for state in states]
        self.folded = [storage for storage in self.storages if isinstance(storage, Prepared)]
        self.sources = [*dict.fromkeys(s for storage in self.folded for s in storage.sources)]
        self.changes, self.lock, self.pack = 0, threading.Lock(), None
        self.unfrozen: Executable | None = None  # the program for weights that change always
        self.remember()

    def remember(self) -> None:
        """Note which arrays the weights hold now, and when these were written last."""
        self.held = [source.read() for source in self.sources]
        keys = self.keys = [record.key_of(array) for array in self.held]
        self.written = [*map(record.writes, keys)]
        self.read_notes = itemgetter(*keys) if keys else len
        clocks = any(record._written[key][2] for key in keys)  # they note writes elsewhere
        self.notes = None if clocks else self.read_notes(record._written)

    def stale(self) -> bool:
        """Whether a weight was written or replaced since they were computed."""
        same = all(map(is_, map(ARRAY, self.sources), self.held))
        if same and self.read_notes(record._written) != self.notes:
            same = [*map(record.writes, self.keys)] == self.written
        if same:
            self.changes = 0
        return not same

    @property
    def change_always(self) -> bool:
        """Whether the weights have changed before each of the last runs."""
        return self.changes >= CHANGES_IN_A_ROW

    def renew(self) -> None:
        """Compute all values again, in their order."""
        with self.lock:
            self.changes += 1
            self.remember()  # first: a write during the computation is noticed at the next run
            for storage in self.folded:
                storage.renew()
        if self.pack is not None:
            self.pack()

    def current(self, executable: Executable) -> Executable:
        """The executable for the weights as they are now."""
        if self.stale():
            if self.change_always:
                self.unfrozen = self.unfrozen or executable.again()
                return self.unfrozen
            self.renew()
        return executable

    def connect(self, executable: Executable) -> None:
        """Let C compute the forms that kernels want, and pass these to the kernels."""
        first = len(executable.given) - len(self.arrays)
        states = executable.program.given[first:]
        self.inputs, packed = [*self.arrays], []
        for state, form in executable.kernels.prepacked.items():
            k = states.index(state)
            spec = (form.elements,), state.dtype
            executable.given[first + k] = spec
            packed.append(k)
            self.inputs[k] = self.memory(k, form.call, spec)
        for k, storage in enumerate(self.storages):
            if isinstance(storage, BorrowedWeight) and k not in packed:
                storage.keep()
                self.inputs[k] = storage.array
        if packed:
            specs = [states[k].spec for k in packed]
            self.pack = partial(self.compute, executable.function("prepack"), packed, specs)
            self.pack()

    def memory(self, k: int, call: str, spec: tuple):
        """Memory for the form of weight number k; a borrowed form is shared."""
        storage = self.storages[k]
        if not isinstance(storage, BorrowedWeight):
            return empty_aligned(Spec(*spec))
        (cell,) = storage.sources
        return FORMS.setdefault((*map(id, vars(cell).values()), call), empty_aligned(Spec(*spec)))

    def compute(self, prepack, packed: list[int], specs: list) -> None:
        """Compute the forms of the weights `packed`."""
        table = ctypes.c_void_p * len(packed)
        arrays = [as_c(self.storages[k].read(), *spec) for k, spec in zip(packed, specs)]
        prepack(table(*map(address, arrays)), table(*(address(self.inputs[k]) for k in packed)))


WEIGHTS.append(FoldedWeights)
