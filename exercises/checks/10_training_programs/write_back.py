"""Checks of 10_training_programs/write_back."""

from types import SimpleNamespace

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle import nn
from minipaddle.engine.core.record import Spec
from minipaddle.engine.eager.tracer import trace
from minipaddle.ir.parser import parse
from minipaddle.learn import Exercise, expect, expect_that

exercise = Exercise(
    title="What a captured step leaves behind: states and their new values",
    level="medium",
    minutes=45,
    before=("09_to_static",),
    slots={
        "tracer.updates": "updates",
        "jit.overwritten": "overwritten",
        "jit.write_back": "write_back",
    },
    hints=(
        "Two weights change places in a step: a, b = b, a. What may be written when? And what does "
        "the backward hold that has kept w, once w is written?",
        "`updates`: ask the builder what the memory holds, and compare with `is`. `overwritten`: a "
        "set that begins with what is written and grows along the records, as `depending` does.",
        "updates: values[state_arrays[state.record]], None where it is state.record\n"
        "overwritten: exposed = inputs, and states with an update\n"
        "    add a view if its first input is in it, a control operator or ITEM if any is\n"
        "    the numbers of results that are in it\n"
        "write_back: copies; write the values after the program's outputs; each.leave",
    ),
    wrong={
        "every state has an update": "now if now is not state.record else None → now",
        "the value from the beginning": "now if now is not state.record else None → state.record",
        "only states that changed are listed": (
            "found.append(now if now is not state.record else None) → if now is not "
            "state.record: found.append(now)"
        ),
        "views of views forgotten": "exposed.add(record) → pass",
        "only views look into other memory": (
            "record.op.kind == 'control' or record.op is ITEM → False"
        ),
        "whatever is made of a state looks into it": "continue → sources = record.inputs",
        "a view of every input": "record.inputs[:1] → record.inputs",
        "states that stay as they are": (
            "(s.record for s in program.states if s.update is not None) → (s.record for s in "
            "program.states if True)"
        ),
        "inputs that are written forgotten": (
            "{*inputs, *(s.record for s in program.states if s.update is not None)} → "
            "{*(s.record for s in program.states if s.update is not None)}"
        ),
        "not looking at the new values": (
            "[k for k, record in enumerate(program.results) if record in exposed] → [k for k, "
            "record in enumerate(program.outputs) if record in exposed]"
        ),
        "no copies": "outputs[k] = outputs[k].copy() → pass",
        "copies in a list of one's own": (
            "for k in self.copied: → outputs = list(outputs); for k in self.copied:"
        ),
        "the first outputs for the states": (
            "outputs[len(self.program.outputs):] → outputs[:len(self.updates)]"
        ),
        "nothing left for Python": "each.leave(inputs, *(outputs[k] for k in each.outputs)) → pass",
        "the old arrays are handed to Python": (
            "for k in self.copied: → old = list(outputs); for k in self.copied:",
            "(outputs[k] for k in each.outputs) → (old[k] for k in each.outputs)",
        ),
        "copies after the writing": (
            "outputs[k] = outputs[k].copy() → pass",
            "for each in self.after: → "
            "for k in self.copied: outputs[k] = outputs[k].copy(); for each in self.after:",
        ),
    },
    unkillable={
        "for storage, array in zip(self.updates, new, strict=True): → "
        "for storage, array in zip(self.updates, new, strict=False):": "there are as many",
    },
)

F32 = np.dtype("float32")


def traced(yours, function, *shapes):
    with exercise.plugged(yours):
        return trace(function, [Spec(shape, F32) for shape in shapes], names=("x", "y"))


@exercise.example
def new_values(yours):
    """Three states: a is written twice, b is only read, and c and d change places."""
    a, b, c, d = (paddle.to_tensor(float(k)) for k in (1, 2, 3, 4))
    for name, x in zip("abcd", (a, b, c, d), strict=True):
        x.name = name

    def step(x):
        a.add_(b)
        a.multiply_(x)
        before = c.clone()
        c.set_value(d)
        d.set_value(before)
        return [x]

    program = traced(yours, step, ()).program
    found = {s.name: s.update and s.update.op.name for s in program.states}
    begun = {s.record: s.name for s in program.states}
    for s in program.states:
        if s.update in begun:
            found[s.name] = begun[s.update]
    expected = {"a": "multiply", "b": None, "c": "d", "d": "assign"}
    expect(found, expected, given=str(program), why="what each state holds at the end")


TEXT = """program p(x: float32[4], y: float32[4], i: int64[], b: bool[]) {
  state u: float32[4]
  state w: float32[4]
  v1 = reshape(w, shape=(2, 2,)) : float32[2, 2]
  v2 = transpose(v1, perm=(1, 0,)) : float32[2, 2]
  v3 = multiply(w, 0.9) : float32[4]
  v4 = reshape(v3, shape=(2, 2,)) : float32[2, 2]
  v5 = reshape(u, shape=(2, 2,)) : float32[2, 2]
  v6 = cond(b, x, w, true=(p: float32[4], q: float32[4]) {
    return p
  }, false=(p: float32[4], q: float32[4]) {
    return q
  }) : (float32[4])
  v7 = item(v6, k=0) : float32[4]
  v8 = reshape(v7, shape=(2, 2,)) : float32[2, 2]
  v9 = add(v8, 1.0) : float32[2, 2]
  v10 = reshape(x, shape=(2, 2,)) : float32[2, 2]
UPDATES  return RESULTS
}"""


def program(updates, results):
    text = TEXT.replace("UPDATES", "".join(f"  update {u}\n" for u in updates))
    return parse(text.replace("RESULTS", ", ".join(results)))


@exercise.example
def results_that_look_elsewhere(yours):
    """w is written (v1, v2, v7 and v8 may look into it), or u, or the input x, or nothing."""
    results = ["v1", "v2", "v3", "v4", "v5", "v7", "v8", "v9", "v10", "w", "u", "x", "y"]
    for updates, inputs, expected in (
        (["w = v3"], [], "v1 v2 v7 v8 w"),
        (["u = v3"], [], "v5 u"),
        ([], [0], "v7 v8 v10 x"),
        ([], [1], "y"),
        (["w = v3", "u = w"], [], "v1 v2 v5 v7 v8 w u update-u"),
        (["w = y"], [1], "v1 v2 v7 v8 w y update-w"),
        ([], [], ""),
    ):
        p = program(updates, results)
        names = [*results, *(f"update-{s.name}" for s in p.states if s.update is not None)]
        got = yours.overwritten(p, [p.inputs[k] for k in inputs])
        given = {"program": str(p), "inputs that are written": ["xy"[k] for k in inputs]}
        expect([names[k] for k in got], expected.split(), given=given)


class Made:
    """A record, in short."""

    def __init__(self, op, inputs):
        self.op, self.inputs = op, inputs


@exercise.example
def a_view_has_one_memory(yours):
    """A view of two inputs looks into the first; the second only says where."""
    view = SimpleNamespace(view=True, kind="movement")
    whole = SimpleNamespace(view=False, kind="elementwise")
    a, b = object(), object()
    first, second = Made(view, [a, b]), Made(view, [b, a])
    third = Made(whole, [a, second])
    p = SimpleNamespace(states=[], records=[first, second, third],
                        results=[first, second, third, a, b])  # fmt: skip
    expect(yours.overwritten(p, [a]), [0, 3], given="views of (a, b) and of (b, a); a is written")
    expect(yours.overwritten(p, [b]), [1, 4], given="views of (a, b) and of (b, a); b is written")


class Cell:
    """Keeps what is written, and when."""

    def __init__(self, log, name):
        self.log, self.name = log, name

    def write(self, array):
        self.log.append((self.name, array.tolist()))
        array[...] = -1  # a view of it would change too

    def leave(self, inputs, *arrays):
        self.log.append((self.name, inputs, [a.tolist() for a in arrays]))
        self.arrays = arrays


@exercise.example
def written_in_order(yours):
    """Two outputs, two states; both outputs are left, somewhere in Python."""
    log, arrays = [], [np.array([float(k)]) for k in range(4)]
    outputs, each = list(arrays), Cell(log, "left")
    each.outputs = (1, 0)
    self = SimpleNamespace(
        program=SimpleNamespace(outputs=[None, None]),
        updates=[Cell(log, "u"), Cell(log, "w")],
        copied=[0, 3],
        after=[each],
    )
    yours.write_back(self, ["inputs"], outputs)
    expected = [("u", [2.0]), ("w", [3.0]), ("left", ["inputs"], [[1.0], [0.0]])]
    expect(log, expected, given="outputs 0, 1 and new values 2, 3")
    same = [a is b for a, b in zip(outputs, arrays, strict=True)]
    expect(same, [False, True, True, False], given="self.copied = [0, 3]",
           why="which outputs are the same arrays as before")  # fmt: skip
    left = [a is outputs[k] for a, k in zip(each.arrays, each.outputs, strict=True)]
    expect(left, [True, True], given="each.outputs = (1, 0)", why="what is left are the outputs")
    expect([float(a[0]) for a in arrays[::3]], [0.0, 3.0], given="what was copied is not written")


@exercise.example
def arrays_of_all_kinds(yours):
    """New values that are large, empty, infinite, backwards or with gaps."""
    long = np.arange(400.0)
    arrays = [long, np.zeros((0, 2)), np.array([np.inf, 1.0]), long[4::-1], long[::2].copy()[::2]]
    log, expected = [], [(k, array.tolist()) for k, array in enumerate(arrays)]
    self = SimpleNamespace(program=SimpleNamespace(outputs=[]), copied=[], after=[],
                           updates=[Cell(log, k) for k in range(5)])  # fmt: skip
    yours.write_back(self, [], [array.copy(order="K") for array in arrays[:3]] + arrays[3:])
    expect_that(log == expected, "each new value in its cell", given=expected, got=log)


@exercise.example
def what_the_backward_needs_stays(yours):
    """y = x * w, then w is ten times as large: the gradient of y for x is w as it was."""
    with exercise.plugged(yours):
        w = paddle.to_tensor([2.0])

        @paddle.jit.to_static
        def forward(x):
            y = x * w
            w.set_value(w * 10)
            return y

        seen = []
        for _ in range(2):
            x = paddle.to_tensor([3.0], stop_gradient=False)
            y = forward(x)
            y.backward()
            seen.append((y.item(), x.grad.item(), w.item()))
    expect(seen, [(6.0, 2.0, 20.0), (60.0, 20.0, 200.0)], given="w = 2, x = 3: y, its gradient, w")


@exercise.example
def two_states_change_places(yours):
    """a, b = b, a in each step, three times."""
    with exercise.plugged(yours):
        a, b = paddle.to_tensor([1.0]), paddle.to_tensor([2.0])

        @paddle.jit.to_static
        def step(x):
            kept = a.clone()
            a.set_value(b)
            b.set_value(kept)
            return x

        seen = []
        for _ in range(3):
            step(paddle.ones([1]))
            seen.append((a.item(), b.item()))
    expect(seen, [(2.0, 1.0), (1.0, 2.0), (2.0, 1.0)], given="a, b = 1, 2")


@exercise.example
def inputs_written_in_place(yours):
    """x is written in the step; the gradient of w * x by w is x as it was."""
    with exercise.plugged(yours):
        w = paddle.to_tensor([1.0, 2.0], stop_gradient=False)

        @paddle.jit.to_static
        def step(x):
            y = w * x
            x.set_value(x * 3)
            return y

        x = paddle.to_tensor([1.0, 2.0])
        step(x).sum().backward()
        got = x.tolist(), w.grad.tolist()
    expect(got, ([3.0, 6.0], [1.0, 2.0]), given="x = [1, 2], times 3")


def training(wrap, momentum, drop, steps=4):
    """Losses and all that is left after some steps."""
    paddle.seed(0)
    net = nn.Sequential(nn.Linear(2, 6), nn.BatchNorm1D(6), nn.Tanh(), nn.Dropout(drop),
                        nn.Linear(6, 1))  # fmt: skip
    rate = paddle.optimizer.lr.ExponentialDecay(0.1, 0.9)
    sgd = paddle.optimizer.Momentum(rate, momentum, parameters=net.parameters())

    def step(x, y):
        loss = F.mse_loss(net(x), y)
        loss.backward()
        sgd.step()
        sgd.clear_grad()
        rate.step()
        return loss

    step = wrap(step)
    x = paddle.randn([16, 2])
    losses = [step(x, x[:, :1]).item() for _ in range(steps)]
    left = [t.numpy() for t in net.state_dict().values()]
    moments = [t.numpy() for t in sgd.state_dict().values() if isinstance(t, paddle.Tensor)]
    return losses, left, moments, rate.last_lr


@exercise.property(momentum=st.sampled_from((0.0, 0.9)), drop=st.sampled_from((0.0, 0.5)),
                   examples=4)  # fmt: skip
def to_the_bit_as_eager(yours, momentum, drop):
    """A captured step with batch norm, dropout, momentum and a schedule, beside the eager one."""
    expected = training(lambda step: step, momentum, drop)
    with exercise.plugged(yours):
        got = training(paddle.jit.to_static, momentum, drop)
    for what, a, b in zip(("losses", "weights", "moments", "rate"), got, expected, strict=True):
        expect(a, b, given={"momentum": momentum, "dropout": drop, "asked": what}, rtol=0, atol=0)


@exercise.example
def gradients_are_left(yours):
    """A step that only walks back: `.grad` of the weight is what the second run says."""
    with exercise.plugged(yours):
        w = paddle.to_tensor([2.0], stop_gradient=False)

        @paddle.jit.to_static
        def walk(x):
            (w * w * x).sum().backward()
            return x

        seen = []
        for x in (1.0, 5.0):
            walk(paddle.to_tensor([x]))
            seen.append(w.grad.item())
            w.clear_grad()
    expect_that(seen == [4.0, 20.0], "2 w x", given="w = 2, x = 1 and 5", got=seen)
