"""`cond` and `while_loop` as operators: their branches, tests and bodies are regions.

What a region uses comes in by its inputs; the records of a program stay closed, so a pass may move
or copy them without looking around. The derivatives stand where a tape exists
(`eager/control_flow.py`).
"""

from __future__ import annotations

from ..core import dim as dims
from ..core.dtype import int64
from ..core.op import Op
from ..core.record import Spec


class Control(Op):
    """An operator with regions: its body gets `run(region, arrays)` where others get `m`."""

    kind = "control"
    direct = False
    saves_all = True

    def evaluate(self, m, arrays, attrs):
        from .interpreter import Run

        return self.body(Run(m), *arrays, **attrs)


@Control
def cond(run, pred, *inputs, true, false):
    """The outputs of the region `true` if `pred` holds, else those of `false`."""
    return tuple(run(true if pred.item() else false, inputs))


@cond.shape
def _(pred, *inputs, true, false):
    pairs = zip(true.outputs, false.outputs, strict=True)
    return tuple(Spec(merge_shapes(a.shape, b.shape), a.dtype) for a, b in pairs)


def merge_shapes(a: tuple, b: tuple) -> tuple:
    """The sizes of both branches; an unknown size where they differ."""
    pairs = [*zip(a, b, strict=True)]
    merge = lambda: tuple(n if n == k else dims.create_unknown() for n, k in pairs)
    return dims.match_sizes(merge, yes=False)


@Control
def custom(run, *inputs, backward, results):
    """The first `results` inputs. The region `backward` is their derivative for as many inputs
    after them as it has outputs; it takes the results, their cotangents, and the other inputs.
    """
    return inputs[:results]


@custom.shape
def _(*inputs, backward, results):
    return tuple(inputs[:results])


@Control
def fused(run, *inputs, region):
    """The outputs of a region that is computed as one kernel: a group made by fusion."""
    return tuple(run(region, inputs))


@fused.shape
def _(*inputs, region):
    return tuple(Spec(r.shape, r.dtype) for r in region.outputs)


@Control
def while_loop(run, *inputs, test, body, carried, keep, trip_count=None, reads=(), writes=()):
    """`carried` values, sent through `body` while `test` holds; the other inputs stay as they are.

    A size that an iteration changes is unknown: the regions and the results have symbols of their
    own for it. Else `keep` adds the number of iterations, and each carried value before every
    iteration, stacked: the derivative walks back through these. `trip_count` is the number of
    iterations, if it is known before the loop begins. Then iteration t may be given slice t of the
    last inputs: `reads` says for each of these whether it is the t-th from the end. Values of the
    body that are not carried are stacked: `writes` says for each whether from the end.
    """
    shared = len(inputs) - len(reads)
    now, rest, kept = inputs[:carried], inputs[carried:shared], []
    arrays = [x[::-1] if back else x for x, back in zip(inputs[shared:], reads)]
    while run(test, (*now, *inputs[carried:]))[0].item():
        after = tuple(run(body, (*now, *rest, *(x[len(kept)] for x in arrays))))
        kept.append((*now[: carried * keep], *after[carried:]))
        now = after[:carried]
    values = [*((x, False) for x in now if keep), *zip(body.outputs[carried:], writes)]
    stacks = (stack_iterations(run.m, kept, k, *value) for k, value in enumerate(values))
    return (*now, *[run.m.asarray(len(kept))] * keep, *stacks)


def stack_iterations(m, kept, k: int, like, turned: bool):
    rounds = [values[k] for values in kept][:: -1 if turned else 1]
    return m.stack(rounds) if rounds else m.zeros((0, *like.shape), like.dtype)


@while_loop.shape
def _(*inputs, test, body, carried, keep, trip_count=None, reads=(), writes=()):
    new = lambda a, b: tuple(dims.create_unknown() if size_changes(*n) else n[1] for n in zip(a, b))
    pairs = zip(body.inputs, body.outputs[:carried])
    specs = tuple(Spec(new(x.shape, r.shape), r.dtype) for x, r in pairs)
    stacked = [*(specs if keep else ()), *(r.spec for r in body.outputs[carried:])]
    if not stacked:
        return specs
    rounds = dims.create_unknown() if trip_count is None else trip_count
    stacks = (Spec((rounds, *s.shape), s.dtype) for s in stacked)
    return (*specs, *[Spec((), int64.numpy)] * keep, *stacks)


def trip_count_of(stack: Spec):
    """The number of iterations that a loop has stacked; None if only a run knows it."""
    return None if dims.UNSEEN.match(str(stack.shape[0])) else stack.shape[0]


def size_changes(before, after) -> bool:
    return str(before) != str(after) and dims.UNSEEN.match(str(before)) is not None


def changes_sizes(body) -> bool:
    """Whether an iteration of a loop changes the size of a value that it carries."""
    return any(any(map(size_changes, a.shape, b.shape)) for a, b in zip(body.inputs, body.outputs))
