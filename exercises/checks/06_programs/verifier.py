"""Checks of 06_programs/verifier."""

import functools
import random

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle import nn
from minipaddle.engine.core.op import OPS
from minipaddle.engine.core.record import Record, Spec
from minipaddle.engine.eager.tracer import trace
from minipaddle.engine.ir.program import INPUT, ITEM, NUMBER, Program, State
from minipaddle.engine.ir.verifier import VerifyError, verify
from minipaddle.ir.parser import ParseError, parse
from minipaddle.learn import Exercise, expect_that

exercise = Exercise(
    title="Is this a program at all?",
    level="hard",
    minutes=45,
    before=("06_programs/interpreter",),
    slots={"ir.check_uses": "check_uses", "ir.check_spec": "check_spec"},
    hints=(
        "You read the program aloud, from the top. Which names may the next record mention?",
        "Keep the set of what is defined so far. A record's own value comes into it after its "
        "inputs were looked at, or it could use itself. `program.results` are uses too.",
        "defined = the given records, none twice\n"
        "for each record: each input is defined, or a number\n"
        "                 an input of dtype None is for ITEM only\n"
        "                 the record is not defined yet; now it is\n"
        "for each result: it is defined, or a number, and has a dtype\n"
        "check_spec: compatible(infer_spec(record), the record's own); any error is a no",
    ),
    wrong={
        "looking at definitions without their order": (
            (
                "def define(record): → everything = {*program.given, *program.records}; def "
                "define(record):"
            ),
            "value not in defined → value not in everything",
        ),
        "not looking at the results": "program.results → ()",
        "the updates of states are no results": "program.results → program.outputs",
        "a value may be defined twice": "record in defined → False",
        "the same input twice goes through": (
            "for record in program.given: → defined |= set(program.given)"
        ),
        "numbers are not allowed": (
            "value not in defined and value.op is not NUMBER → value not in defined"
        ),
        "states are not known": "program.given → program.inputs",
        "several results taken for one": "value.dtype is None and record.op is not ITEM → False",
        "comparing shapes, not dtypes": (
            "not compatible(found, own) → not isinstance(found, tuple) or getattr(found, 'shape', "
            "own) != getattr(own, 'shape', own)"
        ),
        "answering True or False": (
            "raise VerifyError(f'{record}: the rule of {record.op.name} says {found}') → "
            "return False"
        ),
        "asserting": "VerifyError(f'{record} is defined twice') → AssertionError",
        "a record may use itself": "use(value, record) → value is record or use(value, record)",
        "a rule that raises is let out as it is": "Exception → VerifyError",
    },
)  # fmt: skip

F32 = np.dtype("float32")
PAIR = Spec((2,), F32)


def given(name="x", spec=PAIR):
    return Record(INPUT, (), {"name": name}, *spec)


def made(op, *inputs, spec=PAIR, **attrs):
    return Record(OPS[op], list(inputs), attrs, *spec)


def number(value):
    return Record(NUMBER, (), {"value": value}, (), F32)


def program(inputs, records, outputs, states=()):
    return Program("p", list(inputs), list(states), list(records), list(outputs))


def verdict(check, thing):
    """What a check says: "right", or "refused" with VerifyError and some words."""
    try:
        answer = check(thing)
    except VerifyError as error:
        expect_that(str(error), "a message with the error", got=repr(error))
        return "refused"
    expect_that(answer is None or answer is thing, "an error, or nothing", got=answer)
    return "right"


def says(check, expected, thing, why):
    expect_that(verdict(check, thing) == expected, f"{expected}: {why}", given=repr(thing))


@exercise.example
def right_programs(yours):
    """Numbers, states and updates, a value used twice, an input handed out, nothing at all."""
    x, w = given("x"), given("w")
    v1 = made("multiply", x, number(2.0))
    v2 = made("add", v1, v1)
    state = State("w", w, made("add", w, v2))
    for p in (
        program([], [], []),
        program([x], [], [x, x]),
        program([x], [v1, v2], [v2, number(3.0), v1]),
        program([x], [v1, v2, state.update], [v2], [state]),
    ):
        says(yours.check_uses, "right", p, "every value is defined before its uses")


@exercise.example
def used_before_it_is_defined(yours):
    """exp(v1) stands before v1; a record takes itself; a value comes from nowhere."""
    x, foreign = given("x"), given("somebody else's")
    v1 = made("tanh", x)
    v2 = made("exp", v1)
    says(yours.check_uses, "refused", program([x], [v2, v1], [v2]), "v2 uses v1, which comes later")
    says(yours.check_uses, "refused", program([x], [v2], [v2]), "v1 is not in the program")
    says(yours.check_uses, "refused", program([], [v1], [v1]), "x is not among the inputs")
    says(yours.check_uses, "refused", program([x], [made("add", x, foreign)], []), "whose is it?")
    loop = made("tanh", x)
    loop.inputs = [loop]
    says(yours.check_uses, "refused", program([x], [loop], [loop]), "a record that takes itself")


@exercise.example
def defined_twice(yours):
    """A record that stands twice, an input that stands twice, an input among the records."""
    x = given("x")
    v1, v2 = made("tanh", x), made("exp", x)
    for p in (
        program([x], [v1, v2, v1], [v2]),
        program([x, x], [v1], [v1]),
        program([x], [v1], [v1], [State("x", x)]),
        program([x], [x], [x]),
    ):
        says(yours.check_uses, "refused", p, "a value that is defined twice")


@exercise.example
def results_that_nobody_computed(yours):
    """An output, or the new value of a state, that is not in the program."""
    x, w = given("x"), given("w")
    v1, other = made("tanh", x), made("exp", x)
    says(yours.check_uses, "refused", program([x], [v1], [other]), "an output that is not computed")
    update = program([x], [v1], [v1], [State("w", w, other)])
    says(yours.check_uses, "refused", update, "an update that is not computed")


@exercise.example
def several_results(yours):
    """topk gives two results in one; `item` takes one out, and nothing else takes them."""
    x, i64 = given("x"), np.dtype("int64")
    whole = Record(OPS["tanh"], [x], {}, (PAIR, Spec((2,), i64)), None)
    item = Record(ITEM, [whole], {"k": 0}, *PAIR)
    says(yours.check_uses, "right", program([x], [whole, item], [item]), "an item of two results")
    for p in (
        program([x], [whole, made("exp", whole)], []),
        program([x], [whole], [whole]),
        program([x], [item, whole], [item]),
    ):
        says(yours.check_uses, "refused", p, "several results taken for one")


@exercise.example
def specs_that_lie(yours):
    """add of float32[2] and float32[2] is float32[2], and nothing else."""
    x, y = given("x"), given("y", Spec((3,), F32))
    f64, two = Spec((2,), np.dtype("float64")), number(2.0)
    says(yours.check_spec, "right", made("add", x, x), "the rule says float32[2]")
    says(yours.check_spec, "right", made("add", x, two), "a number beside a tensor")
    says(yours.check_spec, "refused", made("add", x, x, spec=Spec((3,), F32)), "another shape")
    says(yours.check_spec, "refused", made("add", x, x, spec=Spec((1, 2), F32)), "another shape")
    says(yours.check_spec, "refused", made("add", x, x, spec=f64), "another dtype")
    says(yours.check_spec, "refused", made("add", x, y), "2 and 3 do not go together")
    says(yours.check_spec, "refused", made("sum", x, axis="a"), "attributes that make no sense")
    says(yours.check_spec, "refused", made("matmul", x, two), "a rule that raises")
    says(yours.check_spec, "refused", made("tanh"), "an operator without its input")
    halves = {"sizes": (1, 1), "axis": 0}
    one = Spec((1,), F32)
    right = Record(OPS["split"], [x], halves, (one, one), None)
    says(yours.check_spec, "right", right, "two halves of float32[2]")
    for shape in ((one,), (one, PAIR), (PAIR, one)):
        wrong = Record(OPS["split"], [x], halves, shape, None)
        says(yours.check_spec, "refused", wrong, "the rule says float32[1], float32[1]")


REGION = """program p(x: float32[2], y: float32[2], b: bool[]) {
  v1 = cond(b, x, true=(a: float32[2]) {
    v1 = exp(a) : float32[2]
    v2 = tanh(v1) : float32[2]
    return v2
  }, false=(a: float32[2]) {
    return a
  }) : (float32[2])
  v2 = item(v1, k=0) : float32[2]
  return v2
}"""


@exercise.example
def a_region_is_closed(yours):
    """The branch of a cond may use what comes in by its inputs, and nothing of the outside."""
    with exercise.plugged(yours):
        p = parse(REGION)
        says(verify, "right", p, "a branch that uses its own input")
        branch = p.records[0].attrs["true"]
        branch.records[0].inputs = [p.inputs[1]]
        says(verify, "refused", p, "a branch that reaches out for y")


@exercise.example
def texts_from_outside(yours):
    """A program's text, read by the engine with your checks."""
    with exercise.plugged(yours):
        for old, new in (
            ("v1 = exp(a) : float32[2]", "v1 = exp(a) : float32[3]"),
            ("v2 = tanh(v1) : float32[2]", "v2 = tanh(v1) : float64[2]"),
            ("return v2\n}", "return v1\n}"),
        ):
            text = REGION.replace(old, new)
            try:
                got = parse(text)
            except (VerifyError, ParseError):
                continue
            expect_that(False, f"refused: {new}", given=text, got=got)


@functools.cache
def training_step():
    """A traced training step: forward, backward, update."""
    paddle.seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.BatchNorm1D(8), nn.Linear(8, 3))
    sgd = paddle.optimizer.Momentum(learning_rate=0.1, parameters=net.parameters())

    def step(x, y):
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        sgd.step()
        sgd.clear_grad()
        return [loss]

    specs = [Spec((16, 4), F32), Spec((16, 1), np.dtype("int64"))]
    return trace(step, specs, names=("x", "y")).program


def in_order(records) -> bool:
    """Does every record stand after those it takes?"""
    place = {id(r): k for k, r in enumerate(records)}
    return all(
        place.get(id(e), -1) < k for k, r in enumerate(records) for e in r.inputs if id(e) in place
    )


@exercise.property(seed=st.integers(0, 999), examples=40)
def a_training_step_out_of_order(yours, seed):
    """Two records exchange their places: sometimes that is another right order."""
    whole, draw = training_step(), random.Random(seed)
    k = draw.randrange(len(whole.records) - 1)
    j = min(k + draw.choice((1, 1, 2, 5)), len(whole.records) - 1)
    records = [*whole.records]
    records[k], records[j] = records[j], records[k]
    p = Program("step", whole.inputs, whole.states, records, whole.outputs)
    expected = "right" if in_order(records) else "refused"
    with exercise.plugged(yours):
        says(verify, expected, p, f"records {k} and {j} of a training step exchanged")


@exercise.property(seed=st.integers(0, 999), examples=20)
def a_training_step_with_a_lie(yours, seed):
    """One record's spec is changed; it used to be right."""
    whole, draw = training_step(), random.Random(seed)
    record = draw.choice([r for r in whole.records if r.dtype is not None and r.op is not ITEM])
    with exercise.plugged(yours):
        says(verify, "right", whole, "a traced training step")
        shape, dtype = record.shape, record.dtype
        try:
            if draw.random() < 0.5:
                record.shape = (*shape, 1)
            else:
                record.dtype = np.dtype("int8")
            says(verify, "refused", whole, f"{record.op.name} is {Spec(shape, dtype)}")
        finally:
            record.shape, record.dtype = shape, dtype
