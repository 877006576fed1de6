"""Checks of 14_memory/slices."""

import random

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
from minipaddle import nn
from minipaddle.engine.codegen.kernel import IN_PLACE
from minipaddle.engine.codegen.step import is_alias
from minipaddle.engine.executors.compiler import compiler
from minipaddle.engine.executors.native import Executable, find_in_place
from minipaddle.engine.ir.program import NUMBER
from minipaddle.engine.passes.lifetimes import specs_of
from minipaddle.engine.passes.memory import no_workspace, plan
from minipaddle.ir.parser import parse
from minipaddle.learn import Exercise, expect, expect_that
from minipaddle.viz.target import executable_of

exercise = Exercise(
    title="When may a slice assignment write where its input lies?",
    level="medium",
    minutes=25,
    before=("14_memory/in_place",),
    slots={"native.find_early_writes": "find_early_writes"},
    hints=(
        "A run fails at the last record that may fail. What has been written by then?",
        "Number the records: when = {record: t}. The last moment at which the run may fail is a "
        "maximum, with len(when) for records that are not there, and -1 if none may fail.",
        "for each record that is no alias and ran before the last moment,\n"
        "or at it unless it checks its indices first:\n"
        "    the .k of each location of its results whose kind is 'state'",
    ),
    wrong={
        "the first failure counts": "max → min",
        "a branch fails at the start": "when.get(record, end) → when.get(record, -1)",
        "something always fails": (
            "max((when.get(record, end) for record in failing), default=-1) → "
            "max((when.get(record, end) for record in failing), default=end)"
        ),
        "a view writes": (
            "not is_alias(record) and (t < last or (t == last and (not checks))) → "
            "t < last or (t == last and (not checks))"
        ),
        "a put that fails has written": "t == last and (not checks) → t == last",
        "what fails has written nothing": "t < last or (t == last and (not checks)) → t < last",
        "a put never writes": "t < last or (t == last and (not checks)) → t <= last and not checks",
        "only the first result": "range(len(specs_of(record))) → range(1)",
        "every place is a state": "place.kind == 'state' → True",
        "every state": "sorted(found) → [*range(len(plan.program.states))]",
        "in the order of writing": "sorted(found) → sorted(found)[::-1]",
    },
    unkillable={
        "last = max((when.get(record, end) for record in failing), default=-1) → "
        "last = max((when.get(record, end) for record in failing), default=-2)": "no moment is -1",
        "return sorted(found) → return list(found)": "a set of few small numbers is in order",
    },
)  # fmt: skip


def planned(text):
    return plan(parse(text), no_workspace, find_in_place)


def asked(yours, found, failing, why=""):
    """Your answer, and the states that some failing record finds changed."""
    records, changed = found.program.records, set()
    for each in failing:
        inside = each in records
        ran = records[: records.index(each)] if inside else records
        ran = [*ran, each] if inside and each.op.name not in IN_PLACE else ran
        for record in ran:
            places = [found.location(record, k) for k in range(len(specs_of(record)))]
            if not is_alias(record):
                changed |= {place.k for place in places if place.kind == "state"}
    given = {"program": str(found.program), "failing": [str(r) for r in failing]}
    got = yours.find_early_writes(found, list(failing))
    expect(list(got), sorted(changed), given=given, why=why)
    return sorted(changed)


HEAD = """program p(at: int64[], to: int64[], word: int64[], x: float32[4], table: float32[9, 4]) {
  state c0: float32[8, 4]
  state c1: float32[8, 4]
"""


@exercise.example
def a_few_steps(yours):
    """Which record fails decides."""
    found = planned(HEAD + """  v1 = put(c0, at, x, axis=0) : float32[8, 4]
  v2 = take(table, word, axis=0) : float32[4]
  v3 = put(c1, at, v2, axis=0) : float32[8, 4]
  update c0 = v1
  update c1 = v3
  return v2
}""")  # fmt: skip
    first, look, second = found.program.records
    stranger = planned(HEAD + "  v1 = take(table, word, axis=0) : float32[4]\n  return v1\n}")
    for failing, expected, why in (
        ([], [], "nothing fails"),
        ([first], [], "a put checks its index first"),
        ([look], [0], "the first cache is written by then"),
        ([second], [0], "and the second put has written nothing when it fails"),
        ([first, look], [0], "the last failure counts"),
        ([stranger.program.records[0]], [0, 1], "in a branch: at any time"),
    ):
        got = yours.find_early_writes(found, failing)
        given = {"program": str(found.program), "failing": [str(r) for r in failing]}
        expect(list(got), expected, given=given, why=why)


@exercise.example
def views_and_chains(yours):
    """A view writes nothing; two puts in a row write to one state."""
    found = planned(HEAD + """  v1 = reshape(c0, shape=(4, 8,)) : float32[4, 8]
  v2 = sum(v1, axis=(0,), keepdim=False) : float32[8]
  v3 = take(table, word, axis=0) : float32[4]
  v4 = put(c0, at, v3, axis=0) : float32[8, 4]
  v5 = put(v4, to, x, axis=0) : float32[8, 4]
  v6 = multiply(c1, 2.0) : float32[8, 4]
  update c0 = v5
  update c1 = v6
  return v2
}""")  # fmt: skip
    _, _, look, one, two, double = found.program.records
    for failing, expected in (([look], []), ([one], []), ([one, two], [0]), ([double], [0, 1])):
        expect(asked(yours, found, failing), expected, given=str(found.program))
    found = planned(
        f"{HEAD}  v1 = multiply(c0, 2.0) : float32[8, 4]\n  update c0 = v1\n  return\n}}"
    )
    expect(asked(yours, found, []), [], given=str(found.program))
    cache = ["c0", *(f"v{n}" for n in range(40))]
    lines = [f"  v{n} = put({cache[n]}, at, x, axis=0) : float32[8, 4]\n" for n in range(40)]
    found = planned(f"{HEAD}{''.join(lines)}  update c0 = v39\n  return\n}}")
    asked(yours, found, found.program.records[-1:])
    asked(yours, found, found.program.records)


@exercise.property(seed=st.integers(0, 9999), examples=25)
def random_steps(yours, seed):
    """Random puts, slices, products with a number and look-ups, some of which may fail."""
    draw, lines = random.Random(seed), []
    now = {"c0": "c0", "c1": "c1"}
    for n in range(1, draw.randint(2, 8)):
        state, kind = draw.choice(["c0", "c1"]), draw.randrange(5)
        text = (
            f"put({now[state]}, at, x, axis=0)", f"slice_assign({now[state]}, x, index=(3,))",
            f"multiply({now[state]}, 2.0)", f"transpose({now[state]}, perm=(0, 1,))",
            "take(table, word, axis=0)",
        )[kind]  # fmt: skip
        lines.append(f"  v{n} = {text} : float32[{'4' if kind == 4 else '8, 4'}]\n")
        if kind < 3:
            now[state] = f"v{n}"
    ends = [f"  update {s} = {v}\n" for s, v in now.items() if s != v]
    found = planned(f"{HEAD}{''.join(lines)}{''.join(ends)}  return v1\n}}")
    records = [r for r in found.program.records if r.op is not NUMBER]
    asked(yours, found, [r for r in records if draw.random() < 0.3])


class Decoder(nn.Layer):
    """A token's row of a table goes into two caches."""

    def __init__(self):
        super().__init__()
        self.word = nn.Embedding(9, 4)
        for name, shape in (
            ("keys", [2, 8, 4]),
            ("values", [2, 8, 4]),
            ("turns", [4]),
            ("sums", [4]),
        ):
            self.register_buffer(name, paddle.zeros(shape))

    def forward(self, token, at, last):
        self.turns.add_(paddle.ones([4]))
        self.sums.add_(self.turns)  # one kernel writes both
        x = self.word(token)
        self.keys[:, at] = x
        self.values[:, at] = x * 2
        if last > 3:
            x = x + self.word(last)
        return (self.keys * self.values).sum() + x.sum()


@exercise.example
def a_decoder(yours):
    """Compiled with your function: caches stay as they were if a step fails, and are not copied."""
    if compiler() is None:
        return
    paddle.seed(0)
    with paddle.no_grad(), exercise.plugged(yours):
        net = Decoder()
        step = paddle.jit.to_static(net, backend="native")
        call = lambda *numbers: step(*map(paddle.to_tensor, numbers))
        call([1, 2], 0, 0)
        for wrong in (([1, 99], 1, 0), ([1, 2], 9, 0), ([1, 2], 1, 77)):
            before = {name: b.numpy().copy() for name, b in net.named_buffers()}
            try:
                call(*wrong)
            except IndexError:
                pass
            else:
                expect_that(False, "an index out of range raises IndexError", given=wrong)
            for name, b in net.named_buffers():
                same = np.array_equal(b.numpy(), before[name])
                expect_that(same, f"{name} is as before the step that failed", given=wrong)
        made = executable_of(step)
        asked(yours, made.plan, made.source.hosted)
        alone = Executable(made.plan.program, load=False)
        asked(yours, alone.plan, alone.source.hosted[:1])
