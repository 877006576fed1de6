"""Find the node of a tape that makes a gradient wrong, and draw it red.

The program runs repeatedly, each time with the result of one operator nudged a little. The change
of L gives the cotangent that should arrive there; it is compared with the cotangent of the walk.
Where the first wrong one appears on the way back, either an operator's rule gave a wrong share, or
the shares of a value were added up wrongly.
"""

import time
from functools import partial

import numpy as np

from ..engine.core import grad as walk
from ..engine.core.dispatch import Interpreter, current, interpreter
from ..engine.eager.tensor import Tensor
from ..engine.ops.elementwise import add
from ..testing.gradcheck import gradient_of, leaf, slope, total
from ..viz.collapse import draw_records
from ..viz.gradient_norms import RED
from ..viz.parts import Legend, Node
from ..viz.proxy_interpreter import ProxyInterpreter
from ..viz.tape import close_layer, roots_of, tape_parts

STEP, RTOL, ATOL = 1e-5, 1e-4, 1e-6
PATIENCE = 3.0
"""Seconds; a program that takes longer gets a picture without blame."""


def draw_blame(program, tensors, order: int = 1):
    """Draw the tape of `program`; nodes that give or gather wrong gradients are red.

    For a derivative of higher `order` it is the tape alone: the values a rule reads are not nudged.
    """
    for _ in range(order - 1):
        program = gradient_of(program, [k for k, x in enumerate(tensors) if is_floating(x)])
    run = NudgedRun(program, tensors)
    try:
        bad = run.bad_nodes() if order == 1 else {}
    except Exception:  # the walk itself breaks, or it takes too long: draw the tape alone
        bad = {}
    return draw_records(mark_bad(tape_parts(run.roots), bad), close=close_layer)


def is_floating(x) -> bool:
    return x.spec.dtype.kind == "f"


def mark_bad(parts, bad: dict):
    """The parts of a tape, with the bad records red."""
    for part in parts:
        if isinstance(part, Node) and part.key in bad:
            red = {"fillcolor": RED, "fontcolor": "#ffffff", "style": "filled"}
            yield part.annotate(f"✗ {bad[part.key]}", **red)
        elif isinstance(part, Legend) and bad:
            yield part._replace(cells=(("✗ here the gradient goes wrong", RED),))
        else:
            yield part


class Nudge(ProxyInterpreter):
    """Passes everything on to the interpreter below; counts the calls, and can nudge one value.

    `at` is (call, input or None for the result), `step` an array that is added to that value: its
    history stays. `calls` holds the result of each call.
    """

    def __init__(self, below: Interpreter, at=(None, None), step=None):
        super().__init__(below)
        self.at, self.step, self.calls = at, step, []

    def apply(self, op, inputs, attrs):
        call, (here, k) = len(self.calls), self.at
        self.calls.append(None)  # the calls inside this one come after it
        if call == here and k is not None:
            inputs = [self.nudge(x) if i == k else x for i, x in enumerate(inputs)]
        y = self.below.apply(op, inputs, attrs)
        self.calls[call] = y = self.nudge(y) if call == here and k is None else y
        return y

    def nudge(self, x):
        return self.below.apply(add, (x, Tensor(self.step.astype(x.spec.dtype))), {})


class NudgedRun:
    """A program on its inputs: the tape, and for each record the call that made it."""

    def __init__(self, program, tensors):
        self.program, self.tensors = program, [leaf(x) for x in tensors]
        self.ends = time.monotonic() + PATIENCE
        with interpreter(Nudge(current.top)) as counted:
            self.loss = total(self.run, self.tensors)
        calls = [(y.record, n) for n, y in enumerate(counted.calls) if isinstance(y, Tensor)]
        self.calls = {record: n for record, n in calls if record is not None and record.inputs}
        self.leaves = {x.record: k for k, x in enumerate(self.tensors) if x.record is not None}

    def run(self, *tensors):
        results = self.program(*tensors)
        self.roots = roots_of(results)
        return results

    # ---- the cotangents that should arrive ---------------------------------------------------

    def right_cotangent(self, record, shape, at=None) -> np.ndarray:
        """∂L by the value of a record, or by the input of a call, `at` = (call, input)."""
        cotangent = np.zeros(shape)
        for index in np.ndindex(*shape):
            if time.monotonic() > self.ends:
                raise TimeoutError
            nudge = partial(self.compute_nudged, record, at)
            cotangent[index] = slope.reference(nudge, np.zeros(shape), index, STEP)
        return cotangent

    def compute_nudged(self, record, at, step: np.ndarray) -> float:
        """L with a step added to one value."""
        inputs = list(self.tensors)
        if at is None and record in self.leaves:
            k = self.leaves[record]
            inputs[k], at = leaf(inputs[k].numpy() + step), (None, None)
        with interpreter(Nudge(current.top, at or (self.calls[record], None), step)):
            return total(self.program, inputs).item()

    # ---- the cotangents that do arrive -------------------------------------------------------

    def bad_nodes(self) -> dict:
        """{record: its fault}."""
        known = [r for r in (*self.calls, *self.leaves) if r.dtype is not None]
        seeds = [(self.loss.record, Tensor(1.0, dtype="float64"))]
        arrived = walk.pull_back(seeds, set(known))
        uses = self.uses(set(arrived) | set(known))
        wrong = {r for r in known if r in uses and not self.is_right(r, arrived.get(r))}
        first = [r for r in wrong if not any(c in wrong for c, _ in uses[r])]
        return dict(self.culprit(r, uses[r], arrived) for r in first)

    def uses(self, records) -> dict:
        """{record: [(a record that uses it, number of the input)]}, for records on a path to L."""
        uses = {self.loss.record: []}
        for record in sorted(self.calls, key=lambda r: r.time):
            for k, edge in enumerate(record.inputs):
                if edge in records:
                    uses.setdefault(edge, []).append((record, k))
        return uses

    def is_right(self, record, g) -> bool:
        right = self.right_cotangent(record, record.shape)
        return close(np.zeros(record.shape) if g is None else g.numpy(), right)

    def culprit(self, record, uses, arrived):
        """The user of a value that gives it a wrong share, or the value itself: (record, why)."""
        for user, k in uses:
            share = self.share(user, k, record, arrived)
            right = self.right_cotangent(None, record.shape, (self.calls[user], k))
            if share is None or not close(share, right):
                return user, "its rule"
        return record, "what arrives here" if len(uses) < 2 else "the sum of what arrives"

    def share(self, user, k: int, edge, arrived):
        """The gradient that the rule of `user` gives its input k; None if none that fits."""
        rule, g = user.op.rule(k), arrived.get(user)
        share = rule(user, g, k) if rule is not None and g is not None else None
        try:
            return walk.fit(share, edge, user, k).numpy() if isinstance(share, Tensor) else None
        except Exception:  # its shape does not fit
            return None


def close(got: np.ndarray, right: np.ndarray) -> bool:
    return got.shape == right.shape and np.allclose(got, right, RTOL, ATOL)
