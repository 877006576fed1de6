"""A profile along time: as a flame chart, and as a trace for Chrome's and Perfetto's viewers."""

import json
import os
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from ..nn.layer.tree import path_of
from .chart import Bar, Panel, Picture, chart
from .records import layer_name, layers_of
from .style import LOOKS

COLOURS = {
    "layer": LOOKS["layer"].fill,
    "forward": LOOKS["input"].fill,
    "backward": LOOKS["parameter"].fill,
    "no grad": LOOKS["constant"].fill,
}


class Span(NamedTuple):
    """A stretch of time: an operator, or a layer at work. Times in nanoseconds."""

    name: str
    kind: str  # "layer", or the operator's phase
    level: int
    start: int
    end: int


def spans(events) -> list[Span]:
    """Every operator, and above it the layers: neighbours in one call of a layer are one span."""
    return list(nest_spans(sorted(events, key=lambda e: e.start), 0))


def nest_spans(events, level: int) -> Iterator[Span]:
    """The spans of events that share their layers above `level`."""

    def call(e):
        layers = layers_of(e.scope)
        return (id(layers[level]), e.phase) if len(layers) > level else None

    for key, group in groupby(events, call):
        inside = list(group)
        if key is None:
            yield from (Span(e.name, e.phase, level, e.start, e.end) for e in inside)
        else:
            first, end = inside[0], max(e.end for e in inside)
            name = layer_name(layers_of(first.scope)[level])
            yield Span(name, "layer", level, first.start, end)
            yield from nest_spans(inside, level + 1)


def flame(profile) -> Picture:
    """The flame chart of a profile."""
    bars, found = [], spans(profile.events)
    levels = 1 + max((span.level for span in found), default=0)
    for span in found:
        start, wide = (span.start - profile.start) / 1e6, (span.end - span.start) / 1e6
        text = fitting(span.name, wide / profile.wall)
        look = {"high": 0.94, "edgecolor": "white", "linewidth": 0.3}
        bars.append(Bar.in_row(span.level, start, wide, COLOURS[span.kind], text, **look))
    kinds = {span.kind for span in found}
    shown = {kind: colour for kind, colour in COLOURS.items() if kind in kinds}
    axes = {"xlim": (0, profile.wall), "xlabel": "milliseconds"}
    text = f"flame chart: {len(profile.events):,} operators in {profile.wall:.2f} ms"
    panel = Panel(bars, "", levels, axes=axes, sides=("bottom",))
    return chart((10, 1.2 + 0.45 * levels), [panel], text, colours=shown)


def fitting(name: str, share: float) -> str:
    """The name in one line, or its words one below the other, if a bar of that share has room.

    Empty if it has not.
    """
    for text in (name, name.replace("_", "\n")):
        lines = text.split("\n")
        if max(map(len, lines)) * 0.0095 < share and len(lines) < 5:
            return text
    return ""


def chrome_trace(profile, path) -> Path:
    """The profile as a JSON object of complete ("X") events, times in microseconds."""
    thread = {"pid": os.getpid(), "tid": 1}

    def complete(name, category, start, end, args):
        times = {"ts": (start - profile.start) / 1e3, "dur": (end - start) / 1e3}
        return {"name": name, "cat": category, "args": args, "ph": "X"} | thread | times

    layers = [
        complete(s.name, s.kind, s.start, s.end, {})
        for s in spans(profile.events)
        if s.kind == "layer"
    ]
    operators = [
        complete(e.name, e.phase, e.start, e.end, {
            "layer": path_of(e.scope),
            "output": ", ".join(map(str, e.outputs)),
            "inside_us": e.inside / 1e3,
            "allocated_bytes": e.allocated,
        })
        for e in profile.events
    ]  # fmt: skip
    named = {"ph": "M", "ts": 0, "name": "thread_name", "args": {"name": "operators"}}
    events = [named | thread, *layers, *operators]
    path = Path(path)
    path.write_text(json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}), encoding="utf-8")
    return path
