"""Checks of 02_autograd/walk."""

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle import nn
from minipaddle.learn import Exercise, expect, expect_gradients, expect_that

exercise = Exercise(
    title="The order of the walk: inputs before uses, each record once",
    level="medium",
    minutes=30,
    before=("02_autograd/accumulate",),
    slots={"autograd.history": "history"},
    hints=(
        "When may a record be put into the list? How do you know that you have met it already, and "
        "what takes the place of a function that calls itself?",
        "Keep a list as a stack, and a set of what was seen. Two ways lead on: meet a record a "
        "second time, when its inputs are done; or collect in any order and sort by `record.time`.",
        "seen = set of the roots, stack = list of the roots\n"
        "while the stack is not empty:\n"
        "    for each input of the record on top that is not None and not seen:\n"
        "        it is seen now, and goes onto the stack\n"
        "return what was seen, in the order of .time",
    ),
    wrong={
        "newest first": "return order → return order[::-1]",
        "a record once for every path that leads to it": (
            "if record not in seen: → seen.add(record); stack.append((record, True)); stack += "
            "[(edge, False) for edge in record.inputs if edge is not None]"
        ),
        "looking through a list for what was seen: quadratic": (
            "set() → []",
            "seen.add → seen.append",
        ),
        "a record as soon as it is met, its inputs after it": (
            "order.append(record) → pass",
            ("stack.append((record, True)) → order.append(record); stack.append((record, True))"),
        ),
        "following the first input only": (
            "stack += [(edge, False) for edge in record.inputs if edge is not None] → stack += "
            "[(edge, False) for edge in record.inputs[:1] if edge is not None]"
        ),
        "starting at the first root only": (
            "[(root, False) for root in roots] → [(root, False) for root in list(roots)[:1]]"
        ),
        "leaving the roots out": "return order → return [r for r in order if r not in set(roots)]",
        "None among the inputs taken for a record": (
            "stack += [(edge, False) for edge in record.inputs if edge is not None] → stack += "
            "[(edge, False) for edge in record.inputs]"
        ),
    },
)


@exercise.mistake("a function that calls itself: no deep tape")
def history(roots):
    order, seen = [], set()

    def visit(record):
        if record is not None and record not in seen:
            seen.add(record)
            for edge in record.inputs:
                visit(edge)
            order.append(record)

    for root in roots:
        visit(root)
    return order


class Node:
    """A record as far as this exercise goes; it counts how often it is looked at."""

    looks = compared = limit = 0
    born = 0

    def __init__(self, name, *inputs):
        self.name, self.edges = name, list(inputs)
        Node.born += 1
        self.time = Node.born

    @property
    def inputs(self):
        Node.looks += 1
        expect_that(
            Node.looks <= Node.limit,
            "the inputs of a record are looked at once, or a few times",
            given={"records": Node.limit // 4},
            got=f"more than {Node.limit} looks",
        )
        return self.edges

    def __eq__(self, other):
        Node.compared += 1
        return self is other

    def __hash__(self):
        return id(self) >> 4

    def __repr__(self):
        return self.name


def ordered(yours, roots, records, given):
    """Your order of the records that `roots` lead to, with all that must hold of it checked."""
    Node.looks, Node.compared, Node.limit = 0, 0, 4 * len(records)
    try:
        order = list(yours.history(roots))
    except RecursionError:
        expect_that(False, "no function that calls itself: Python's limit is met", given=given)
    names = [getattr(r, "name", r) for r in order]
    short = names if len(names) < 20 else f"{len(names)} records"
    expect_that(len(names) == len(set(map(id, order))), "each record once", given=given, got=short)
    wanted = sorted(r.name for r in records)
    expect_that(
        sorted(map(str, names)) == wanted, f"these records: {wanted[:12]}", given=given, got=short
    )
    place = {id(r): k for k, r in enumerate(order)}
    for r in order:
        before = all(place[id(e)] < place[id(r)] for e in r.edges if e is not None)
        expect_that(before, f"{r.name} stands after its inputs", given=given, got=short)
    many = f"{Node.compared} comparisons of records"
    expect_that(Node.compared <= 20 * len(records), "a set finds a record without a search",
                given=given, got=many)  # fmt: skip
    return order


@exercise.example
def the_small_expression(yours):
    """y = a * b + tanh(a)."""
    a, b = Node("a"), Node("b")
    u, v = Node("mul", a, b), Node("tanh", a)
    y = Node("add", u, v)
    ordered(yours, [y], [a, b, u, v, y], "y = a * b + tanh(a)")
    ordered(yours, [v], [a, v], "tanh(a), beside others that it does not need")


@exercise.example
def inputs_that_need_no_gradient(yours):
    """None stands for them: there is no record to follow."""
    a = Node("a")
    y = Node("mul", None, a, None)
    ordered(yours, [y], [a, y], "y = 2 * a * 3")


@exercise.example
def several_roots(yours):
    """Roots may share records, be each other's inputs, or be given twice; there may be none."""
    a = Node("a")
    u = Node("exp", a)
    v, w = Node("sin", u), Node("cos", u)
    ordered(yours, [v, w], [a, u, v, w], "roots sin(u), cos(u) of u = exp(a)")
    ordered(yours, [w, u, w], [a, u, w], "roots cos(u), u and cos(u) again")
    ordered(yours, {u: 1.0, v: 1.0}, [a, u, v], "a dict with two roots for keys")
    expect(yours.history([]), [], given="no root")
    many = [Node(f"root {k}", v) for k in range(20)]
    ordered(yours, many, [a, u, v, *many], "twenty roots of sin(u)")


@exercise.example
def a_short_way_and_a_long_way(yours):
    """y = a + exp(exp(a)): a is met at once, and belongs before all the others."""
    a = Node("a")
    u = Node("exp", a)
    v = Node("exp again", u)
    for inputs in ((a, v), (v, a), (v, u, a), (a, u, v)):
        y = Node("add", *inputs)
        ordered(yours, [y], [a, u, v, y], f"y with the inputs {[x.name for x in inputs]}")


@exercise.example
def forty_doublings(yours):
    """x + x, forty times over: 2⁴⁰ paths, 41 records."""
    records = [Node("x")]
    for k in range(40):
        records.append(Node(f"double {k}", records[-1], records[-1]))
    ordered(yours, records[-1:], records, "x + x, forty times over")


@exercise.example
def ten_thousand_deep(yours):
    """A chain of 10,000 records: no limit is met, and no list is searched."""
    records = [Node("x")]
    for k in range(10_000):
        records.append(Node(f"step {k}", records[-1], records[0]))
    ordered(yours, records[-1:], records, "a chain of 10,000 steps")


@exercise.property(
    edges=st.lists(st.lists(st.integers(0, 30), max_size=3), min_size=1, max_size=12), examples=60
)
def any_graph(yours, edges):
    """Record k has inputs among the records before it; some lead to no root."""
    records = []
    for k, row in enumerate(edges):
        inputs = [records[j % k] if k and j < 29 else None for j in row]
        records.append(Node(f"r{k}", *inputs))
    reached, new = set(), [records[-1]]
    while new:
        r = new.pop()
        reached.add(r)
        new += [e for e in r.edges if e is not None]
    shown = {r.name: [e and e.name for e in r.edges] for r in records}
    ordered(yours, records[-1:], reached, shown)


@exercise.example
def the_engine_walks_in_it(yours):
    """Gradients of a real expression, and of a chain of 2,000 operations."""
    with exercise.plugged(yours):
        expect_gradients(
            lambda a, b: (a * b + a.tanh()) * b, [np.array(0.5), np.array(2.0)], order=2
        )
        x = paddle.to_tensor(1.0, dtype="float64", stop_gradient=False)
        y = x
        for _ in range(2_000):
            y = y * 1.001
        y.backward()
    expect(x.grad, 1.001**2000, given="x times 1.001, 2,000 times over")


@exercise.example
def a_network_learns_with_it(yours):
    """A network with a shortcut: its input is used early and late."""
    with exercise.plugged(yours):
        paddle.seed(0)
        x = paddle.linspace(-1, 1, 32).reshape([-1, 1])
        first, last = nn.Linear(1, 16), nn.Linear(16, 1)
        parameters = [*first.parameters(), *last.parameters()]
        adam = paddle.optimizer.Adam(learning_rate=0.03, parameters=parameters)
        for _ in range(200):
            loss = F.mse_loss(last(first(x).tanh()) + x, x * x)
            loss.backward()
            adam.step()
            adam.clear_grad()
    expect_that(loss.item() < 0.01, "a loss below 0.01 after 200 steps", got=loss.item())
