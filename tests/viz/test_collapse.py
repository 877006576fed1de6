"""Large graphs are folded until they fit: frames first, then the oldest part."""

from itertools import pairwise

from minipaddle.engine.core.op import OPS
from minipaddle.engine.core.record import Record
from minipaddle.viz.collapse import LIMIT, OLDER, Collapse, common
from minipaddle.viz.parts import Edge, Frame, Node


def record(*inputs):
    return Record(OPS["tanh"], inputs, {}, (2,), "float32")


def nodes(n: int, *frames: Frame) -> list[Node]:
    return [Node(record(None), "tanh", "elementwise", frames=frames) for _ in range(n)]


def folded(parts, depth=None, close=None):
    fold = Collapse([p for p in parts if isinstance(p, Node)], depth, close)
    found = list(fold.parts(parts))
    return [p for p in found if isinstance(p, Node)], [p for p in found if isinstance(p, Edge)]


def test_a_closed_frame_is_one_node_that_counts_its_records():
    outer, inner = Frame("outer", ""), Frame("inner", "", "region")
    parts = [*nodes(2, outer), *nodes(3, outer, inner)]
    (closed,), _ = folded(parts, depth=0)
    assert (closed.key, closed.label, closed.role) == (outer, "outer\n5 records", "layer")
    *own, closed = folded(parts, depth=1)[0]
    assert len(own) == 2
    assert (closed.label, closed.role, closed.frames) == ("inner\n3 records", "region", (outer,))
    assert closed.tip == "3 records: open with depth=2"


def test_what_close_says_of_the_records_is_added():
    say = lambda records: (f"\n{len(records)} inside", "\nmore", {"color": "#e00000"})
    (closed,), _ = folded(nodes(2, Frame("layer", "")), 0, say)
    assert closed.label == "layer\n2 records\n2 inside"
    assert closed.tip.endswith("\nmore")
    assert closed.attrs == {"color": "#e00000"}


def test_as_many_levels_are_open_as_fit():
    outer = Frame("outer", "")
    fits = [*nodes(100, outer), *nodes(49, outer, Frame("inner", ""))]
    assert len(folded(fits)[0]) == 149
    assert len(folded([*fits, *nodes(2, outer, Frame("inner", ""))])[0]) == 103  # the small one
    alike = [n for k in range(4) for n in nodes(49, outer, Frame(f"inner {k}", ""))]
    assert len(folded(alike)[0]) == 4  # those of one size together, or none
    assert len(folded(nodes(LIMIT + 1, outer))[0]) == 1


def test_of_what_is_still_too_long_the_newest_part_is_drawn():
    parts = nodes(400)
    chain = [Edge(a.key, b.key) for a, b in pairwise(parts)]
    found, edges = folded([*parts, *chain])
    assert len(found) == LIMIT
    assert (found[0].key, found[0].label) == (OLDER, "… 251 more\n(older)")
    assert [n.key for n in found[1:]] == [n.key for n in parts[251:]]
    assert len(edges) == LIMIT - 1


def test_dots_take_room():
    parts = [n._replace(dots=((0, "x", "2.0"),)) for n in nodes(LIMIT)]
    found, _ = folded(parts)
    assert sum(1 + len(n.dots) for n in found) <= LIMIT


def test_between_closed_frames_one_edge_of_each_style_stays():
    a, b = Frame("a", ""), Frame("b", "")
    left, right = nodes(2, a), nodes(2, b)
    edges = [Edge(x.key, y.key) for x in left for y in right]
    dashed = [e._replace(attrs={"style": "dashed"}) for e in edges]
    into = [Edge(left[0].key, left[1].key), Edge(right[0].key, left[0].key, attrs={"lhead": a})]
    parts = [*left, *right, *edges, *dashed, *into]
    closed = folded(parts, depth=0)[1]
    assert [(e.source, e.target, e.attrs.get("style")) for e in closed] == [
        (a, b, None),
        (a, b, "dashed"),
        (b, a, None),
    ]
    assert "lhead" not in closed[-1].attrs  # a closed frame has no border to end at
    assert len(folded(parts, depth=1)[1]) == len(edges) + len(dashed) + len(into)


def test_what_two_paths_have_in_common():
    a, b, c = (Frame(name, "") for name in "abc")
    assert common((a, b), (a, c)) == (a,)
    assert common((), (a,)) == ()
