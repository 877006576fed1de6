"""A profile along time: as a flame chart, and as a trace for Chrome's and Perfetto's viewers."""

import json
import os
from collections import defaultdict
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from ..nn.layer.tree import path_of
from .picture import Picture, figure, label_colours
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
    bars = spans(profile.events)
    levels = 1 + max((bar.level for bar in bars), default=0)
    fig, axes = figure(10, 0.9 + 0.45 * levels)
    stretches = defaultdict(list)
    for bar in bars:
        start, wide = (bar.start - profile.start) / 1e6, (bar.end - bar.start) / 1e6
        stretches[bar.kind, bar.level].append((start, wide))
        if text := fitting(bar.name, wide / profile.wall):
            middle = start + wide / 2, bar.level + 0.47
            axes.text(*middle, text, ha="center", va="center", fontsize=6.5)
    for (kind, level), times in stretches.items():
        look = {"facecolors": COLOURS[kind], "edgecolors": "white", "linewidths": 0.3}
        axes.broken_barh(times, (level, 0.94), **look)
    axes.set(xlim=(0, profile.wall), ylim=(levels, 0), yticks=[], xlabel="milliseconds")
    kinds = {kind for kind, _ in stretches}
    shown = {kind: colour for kind, colour in COLOURS.items() if kind in kinds}
    label_colours(axes, shown, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=4)
    return Picture(fig, f"flame chart: {len(profile.events):,} operators in {profile.wall:.2f} ms")


def fitting(name: str, share: float) -> str:
    """The name in one line, or its words one below the other, if a bar of that share has room.

    Empty if it has not.
    """
    for text in (name, name.replace("_", "\n")):
        lines = text.split("\n")
        if max(map(len, lines)) * 0.0083 < share and len(lines) < 5:
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
