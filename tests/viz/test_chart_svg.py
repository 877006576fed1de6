"""Charts as SVG: the same parts as matplotlib's, in the same places."""

import re

import pytest

import minipaddle.distributed as dist
from minipaddle import viz
from minipaddle.distributed.pipeline.schedules import build_schedule
from minipaddle.distributed.pipeline.simulate import simulate
from minipaddle.viz.chart import Bar, Panel, PolyLine, chart
from minipaddle.viz.graph_engine import paint

BOX = re.compile(r"M([\d.]+) ([\d.]+)h([\d.]+)v([\d.]+)h-[\d.]+z")


def boxes(svg, fill):
    """(left, top, width, height) of all bars of a colour."""
    paths = re.findall(rf'<path fill="{fill}"[^>]* d="([^"]+)"', svg)
    return [tuple(map(float, box)) for path in paths for box in BOX.findall(path)]


def test_bars_stand_as_matplotlib_draws_them():
    picture = viz.pipeline(*(simulate(build_schedule(n, 4, 8)) for n in ("1F1B", "ZBH1")))
    svg = picture.svg()
    drawn = [b for axis in picture.figure.axes for b in axis.patches]
    assert len(boxes(svg, "#56b4e9")) == sum(b.get_facecolor()[2] > 0.9 for b in drawn) == 64
    ours, theirs = boxes(svg, "#56b4e9"), [b for b in drawn if b.get_facecolor()[2] > 0.9]
    scale = (ours[-1][0] - ours[0][0]) / theirs[-1].get_x()
    for (left, _, wide, _), b in zip(ours, theirs):
        assert left - ours[0][0] == pytest.approx(scale * b.get_x(), abs=0.2)
        assert wide == pytest.approx(scale * b.get_width(), abs=0.2)
    assert "4 stages, 33 s, bubble 27.3 %" in svg
    assert paint(svg).startswith(b"\x89PNG")


def test_rows_are_counted_from_above_and_numbers_from_below():
    bars = [Bar.in_row(row, 0, 1, "#111111") for row in range(3)]
    tops = [
        top for _, top, _, _ in boxes(chart((4, 3), [Panel(bars, rows=3)], "").svg(), "#111111")
    ]
    assert tops == sorted(tops)
    bars = [Bar(0, y, 1, 1, "#111111") for y in range(3)]
    tops = [top for _, top, _, _ in boxes(chart((4, 3), [Panel(bars)], "").svg(), "#111111")]
    assert tops == sorted(tops, reverse=True)


def test_panels_share_a_scale_and_a_left_side():
    panels = [Panel([Bar(0, 0, wide, wide**4, "#111111")]) for wide in (2, 8)]
    shared, own = (chart((4, 3), panels, "", sharex=on).svg() for on in (True, False))
    (left, _, wide, _), (left_2, _, wide_2, _) = boxes(shared, "#111111")
    assert (left, 4 * wide) == (left_2, pytest.approx(wide_2, abs=0.5))
    (_, _, wide, _), (_, _, wide_2, _) = boxes(own, "#111111")
    assert wide == wide_2


def test_a_tensor_s_grids_are_squares():
    mesh = dist.ProcessMesh([0, 1], dim_names=["x"])
    svg = viz.placements([4, 4], mesh, [dist.Partial()], [dist.Shard(1)]).svg()
    whole, half = boxes(svg, "#0072b2")
    assert whole[2] == pytest.approx(whole[3], abs=0.2)
    assert half[2] == pytest.approx(whole[2] / 2, abs=0.2)
    assert svg.count('fill="url(#hatch)"') == 2  # both ranks hold a term


def test_words_fit_or_are_left_out():
    bars = [Bar(0, 0, 1, 1, "#111111", "a long text"), Bar(1, 0, 20, 1, "#222222", "another")]
    svg = chart((4, 2), [Panel(bars)], "").svg()
    assert "another" in svg
    assert "a long text" not in svg


def test_lines_have_a_legend_dashes_and_dots():
    looks = {"linestyle": "--", "label": "a < b"}, {"marker": "o", "linestyle": ""}
    lines = [PolyLine((0, 1), (0, 1), "black", look) for look in looks]
    svg = chart((4, 2), [Panel(lines=lines)], "").svg()
    assert "a &lt; b" in svg
    assert svg.count("stroke-dasharray") == 1
    assert svg.count("stroke-linecap") == 1
    assert "black" not in svg  # it is the ink of the page


def test_steps_go_across_first():
    line = PolyLine((0, 1, 2), (0, 5, 1), "#111111", {"drawstyle": "steps-post"})
    (path,) = re.findall(r'd="(M[^"]+)"/>', chart((4, 2), [Panel(lines=[line])], "").svg())[-1:]
    assert re.fullmatch(r"M[\d. ]+(H[\d.]+V[\d.]+){2}", path)


def test_axes_that_are_not_known_are_named():
    panel = Panel(lines=[PolyLine((0, 1), (1, 2), "black")], axes={"yscale": "log"})
    with pytest.raises(ValueError, match="axes have yscale"):
        chart((4, 2), [panel], "").svg()
