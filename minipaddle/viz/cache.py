"""The cache of a static function: a tree of the differences of its programs, and a timeline."""

import textwrap
from collections.abc import Iterator
from typing import NamedTuple

from ..engine.core.errors import value_error
from ..jit.reasons import SETTINGS, structure_text
from .chart import Bar, Panel, Picture, PolyLine, chart
from .collapse import LIMIT
from .parts import Edge, Legend, Node, draw
from .style import YOURS, count
from .target import static_function

ROWS = 25
"""How many of the last misses a timeline shows."""


# ---- the tree --------------------------------------------------------------------------------


def cache(function, *, title: str = ""):
    """The programs of a static function as a tree: a fork for each difference, hits at the leaves.

    The root holds the facts that all have in common: shapes, dtypes, values, settings. Below come
    the differences, one fork each, down to the layers' modes; the leaves are programs, with how
    often each served again.

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
    function = static_function(function)
    parts = cache_parts(function.__name__, function.program_cache)
    return draw(parts, title, rankdir="LR", ranksep="0.4", nodesep="0.1")


def cache_parts(name: str, cache) -> Iterator:
    """The facts that all programs have in common, and below them the tree of differences."""
    pairs = [(key, e) for key, entries in cache.entries.items() for e in entries]
    pairs.sort(key=lambda pair: pair[1].number)
    hidden = max(0, len(pairs) - LIMIT // 2)
    members = [Member(k, e, facts(key, e)) for k, (key, e) in enumerate(pairs, 1) if k > hidden]
    hits = count(sum(e.hits[0] for _, e in pairs), "hit")
    head = f"{name}: {count(len(pairs), 'program')}, {count(cache.calls, 'call')}, {hits}"
    tree = list(fork(members, set(), 1, head))
    older = f"… {hidden:,} older programs" if hidden else ""
    lines = [head, *(part.text for part in tree), older and f"  {older}"]
    yield from tree
    yield Legend(older, text="\n".join(filter(None, lines)))


class Member(NamedTuple):
    """A program of the cache: its number, its captured function, and the facts it depends on."""

    number: int
    captured: object
    facts: dict

    def node(self, margin: str) -> Node:
        captured, hits = self.captured, self.captured.hits[0]
        both = [p for p in (captured.program, captured.backward) if p is not None]
        what = f"program {self.number}: {count(sum(len(p.records) for p in both), 'record')}"
        served, miss = count(hits, "hit"), captured.miss
        tip = f"call {miss.call}: {miss.reason}\ntraced in {time_text(miss.seconds)}"
        role = "served" if hits else "unused"
        text = f"{margin}{what}, {served}"
        return Node(self.number, f"{what}\n{served}", role, tip, text=text)


def fork(members, known: set, level: int, head: str = "", above=None) -> Iterator:
    """A node for the facts that members have in common, and below it their differences."""
    new = {what: value for what, value in common(members) if what not in known}
    lines = [f"{what} is {value}" for what, value in new.items()]
    margin, words = "  " * level, [head, *lines] if head else lines
    text = f"{margin}{', '.join(lines)}" if lines else ""
    label = "\n".join(part for line in words for part in textwrap.wrap(line, 44))
    here = Node(object(), label, "key", "\n".join(words), text=text)
    yield from attach(above, here)
    known, level = known | new.keys(), level + (above is not None)
    groups = split(members, known)
    if len(groups) > 1:
        for group in groups:
            yield from fork(group, known, level, above=here)
    else:
        for member in members:
            yield from attach(here, member.node("  " * level))


def attach(above: Node | None, here: Node) -> Iterator:
    """A node, and the edge that leads to it."""
    yield here
    if above is not None:
        yield Edge(above.key, here.key)


def split(members, known: set) -> list[list]:
    """The members, grouped by the first fact where they differ."""
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
    """The facts that a program depends on, {what: value}, the most general first."""
    specs = list(zip(captured.arguments[3], key.specs))
    words = {"flows": ("stop_gradient", False), "stops": ("stop_gradient", True)}
    conditions = [(s.tensor, *words.get(what, ("grad", what))) for s, what in captured.conditions]
    facts = (
        {"the structure": structure_text(key)}
        | {f"{name}.shape": list(shape) for name, (shape, *_) in specs}
        | {name: dtype for name, (_, dtype, _) in specs}
        | {f"{name}.stop_gradient": stop for name, (*_, stop) in specs}
        | {f"argument {k}": repr(value) for k, (_, value, *_) in enumerate(key.values, 1)}
        | dict(zip(SETTINGS, key.settings))
        | modes(captured)
        | {f"{x.name}.{what}": expected for x, what, expected in conditions}
        | {f"{a} {sign} {b}": answer for a, sign, b, answer in captured.program.guards}
    )
    return {what: str(value) for what, value in facts.items()}


def modes(captured) -> dict:
    """The mode of all layers, or of each where they differ."""
    layers = [pair for guards in captured.guards for pair in guards.modes()]
    modes = ["training" if on else "evaluation" for _, on in layers]
    if len(set(modes)) == 1:
        return {"the layers' mode": modes[0]}
    pairs = zip(layers, modes)
    return {f"the mode of {k}, a {type(x).__name__},": m for k, ((x, _), m) in enumerate(pairs)}


# ---- the timeline ----------------------------------------------------------------------------


def recompilations(function, *, title: str = "") -> Picture:
    """The calls of a static function: where a program was written, why, and how long that took.

    Each row is a miss: a dot at the number of its call, and a line over the hits that followed.
    The bars are the time of tracing. The last 25 misses are shown.

    >>> from minipaddle import viz
    >>> double = paddle.jit.to_static(lambda x: x * 2)
    >>> _ = [double(paddle.ones([n])) for n in (2, 2, 3)]
    >>> print(viz.recompilations(double).text.splitlines()[0])
    <lambda>: 3 calls, 2 misses, 1 hit
    """
    function = static_function(function)
    cache = function.program_cache
    if not cache.misses:
        raise value_error(f"{function.__name__} was not called yet", hint="call it first")
    misses = list(cache.misses)[-ROWS:]
    ends = [*(miss.call for miss in misses[1:]), cache.calls + 1]
    rows = [(miss, end - miss.call - 1) for miss, end in zip(misses, ends)]
    return draw_timeline(rows, timeline_text(function.__name__, cache, rows), title)


def timeline_text(name: str, cache, rows) -> str:
    hits, missed = cache.calls - cache.added, count(cache.added, "miss")
    lines = [f"{name}: {count(cache.calls, 'call')}, {missed}, {count(hits, 'hit')}"]
    if older := cache.added - len(rows):
        lines.append(f"  … {count(older, 'miss')} before")
    for miss, n in rows:
        what = f"{time_text(miss.seconds)}: {miss.reason}; then {count(n, 'hit')}"
        lines.append(f"  call {miss.call:,}: {what}")
    return "\n".join(lines)


def draw_timeline(rows, text: str, title: str) -> Picture:
    """The staircase of misses, and beside it the time each took."""
    first, last = rows[0][0].call, rows[-1][0].call + rows[-1][1]
    hits, times = [], []
    for y, (miss, n) in enumerate(rows):
        label = f" {count(n, 'hit')}" if n else ""
        hits.append(Bar.in_row(y, miss.call, n, YOURS, label, "end", "#00614a", high=0.12))
        cost = f" {time_text(miss.seconds)}"
        times.append(Bar.in_row(y, 0, 1000 * miss.seconds, MISS, cost, "end", high=0.6))
    dots = PolyLine([miss.call for miss, _ in rows], range(len(rows)), MISS, DOTS)
    reasons = [shorten(miss.reason) for miss, _ in rows]
    wide = first - 0.5, last + max(1.0, 0.12 * (last - first))
    ticks = range(first, last + 1, 1 + (last - first) // 10)
    slowest = 1.35 * max(bar.wide for bar in times)
    panels = [
        Panel(hits, "", reasons, [dots], {"xlabel": "call", "xlim": wide, "xticks": ticks}),
        Panel(times, "", len(rows), axes={"xlabel": "tracing [ms]", "xlim": (0, slowest)}),
    ]
    size = 11, 1.2 + 0.42 * len(rows)
    title = title or text.splitlines()[0]
    return chart(size, panels, text, title=title, columns=2, width_ratios=(3, 1))


DOTS = {"marker": "o", "markersize": 8, "linestyle": ""}
MISS = "#d55e00"


def shorten(reason: str) -> str:
    lines = textwrap.wrap(reason, 48)
    return "\n".join(lines[:2]) + ("…" if len(lines) > 2 else "")


def time_text(seconds: float) -> str:
    """`12 ms`, `1.5 s`."""
    return f"{seconds:.1f} s" if seconds >= 1 else f"{1000 * seconds:.3g} ms"
