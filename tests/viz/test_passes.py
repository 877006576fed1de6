"""Pictures of passes, groups, kernels and C: what they say is what the programs hold."""

import re
from xml.etree import ElementTree

import pytest

import minipaddle as paddle
from minipaddle import viz
from minipaddle.engine.executors.compiler import compiler
from minipaddle.engine.ir.control import fused
from minipaddle.engine.passes.manager import optimized
from tests.viz.reading import Drawing

F = paddle.nn.functional
compiled = pytest.mark.skipif(compiler() is None, reason="no C compiler")


def twice(x):
    return F.softmax(x.exp() * x.exp() + paddle.matmul(x, x).tanh())


def static(backend=None):
    f = paddle.jit.to_static(twice, backend=backend)
    f(paddle.ones([4, 4]))
    return f


# ---- the table -------------------------------------------------------------------------------


def test_the_table_has_a_row_for_each_pass_that_changed_something():
    f = static("interpreter")
    table = viz.passes(f)
    done = optimized(f.main_program)
    changed = [s.name for s in done.snapshots if s.changed]
    root = ElementTree.fromstring(table.html().partition("</table>")[0] + "</table>")
    rows = [[cell.text or "" for cell in row] for row in root.iter("tr")]
    assert rows[0] == ["pass", "records", "kernels", "moved", "live", "ms"]
    assert [row[0] for row in rows[1:]] == ["before", *changed]
    assert rows[1][1] == str(len(f.main_program.records))
    assert rows[-1][1] == str(len(done.program.records))
    shares = [float(n) for n in re.findall(r"transparent (\d+)%", table.html())]
    assert len(shares) == 4 * (len(rows) - 1)
    assert max(shares) == 100
    assert "nothing to do: specialise, " in table.html()
    head = str(table).splitlines()[0].split()
    assert head == ["pass", "records", "kernels", "moved", "live", "ms"]


def test_pictures_of_a_step_name_the_call_that_explores_it():
    wave = static("interpreter")
    for picture in (viz.passes(wave), viz.program(wave), viz.groups(wave)):
        assert ">viz.explore(wave)<" in picture.html()
    for picture in (viz.passes(static()), viz.program(wave.main_program)):
        assert "viz.explore" not in picture.html()


def test_what_it_takes():
    f = static("interpreter")
    done = optimized(f.main_program)
    wanted = [row[:2] for row in viz.passes(f).rows()]
    for target in (done, f.main_program):
        assert [row[:2] for row in viz.passes(target).rows()] == wanted
    f.build_strategy = {"cse": False}
    assert "cse" not in [row[0] for row in viz.passes(f).rows()]
    with pytest.raises(KeyError, match=r"no pass 'fuse'(.|\n)*fusion"):
        viz.passes(f)["fuse"]
    with pytest.raises(TypeError, match="a picture of the program of int"):
        viz.passes(3)


# ---- one pass --------------------------------------------------------------------------------


def test_a_difference_shows_what_is_gone_and_what_is_new():
    drawing = viz.passes(static("interpreter"))["cse"]
    assert drawing.text.splitlines()[0] == "cse: 1 record gone, 0 new"
    drawn = Drawing(drawing)
    gone = [n for n in drawn.nodes if n.attribute("stroke-dasharray")]
    assert [n.text.split("\n")[0] for n in gone] == ["exp"]
    assert {"x", "multiply"} <= {n.text.split("\n")[0] for n in drawn.nodes}
    assert "max" not in {n.text.split("\n")[0] for n in drawn.nodes}  # far from it
    assert ("x", "exp") in drawn.arrows()
    assert "far from that are as they were" in drawn.caption


def test_new_records_have_a_colour_of_their_own():
    drawing = viz.passes(static("interpreter"))["canonicalize_matmul"]
    lines = drawing.text.splitlines()
    assert lines[0] == "canonicalize_matmul: 1 record gone, 1 new"
    assert lines[1].startswith("- v4 = matmul(x, x)")
    assert lines[2].startswith("+ v4 = product(x, x, ")
    drawn = Drawing(drawing)
    new, old = drawn.node("product"), drawn.node("tanh")
    assert new.attribute("fill") != old.attribute("fill")


def test_fusion_changes_no_record_but_puts_them_into_boxes():
    done = optimized(static("interpreter").main_program)
    drawing = viz.passes(done)["fusion"]
    groups = [r for r in done.after("fusion").records if r.op is fused]
    assert drawing.text == f"fusion: 0 records gone, 0 new, {len(groups)} group"
    drawn = Drawing(drawing)
    assert len(drawn.frames) == len(groups)
    names = [n.text.split("\n")[0].split("(")[0] for n in drawn.nodes]
    inside = [r.op.name for g in groups for r in g.attrs["region"].records]
    assert sorted(names) == sorted([*inside, "product", "x"])


def test_a_loop_is_compared_too():
    def f(x):
        while x.sum() < 100.0:
            x = x * 2.0 * 1.0
        return x

    f = paddle.jit.to_static(f)
    f(paddle.ones([2]))
    drawing = viz.passes(f)["algebra"]
    assert drawing.text.splitlines()[0] == "algebra: 1 record gone, 0 new"
    assert "multiply(·, 1)" in drawing.svg()


def test_a_record_stayed_if_the_new_one_comes_from_it():
    def divide(a, b):
        return a / b

    f = paddle.jit.to_static(lambda x: divide(1, divide(x, 1)))
    f(paddle.ones([2]))
    drawing = viz.passes(f)["algebra"]
    assert drawing.text.splitlines()[1:] == ["- v1 = divide(x, 1) : float32[2]"]


def test_two_programs_that_come_from_one_are_compared():
    program = static("interpreter").main_program
    done, again = (optimized(program, until="cse").program for _ in range(2))
    assert not {r for r in done.records if r.inputs} <= set(again.records)  # each has its own
    assert viz.difference(done, again).text == "0 records gone, 0 new"


def test_results_of_a_loop_that_nobody_reads_are_gone_too():
    def f(x):
        y = x * 2 if x.sum() > 0 else x - 1
        while y.sum() < 100:
            y = y + x.exp()
        return y.tanh()

    f = paddle.jit.to_static(f)
    f(paddle.ones([4]))
    drawing = viz.passes(f)["dead_code"]
    summary, gone = drawing.text.splitlines()
    assert " = item(" in gone
    assert f"{summary}; 18 far from that".replace(":", " ·") in drawing.svg()


# ---- groups ----------------------------------------------------------------------------------


def test_each_group_is_a_box_and_each_record_stands_in_it_once():
    done = optimized(static("interpreter").main_program)
    drawn = Drawing(viz.groups(done))
    (group,) = [r for r in done.program.records if r.op is fused]
    count = len(group.attrs["region"].records)
    assert len(drawn.frames) == 1
    assert len(drawn.nodes) == count + 1  # the input; results are the records that make them
    assert drawn.frames[0].text == "product, exp, multiply, …"
    closed = Drawing(viz.groups(done, depth=0))
    assert closed.node("product, exp").text.endswith(f"{count} records")
    assert not closed.frames


def test_states_that_change_by_themselves_are_one_box():
    net = paddle.nn.Sequential(*[paddle.nn.Linear(2, 2) for _ in range(3)])
    opt = paddle.optimizer.Adam(0.1, parameters=net.parameters())

    @paddle.jit.to_static
    def step(x):
        loss = net(x).sum()
        loss.backward()
        opt.step()
        opt.clear_grad()
        return loss

    step(paddle.ones([2, 2])), step(paddle.ones([2, 2]))
    drawn = Drawing(viz.groups(step, depth=0))
    powers = [r for r in step.main_program.records if r.shape == () and r.op.name == "multiply"]
    (box,) = [n for n in drawn.nodes if n.text.startswith("states that change by themselves")]
    assert box.text.endswith(f"{len(powers)} records")


# ---- what is compiled ------------------------------------------------------------------------


@compiled
def test_the_c_of_a_function():
    f = static("native")
    shown = viz.source(f)
    executable = f.executables[0]
    assert str(shown) == str(viz.source(executable)) == executable.source.own
    assert "<span" in shown.html()
    name = next(iter(executable.kernels.written.values()))
    one = str(viz.source(f, name))
    assert name in one
    assert len(one) < len(str(shown))
    with pytest.raises(KeyError, match=f"no kernel 'conv'(.|\n)*{name}"):
        viz.source(f, "conv")


@compiled
def test_an_executable_has_all_pictures():
    executable = static("native").executables[0]
    assert viz.program(executable).text == str(executable.program)
    assert viz.groups(executable).text == str(executable.program)
    assert str(viz.passes(executable)).startswith("pass ")
    assert str(viz.memory(executable)) == str(executable.plan)
    assert viz.memory(static("native")).png()


@compiled
def test_a_bar_for_each_kernel():
    f = static("native")
    picture = viz.kernels(f, runs=3)
    executable = f.executables[0]
    names = {k.name for k in executable.kernels.of.values() if k is not None}
    axis = picture.figure.axes[0]
    assert {t.get_text() for t in axis.get_yticklabels()} == names
    widths = [bar.get_width() for bar in axis.patches]
    assert widths == sorted(widths, reverse=True)
    assert all(w > 0 for w in widths)
    assert str(picture).startswith(f"{len(widths)} kernel")
    for text in str(picture).splitlines()[1:]:
        assert re.fullmatch(r" +[\d.]+ µs  k\d+_\w+  test_passes\.py:\d+", text)
    assert not hasattr(executable.source, "timed")  # the program itself takes no times


@compiled
def test_a_kernel_names_all_lines_that_are_in_it():
    @paddle.jit.to_static(backend="native")
    def f(x):
        y = x.exp()
        return y * 2

    f(paddle.ones([3]))
    line = f.dygraph_function.__code__.co_firstlineno + 2
    assert str(viz.kernels(f, runs=1)).endswith(f"  test_passes.py:{line}, {line + 1}")


@compiled
def test_a_call_of_the_host_says_so(capsys):
    @paddle.jit.to_static(backend="native")
    def f(x):
        y = paddle.tanh(x)
        print(y)
        return y * 2

    f(paddle.ones([3]))
    why = "show, by the host: it has an effect outside of the program"
    assert why in str(viz.kernels(f, runs=2))
    report = f.executables[0].report()
    assert "by the host: show (it has an effect outside of the program)" in report
    capsys.readouterr()


def test_what_was_not_compiled_says_so():
    with pytest.raises(TypeError, match=r"twice was not compiled(.|\n)*backend=.native"):
        viz.source(static("interpreter"))


def test_groups_leave_out_states_that_passes_made_needless():
    net = paddle.nn.Sequential(paddle.nn.Conv2D(1, 2, 3), paddle.nn.BatchNorm2D(2))
    for p in net.parameters():
        p.set_value(p + 0.1)
    net.eval()
    static = paddle.jit.to_static(net.forward)
    with paddle.no_grad():
        static(paddle.ones([1, 1, 4, 4]))
    done = optimized(static.main_program, frozen=True)
    states = [line for line in viz.groups(done).text.splitlines() if line.startswith("  state ")]
    assert any("_folded" in line for line in states)
    assert all("_folded" in line for line in states if "batch_norm2d" in line)
