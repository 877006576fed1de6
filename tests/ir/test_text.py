"""Programs as text: what they look like, that they are read back, and what is no program."""

import itertools
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import lark
import numpy as np
import pytest

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle.engine.core import dim as dims
from minipaddle.engine.core.record import Record, Spec
from minipaddle.engine.eager.tracer import trace
from minipaddle.engine.ir.interpreter import Run
from minipaddle.engine.ir.printer import flows, literal, text
from minipaddle.engine.ir.program import INPUT, ITEM, NUMBER, Program, State
from minipaddle.engine.ir.verifier import VerifyError, verify
from minipaddle.engine.jit.transpile import transpile
from minipaddle.engine.jit.tree import flatten, unflatten
from minipaddle.engine.ops.linalg import matmul
from minipaddle.engine.sharding.placements import Shard
from minipaddle.ir.parser import ParseError, grammar, parse, parse_all, unquote
from minipaddle.jit.dy2static.utils import Dygraph2StaticException
from tests.jit.examples import examples, given

F32, BOOL, I64 = np.dtype("float32"), np.dtype("bool"), np.dtype("int64")


def spec(*shape, dtype=F32):
    return Spec(tuple(dims.symbol(n, 480) if isinstance(n, str) else n for n in shape), dtype)


def program(function, *specs, names=(), name="f"):
    """The program of a function, whose inputs want gradients."""

    def run(*xs):
        for x in xs:
            x.stop_gradient = x.dtype not in ("float32", "float64")
        found = transpile(function)(*xs)
        return list(found) if isinstance(found, tuple) else [found]

    return trace(run, specs, name=name, names=names).program


# ---- golden ----------------------------------------------------------------------------------


def test_a_formula():
    found = program(lambda x, y: F.relu(x * 2 + y).sum(axis=0), spec("n", 3), spec(3))
    assert (
        text(found)
        == """\
program f(a0: float32[n, 3], a1: float32[3]) {
  v1 = multiply(a0, 2) : float32[n, 3]
  v2 = add(v1, a1) : float32[n, 3]
  v3 = relu(v2) : float32[n, 3]
  v4 = sum(v3, axis=(0,), keepdim=False) : float32[3]
  return v4
}"""
    )


def test_names_states_and_updates():
    weight = paddle.create_parameter([2], "float32")
    weight.name = "layer 1/w"
    count = paddle.zeros([], dtype="int64")
    count.name = "v7"

    def step(x):
        count.add_(paddle.ones([], dtype="int64"))
        return x * weight

    found = program(step, spec(2), names=["inf"], name="<lambda>")
    assert (
        text(found)
        == """\
program lambda(inf_: float32[2]) {
  state v7_: int64[]
  state layer_1_w: float32[2]
  v1 = full(shape=(), value=1, dtype=int64) : int64[]
  v2 = add(v7_, v1) : int64[]
  v3 = multiply(inf_, layer_1_w) : float32[2]
  update v7_ = v2
  return v3
}"""
    )


def test_several_results_and_where_no_gradient_flows():
    def f(x, y):
        left, right = paddle.unstack(x)
        return left + y.detach() * right.detach()

    assert (
        text(program(f, spec(2, "n"), spec("n"), names=["x", "y"]))
        == """\
program f(x: float32[2, n], y~: float32[n]) {
  v1 = unstack(x, axis=0) : (float32[n], float32[n])
  v2 = item(v1, k=0) : float32[n]
  v3 = item(v1, k=1) : float32[n]
  v4 = multiply(y, ~v3) : float32[n]
  v5 = add(v2, v4) : float32[n]
  return v5
}"""
    )


def test_a_branch():
    def f(x):
        if x.sum() > 0:
            y = x * 2
        else:
            y = -x
        return y

    assert (
        text(program(f, spec("n"), names=["x"]))
        == """\
program f(x: float32[n]) {
  v1 = sum(x, axis=(0,), keepdim=False) : float32[]
  v2 = greater_than(v1, 0) : bool[]
  v3 = cond(v2, x, true=(a0: float32[n]) {
    v1 = multiply(a0, 2) : float32[n]
    return v1
  }, false=(a0: float32[n]) {
    v1 = neg(a0) : float32[n]
    return v1
  }) : (float32[n])
  v4 = item(v3, k=0) : float32[n]
  return v4
}"""
    )


def test_a_loop():
    def f(x):
        while x.sum() < 10:
            x = x * 2
        return x

    assert (
        text(program(f, spec(2), names=["x"]))
        == """\
program f(x: float32[2]) {
  v1 = sum(x, axis=(0,), keepdim=False) : float32[]
  v2 = less_than(v1, 10) : bool[]
  v3 = while_loop(v2, x, test=(a0: bool[], a1~: float32[2]) {
    return a0
  }, body=(a0: bool[], a1: float32[2]) {
    v1 = multiply(a1, 2) : float32[2]
    v2 = sum(v1, axis=(0,), keepdim=False) : float32[]
    v3 = less_than(v2, 10) : bool[]
    return v3, v1
  }, carried=2, keep=True) : (bool[], float32[2], int64[], bool[u0], float32[u0, 2])
  v4 = item(v3, k=0) : bool[]
  v5 = item(v3, k=1) : float32[2]
  v6 = item(v3, k=2) : int64[]
  v7 = item(v3, k=3) : bool[u0]
  v8 = item(v3, k=4) : float32[u0, 2]
  return v5
}"""
    )


def test_sizes_guards_and_lines():
    def f(x):
        n = x.shape[0]
        if n > 4:
            x = paddle.concat([x, x])
        return x.reshape([-1, 1]) * n

    found = program(f, spec("n"), names=["x"])
    assert (
        text(found)
        == """\
program f(x: float32[n]) {
  assume n > 4
  v1 = concat(x, x, axis=0) : float32[2*n]
  v2 = reshape(v1, shape=(<2*n>, 1,)) : float32[2*n, 1]
  v3 = multiply(v2, <n>) : float32[2*n, 1]
  return v3
}"""
    )
    with_lines = text(found, lines=True)
    assert with_lines.count("@ 'test_text.py:") == len(found.records)
    assert text(parse(with_lines), lines=True) == with_lines


# ---- and back --------------------------------------------------------------------------------


def flowing(found: Program) -> list:
    """Where gradients flow, everywhere in a program."""
    return [
        (r.op.name, [r.op is not ITEM and flows(r, k) for k in range(len(r.inputs))],
         [flowing(v) for v in r.attrs.values() if isinstance(v, Program)])
        for r in found.records
    ]  # fmt: skip


def round_trip(found: Program, with_lines=(False, True)):
    verify(found)
    for lines in with_lines:
        written = text(found, lines=lines)
        again = parse(written)
        assert text(again, lines=lines) == written
    assert flowing(again) == flowing(found)
    assert again.guards == found.guards or str(again.guards) == str(found.guards)


@pytest.mark.sweep(one_in=3)
@pytest.mark.parametrize("example", examples(), ids=lambda e: e.name)
def test_every_function_is_read_back(example):
    for call in example.calls:
        leaves, structure = flatten(given(call))
        tensors = [x for x in leaves if isinstance(x, paddle.Tensor)]

        def run(*xs, leaves=leaves, structure=structure):
            fresh = iter(xs)
            inside = [next(fresh) if isinstance(x, paddle.Tensor) else x for x in leaves]
            for old, new in zip(leaves, inside, strict=True):
                if new is not old:
                    new.stop_gradient = old.stop_gradient
            return flatten(transpile(example.function)(*unflatten(structure, inside)))[0]

        try:
            found = trace(run, [x.spec for x in tensors]).program
        except Dygraph2StaticException:
            continue
        round_trip(found)


def test_a_program_that_is_read_runs():
    found = program(lambda x: (x @ x.T).sum(), spec("n", 2))
    x = np.arange(6, dtype="float32").reshape(3, 2)
    assert Run(np)(parse(text(found)), [x]) == Run(np)(found, [x])


@pytest.mark.parametrize(
    "value",
    [0, -3, 1.5, -0.0, 1e-30, float("inf"), float("-inf"), True, None, "", "a'b\"\\\n\t\x00é☃",
     (), (1,), ((1, 2), "x", (None,)), np.dtype("bool"), np.float64(2.5), np.int64(3),
     dims.symbol("n", 480) * 2 + 1],
    ids=repr,
)  # fmt: skip
def test_attributes(value):
    line = f"v1 = full(shape=(2,), value={literal(value)}, dtype=float32) : float32[2]"
    found = parse(f"program f() {{\n{line}\nreturn v1 }}").records[0].attrs["value"]
    assert found == value
    assert literal(found) == literal(value)
    assert type(found) is type(getattr(value, "item", lambda: value)())


def test_nan_and_what_only_a_process_has():
    assert literal(float("nan")) == "nan"
    assert literal((Shard(1),)) == "(Shard(dim=1),)"


SIZES = ["n + 1", "2*m*n - 3*n", "(n//2)", "((n + 1)//2)", "(n%3)", "((-n + 4)%(m + 1))",
         "max(n - 2, 0)", "min(n, m)", "2*(n//3) + 1"]  # fmt: skip


@pytest.mark.parametrize("size", SIZES)
def test_sizes(size):
    written = f"program f(x~: float32[n, m], y~: float32[{size}]) {{\n  return y\n}}"
    assert text(parse(written)) == written


def test_several_programs():
    one = text(program(lambda x: x * 2, spec(2)))
    assert [text(p) for p in parse_all(f"{one}\n\n{one}")] == [one, one]
    with pytest.raises(ParseError, match="2 programs"):
        parse(f"{one}\n{one}")


@pytest.mark.sweep
def test_time_grows_with_the_length():
    def line(k):
        return f"v{k} = add(v{k - 1}, 1.0) : float32[n, ((n + 1)//2)]"

    def seconds(count):
        rows = "\n".join(line(k) for k in range(2, count + 2))
        whole = f"program f(v1: float32[n, ((n + 1)//2)]) {{\n{rows}\nreturn v{count + 1} }}"
        start = time.perf_counter()
        parse(whole)
        return time.perf_counter() - start

    seconds(10)
    assert min(seconds(4000) for _ in range(2)) < 30 * min(seconds(400) for _ in range(3))


# ---- what is no program ----------------------------------------------------------------------


def body(line, result="v1", head="x: float32[2]"):
    return f"program f({head}) {{\n{line}\nreturn {result} }}"


def add(attributes="x, 1.0", result="float32[2]"):
    return body(f"v1 = add({attributes}) : {result}")


def nest(text, n):
    for _ in range(n):
        text = f"({text},)"
    return text


BAD_TEXTS = {
    "": "line .* cannot be read",
    "program f(": "cannot be read, at",
    body("v1 = nothing(x) : float32[2]"): "line 2: there is no operator nothing",
    body("v1 = leaf() : float32[2]"): "there is no operator leaf",
    body("v1 = input() : float32[2]"): "there is no operator input",
    body("v1 = number(value=1) : float32[]"): "there is no operator number",
    add("x, y"): "line 2: y is not defined",
    add("x"): "inputs .* 1 are given",
    add("x, None"): "None is no number",
    add("x, 1.0, k=2"): r"has the attributes \[\], not \['k'\]",
    body("v1 = sum(x, axis=(0,), axis=(0,), keepdim=False) : float32[]"): "axis is given twice",
    body("x = add(x, 1.0) : float32[2]"): "x is defined twice",
    body("update x = x", "x"): "update of x: there is no such state",
    body("state s: float32[2]\nupdate s = x\nupdate s = x", "x"): "two updates",
    body("assume n", "x"): "is no comparison of sizes",
    body("assume n > 9999999999999999999", "x"): "",
    add(result="float32[2]")[:-1]: "cannot be read",
    add(result="complex64[2]"): "there is no dtype complex64",
    add(result="float32[281474976710657]"): "is too large",
    add(result=f"float32[{'1, ' * 32}1]"): "is too large",
    add(result="float32[-2]"): "is too large",
    add(result="float32[16777216, 16777217]"): "is too large",
    add(result=f"float32[{'9' * 20}]"): "is too large",
    add(result=f"float32[n + {'9' * 20}]"): "a size of 20 digits",
    add(result="float32[(n//0)]"): "0",
    add(result="float32[n n]"): "cannot be read",
    add(result=f"float32[{'*'.join(f'(a{k} + b{k})' for k in range(40))}]"): "more than 1000 terms",
    add(result=f"float32[{'*'.join(['n'] * 100)}]"): "degree above 64",
    add(result=f"float32[{'n + ' * 4000}1]"): "a size of 16,00. characters",
    add(result=f"float32[{'(' * 300}n{')' * 300}]"): "deep",
    body(f"v1 = full(shape=(2,), value={'9' * 401}, dtype=float32) : float32[2]"): "400 digits",
    body(f"v1 = full(shape={nest(2, 60)}, value=1, dtype=float32) : float32[2]"): "",
    body(f"v1 = full(shape={nest(2, 200)}, value=1, dtype=float32) : float32[2]"): "deep",
    body(r"v1 = full(shape=(2,), value='\q', dtype=float32) : float32[2]"): "cannot be read",
}


@pytest.mark.parametrize("number", range(len(BAD_TEXTS)))
def test_bad_texts(number):
    written, message = list(BAD_TEXTS.items())[number]
    if not message:
        with pytest.raises((ParseError, VerifyError)) if "full" in written else nothing():
            parse(written)
        return
    with pytest.raises(ParseError, match=message):
        parse(written)


def nothing():
    return warnings.catch_warnings()


def test_a_text_that_is_too_long():
    with pytest.raises(ParseError, match="characters"):
        parse(" " * ((1 << 24) + 1))


REGIONS = """\
program f(p: bool[], x: float32[2]) {
  v1 = cond(p, x, true=(a: float32[2]) { return a }, false=(a: float32[2]) { return a }) : (float32[2])
  v2 = item(v1, k=0) : float32[2]
  v3 = while_loop(p, v2, test=(b: bool[], y: float32[2]) { return b }, body=(b: bool[], y: float32[2]) { return b, y }, carried=2, keep=False) : (bool[], float32[2])
  v4 = item(v3, k=1) : float32[2]
  return v4
}"""  # noqa: E501

BAD_PROGRAMS = {
    "another shape": (add(result="float32[3]"), r"its rule says float32\[2\]"),
    "another dtype": (add(result="float64[2]"), "its rule says"),
    "another rank": (add(result="float32[2, 1]"), "its rule says"),
    "results that are one": (add(result="(float32[2])"), "as one"),
    "a rule that refuses": (body("v1 = matmul(x, 1.0) : float32[2]"), "matmul"),
    "an attribute that makes no sense": (
        body("v1 = sum(x, axis='a', keepdim=False) : float32[]"), "sum",
    ),
    "a dtype that is none": (
        body("v1 = full(shape=(2,), value=1, dtype=55) : float32[2]"), "55 is no data type",
    ),
    "too many parts": (
        body("v1 = unstack(x, axis=0) : (float32[])", "x", "x: float32[9999999]"), "65,536",
    ),
    "an update of another shape": (
        body("state s: int64[2]\nv1 = add(x, 1.0) : float32[2]\nupdate s = v1"),
        "the state s is",
    ),
    "an update that is a number": (body("state s: float32[]\nupdate s = 1.0", "x"), "its update"),
    "all results as one": (
        REGIONS.replace("x=v4", "").replace("return v4", "return v3"), "returns all results"
    ),
    "all results as an input": (
        REGIONS.replace("v4 = item(v3, k=1)", "v4 = add(v3, 1.0)"), "as one",
    ),
    "an item of nothing": (body("v1 = item(x, k=0) : float32[2]"), "no result number 0"),
    "an item too far": (REGIONS.replace("v3, k=1", "v3, k=2"), "no result number 2"),
    "an item that is no number": (REGIONS.replace("v3, k=1", "v3, k='a'"), "no result number a"),
    "an item of another spec": (REGIONS.replace("v3, k=1", "v3, k=0"), "no result number 0"),
    "a branch with states": (
        REGIONS.replace("{ return a }, false", "{ state s: float32[2] return a }, false"), "states",
    ),
    "branches of two lengths": (REGIONS.replace("return a }, f", "return a, a }, f"), "not give"),
    "a branch that takes another": (
        REGIONS.replace("false=(a: float32[2])", "false=(a: float32[2], b: float32[2])"),
        "takes other inputs",
    ),
    "branches of two specs": (
        REGIONS.replace("false=(a: float32[2]) { return a", "false=(a: float32[2]) { return 1.0"),
        "cond",
    ),
    "a condition of several": (
        REGIONS.replace("p: bool[]", "p: bool[2]").replace("b: bool[]", "b: bool[2]"), "cond",
    ),
    "a branch that is no region": (
        REGIONS.replace("false=(a: float32[2]) { return a }", "false=1"), "its regions are",
    ),
    "a region without use": (
        body("v1 = sum(x, axis=(a: float32[2]) { return a }, keepdim=False) : float32[]"),
        "no use for",
    ),
    "carried that is no number": (REGIONS.replace("carried=2", "carried='2'"), "is a number"),
    "keep that is no truth": (REGIONS.replace("keep=False", "keep=1"), "is a number"),
    "more carried than there is": (REGIONS.replace("carried=2", "carried=3"), "what it carries"),
    "a body that gives another": (REGIONS.replace("return b, y", "return y, b"), "what it carries"),
    "a test of several results": (REGIONS.replace("{ return b }", "{ return b, b }"), "no single"),
    "a test of several elements": (REGIONS.replace("{ return b }", "{ return y }"), "no single"),
}  # fmt: skip


@pytest.mark.parametrize("kind", [*BAD_PROGRAMS])
def test_bad_programs(kind):
    parse(REGIONS)
    written, message = BAD_PROGRAMS[kind]
    with pytest.raises(VerifyError, match=message):
        parse(written)


def records():
    """x, and a record that doubles it."""
    x = Record(INPUT, (), {"name": "x"}, (2, 2), F32)
    return x, Record(matmul, [x, x], {}, (2, 2), F32, 0)


def test_programs_that_no_text_can_say():
    x, y = records()
    verify(Program("f", [x], [], [y], [y]))
    for bad, message in (
        (Program("f", [x, x], [], [], []), "listed twice"),
        (Program("f", [x], [State("s", x)], [], []), "listed twice"),
        (Program("f", [x], [], [y, y], []), "stands twice"),
        (Program("f", [], [], [y], []), "not defined before"),
        (Program("f", [x], [], [], [y]), "not defined"),
        (Program("f", [x], [State("s", records()[0], y)], [], []), "not defined"),
    ):
        with pytest.raises(VerifyError, match=message):
            verify(bad)


def test_a_number_may_be_a_result():
    two = Record(NUMBER, (), {"value": 2.0}, (), F32)
    found = Program("f", [], [], [], [two])
    assert text(verify(found)) == "program f() {\n  return 2.0\n}"
    assert Run(np)(parse(text(found)), []) == [2.0]


def test_names_are_told_apart():
    inputs = [Record(INPUT, (), {"name": n}, (), F32) for n in ("x", "x", "v1", "", "a 3", "x_2")]
    found = text(Program("2 f", inputs))
    assert (
        found.splitlines()[0]
        == "program _2_f("
        + ", ".join(f"{n}~: float32[]" for n in ("x", "x_2", "v1_", "a3", "a_3", "x_2_2"))
        + ") {"
    )
    assert len(set(itertools.chain(parse(found).given))) == 6


def test_reading_builds_no_syntax_tree(monkeypatch):
    """A server reads models in threads, and in CPython 3.11 the trees of two threads are at odds:
    now and then one of them gets a SystemError, and its model is not loaded.
    """
    grammar()
    monkeypatch.setattr("ast.parse", lambda *args, **kwargs: pytest.fail("a syntax tree"))
    line = "v1 = full(shape=(2,), value=1.5, dtype=float32): float32[2] @ 'a.py:3'"
    assert parse(f"program f() {{\n{line}\nreturn v1 }}").records[0].where == "a.py:3"


def test_threads_read_the_grammar_one_at_a_time(monkeypatch):
    """lark builds syntax trees for it."""
    reading = threading.Lock()
    literal_eval = lark.load_grammar.literal_eval

    def alone(text):
        assert reading.acquire(blocking=False), "two threads"
        time.sleep(0.002)
        reading.release()
        return literal_eval(text)

    monkeypatch.setattr("lark.load_grammar.literal_eval", alone)
    with ThreadPoolExecutor(2) as pool:  # __wrapped__: without the cache
        waiting = [pool.submit(grammar.__wrapped__) for _ in range(2)]
    assert all(each.result() for each in waiting)


def test_any_string_is_read_back():
    rng = np.random.default_rng(7)
    for _ in range(2000):
        ceiling = rng.choice([0x80, 0x300, 0x10000, 0x110000])
        written = "".join(map(chr, rng.integers(0, ceiling, rng.integers(9))))
        assert unquote(repr(written)) == written
