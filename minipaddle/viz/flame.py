"""A profile along time: as a flame chart, and as a trace for Chrome's and Perfetto's viewers."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import NamedTuple

from ..nn.layer.tree import path_of
from .picture import Picture, figure
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
    out, open_ = [], []  # the layers at work now, as (scope, phase, start)
    events = sorted(events, key=lambda e: e.start)
    last = 0
    for e in events:
        chain = layers_of(e.scope)
        same = 0
        while same < min(len(chain), len(open_)) and open_[same][:2] == (id(chain[same]), e.phase):
            same += 1
        close(out, open_, same, last)
        for scope in chain[same:]:
            open_.append((id(scope), e.phase, e.start, layer_name(scope)))
        out.append(Span(e.name, e.phase, len(chain), e.start, e.end))
        last = max(last, e.end)
    close(out, open_, 0, last)
    return out


def close(out, open_, keep: int, end: int) -> None:
    while len(open_) > keep:
        _, _, start, name = open_.pop()
        out.append(Span(name, "layer", len(open_), start, end))


def flame(profile) -> Picture:
    """The flame chart of a profile."""
    found = spans(profile.events)
    levels = 1 + max((s.level for s in found), default=0)
    fig, axes = figure(10, 0.9 + 0.45 * levels)
    scale = 1 / 1e6
    for kind, colour in COLOURS.items():
        for level in range(levels):
            bars = [s for s in found if s.kind == kind and s.level == level]
            places = [((s.start - profile.start) * scale, (s.end - s.start) * scale) for s in bars]
            if bars:
                axes.broken_barh(
                    places, (level, 0.94), facecolors=colour, edgecolors="white", linewidths=0.3
                )
    for s in found:
        wide = (s.end - s.start) * scale
        text = fitting(s.name, wide / profile.wall)
        if text:
            middle = (s.start - profile.start) * scale + wide / 2
            axes.text(middle, s.level + 0.47, text, ha="center", va="center", fontsize=6.5)
    axes.set(xlim=(0, profile.wall), ylim=(levels, 0), yticks=[], xlabel="milliseconds")
    kinds = {s.kind for s in found}
    for kind, colour in COLOURS.items():
        if kind in kinds:
            axes.bar(0, 0, color=colour, label=kind)
    if kinds:
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=4, fontsize=7)
    return Picture(fig, f"flame chart: {len(profile.events):,} operators in {profile.wall:.2f} ms")


def fitting(name: str, share: float) -> str:
    """The name in one line, or with its words below each other, as a bar of that share has room.

    Empty if it has not.
    """
    stacked = name.replace("_", "\n")
    for text in (name, stacked):
        longest = max(map(len, text.split("\n")))
        if longest * 0.0083 < share and text.count("\n") < 4:
            return text
    return ""


def chrome_trace(profile, path) -> Path:
    """The profile as a JSON object of complete ("X") events, times in microseconds."""
    pid = os.getpid()

    def complete(name, category, start, end, args):
        ts, dur = (start - profile.start) / 1e3, (end - start) / 1e3
        common = {"ph": "X", "pid": pid, "tid": 1, "ts": ts, "dur": dur}
        return {"name": name, "cat": category, "args": args} | common

    layers = [
        complete(s.name, "layer", s.start, s.end, {})
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
    named = {"ph": "M", "pid": pid, "tid": 1, "ts": 0, "name": "thread_name"}
    events = [named | {"args": {"name": "operators"}}, *layers, *operators]
    path = Path(path)
    path.write_text(json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}), encoding="utf-8")
    return path
