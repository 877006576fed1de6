"""Operators drawn: formula and derivative as golden text, and as the graph of that text."""

import pytest

import minipaddle as paddle
from minipaddle import viz
from minipaddle.engine.core import op as op_module
from minipaddle.engine.core.dispatch import interpreter
from minipaddle.engine.core.dtype import float32
from minipaddle.engine.core.op import OPS
from minipaddle.engine.core.record import Record, Spec
from minipaddle.viz import symbolic
from tests.viz.reading import Drawing


def lines(name, *shapes, **attrs):
    """The lines below the heading."""
    return [line.strip() for line in viz.operator(name, *shapes, **attrs).text.split("\n")[1:]]


GOLDEN = {
    "tanh": ["formula: tanh(x)", "d/dx: g * (1 - out * out)"],
    "sigmoid": ["formula: 1 / (1 + exp(-x))", "d/dx: g * out * (1 - out)"],
    "multiply": ["formula: x * y", "d/dx: g * y", "d/dy: g * x"],
    "subtract": ["formula: x - y", "d/dx: g", "d/dy: -g"],
    "divide": ["formula: x / y", "d/dx: g / y", "d/dy: -g * out / y"],
    "square": ["formula: x * x", "d/dx: g * (2 * x)"],
    "floor_divide": ["formula: x // y", "d/dx: no gradient", "d/dy: no gradient"],
    "where": [
        "formula: where(condition, x, y)",
        "d/dcondition: no gradient",
        "d/dx: where(condition, g, 0.0)",
        "d/dy: where(condition, 0.0, g)",
    ],
    "reshape": ["formula: x.reshape(shape)", "d/dx: reshape(g, shape=x.shape)"],
    "transpose": ["formula: x.transpose(perm)", "d/dx, perm=(1, 0): transpose(g, perm=(1, 0))"],
    "sum": [
        "formula: x.sum(axis, keepdims=keepdim)",
        "d/dx, axis=(1,), keepdim=False: broadcast_to(reshape(g, shape=(2, 1)), shape=x.shape)",
    ],
    "cast": ["formula: x", "d/dx: cast(g, dtype=float32)"],
    "split": [
        "formula, sizes=(1, 2), axis=1: x[:, 0:1], x[:, 1:3]",
        "d/dx, sizes=(1, 2), axis=1: concat(g[0], g[1], axis=1)",
    ],
}


@pytest.mark.parametrize("name", GOLDEN)
def test_golden(name):
    assert lines(name) == GOLDEN[name]


def test_the_heading_gives_signature_kind_and_meaning():
    assert viz.operator("tanh").text.startswith("tanh(x), elementwise: Hyperbolic tangent.\n")
    assert viz.operator("concat").text.startswith("concat(*xs, axis=), movement: ")


def test_an_operator_tells_its_shape_rule():
    text = viz.operator("matmul").text.split("\n")
    assert text[0].startswith("matmul(x, y), contraction: ")
    assert text[1].startswith("  shape: ")
    assert any("the last dimension of x" in line for line in text[1:10])
    assert sum(line.startswith("  d/d") for line in text) == 2

    def rule(x, y):
        """The last axis of y."""
        return x

    with paddle.plugged("ops.matmul.infer", rule):
        assert viz.operator("matmul").text.split("\n")[1] == "  shape: The last axis of y."


def test_shapes_and_attributes_can_be_given():
    assert lines("sum", [2, 3, 4], axis=(0, 2), keepdim=True)[1] == (
        "d/dx: broadcast_to(reshape(g, shape=(1, 3, 1)), shape=x.shape)"
    )
    assert lines("split", sizes=(1, 1), axis=0) == [
        "formula: x[0:1], x[1:2]",
        "d/dx: concat(g[0], g[1], axis=0)",
    ]
    with pytest.raises(TypeError, match="tanh has no attribute 'axis'"):
        viz.operator("tanh", axis=1)


def test_what_can_not_be_run_on_symbols_is_shown_as_it_is_written():
    text = viz.operator("polygamma").text
    assert "    def polygamma(m, x, *, n):\n        if n == 0:" in text
    assert '"""' not in text
    drawn = Drawing(viz.operator("polygamma"))
    assert drawn.node("def polygamma")
    assert "as it is written" in drawn.caption


def test_an_operator_by_itself_or_by_its_function():
    assert viz.operator(OPS["tanh"]).text == viz.operator("tanh").text
    assert viz.operator(paddle.tanh).text == viz.operator("tanh").text
    with pytest.raises(KeyError, match="no operator 'tahnn'"):
        viz.operator("tahnn")
    with pytest.raises(KeyError, match="try: 'multiply'"):
        viz.operator("multipl")


def test_expressions_are_drawn_side_by_side():
    drawn = Drawing(viz.operator("tanh"))
    heads = [f.text.split("\n")[0] for f in drawn.frames]
    assert heads == ["formula:  tanh(x)", "d/dx:  g * (1 - out * out)"]
    assert drawn.arrows() == [
        ("1", "subtract"),
        ("g", "multiply"),
        ("multiply", "subtract"),
        ("out", "multiply"),
        ("out", "multiply"),
        ("subtract", "multiply"),
        ("x", "tanh"),
    ]
    assert "gradient that arrives" in drawn.caption


def test_tooltips_give_the_file_and_line():
    body = OPS["tanh"].body.__code__
    tips = [n.tip for n in Drawing(viz.operator("tanh")).nodes if n.text == "tanh"]
    assert tips == [f"tanh\n{body.co_filename}:{body.co_firstlineno}"]


def test_the_readers_rule_is_marked():
    with paddle.plugged("ops.multiply.vjp.y", lambda g, x: g * x * 2):
        graph = viz.operator("multiply")
    assert graph.text.split("\n")[1:] == [
        "  formula: x * y",
        "  d/dx: g * y",
        "  d/dy [yours]: g * x * 2",
    ]
    marked = [n for n in Drawing(graph).nodes if "[yours]" in n.text]
    assert [n.text for n in marked] == ["multiply [yours]"]
    assert marked[0].attribute("stroke") == "#009e73"


def test_the_readers_broken_rule_is_shown_not_raised():
    def broken(g):
        raise RuntimeError("not yet")

    with paddle.plugged({"ops.tanh.vjp": broken, "ops.tanh.body": eval("lambda m, x: m.cos(x)")}):
        text = viz.operator("tanh").text
    assert "formula [yours]: cos(x)" in text
    assert "def broken(g):" in text


def test_a_rule_over_several_lines_is_found_where_it_stands():
    rules = (
        lambda g: float(g), lambda g, x: float(x),
        lambda g, out: (
            float(out)
        ),
    )  # fmt: skip
    for rule, text in zip(rules, ("float(g)", "float(x)", "float(out)")):
        with paddle.plugged("ops.tanh.vjp", rule):
            assert viz.operator("tanh").text.endswith(f"d/dx [yours]: {text}")


def test_a_function_is_shown_without_decorators_and_docstring():
    def keep(function):
        return function

    @keep
    def rule(g, out):
        """One line.

        And more.
        """
        return float(g)  # a comment

    with paddle.plugged("ops.tanh.vjp", rule):
        text = viz.operator("tanh").text
    assert text.endswith(
        "d/dx [yours]:\n    def rule(g, out):\n        return float(g)  # a comment"
    )


def test_code_without_source_says_so():
    with paddle.plugged("ops.tanh.vjp", eval("lambda g: float(g)")):
        assert "d/dx [yours]: <lambda> (no source)" in viz.operator("tanh").text


@pytest.mark.parametrize("name", sorted(OPS))
def test_every_operator_can_be_drawn(name):
    graph = viz.operator(name)
    op = OPS[name]
    places = 2 if op.variadic else len(op.inputs)
    ruled = sum(op.rule(k) is not None for k in range(places))
    found = [line for line in graph.text.split("\n") if line.startswith("  d/d")]
    assert len(found) == places
    assert "<function" not in graph.text
    assert sum(line.endswith(": no gradient") for line in found) == places - ruled
    assert graph.source.count("subgraph cluster_") == 1 + places


def test_drawing_an_operator_registers_none():
    before = set(OPS)
    viz.operator("gelu")
    assert set(op_module.OPS) == before


# ---- text ------------------------------------------------------------------------------------


def expression(build):
    leaves = [symbolic.leaf(n, Spec((2, 3), float32.numpy)) for n in "xyz"]
    with interpreter(symbolic.Symbolic({}, strict=False)):
        return symbolic.text(build(*leaves).record)


@pytest.mark.parametrize(
    "text",
    [
        "x + y + z",
        "x - (y - z)",
        "x * (y + z)",
        "x / (y * z)",
        "(x - y) * z",
        "-(x + y)",
        "-x * y",
        "x * -y",
        "x**y**z",
        "(x**y)**z",
        "(-x)**y",
        "x @ y + z",
        "(x < y) & (y < z)",
        "x < y + z",
        "~(x & y) | z",
        "x << y + z",
        "x == y",
        "x[0]",
        "x[1:, ..., None]",
        "x[::2]",
        "(x + y)[0]",
        "x.reshape([2, 3])",
        "x.sum((0,), keepdims=True)",
        "x.T @ y",
    ],
)
def test_text_has_the_brackets_python_needs_and_no_more(text):
    names = {"__builtins__": {}}
    assert expression(eval(f"lambda x, y, z: {text}", names)) == text


def test_symbols_refuse_to_be_numbers():
    symbol = symbolic.leaf("x", paddle.ones([2, 3]).spec)
    for use in (bool, float, len, iter, lambda s: s.__index__()):
        with pytest.raises(symbolic.NotSymbolicError, match="x has no value"):
            use(symbol)
    attr = symbolic.Attr("axis")
    for use in (bool, len, iter, lambda a: a == 1, lambda a: a < 1):
        with pytest.raises(symbolic.NotSymbolicError, match="axis has no value"):
            use(attr)
    assert symbol.shape == (2, 3)
    assert (symbol.ndim, symbol.size, str(symbol.dtype)) == (2, 6, "float32")
    assert repr(symbol) == "x"
    assert isinstance(symbol.record, Record)


def test_what_is_no_symbol_is_refused():
    run = symbolic.Symbolic({}, strict=True)
    with pytest.raises(symbolic.NotSymbolicError, match="add of"):
        run.apply(OPS["add"], ([1], 2), {})
    with pytest.raises(symbolic.NotSymbolicError, match="constants"):
        run.constant([1])
    with pytest.raises(symbolic.NotSymbolicError, match="exp of no symbol"):
        symbolic.SymbolModule().exp(1)
    with pytest.raises(symbolic.NotSymbolicError, match="the result is 3"):
        symbolic.edges(3)
    for thing in (symbolic.SymbolModule(), symbolic.leaf("x", paddle.ones([1]).spec)):
        with pytest.raises(AttributeError):
            thing.__wrapped__  # noqa: B018
    zeros = run.full(paddle.ones([2]).spec, 0, None)
    assert symbolic.text(zeros.record) == "0"
    assert symbolic.text(symbolic.edges({"k": zeros})) == "0"
