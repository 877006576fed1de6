"""What the transpiler makes of a function, drawn: nothing is lost, changes are marked."""

import ast
import textwrap

import pytest

import minipaddle as paddle
from minipaddle import viz
from minipaddle.engine.jit.transpile import code_text
from minipaddle.jit.stages import stages
from minipaddle.viz.syntax_diff import AROUND, GONE, KEPT, MOVED, NEW, Comparison, side_by_side
from tests.viz import static_cases as cases
from tests.viz.reading import Drawing


def compared(before, after):
    a, b = ast.parse(textwrap.dedent(before)), ast.parse(textwrap.dedent(after))
    return a, b, Comparison(a, b)


def words(tree, comparison, kind):
    return [comparison.marks[id(n)] for n in ast.walk(tree) if isinstance(n, kind)]


# ---- comparing -------------------------------------------------------------------------------


def test_the_same_source_is_kept():
    *_, found = compared("x = 1\ny = x", "x = 1\ny = x")
    assert set(found.marks.values()) == {KEPT}


def test_what_changes_is_gone_and_new_and_what_is_around_it_stays():
    a, b, found = compared("def f():\n  x = 1\n  y = 2", "def f():\n  x = 1\n  return 3")
    assert words(a, found, ast.FunctionDef) == [AROUND]
    assert words(a, found, ast.Assign) == [KEPT, GONE]
    assert words(b, found, ast.Return) == [NEW]


def test_what_is_found_elsewhere_has_moved():
    a, b, found = compared("if a.b > 1:\n  x = 2", "def then():\n  x = 2\nrun(a.b > 1, then)")
    assert words(a, found, ast.If) == [GONE]
    assert words(a, found, ast.Compare) == words(b, found, ast.Compare) == [MOVED]
    assert words(a, found, ast.Assign) == words(b, found, ast.Assign) == [MOVED]
    assert words(b, found, ast.FunctionDef) == [NEW]


def test_what_is_there_twice_and_was_there_once_has_moved_once():
    _, b, found = compared("if a:\n  x = 2", "def f():\n  x = 2\ndef g():\n  x = 2")
    assert sorted(words(b, found, ast.Assign)) == [MOVED, NEW]


def test_every_node_is_marked():
    for function in (cases.halves, cases.steps_to_one, textwrap.wrap, textwrap.indent):
        for stage in stages(function):
            found = Comparison(stage.before, stage.after)
            nodes = {id(n) for tree in (stage.before, stage.after) for n in ast.walk(tree)}
            assert nodes == found.marks.keys()
            same = ast.dump(stage.before) == ast.dump(stage.after)
            assert same == (set(found.marks.values()) == {KEPT})


def test_lines_side_by_side():
    assert list(side_by_side("a\nb\nc", "a\nx\ny\nc")) == [
        (KEPT, "a", "a"),
        (AROUND, "b", "x"),
        (AROUND, None, "y"),
        (KEPT, "c", "c"),
    ]


# ---- pictures --------------------------------------------------------------------------------


def test_at_a_glance_all_converters_stand_in_order():
    graph = viz.transpiling(cases.steps_to_one)
    drawn = Drawing(graph)
    before, steps, after = drawn.nodes
    names = [stage.name for stage in stages(cases.steps_to_one)]
    assert [line for line in steps.text.split("\n") if line in names] == names
    assert "if n % 2 == 0:" in before.text
    assert all(line in after.text for line in code_text(cases.steps_to_one).splitlines())
    assert drawn.arrows() == [("as it is written", "converters"), ("converters", "converted")]
    assert "converters changed something" in graph.text
    assert "  if_else: " in graph.text
    assert "  negation: " not in graph.text


def test_one_converter_in_detail():
    drawn = Drawing(viz.transpiling(cases.halves, "if_else"))
    assert [f.text.split("\n")[0] for f in drawn.frames] == ["before if_else", "after if_else"]
    fills = {n.text.replace("\n", " "): n.attribute("fill") for n in drawn.nodes}
    assert fills["If"] == "#d55e00"
    assert fills["FunctionDef _jst_then"] == "#3cc29a"
    assert fills["Assign y = x * 2"] == "#56b4e9"
    assert fills["Return return y + 1"] == "#dddddd"
    assert fills["FunctionDef halves"] == "#fff3b0"
    assert all(word in drawn.caption for word in ("as it was", "gone", "new", "elsewhere"))


def test_a_converter_that_changes_nothing_has_one_node_on_each_side():
    drawn = Drawing(viz.transpiling(cases.halves, "walrus"))
    assert len(drawn.nodes) == 4  # two sources, two trees
    assert "0 lines gone, 0 new" in drawn.caption


def test_layers_methods_and_static_functions_are_looked_through():
    net = paddle.jit.to_static(cases.MLP())
    text = viz.transpiling(net).text
    assert "MLP.forward" in text
    assert viz.transpiling(cases.MLP()).text == text
    assert viz.transpiling(net.forward).text == text
    once = viz.transpiling(paddle.jit.to_static(cases.halves)).text
    assert once == viz.transpiling(cases.halves).text


def test_a_lambda():
    half = lambda x: x / 2 if x > 1 else x
    assert Drawing(viz.transpiling(half, "conditional")).node("IfExp")


def long_function(lines: int, tmp_path):
    """A function of a file, with one `if` in the middle of many lines."""
    body = "\n".join(f"    x = x + {k}" for k in range(lines))
    path = tmp_path / "long_function.py"
    path.write_text(f"def f(x):\n{body}\n    if x > 0:\n        x = 1\n{body}\n    return x\n")
    space = {"__name__": "long_function"}
    exec(compile(path.read_text(), str(path), "exec"), space)
    return space["f"]


def test_of_a_long_source_what_changed_is_drawn(tmp_path):
    f = long_function(50, tmp_path)
    drawn = Drawing(viz.transpiling(f))
    assert "⋮ 50 lines" in drawn.node("as it is written").text
    assert len(drawn.node("converted").text.split("\n")) < 30
    drawn = Drawing(viz.transpiling(f, "if_else"))
    assert "⋮" in "".join(n.text for n in drawn.nodes)


@pytest.mark.sweep
def test_of_a_large_tree_the_first_nodes_are_drawn(tmp_path):
    drawn = Drawing(viz.transpiling(long_function(120, tmp_path), "if_else"))
    assert len(drawn.nodes) < 600


def test_an_unknown_converter_is_named_nearly():
    for draw in (viz.transpiling, viz.source_diff):
        with pytest.raises(KeyError, match="no converter 'if_els'") as caught:
            draw(cases.halves, "if_els")
        assert "'if_else'" in str(caught.value.args[0])
        with pytest.raises(KeyError, match="expected: signature, "):
            draw(cases.halves, "zzz")


# ---- as text and HTML ------------------------------------------------------------------------


def test_the_diff_says_what_is_gone_and_what_is_new():
    diff = viz.source_diff(cases.halves, "if_else")
    lines = repr(diff).splitlines()
    assert lines[0] == f"{cases.halves.__module__}.halves, if_else: 2 lines gone, 8 new"
    assert "-     if x.sum() > 0:" in lines
    assert "+     def _jst_then():" in lines
    assert "      return y + 1" in lines


def test_all_lines_of_both_sources_are_in_the_diff():
    diff = viz.source_diff(cases.steps_to_one)
    before = [a for _, a, _ in diff.rows if a is not None]
    after = [b for _, _, b in diff.rows if b is not None]
    found = stages(cases.steps_to_one)
    assert before == ast.unparse(found[0].before).splitlines()
    assert after == code_text(cases.steps_to_one).splitlines()
    body = repr(diff).splitlines()[1:]
    assert [line[2:] for line in body if line[0] in "- "] == before
    assert len([line for line in body if line[0] == "+"]) == diff.counts()[1]


def test_the_html_is_a_table_with_coloured_cells():
    diff = viz.source_diff(cases.halves, "if_else")
    bundle = diff._repr_mimebundle_()
    assert bundle["text/plain"] == repr(diff)
    table = bundle["text/html"]
    assert table.count("<tr>") == len(diff.rows)
    assert "x.sum() &gt; 0" in table
    assert table.count("rgba(213,94,0,.25)") == 2
    assert table.count("rgba(0,158,115,.25)") == 8


def test_long_lines_stand_below_the_converters():
    def long(x):
        return x.reshape([-1, 1, 2, 3]).transpose([0, 2, 3, 1]).sum(axis=1, keepdim=True).tanh()

    assert "rankdir=TB" in viz.transpiling(long).source
    assert "rankdir=LR" in viz.transpiling(lambda x: x).source
