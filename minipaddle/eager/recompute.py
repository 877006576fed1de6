"""Recomputation: of a part of a network only the inputs are kept; its backward computes it again.

The part becomes one record of the tape. Its ends, the older records it begins from, are found by
running it on the tape once and forgetting the tape; its derivative runs it again, after the
cotangents are there, and walks back to these ends. So it works for whatever the part uses, to any
order, and in a program, where it says what is made again and when.
"""

from __future__ import annotations

from contextlib import contextmanager

from ..core.casting import casting
from ..engine.core.dispatch import Recording, current
from ..engine.core.errors import teach
from ..engine.core.grad import fit, pull_back
from ..engine.core.record import Record, last_write, tick
from ..engine.eager.pylayer import attach, tensors_in
from ..engine.eager.tape import get_leaf
from ..engine.eager.tensor import Tensor, wrap
from ..engine.ops.marks import after
from ..tensor.generator import GENERATOR
from .packing import saved_tensors_hooks


def recompute(function, *args, **kwargs):
    """The result of `function(*args)`; instead of its intermediate values the arguments are kept.

    A backward computes the function again, with the same random numbers. `preserve_rng_state`
    (True) and `use_reentrant` (either way is the same here) are taken out of `kwargs`. Source: Chen
    et al., "Training Deep Nets with Sublinear Memory Cost", 2016.

    >>> from minipaddle.distributed.fleet.utils import recompute
    >>> x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    >>> recompute(lambda x: paddle.exp(x).sum(), x).backward()
    >>> (x.grad == paddle.exp(x)).tolist()
    [True, True]
    """
    same = kwargs.pop("preserve_rng_state", True)
    kwargs.pop("use_reentrant", None)
    if not current.top.recording:
        return function(*args, **kwargs)
    part = RecomputedPart(function, args, kwargs, same)
    with saved_tensors_hooks(forget, forget):
        results = function(*part.args, **part.kwargs)
    return put_on_tape(part, results)


def forget(value):
    """The tape of the first run keeps nothing of a value."""
    return None


class RecomputedPart:
    """A function and its arguments as they are now; `again` computes it once more."""

    def __init__(self, function, args, kwargs, same: bool):
        self.function, tensors = function, tensors_in(args, kwargs)
        self.twins = {id(x): twin(x) for x in tensors}
        self.given = tensors  # they live, so that their ids stay theirs
        self.args, self.kwargs = exchange(args, self.twins), exchange(kwargs, self.twins)
        self.place = generator_place() if same else None
        self.policy = current.top.policy
        self.owner = getattr(function, "__self__", function)
        self.time = tick()

    def again(self, cotangents) -> tuple[list, dict]:
        """The results of a second run, and what the arguments' records in it are twins of."""
        for x in self.twins.values():
            if last_write(x.array) > self.time:
                raise RuntimeError(
                    teach(
                        "backward through recompute: an argument was overwritten in place since",
                        hint="use the out-of-place form, or pass a clone()",
                    )
                )
        later = {id(x): after(x, *cotangents) for x in self.twins.values()}
        args, kwargs = exchange(self.args, later), exchange(self.kwargs, later)
        with restoring(statistics(self.owner)), drawing_from(self.place), casting(self.policy):
            results = tensors_of(self.function(*args, **kwargs))
        moving = [x for x in self.twins.values() if not x.stop_gradient]
        return results, {later[id(x)].record: x.record for x in moving}


def twin(x: Tensor) -> Tensor:
    """A tensor with the value and the past that x has now, whatever is written to x later."""
    other = wrap(current.top.now(x.array) if current.top.tracing else x.array)
    if not x.stop_gradient:
        other.record, other.stop_gradient = x.record or get_leaf(x), False
    return other


def exchange(value, others: dict):
    """Arguments with other tensors in the place of some, by id; in lists and dicts too."""
    if isinstance(value, Tensor):
        return others.get(id(value), value)
    if type(value) in (list, tuple):
        return type(value)(exchange(v, others) for v in value)
    if type(value) is dict:
        return {k: exchange(v, others) for k, v in value.items()}
    return value


def tensors_of(results) -> list[Tensor]:
    """The tensors among the results of a function."""
    return tensors_in(results if type(results) in (list, tuple) else [results], {})


# ---- the tape --------------------------------------------------------------------------------


def put_on_tape(part: RecomputedPart, results):
    """The results with one record for their past, instead of the tape of the part."""
    tensors = tensors_of(results)
    places = [k for k, y in enumerate(tensors) if y.record and y.record.time > part.time]
    if not places:
        return results
    outputs = [tensors[k] for k in places]
    ends = ends_of([y.record for y in outputs], part.time, ())
    specs = tuple(y.spec for y in outputs)
    record = Record(PartOp(places), ends, {}, specs, None, {"part": part}, current.top.scope)
    record.where = outputs[0].record.where
    outs = {id(y): attach(wrap(y.array), record, k) for k, y in enumerate(outputs)}
    return exchange(results, outs)


def ends_of(roots, time: int, twins) -> list[Record]:
    """The records that those made since `time` begin from, each once: older ones, leaves, twins."""
    ends, seen, stack = {}, set(roots), list(roots)
    while stack:
        record = stack.pop()
        if record.time <= time or not record.inputs or record in twins:
            ends[record] = None
            continue
        new = [e for e in record.inputs if e is not None and e not in seen]
        seen.update(new)
        stack += new
    return sorted(ends, key=lambda r: r.time)


@contextmanager
def leaves(ends):
    """While the block runs, every walk stops at these records."""
    before = [(r, r.inputs) for r in ends]
    for r in ends:
        r.inputs = ()
    try:
        yield
    finally:
        for r, inputs in before:
            r.inputs = inputs


class PartOp:
    """A part as the operator of a record."""

    kind, inputs, variadic, attrs = "opaque", ["tensors"], True, {}
    name, doc = "recompute", "A part of a network that is computed again by its backward."

    def __init__(self, places):
        self.places = places  # of the results that have a past, among all tensors returned

    def pull(self, record, g, useful):
        """Pairs (input record, cotangent): those that a walk through a second run finds."""
        recording, began = current.top.recording, tick()
        with Recording(True):
            results, twins = record.saved["part"].again(g.values())
        roots = [results[k].record for k in self.places]
        ends = ends_of(roots, began, twins)
        with leaves(ends), Recording(recording):
            gradients = pull_back([(roots[k], gk) for k, gk in g.items()], set(ends))
        for end, gx in gradients.items():
            edge = twins.get(end, end)
            if edge in useful:
                yield edge, fit(gx, edge, record, record.inputs.index(edge))


# ---- the same random numbers, the same buffers -----------------------------------------------


START = "start"
"""The position of a program's random generator before its first draw."""


def generator_place():
    """The position of the random generator: in a program, the value of its state."""
    top = current.top
    if not top.tracing:
        return GENERATOR.get_state()
    return top.now(GENERATOR.trace_state()) if id(GENERATOR) in top.memory else START


@contextmanager
def drawing_from(place):
    """Random numbers as they were drawn from that place on; afterwards the generator is back."""
    now = generator_place()
    if place in (None, now):
        yield
        return
    go_to(place)
    try:
        yield
    finally:
        go_to(now)


def go_to(place) -> None:
    """Set the generator to where `generator_place` found it."""
    top = current.top
    if not top.tracing:
        GENERATOR.set_state(place)
        return
    counter = GENERATOR.trace_state()
    if place == START:
        first = next(r for r, array in top.root.state_arrays.items() if array is counter)
        place = top.root.symbolic(first, counter.place)
    top.builder.write(counter, place)


def statistics(layer) -> list[Tensor]:
    """The tensors that a call of a layer changes: buffers, and parameters that nothing trains."""
    if not (hasattr(layer, "buffers") and hasattr(layer, "parameters")):
        return []
    return [*layer.buffers(), *(w for w in layer.parameters() if w.stop_gradient)]


@contextmanager
def restoring(tensors):
    """These tensors have their values again after the block."""
    with Recording(False):
        before = [(x, x.clone()) for x in tensors]
    try:
        yield
    finally:
        with Recording(False):
            for x, value in before:
                x.set_value(value)
