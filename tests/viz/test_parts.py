"""A picture is a generator of parts; one writer makes DOT of them, one makes text."""

import re
from pathlib import Path

import pytest

import minipaddle.viz
from minipaddle.viz.markup import CellTable, TableCell
from minipaddle.viz.parts import Edge, Frame, Legend, Node, TextLine, draw
from tests.viz.reading import Drawing


def test_nodes_stand_in_their_frames_and_edges_lead_between_keys():
    outer, inner = Frame("outer", "a tip"), Frame("inner", "", "lines")
    drawn = Drawing(
        draw(
            [
                Node("x", "first", "input", frames=(outer,)),
                Edge("x", "y", "a value"),
                Node("y", "second", "layer", "tip of y", (outer, inner)),
            ]
        )
    )
    assert [(n.text, n.tip) for n in drawn.nodes] == [("first", "first"), ("second", "tip of y")]
    assert drawn.arrows() == [("first", "second")]
    assert [e.tip for e in drawn.edges] == ["a value"]
    assert [(f.text, f.tip) for f in drawn.frames][:1] == [("outer", "a tip")]
    assert drawn.frames[1].attribute("stroke-dasharray")


def test_frames_of_the_same_words_are_two():
    one, two = Frame("Linear", "twice"), Frame("Linear", "twice")
    g = draw([Node(1, "a", "input", frames=(one,)), Node(2, "b", "input", frames=(two,))])
    assert [f.text for f in Drawing(g).frames] == ["Linear", "Linear"]


def test_the_legend_names_the_roles_marks_dots_and_cells_that_occur():
    table = CellTable([[TableCell("cell")]], frozenset({"layer"}))
    caption = Drawing(
        draw(
            [
                Node(1, "tanh", "elementwise", dots=((0, "x", "2.5"),), mark="yours"),
                Node(2, table),
                Legend("one line", (("more", "#e00000"),)),
            ],
            "a title",
        )
    ).caption
    for word in ("elementwise", "input without gradient", "plugged in by you", "layer", "more"):
        assert word in caption
    assert "a title · one line" in caption
    assert "parameter" not in caption


def test_a_dot_stands_for_an_input_without_gradient():
    drawn = Drawing(draw([Node(1, "exp", "elementwise", dots=((0, "x", "float32[2]"),))]))
    assert drawn.arrows() == [("", "exp")]
    assert [n.tip for n in drawn.nodes if not n.text] == ["x: float32[2] (needs no gradient)"]


def test_the_text_are_the_lines_in_order_and_the_caption():
    parts = [
        TextLine("… 2 older"),
        Node(1, "a", "input", text="v1 = a"),
        Edge(1, 1, text="  a: see above"),
        Node(2, "b", "input"),
        Legend("2 nodes"),
    ]
    assert draw(parts).text == "… 2 older\nv1 = a\n  a: see above\n2 nodes"
    assert draw([*parts, Legend("2 nodes", text="in words")]).text == "in words"


def test_a_note_is_one_more_line_of_the_label_and_of_the_text():
    noted = Node(1, "a", "input", text="v1 = a").annotate("‖g‖ 1", color="#e00000")
    assert (noted.label, noted.text) == ("a\n‖g‖ 1", "v1 = a  ‖g‖ 1")
    assert noted.attrs == {"color": "#e00000"}
    assert noted.annotate("").label == noted.label
    assert Node(1, "a").annotate("note").text == ""


def test_an_edge_may_end_at_the_border_of_a_frame():
    frame = Frame("body", "")
    parts = [
        Node(1, "while", "decision"),
        Node(2, "add", "elementwise", frames=(frame,)),
        Edge(1, 2, attrs={"lhead": frame}),
    ]
    source = draw(parts, compound="true").source
    (name,) = [line.split()[1] for line in source.splitlines() if "subgraph" in line]
    assert f"lhead={name}" in source


def test_a_graph_without_roles_has_no_legend():
    assert Drawing(draw([Node(1, CellTable([[TableCell("x")]]))])).caption == "x"


@pytest.mark.parametrize("text", [r"C:\new\table", "<b>", 'say "x"', "a & b", "<a>&lt;"])
def test_names_are_drawn_as_they_are(text):
    node = Node(1, text, "input", text, (Frame(text, text),), dots=((0, text, text),))
    drawn = Drawing(draw([node, Node(2, CellTable([[TableCell(text)]]), tip=text)], text))
    assert [n.text for n in drawn.nodes if n.text] == [text, text]
    assert {n.tip for n in drawn.nodes} == {text, f"{text}: {text} (needs no gradient)"}
    assert drawn.frames[0].text.split("\n")[0] == text


def test_written_code_starts_at_the_left():
    source = draw([Node(1, "def f():\n    return 1", "code")]).source
    assert r"def f():\l    return 1\l" in source


def test_markup_is_written_in_one_place():
    folder = Path(minipaddle.viz.__file__).parent
    files = [*folder.rglob("*.py"), *folder.with_name("learn").rglob("*.py")]
    others = {f.name: f.read_text(encoding="utf-8") for f in files if f.name != "markup.py"}
    marks = r"import html|from html|<br|</(td|tr|table|div|span|code|pre|svg)>"
    assert [name for name, text in others.items() if re.search(marks, text)] == []
