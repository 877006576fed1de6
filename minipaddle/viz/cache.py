"""The cache of a static function: a tree of what its programs differ in, and a timeline."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import NamedTuple

from ..engine.core.errors import value_error
from ..engine.jit.cache import SETTINGS
from .fold import LIMIT
from .parts import Edge, Legend, Node, draw
from .picture import Picture, figure
from .style import YOURS, count
from .target import static_function

ROWS = 25
"""A timeline shows so many of the last misses."""


# ---- the tree --------------------------------------------------------------------------------


def cache(function, *, title: str = ""):
    """The programs of a static function as a tree: at each fork what they differ in, hits below.

    What all have in common stands at the root: shapes, dtypes, values, settings. Below come the
    differences, one fork each, down to the layers' modes; the leaves are programs, with how often
    each served again.

    >>> import minipaddle as paddle
    >>> from minipaddle import viz
    >>> double = paddle.jit.to_static(lambda x: x * 2)
    >>> _ = [double(paddle.ones([n])) for n in (2, 3, 2)]
    >>> print(viz.cache(double).text.replace("  ", "."))  # doctest: +ELLIPSIS
    <lambda>: 2 programs, 3 calls, 1 hit
    .the structure is ((*,), {}), x is float32, x.stop_gradient is True, ...
    .x.shape is [2]
    ..program 1: 1 record, 1 hit
    .x.shape is [3]
    ..program 2: 1 record, 0 hits
    """
    found = static_function(function)
    parts = cache_parts(found.__name__, found.program_cache)
    return draw(parts, title, rankdir="LR", ranksep="0.4", nodesep="0.1")


def cache_parts(name: str, cache) -> Iterator:
    """What all programs have in common, and below it the tree of where they differ."""
    pairs = [(key, e) for key, entries in cache.entries.items() for e in entries]
    pairs.sort(key=lambda pair: pair[1].captured.number)
    hidden = max(0, len(pairs) - LIMIT // 2)
    members = [
        Member(k, e, facts(key, e.captured)) for k, (key, e) in enumerate(pairs, 1) if k > hidden
    ]
    hits = count(sum(e.hits[0] for _, e in pairs), "hit")
    head = f"{name}: {count(len(pairs), 'program')}, {count(cache.calls, 'call')}, {hits}"
    tree = list(fork(members, set(), 1, head))
    older = f"… {hidden:,} older programs" if hidden else ""
    lines = [head, *(part.text for part in tree), older and f"  {older}"]
    yield from tree
    yield Legend(older, text="\n".join(filter(None, lines)))


class Member(NamedTuple):
    """A program of the cache: its number, its entry, and what it depends on."""

    number: int
    entry: object
    facts: dict

    def node(self, margin: str) -> Node:
        captured, hits = self.entry.captured, self.entry.hits[0]
        both = [p for p in (captured.program, captured.backward) if p is not None]
        what = f"program {self.number}: {count(sum(len(p.records) for p in both), 'record')}"
        served, miss = count(hits, "hit"), self.entry.miss
        tip = f"call {miss.call}: {miss.reason}\ntraced in {time_text(miss.seconds)}"
        role = "served" if hits else "unused"
        text = f"{margin}{what}, {served}"
        return Node(self.number, f"{what}\n{served}", role, tip, text=text)


def fork(members, known: set, level: int, head: str = "", above=None) -> Iterator:
    """A node for what members have in common, and below it their differences."""
    new = [(what, value) for what, value in common(members) if what not in known]
    lines = [f"{what} is {value}" for what, value in new]
    margin, words = "  " * level, [head, *lines] if head else lines
    text = f"{margin}{', '.join(lines)}" if lines else ""
    here = Node(object(), "\n".join(wrap(words)), "key", "\n".join(words), text=text)
    yield from below(above, here)
    known = known | {what for what, _ in new}
    groups = split(members, known)
    for group in groups:
        if len(groups) > 1:
            yield from fork(group, known, level + (above is not None), above=here)
            continue
        for member in group:
            yield from below(here, member.node(margin + "  " * (above is not None)))


def below(above: Node | None, here: Node) -> Iterator:
    """A node, and the edge that leads to it."""
    yield here
    if above is not None:
        yield Edge(above.key, here.key)


def split(members, known: set) -> list[list]:
    """The members in groups by the first fact in which they differ."""
    for what in dict.fromkeys(what for m in members for what in m.facts):
        groups: dict = {}
        for m in members:
            groups.setdefault(m.facts.get(what), []).append(m)
        if what not in known and len(groups) > 1:
            return list(groups.values())
    return [members]


def common(members) -> list[tuple]:
    first, *rest = (m.facts for m in members) if members else [{}]
    return [(what, v) for what, v in first.items() if all(f.get(what) == v for f in rest)]


def facts(key, captured) -> dict:
    """What a program depends on, in words: {what: value}, the most general first."""
    found = {"the structure": key.text}
    names = captured.arguments[3]
    found |= {f"{n}.shape": list(shape) for n, (shape, *_) in zip(names, key.specs)}
    found |= {n: str(dtype) for n, (_, dtype, _) in zip(names, key.specs)}
    found |= {f"{n}.stop_gradient": stop for n, (*_, stop) in zip(names, key.specs)}
    found |= {f"argument {k}": repr(value) for k, (_, value, *_) in enumerate(key.values, 1)}
    found |= dict(zip(SETTINGS, map(str, key.settings)))
    found |= modes(captured.layers)
    words = {"flows": ("stop_gradient", False), "stops": ("stop_gradient", True)}
    for x, condition in captured.conditions:
        what, expected = words.get(condition, ("grad", condition))
        found[f"{x.name}.{what}"] = expected
    for left, sign, right, answer in captured.program.guards:
        found[f"{left} {sign} {right}"] = answer
    return {what: str(value) for what, value in found.items()}


def modes(layers) -> dict:
    """The mode of all layers, or where they differ that of each."""
    said = {True: "training", False: "evaluation"}
    if len({on for _, on in layers}) == 1:
        return {"the layers' mode": said[layers[0][1]]}
    return {f"the mode of {k}, a {type(x).__name__},": said[on] for k, (x, on) in enumerate(layers)}


def wrap(lines) -> list[str]:
    return [part for line in lines for part in textwrap.wrap(line, 44)]


# ---- the timeline ----------------------------------------------------------------------------


def recompilations(function, *, title: str = "") -> Picture:
    """The calls of a static function: where a program was written, why, and how long that took.

    Each row is a miss: a dot at the number of its call, and a line over the hits that followed.
    The bars are the time of tracing. The last 25 misses are shown.

    >>> import minipaddle as paddle
    >>> from minipaddle import viz
    >>> double = paddle.jit.to_static(lambda x: x * 2)
    >>> _ = [double(paddle.ones([n])) for n in (2, 2, 3)]
    >>> print(viz.recompilations(double).text.splitlines()[0])
    <lambda>: 3 calls, 2 misses, 1 hit
    """
    function = static_function(function)
    found = function.program_cache
    if not found.misses:
        raise value_error(f"{function.__name__} was not called yet", hint="call it first")
    misses = list(found.misses)[-ROWS:]
    ends = [*(miss.call for miss in misses[1:]), found.calls + 1]
    rows = [(miss, end - miss.call - 1) for miss, end in zip(misses, ends)]
    return timeline(rows, timeline_text(function.__name__, found, rows), title)


def timeline_text(name: str, found, rows) -> str:
    hits, missed = found.calls - found.added, misses_text(found.added)
    head = f"{name}: {count(found.calls, 'call')}, {missed}, {count(hits, 'hit')}"
    lines = [
        f"  call {miss.call:,}: {time_text(miss.seconds)}: {miss.reason}; then {count(n, 'hit')}"
        for miss, n in rows
    ]
    older = found.added - len(rows)
    return "\n".join([head, *([f"  … {misses_text(older)} before"] if older else []), *lines])


def misses_text(n: int) -> str:
    return "1 miss" if n == 1 else f"{n:,} misses"


def timeline(rows, text: str, title: str) -> Picture:
    """The staircase of misses, and beside it the time each took."""
    from matplotlib.ticker import MaxNLocator

    high = 1.2 + 0.42 * len(rows)
    fig, calls, times = figure(11, high, 1, 2, sharey=True, width_ratios=(3, 1))
    for y, (miss, hits) in enumerate(rows):
        calls.plot([miss.call, miss.call + hits], [y, y], color=YOURS, linewidth=4, zorder=1)
        calls.plot([miss.call], [y], marker="o", color=MISS, markersize=8, zorder=2)
        at, beside = (miss.call + hits, y), {"textcoords": "offset points", "va": "center"}
        calls.annotate(count(hits, "hit") if hits else "", at, (8, 0), color="#00614a", **beside)
        seconds = 1000 * miss.seconds
        times.barh(y, seconds, color=MISS, height=0.6)
        times.annotate(time_text(miss.seconds), (seconds, y), (4, 0), **beside)
    last = rows[-1][0].call + rows[-1][1]
    calls.set_xlim(rows[0][0].call - 0.5, last + max(1.0, 0.12 * (last - rows[0][0].call)))
    calls.set_yticks(range(len(rows)), [shorten(miss.reason) for miss, _ in rows], fontsize=9)
    calls.set_ylim(len(rows) - 0.5, -0.5)
    calls.xaxis.set_major_locator(MaxNLocator(integer=True))
    calls.set_xlabel("call")
    times.set_xlabel("tracing [ms]")
    times.set_xlim(right=1.35 * max(1000 * miss.seconds for miss, _ in rows))
    times.tick_params(left=False)
    for axes in (calls, times):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="x", color="#dddddd")
        axes.set_axisbelow(True)
    fig.suptitle(title or text.splitlines()[0], fontsize=11)
    fig.tight_layout()
    return Picture(fig, text)


MISS = "#d55e00"


def shorten(reason: str) -> str:
    lines = textwrap.wrap(reason, 48)
    return "\n".join(lines[:2]) + ("…" if len(lines) > 2 else "")


def time_text(seconds: float) -> str:
    """`12 ms`, `1.5 s`."""
    return f"{seconds:.1f} s" if seconds >= 1 else f"{1000 * seconds:.3g} ms"
