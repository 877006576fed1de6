"""The call stub of a compiled program: the fast path of calls that are like its first ones.

On its way through `StaticFunction`, `Captured` and `Executable` a call checks a hundred small
things; for a small program that takes longer than computing. So once a program is compiled and was
called again, a stub lists what must be as it was: settings, arguments, modes of layers, gradients
that wait, arrays that the table of pointers has. C compares them, calls the program, and makes the
results (`call_stub.c`, which becomes `StaticFunction.__call__`). Where it finds another object than
at the last check, it asks Python (`CallStub.again`), which binds the new array, or declines: then
nothing has been done, and the call takes the slow path. What a run writes is noted by one clock for
all states, so that a call of Python is made for none of them.
"""

from __future__ import annotations

import ctypes
from functools import partial

from ..eager.layer_changes import changes
from ..engine.core import record, slots
from ..engine.core.dispatch import current
from ..engine.core.dtype import DEFAULT
from ..engine.eager.backward import AVERAGING
from ..engine.eager.device import CPU, NUMPY, chosen, current_place
from ..engine.eager.storage import Gradient, TensorStorage
from ..engine.eager.tensor import Parameter, Tensor
from ..engine.executors.arrays import address as pointer
from ..engine.executors.native import ALIGNMENT, Executable
from ..engine.jit.cache import settings
from ..engine.jit.capture import HOLDS, holds
from ..engine.jit.to_static import CALL_STUBS, Switch
from ..engine.jit.tree import alone, flatten_call
from .call_stub import (
    ATTRIBUTE,
    CALL,
    CONSTANT,
    FIRST,
    ITEM,
    LIST,
    LISTED,
    MAPPED,
    READ,
    TENSOR,
    TUPLE,
    ArgumentNode,
    Cell,
    StubPlan,
    address,
    fast_calls,
)
from .guards import container, mutable_in
from .outside import depends

SMALL = 1 << 16
"""Bytes of a result that is used again if by the next call nobody holds it."""

CONSTANTS = {int, float, bool, str, type(None)}
"""Types of arguments that are compared by identity; another object is a miss."""

FIELDS = {"grad": "_grad", "stale": "_stale", "stop": "stop_gradient"}
"""The fields of a tensor that conditions (`HOLDS`) name."""


class NoStub(Exception):
    """Calls with such arguments must take the slow path."""


def only_c(made: Executable) -> bool:
    """Whether a run only executes C. Then a run that fails has changed nothing."""
    kernels = map(made.kernels.of.get, made.source.hosted)
    return not made.states_at_risk and None not in kernels


def create_stub(captured, args, kwargs) -> list:
    """A stub for calls of a captured function with arguments like these, in a list; nothing if
    they must take the slow path. Keywords are compared by name and order. Its calls count as hits
    of the cache.
    """
    tensors = [x for x in flatten_call(args, kwargs)[0] if isinstance(x, Tensor)]
    arrays = [*(x.array for x in tensors), *(cell.read() for cell in captured.states)]
    executables, program = captured.executables, captured.program
    shapes = tuple(a.shape for a in arrays) if executables.open_sizes(program) else None
    executable = executables.compiled.get((program, CPU.name, shapes))
    if type(executable) is not Executable or not only_c(executable) or slots.PLUGGED:
        return []
    unusual = captured.rewrites or captured.copied or captured.computed or captured.hooks
    if unusual or captured.given or depends(captured) or current_place() is not CPU:
        return []
    try:
        stub = CallStub(captured, executable, args, kwargs)
    except NoStub:
        return []
    return [(ctypes.addressof(stub.plan), stub)] if fast_calls() else []


class CallStub:
    """Owns a plan and all that it points to, and checks what C found to be another object."""

    def __init__(self, captured, made: Executable, args, kwargs):
        self.captured, self.context, self.sizes = captured, made.context(), made.sizes
        self.now, self.clock = settings(), [0, 0]
        self.held: list = []  # objects that C has addresses of
        self.nodes: list[tuple] = []
        self.cells: list[tuple] = []  # (kind, owner, key)
        self.checks: list = []  # for each a function: the new value -> whether it is as good
        self.values: list = []
        self.moving: list[tuple] = []  # (number of a cell, a function that gives its owner)
        weights = made.weights.inputs  # behind the states of the function
        first, self.inputs = len(made.given) - len(weights), 0
        self.users = {id(record.owner(a)): {k} for k, a in enumerate(weights, first)}
        self.roots: dict[int, int] = {}
        self.updated = {made.inputs + k for k in made.updated}
        self.plan = StubPlan(thread=-1, count=len(args) + len(kwargs))
        self.names = tuple(kwargs)
        for x in (*args, *kwargs.values()):
            self.argument(x)
        self.surroundings()
        if made.weights.sources:
            stale = made.weights.stale
            self.watch(CALL, stale, None, lambda found: not found)
        for k, storage in enumerate(captured.states):
            self.state(self.inputs + k, storage)
        self.effects()
        self.fill(made)
        if not all(map(self.again, range(len(self.cells)))):
            raise NoStub

    def hold(self, x) -> int:
        """The address of an object or of a table, which lives as long as the stub."""
        self.held.append(x)
        return ctypes.addressof(x) if isinstance(x, ctypes.Array) else id(x)

    def watch(self, kind: int, owner, key, check) -> None:
        self.cells.append((kind, owner, key))
        self.checks.append(check)

    def watch_moving(self, kind: int, owner, key, check) -> None:
        """The same, where `owner()` is another object once guards have found another tensor."""
        self.moving.append((len(self.cells), owner))
        self.watch(kind, owner(), key, check)

    # ---- assumptions ---------------------------------------------------------------------------

    def argument(self, x) -> None:
        """Note the assumptions on an argument and its contents."""
        kind = type(x)
        if kind in (list, tuple):
            self.nodes.append((LIST if kind is list else TUPLE, len(x), kind, None))
            for each in x:
                self.argument(each)
        elif kind in CONSTANTS:
            self.nodes.append((CONSTANT, 0, None, x))
        elif kind in (Tensor, Parameter) and id(x) not in self.captured.outer:
            self.inputs += 1
            self.nodes.append((TENSOR, 0, kind, x.stop_gradient))
        else:
            raise NoStub

    def surroundings(self) -> None:
        """The checks of `Captured.fits`."""
        for guards in self.captured.guards:
            check = partial(self.guarded, guards)
            self.watch(ITEM, vars(changes), "now", check)
            for guard in guards.others:
                self.guard(guard, check)
        conditions = {(s, condition): s for s, condition in self.captured.conditions}
        for each in self.captured.after:  # gradients that a run only clears must be clear already:
            if type(each) is Gradient and not each.outputs:
                conditions.pop((each.storage, "waiting"), None)  # "zeros" and "none" are as good
                conditions[each.storage, "zeros" if each.cleared else "none"] = each.storage
        for (_, condition), s in conditions.items():
            for name, field in FIELDS.items():
                if f"{{{name}}}" in HOLDS[condition]:
                    check = partial(holds_of, condition, s)
                    self.watch_moving(ITEM, partial(fields, s), field, check)

    def guard(self, guard, check) -> None:
        """Watch a place of the user's, and the containers that it holds."""
        if (cell := guard.place.cell()) is not None:
            kind, owner, key = cell
            self.watch(CELLS[kind], owner, key, check)
        containers = [*map(type, mutable_in(guard.last))] if guard.contents else []
        if any(kind not in CONTAINERS for kind in containers):
            return self.watch(CALL, lambda: guard.holds() is not None, None, check)
        for k, kind in enumerate(containers):
            owner = partial(container, guard, k)
            self.watch_moving(LISTED if kind is list else MAPPED, owner, None, check)

    def guarded(self, guards, found) -> bool:
        """Whether guards hold; their tensors and containers may be other ones now."""
        if not guards.holds(self.captured):
            return False
        for k, owner in self.moving:
            kind, before, key = self.cells[k]
            now = owner()
            if now is not before:
                self.cells[k], self.table[k].owner = (kind, now, key), id(now)
        return True

    def state(self, k: int, storage) -> None:
        """Let the table point to a state's array."""
        if type(storage) is not TensorStorage:
            return self.watch(CALL, storage.read, None, partial(self.bind, k))
        updated, before = storage in self.captured.updates, None

        def check(array) -> bool:
            nonlocal before
            if not self.bind(k, array):
                return False
            if updated:
                if before is not None:
                    remove_clock(before, self.clock)
                add_clock(array, self.clock)
                before = array
            return True

        self.watch_moving(ITEM, partial(fields, storage), "array", check)
        if updated:
            self.plan.updates = 1

    def again(self, k: int) -> bool:
        """Check a cell that has another value."""
        kind, owner, key = self.cells[k]
        value = READ[kind](owner, key)
        if not self.checks[k](value):
            return False
        self.values[k], self.table[k].expected = value, address(value)
        return True

    def settle(self) -> bool:
        """Whether the settings are those of the program, on the thread that calls."""
        top = current.top
        if settings() != self.now or chosen.now is not CPU or top.tracing or not Switch.on:
            return False
        boxes = [vars(setting)["box"] for setting in (DEFAULT, AVERAGING, chosen)]
        cells = [(ITEM, vars(current), "top"), (ITEM, vars(top), "recording")]
        cells += [(ITEM, vars(top), "policy")]
        cells += [(ITEM, vars(slots), "epoch"), (ATTRIBUTE, Switch, "on")]
        cells += [*((FIRST, box, None) for box in boxes)]
        owners = [vars(setting) for setting in (DEFAULT, AVERAGING, chosen)]
        cells += [(ITEM, own, "box") for own in owners]
        self.settings = cells, [READ[kind](owner, key) for kind, owner, key in cells]
        fields = (
            (kind, id(owner), id(key), address(value))
            for (kind, owner, key), value in zip(*self.settings, strict=True)
        )
        self.setting_table = (Cell * len(cells))(*fields)
        self.plan.settings = ctypes.addressof(self.setting_table)
        self.plan.setting_count = len(cells)
        return True

    # ---- memory --------------------------------------------------------------------------------

    def bind(self, k: int, array) -> bool:
        """Let the table of pointers have this array as input or state `k`. False if C cannot
        use it as it is, or if it shares memory with a state that is updated.
        """
        spec = self.context.executable.given[k]
        if type(array) is not NUMPY.ndarray or (array.shape, array.dtype) != spec:
            return False
        if not (array.flags.c_contiguous and array.flags.aligned):
            return False
        root = id(record.owner(array))
        users = self.users.get(root, set()) | {k}  # the numbers of all arrays that lie there
        if len(users) > 1 and not self.updated.isdisjoint(users):
            return False
        if rest := self.users.pop(self.roots.get(k), set()) - {k}:
            self.users[self.roots[k]] = rest
        self.users[root], self.roots[k] = users, root
        self.context.hold(k, array)
        return True

    def result(self, k: int):
        """New memory for output `k`; if it is small, it is kept for the next call."""
        array = NUMPY.empty(*self.context.executable.outputs[k])
        if ALIGNMENT <= array.nbytes <= SMALL:
            array = align(array)
        self.context.table[1 + len(self.context.held) + k] = pointer(array)
        if array.nbytes <= SMALL:
            self.made[k] = array, id(array)
            self.plan_outputs[k], self.output_keys[k] = map(id, self.made[k])
        return array

    # ---- afterwards ----------------------------------------------------------------------------

    def effects(self) -> None:
        """The side effects of a run, as in `Captured.__call__`."""
        captured = self.captured
        self.writers = [
            (self.inputs + k, storage)
            for k, storage in enumerate(captured.states)
            if storage in captured.updates and type(storage) is not TensorStorage
        ]
        # a check says that gradients to be cleared are clear already
        self.after = [a for a in captured.after if type(a) is not Gradient or a.outputs]
        self.recorded = captured.backward is not None and self.now[0]
        more = self.writers or self.after or self.recorded or captured.left or captured.same
        more = more or captured.wanting
        if captured.restore is alone and len(captured.program.outputs) == 1 and not more:
            self.plan.tensor = id(Tensor)  # then C wraps the result

    def finish(self, inputs, outputs):
        """Leave the side effects, and build the results."""
        captured = self.captured
        for k, storage in self.writers:
            storage.write(self.context.used[k])
        for each in self.after:
            each.leave(inputs, *(outputs[k] for k in each.outputs))
        results = captured.wrap_results(inputs, outputs)
        if self.recorded:
            captured.put_on_tape(inputs, results, [*outputs[captured.residuals :]], self.sizes)
        return captured.deliver(results, self.sizes, {}, results)

    # ---- the plan ------------------------------------------------------------------------------

    def fill(self, made: Executable) -> None:
        """Write the addresses of all objects and tables."""
        captured, plan, count = self.captured, self.plan, len(self.captured.program.outputs)
        self.values = [None] * len(self.cells)
        cells = ((kind, id(owner), self.hold(key), None) for kind, owner, key in self.cells)
        nodes = ((kind, n, type_ and id(type_), id(x)) for kind, n, type_, x in self.nodes)
        self.table, self.made = (Cell * len(self.cells))(*cells), [None] * count
        self.plan_outputs, self.output_keys = ((ctypes.c_void_p * count)() for _ in range(2))
        plan.cell_count, plan.input_count, plan.output_count = len(self.cells), self.inputs, count
        tables = {
            "cells": self.table, "nodes": (ArgumentNode * len(self.nodes))(*nodes),
            "inputs": (ctypes.c_void_p * self.inputs)(), "outputs": self.plan_outputs,
            "output_keys": self.output_keys, "table": self.context.table,
            "settle": self.settle, "again": self.again, "bind": self.bind,
            "new": self.result, "finish": self.finish,
            "written": record._written, "hits": captured.hits, "clock": self.clock,
            "tick": record.tick, "array_name": "array", "stop_name": "stop_gradient",
            "names": self.names,
        }  # fmt: skip
        if captured.outer:
            tables["outer"] = captured.outer
        for name, x in tables.items():
            setattr(plan, name, self.hold(x))
        plan.run = ctypes.cast(made.function("run"), ctypes.c_void_p).value


def align(array):
    """An array like this one that begins where a vector does: loads and stores that cross lines of
    the cache take longer. Its memory is no array, so that views of it hold the array itself.
    """
    memory = (ctypes.c_char * (array.nbytes + ALIGNMENT))()
    start = -ctypes.addressof(memory) % ALIGNMENT
    return NUMPY.ndarray(array.shape, array.dtype, memory, start)


def add_clock(array, clock: list) -> None:
    """From now on each tick of the clock is a write to the memory of `array`."""
    key = record.key_of(array)
    time, count, clocks = record._written[key]
    record._written[key] = time, count - clock[1], (*clocks, clock)


def remove_clock(array, clock: list) -> None:
    """The ticks that the clock has counted so far remain."""
    key = record.key_of(array)
    time, count, clocks = record._written[key]
    rest = tuple(each for each in clocks if each is not clock)
    record._written[key] = max(time, clock[0]), count + clock[1], rest


def fields(storage: TensorStorage) -> dict:
    """The fields of the tensor that is bound now."""
    return vars(storage.tensor)


def holds_of(condition: str, storage: TensorStorage, found) -> bool:
    return holds[condition](storage.tensor)


CELLS = {"item": ITEM, "attribute": ATTRIBUTE}
CONTAINERS = (list, dict)
"""Types of containers whose items C compares."""


CALL_STUBS.append(create_stub)
