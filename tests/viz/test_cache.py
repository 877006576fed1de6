"""The cache as a tree, and the calls as a timeline."""

import pytest

import minipaddle as paddle
from minipaddle import viz
from minipaddle.viz.cache import ROWS, shorten, time_text
from tests.viz.reading import Drawing

nn = paddle.nn


def scaled(x, scale=1.0):
    return x * scale


def called(*calls, function=scaled):
    made = paddle.jit.to_static(function)
    for args in calls:
        made(*args)
    return made


def ones(*shape):
    return paddle.ones(list(shape))


# ---- the tree --------------------------------------------------------------------------------


def test_what_all_have_in_common_stands_at_the_root():
    f = called((ones(2),), (ones(2),), (ones(3),), (ones(2),))
    drawn = Drawing(viz.cache(f))
    root = drawn.node("scaled")
    assert root.text.startswith("scaled: 2 programs, 4 calls, 2 hits\n")
    assert "x is float32" in root.text
    assert "x.shape" not in root.text
    assert drawn.node("x.shape is [2]")
    assert drawn.node("program 1").text == "program 1: 1 record\n2 hits"
    assert drawn.node("program 2").text == "program 2: 1 record\n0 hits"
    assert drawn.node("program 1").attribute("fill") == "#009e73"
    assert drawn.node("program 2").attribute("fill") == "#cfcfcf"


def test_forks_are_nested():
    f = called((ones(2),), (ones(3),), (ones(2), 3.0), (ones(2), 4.0))
    with paddle.no_grad():
        f(ones(2))
    text = viz.cache(f).text
    assert "argument 1 is 3.0" in text
    assert "argument 1 is 4.0" in text
    assert "gradient recording is False" in text
    assert text.count("program ") == 5
    arrows = Drawing(viz.cache(f)).arrows()
    assert len(arrows) == len(Drawing(viz.cache(f)).nodes) - 1  # a tree


def test_the_mode_of_the_layers_is_a_fork():
    net = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5))
    f = called((ones(1, 2),), function=lambda x: net(x))
    net.eval()
    f(ones(1, 2))
    net[0].train()
    f(ones(1, 2))
    text = viz.cache(f).text
    assert "the layers' mode is training" in text
    assert "the layers' mode is evaluation" in text
    assert "a Dropout, is evaluation" in text
    assert [m.reason for m in f.program_cache.misses][1:] == [
        "Sequential is in evaluation mode, was in training",
        "Linear is in training mode, was in evaluation",
    ]


def test_a_waiting_gradient_and_a_guard_are_facts():
    w = nn.Linear(2, 2).weight

    def step(x):
        (w * x).sum().backward()
        return w.grad.clone()

    f = called((ones(2),), (ones(2),), function=step)
    text = viz.cache(f).text
    assert f"{w.name}.grad is" in text
    assert f.program_cache.misses[1].reason == "a gradient that waits in .grad differs"

    def sized(x):
        return x * 2 if x.shape[0] > 4 else x

    made = paddle.jit.to_static(sized, input_spec=[paddle.static.InputSpec([None], "float32")])
    made(ones(3))
    made(ones(7))
    assert viz.cache(made).text.count("4 is") == 2
    assert made.program_cache.misses[1].reason == "a decision about an open size differs"


def test_the_tooltip_of_a_program_says_why_it_was_made():
    drawn = Drawing(viz.cache(called((ones(2),), (ones(3),))))
    tip = drawn.node("program 2").tip
    assert tip.startswith("call 2: x has shape [3], had [2]\ntraced in ")


def test_of_many_programs_the_newest_are_drawn():
    with pytest.warns(UserWarning, match="was traced 11 times"):
        f = called(*[(ones(2), float(k)) for k in range(120)])
    graph = viz.cache(f)
    drawn = Drawing(graph)
    assert "… 45 older programs" in drawn.caption
    assert "… 45 older programs" in graph.text
    assert drawn.node("program 120")
    assert "scale is 49.0, was 0.0" in drawn.node("program 50").tip


def test_a_function_that_was_not_called_has_an_empty_tree():
    assert viz.cache(paddle.jit.to_static(scaled)).text.startswith("scaled: 0 programs, 0 calls")


def test_what_has_no_cache_is_refused():
    for draw in (viz.cache, viz.recompilations):
        with pytest.raises(TypeError, match=r"paddle\.jit\.to_static gave"):
            draw(scaled)


# ---- the timeline ----------------------------------------------------------------------------


def test_each_miss_has_its_call_its_reason_and_its_time():
    f = called((ones(2),), (ones(2),), (ones(2),), (ones(3),), (ones(2),), (ones(2), 2.0))
    first, second, third = f.program_cache.misses
    assert (first.call, second.call, third.call) == (1, 4, 6)
    assert first.seconds > 0
    lines = viz.recompilations(f).text.splitlines()
    assert lines[0] == "scaled: 6 calls, 3 misses, 3 hits"
    assert lines[1].startswith("  call 1: ")
    assert lines[1].endswith("the first call; then 2 hits")
    assert lines[2].endswith("x has shape [3], had [2]; then 1 hit")
    assert lines[3].endswith("then 0 hits")


def test_the_picture_has_a_row_for_each_miss():
    f = called((ones(2),), (ones(2),), (ones(3),))
    calls, times = viz.recompilations(f, title="Twice").figure.axes
    assert [t.get_text() for t in calls.get_yticklabels()] == [
        "the first call",
        "x has shape [3], had [2]",
    ]
    assert [list(line.get_xdata()) for line in calls.lines] == [[1, 3]]  # the misses
    assert [(bar.get_x(), bar.get_width()) for bar in calls.patches] == [(1, 1), (3, 0)]
    assert len(times.patches) == 2
    assert calls.figure.get_suptitle() == "Twice"
    assert viz.recompilations(f).png().startswith(b"\x89PNG")


def test_of_many_misses_the_last_are_shown():
    with pytest.warns(UserWarning, match="was traced 11 times"):
        f = called(*[(ones(2), float(k)) for k in range(130)])
    assert len(f.program_cache.misses) == 100  # bounded
    shown = viz.recompilations(f)
    assert len(shown.figure.axes[1].patches) == ROWS
    assert shown.text.splitlines()[1] == "  … 105 misses before"
    assert shown.text.splitlines()[2].startswith("  call 106: ")


def test_before_the_first_call_there_is_no_timeline():
    with pytest.raises(ValueError, match="was not called yet"):
        viz.recompilations(paddle.jit.to_static(scaled))


def test_words():
    assert time_text(0.0123) == "12.3 ms"
    assert time_text(1.25) == "1.2 s"
    assert shorten("a " * 100).endswith("…")
