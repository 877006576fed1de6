"""Which node of a tape is to blame for a wrong gradient? Its picture, with that node red.

The program runs again and again, each time with the result of one operator nudged a little: what
that does to L is the cotangent which ought to arrive there. The walk's own cotangents are held
against it. Where a wrong one first appears, on the way back, is either an operator whose rule gave
a wrong share, or a value whose shares were put together wrongly.
"""

from __future__ import annotations

import time

import numpy as np

from ..engine.core import grad as walk
from ..engine.core.dispatch import Interpreter, current, interpreter
from ..engine.eager.tensor import Tensor
from ..engine.ops.elementwise import add
from ..testing.gradcheck import gradient_of, leaf, total
from ..viz.fold import draw_records
from ..viz.parts import Legend, Node
from ..viz.passthrough import PassThrough
from ..viz.scale import RED
from ..viz.tape import close_layer, roots_of, tape_parts

STEP, RTOL, ATOL = 1e-5, 1e-4, 1e-6
PATIENCE = 3.0
"""Seconds; a program that takes longer gets a picture without blame."""


def blamed(program, tensors, order: int = 1):
    """The tape of `program`, drawn with the nodes red that give or gather wrong gradients.

    Of a derivative of higher `order` it is the tape alone: what a rule reads is not nudged.
    """
    for _ in range(order - 1):
        program = gradient_of(program, [k for k, x in enumerate(tensors) if floating(x)])
    run = Run(program, tensors)
    try:
        bad = run.bad_nodes() if order == 1 else {}
    except Exception:  # the walk itself breaks, or it takes too long: the tape alone must do
        bad = {}
    return draw_records(blame(tape_parts(run.roots), bad), close=close_layer)


def floating(x) -> bool:
    return x.spec.dtype.kind == "f"


def blame(parts, bad: dict):
    """The parts of a tape, with some of its records red."""
    for part in parts:
        if isinstance(part, Node) and part.key in bad:
            red = {"fillcolor": RED, "fontcolor": "#ffffff", "style": "filled"}
            yield part.annotate(f"✗ {bad[part.key]}", **red)
        elif isinstance(part, Legend) and bad:
            yield part._replace(cells=(("✗ here the gradient goes wrong", RED),))
        else:
            yield part


class Nudge(PassThrough):
    """Stands on the interpreter below; counts what is applied, and can nudge one value.

    `at` is (call, input or None for the result, index). `calls` notes each call's result.
    """

    def __init__(self, below: Interpreter, at=None, step: float = 0.0):
        super().__init__(below)
        self.at, self.step, self.calls = at, step, []

    def apply(self, op, inputs, attrs):
        call = len(self.calls)
        self.calls.append(None)  # those inside come after it
        here, k, index = self.at or (None, None, None)
        if call == here and k is not None:
            inputs = [self.moved(x, index) if i == k else x for i, x in enumerate(inputs)]
        y = self.below.apply(op, inputs, attrs)
        if call == here and k is None:
            y = self.moved(y, index)
        self.calls[call] = y
        return y

    def moved(self, x, index):
        """The value with a constant added to one element: its past stays."""
        step = np.zeros(x.spec.shape, x.spec.dtype)
        step[index] = self.step
        return self.below.apply(add, (x, Tensor(step)), {})


class Run:
    """A program on its inputs: the tape, and for each record the call that made it."""

    def __init__(self, program, tensors):
        self.program, self.tensors = program, [leaf(x) for x in tensors]
        self.ends = time.monotonic() + PATIENCE
        with interpreter(Nudge(current.top)) as counted:
            self.loss = total(self.noted, self.tensors)
        made = [(y.record, n) for n, y in enumerate(counted.calls) if isinstance(y, Tensor)]
        self.calls = {record: n for record, n in made if record is not None and record.inputs}
        self.leaves = {x.record: k for k, x in enumerate(self.tensors) if x.record is not None}

    def noted(self, *tensors):
        results = self.program(*tensors)
        self.roots = roots_of(results)
        return results

    # ---- what ought to arrive ----------------------------------------------------------------

    def ought(self, record, shape, at=None) -> np.ndarray:
        """∂L by what a record holds, or by what enters a call `at` (call, input)."""
        found = np.zeros(shape)
        for index in np.ndindex(*shape):
            if time.monotonic() > self.ends:
                raise TimeoutError
            ends = [self.nudged(record, at, index, step) for step in (STEP, -STEP)]
            found[index] = (ends[0] - ends[1]) / (2 * STEP)
        return found

    def nudged(self, record, at, index, step: float) -> float:
        """L with one element of one value moved by a step."""
        inputs = list(self.tensors)
        if at is None and record in self.leaves:
            k = self.leaves[record]
            array = np.array(inputs[k].numpy())
            array[index] += step
            inputs[k], place = leaf(array), None
        else:
            place = (*(at or (self.calls[record], None)), index)
        with interpreter(Nudge(current.top, place, step)):
            return total(self.program, inputs).item()

    # ---- what does -----------------------------------------------------------------------------

    def bad_nodes(self) -> dict:
        """{record: what is wrong with it}."""
        known = [r for r in (*self.calls, *self.leaves) if r.dtype is not None]
        seeds = [(self.loss.record, Tensor(1.0, dtype="float64"))]
        arrived = walk.pull_back(seeds, set(known))
        uses = self.uses(set(arrived) | set(known))
        wrong = {r for r in known if r in uses and not self.right(r, arrived.get(r))}
        first = [r for r in wrong if not any(c in wrong for c, _ in uses[r])]
        return dict(self.culprit(r, uses[r], arrived) for r in first)

    def uses(self, records) -> dict:
        """{record: [(record that uses it, as which input)]}, of those that lead to L."""
        found = {self.loss.record: []}
        for record in sorted(self.calls, key=lambda r: r.time):
            for k, edge in enumerate(record.inputs):
                if edge in records:
                    found.setdefault(edge, []).append((record, k))
        return found

    def right(self, record, g) -> bool:
        ought = self.ought(record, record.shape)
        return close(np.zeros(record.shape) if g is None else g.numpy(), ought)

    def culprit(self, record, uses, arrived):
        """The user of a value that gives it a wrong share, or the value itself: (record, why)."""
        for user, k in uses:
            share = self.share(user, k, record, arrived)
            if share is None or not close(
                share, self.ought(None, record.shape, self.entry(user, k))
            ):
                return user, "its rule"
        return record, "what arrives here" if len(uses) < 2 else "the sum of what arrives"

    def entry(self, user, k: int) -> tuple:
        return self.calls[user], k

    def share(self, user, k: int, edge, arrived):
        """What the rule of `user` sends to its input k; None if it sends nothing that fits."""
        rule, g = user.op.rule(k), arrived.get(user)
        sent = rule(user, g, k) if rule is not None and g is not None else None
        try:
            return walk.fit(sent, edge, user, k).numpy() if isinstance(sent, Tensor) else None
        except Exception:  # a shape that can not be
            return None


def close(got: np.ndarray, ought: np.ndarray) -> bool:
    return got.shape == ought.shape and np.allclose(got, ought, RTOL, ATOL)
