"""A network without some channels: smaller weights, the same program.

`Removal` writes what the program without the channels has to be, from the labels alone: smaller
sizes and the attributes that hold them. Then the layer's weights, the optimizer's states and the
numbers that layers keep of their sizes are cut, and the layer is traced again. Its program must be
the expected one, record by record; else all is put back and there is an error. So what Python code
does with the smaller weights is checked, not trusted.
"""

from __future__ import annotations

import numpy as np

from ..core.prelude import Recording, Spec, Tensor, movement, slot, value_error
from ..engine.core import slots
from ..engine.core.record import Record, mark_written
from ..engine.eager.device import module_of
from ..engine.eager.tracer import trace
from ..engine.ir.program import ITEM, NUMBER, Program, State
from ..engine.ops.conv import conv
from ..engine.ops.creation import full
from ..engine.passes.lifetimes import specs_of
from ..nn import Layer
from .channels import (
    Axes,
    CannotFollow,
    Channels,
    inputs_of,
    refuse,
    sources,
    spec_of,
    value_of,
    work_of,
)


def program_of(model: Layer, inputs) -> Program:
    """The program of a layer in evaluation mode for inputs like these tensors."""
    modes = {layer: layer.training for layer in model.sublayers(include_self=True)}
    model.eval()
    try:
        with Recording(False):
            run = lambda *xs: as_list(model(*xs))
            return trace(run, [x.spec for x in inputs], name=model.full_name()).program
    finally:
        for layer, mode in modes.items():
            layer.training = mode


def as_list(y) -> list:
    """The tensors that a layer returned."""
    tensors = [y] if isinstance(y, Tensor) else [*y] if isinstance(y, tuple | list) else [None]
    if not all(isinstance(x, Tensor) for x in tensors):
        raise value_error("the network returned something else", "a tensor or several")
    return tensors


@slot("slim.find_removed_rows")
def find_removed_rows(channels: Channels, labels: list[int]) -> dict:
    """The rows that go with these channels: {(value, axis): an array, True for each of them}."""
    return {
        (value, d): np.isin(channels.root(axis_labels), labels)
        for (value, d), axis_labels in channels.labels.items()
    }


class Removal:
    """The program of a network without rows of some axes: `gone`, for each (value, axis).

    `groups` are the new groups of the layers whose convolutions lost some.
    """

    def __init__(self, axes: Axes, gone: dict):
        self.gone = {place: rows for place, rows in gone.items() if rows.any()}
        self.groups: dict[Layer, int] = {}
        self.now: dict[Record, Record] = {}
        old = axes.program
        self.program = Program(old.name, guards=old.guards)
        for record in old.given:
            self.now[record] = record.copy((), spec=self.spec((record, 0)))
        for record in old.records:
            self.now[record] = new = self.write(record)
            self.program.records.append(new)
        self.program.inputs = [self.now[r] for r in old.inputs]
        self.program.outputs = [self.now[r] for r in old.outputs]
        self.program.states = [
            State(s.name, self.now[s.record], self.now.get(s.update), s.storage) for s in old.states
        ]

    def rows_left(self, value, axis: int):
        """The rows of an axis that stay, as an array of their numbers."""
        rows = self.gone.get((value, axis))
        n = spec_of(value).shape[axis]
        return np.arange(n) if rows is None else np.flatnonzero(~rows)

    def spec(self, value) -> Spec:
        """The spec of a value without the rows that go."""
        spec = spec_of(value)
        return Spec(tuple(len(self.rows_left(value, d)) for d in range(spec.ndim)), spec.dtype)

    def write(self, record: Record) -> Record:
        inputs = [self.now.get(r, r) for r in record.inputs]  # numbers stand for themselves
        if record.op is ITEM or not self.touches(record):
            return record.copy(inputs, spec=None if record.op is not ITEM else
                               self.spec(value_of(record)))  # fmt: skip
        specs = [r.attrs["value"] if r.op is NUMBER else specs_of(r)[0] for r in inputs]
        wanted = tuple(self.spec((record, k)) for k in range(len(specs_of(record))))
        attrs = self.attributes(record, wanted)
        try:
            got = record.op.infer(*specs, **attrs)
        except ValueError as error:
            raise refuse(record, f"it cannot compute without them: {error}") from error
        if (got if isinstance(got, tuple) and not isinstance(got, Spec) else (got,)) != wanted:
            raise refuse(record, f"it would compute {got}, not {wanted}")
        if record.op.kind == "movement":
            self.check(record, specs, attrs)
        return record.copy(inputs, attrs, wanted if record.dtype is None else wanted[0])

    def touches(self, record: Record) -> bool:
        """Whether a record has to do with rows that go."""
        values = [value_of(r) for r in record.inputs if r.op is not NUMBER]
        values += [(record, k) for k in range(len(specs_of(record)))]
        return any((v, d) in self.gone for v in values for d in range(spec_of(v).ndim))

    def attributes(self, record: Record, wanted: tuple) -> dict:
        """The attributes of a record for smaller values."""
        op, attrs = record.op, record.attrs
        if op in (movement.reshape, movement.broadcast_to, full):
            return attrs | {"shape": wanted[0].shape}
        if op is movement.split:
            return attrs | {"sizes": tuple(spec.shape[attrs["axis"]] for spec in wanted)}
        if op is movement.slice_:
            x, index = value_of(record.inputs[0]), attrs["index"]
            return attrs | {"index": tuple(self.cut(k, self.rows_left(x, d), spec_of(x).shape[d])
                                           for d, k in enumerate(index))}  # fmt: skip
        if op is conv and (groups := attrs["groups"]) > 1:
            x = value_of(record.inputs[0])
            new = len(self.rows_left(x, 1)) * groups // spec_of(x).shape[1]
            if record.scope:
                self.groups[record.scope[1]] = new
            return attrs | {"groups": new}
        return attrs

    def cut(self, k, kept, n: int):
        """A slice or an index of an axis of n rows; some rows are kept."""
        if len(kept) == n or k == (None, None, None):
            return k
        if isinstance(k, int):
            return int(np.searchsorted(kept, k % n))
        start, stop, step = slice(*k).indices(n)
        if step != 1:
            return k
        return int(np.searchsorted(kept, start)), int(np.searchsorted(kept, stop)), 1

    def check(self, record: Record, specs: list, attrs: dict) -> None:
        """A movement of the smaller values must move what stays as the movement of all did."""
        values = [None if r.op is NUMBER else value_of(r) for r in record.inputs]
        before = sources(record.op, inputs_of(record), record.attrs)
        numbers = []  # for each input the numbers of the elements that stay
        for v in values:
            every = np.arange(spec_of(v).size if v else 0)
            every = self.cut_array(every.reshape(spec_of(v).shape), v) if v else every
            numbers.append(every.ravel())
        for k, ((which, place), (which2, place2)) in enumerate(
            zip(before, sources(record.op, specs, attrs), strict=True)
        ):
            which, place = (self.cut_array(x, (record, k)) for x in (which, place))
            back = np.array(place2)
            for j, own in enumerate(numbers):
                back[which2 == j] = own[place2[which2 == j]]
            if (which != which2).any() or (place != back).any():
                raise refuse(record, "without them it would move other elements")

    def cut_array(self, x, value):
        """An array of a value's shape without the rows that go."""
        return x[np.ix_(*(self.rows_left(value, d) for d in range(x.ndim)))] if x.ndim else x


def difference(expected: Program, found: Program) -> Record | None:
    """The first record of a traced program that is not the expected one, or None."""
    same = dict(zip(found.inputs, expected.inputs, strict=True))
    tensors = {id(s.storage.tensor): s.record for s in expected.states}
    same |= {s.record: tensors.get(id(s.storage.tensor)) for s in found.states}

    def agree(a: Record, b: Record) -> bool:
        numbers = a.op is b.op is NUMBER
        return a.attrs == b.attrs if numbers else same.get(a) is b

    for record, other in zip(found.records, expected.records, strict=False):
        same[record] = other
        if (
            record.op is not other.op
            or specs_of(record) != specs_of(other)
            or not all(map(agree, record.inputs, other.inputs))
            or not same_work(record, other)
        ):
            return record
    longer = max(found.records, expected.records, key=len)
    rest = longer[min(len(found.records), len(expected.records)) :]
    return rest[0] if rest else None


def same_work(record: Record, other: Record) -> bool:
    """Whether two records of one operator and equal specs do the same."""
    if record.attrs == other.attrs or record.op.kind != "movement":
        return record.attrs == other.attrs
    pairs = zip(*(sources(r.op, inputs_of(r), r.attrs) for r in (record, other)), strict=True)
    return all((x == y).all() for before, after in pairs for x, y in zip(before, after))


# ---- the layer -------------------------------------------------------------------------------

SIZES = {
    "_in_channels": lambda layer: layer.weight.shape[1] * layer._groups,
    "_out_channels": lambda layer: layer.weight.shape[0],
    "_num_features": lambda layer: layer._mean.shape[0],
    "in_features": lambda layer: layer.weight.shape[0],
    "out_features": lambda layer: layer.weight.shape[1],
}
"""The sizes that layers keep of their weights (a transposed convolution is refused)."""


class ShrinkPlan:
    """The parts that are to go from a network; `apply` removes them, `restore` undoes it.

    `program` is the network's without the channels. `zero` sets to zero what would go instead.
    Source: PaddleSlim's `PruningPlan`.
    """

    def __init__(self, model: Layer, inputs: list, axes: Axes, gone: dict, optimizer=None):
        self.model, self.inputs, self.axes, self.optimizer = model, inputs, axes, optimizer
        self.removal = Removal(axes, gone)
        self.program = self.removal.program
        self.undo: list = []

    def map_to_weights(self) -> dict:
        """{tensor: {axis: the rows that go}} of parameters and buffers."""
        removed: dict[Tensor, dict] = {}
        for (value, d), rows in self.removal.gone.items():
            if value in self.axes.states:
                tensor = self.axes.states[value].storage.tensor
                removed.setdefault(tensor, {})[d] = rows
        return removed

    @property
    def pruned_flops(self) -> float:
        """The part of the products' work that is gone."""
        return 1 - work_of(self.program) / work_of(self.axes.program)

    @property
    def pruned_parameters(self) -> float:
        """The part of the states' elements that is gone."""
        sizes = [
            sum(s.record.spec.size for s in p.states) for p in (self.program, self.axes.program)
        ]
        return 1 - sizes[0] / sizes[1]

    def apply(self, lazy: bool = False) -> ShrinkPlan:
        """Cut the layer's weights, the optimizer's states and the sizes that layers keep.

        `lazy`: set them to zero instead. Raises CannotFollow, and leaves all as it was, if the
        layer's code does something else with smaller weights.
        """
        known = {id(x) for x in (*self.model.parameters(), *self.model.buffers())}
        cut = self.map_to_weights()
        if wrong := [x.name for x in cut if id(x) not in known]:
            raise value_error(f"channels of {', '.join(wrong)}", "parameters of the model")
        for tensor, gone in cut.items():
            self.set_array(tensor, self.remove(tensor.array, gone, lazy))
        if lazy:
            return self
        for tensor, gone in cut.items():
            self.shrink_states(tensor, gone)
        for layer, groups in self.removal.groups.items():
            self.set(layer, "_groups", groups)
        for layer in self.model.sublayers(include_self=True):
            if any(id(p) in {*map(id, cut)} for p in layer.parameters(include_sublayers=False)):
                for name, size in SIZES.items():
                    if name in vars(layer):
                        self.set(layer, name, size(layer))
        self.verify()
        return self

    def remove(self, array, gone: dict, lazy: bool):
        """An array without some rows, or with zeros there."""
        m = module_of(array)
        if lazy:
            array = m.array(array)
            for d, rows in gone.items():
                array[(slice(None),) * d + (m.asarray(rows),)] = 0
            return array
        for d, rows in gone.items():
            array = m.ascontiguousarray(m.take(array, m.asarray(np.flatnonzero(~rows)), axis=d))
        return array

    def shrink_states(self, p: Tensor, gone: dict) -> None:
        """Cut what an optimizer keeps of a parameter, and its mask."""
        kept = self.optimizer._states.get(p) if self.optimizer else None
        states = [*kept.states.values(), kept.master] if kept else []
        states.append(getattr(p, "sparsity_mask", None))
        shape = p.spec.shape
        for state in {id(s): s for s in states if s is not None}.values():
            if state.spec.ndim == len(shape) and state.spec.shape != shape:
                self.set_array(state, self.remove(state.array, gone, False))

    def set_array(self, tensor: Tensor, array) -> None:
        self.undo.append((tensor, "array", tensor.array))
        replace_array(tensor, array)

    def set(self, layer, name: str, value) -> None:
        self.undo.append((layer, name, getattr(layer, name)))
        setattr(layer, name, value)

    def verify(self) -> None:
        """Trace the layer again: it must be the expected program."""
        slots.epoch += 1  # programs that were made of the layer before serve no more
        try:
            smaller = Axes(program_of(self.model, self.inputs)).program
            wrong = difference(self.program, smaller)
        except Exception as error:
            self.restore()
            raise CannotFollow(f"the layer's code does not run without them: {error}") from error
        if wrong is not None:
            self.restore()
            raise refuse(wrong, "without them the layer's code does something else here")

    def restore(self, model=None, opt=None) -> None:
        """Put everything back as it was before `apply`."""
        for owner, name, value in reversed(self.undo):
            if name == "array":
                replace_array(owner, value)
            else:
                setattr(owner, name, value)
        slots.epoch += 1
        self.undo.clear()


def replace_array(tensor: Tensor, array) -> None:
    """Let a tensor hold an array of another shape; what its leaf on the tape knew is forgotten."""
    tensor.array, tensor.record = array, None
    tensor.clear_gradient(False)
    mark_written(array)
