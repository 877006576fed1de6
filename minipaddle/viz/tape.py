"""The eager tape as a picture: what was computed from what, grouped by the layer that asked."""

from __future__ import annotations

from contextlib import ContextDecorator
from itertools import accumulate

from ..core import slots
from ..core.errors import teach
from ..core.grad import history as records_behind  # by this name it is never the reader's
from ..core.record import FREED
from ..eager.eager import Eager
from ..eager.tensor import Tensor
from .records import (
    given_text,
    input_name,
    is_parameter,
    kept_bytes,
    label_of,
    layer_label,
    layers_of,
    own_name,
    role_of,
    spec_text,
    tooltip_of,
)
from .style import bytes_text, cluster, count, dot, faded, graph, legend, marked, node

LIMIT = 150
"""Beyond this many nodes, layers are drawn closed, and of what is left the newest part."""


class source_lines(ContextDecorator):
    """Note in every record the user's line that made it; it costs a tenth of a small operator.

    A call switches it, `with source_lines(True): ...` only for the block.

    >>> import minipaddle as paddle
    >>> from minipaddle import viz
    >>> x = paddle.to_tensor([1.0], stop_gradient=False)
    >>> with viz.source_lines(True):
    ...     y = paddle.tanh(x)
    >>> y.record.where is not None, paddle.tanh(x).record.where is None
    (True, True)
    """

    def __init__(self, on: bool = True):
        self.on, self.before = on, Eager.lines
        Eager.lines = on

    def __enter__(self):
        Eager.lines = self.on  # as a decorator it is entered again and again
        return self

    def __exit__(self, *exc):
        Eager.lines = self.before


def tape(*tensors, depth: int | None = None, title: str = ""):
    """The tape behind `tensors` as a graph; or `tape(f, *args)`: what `f(*args)` puts on it.

    Layers are boxes; `depth` says how many levels of them are open, by default as many as fit in
    150 nodes. Of a tape that is longer still, the newest part is drawn, unless `depth` is given.
    The tooltip of a node gives its operator, spec, what it keeps alive for the backward, and the
    source line that made it, if `source_lines` was on; it is on while `f` runs.

    >>> import minipaddle as paddle
    >>> from minipaddle import viz
    >>> x = paddle.to_tensor([1.0], stop_gradient=False)
    >>> viz.tape(paddle.tanh(x) * x).source.count("->")
    3
    """
    if tensors and callable(tensors[0]) and not isinstance(tensors[0], Tensor):
        with source_lines(True):
            tensors = tensors[0](*tensors[1:])
    return TapeDrawing(roots_of(tensors), depth).draw(title)


def roots_of(results) -> list:
    """The records of all tensors in nested results; raises ValueError if there are none."""
    roots = [t.record for t in tensors_in(results) if t.record is not None]
    if not roots:
        raise ValueError(
            teach(
                "no tape leads to these tensors",
                hint="set stop_gradient=False on an input, and compute outside paddle.no_grad()",
            )
        )
    return roots


def tensors_in(results):
    """The tensors in nested tuples, lists and dicts, in order."""
    if isinstance(results, Tensor):
        yield results
    elif isinstance(results, dict):
        yield from tensors_in(list(results.values()))
    elif isinstance(results, list | tuple):
        for part in results:
            yield from tensors_in(part)


class TapeDrawing:
    """Decides which node stands for each record, then writes nested frames, nodes and edges.

    A unit is what is drawn as one node: a record, a closed layer call (its scope), or OLDER.
    """

    def __init__(self, roots, depth: int | None = None):
        self.records = records_behind(roots)
        self.results = set(roots)
        self.paths = paths_of(self.records)
        self.yours = operators(slots.yours())
        self.reference = operators(slots.reference()) - self.yours
        self.depth = self.fitting_depth() if depth is None else depth
        self.units = {r: unit(r, self.paths[r], self.depth) for r in self.records}
        self.hidden = self.too_old() if depth is None else 0
        self.names, self.roles = {}, set()

    def fitting_depth(self) -> int:
        """The most open levels that fit in LIMIT nodes; 0 if none does."""
        deepest = max(map(len, self.paths.values()))
        for depth in range(deepest, 0, -1):
            units = {r: unit(r, self.paths[r], depth) for r in self.records}
            dots = sum(r.inputs.count(None) for r, shown in units.items() if shown is r)
            if len(set(map(key, units.values()))) + dots <= LIMIT:
                return depth
        return 0

    def too_old(self) -> int:
        """Let OLDER stand for all but the newest units; how many records it hides."""
        cost = {}
        for r in reversed(self.records):
            dots = r.inputs.count(None) if self.units[r] is r else 0
            cost.setdefault(key(self.units[r]), 1 + dots)
        if sum(cost.values()) <= LIMIT:
            return 0
        totals = zip(cost, accumulate(cost.values()))
        kept = {unit for unit, total in totals if total < LIMIT}
        old = [r for r in self.records if key(self.units[r]) not in kept]
        self.units.update(dict.fromkeys(old, OLDER))
        return len(old)

    # ---- writing -----------------------------------------------------------------------------

    def draw(self, title: str = ""):
        g = graph(title)
        self.write(g, self.tree())
        self.write_edges(g)
        legend(g, self.roles, self.caption(), self.more_legend(), title)
        g.text = self.text()
        return g

    def text(self) -> str:
        """The newest part as lines `v3 = add(v1, v2) : float32[4]`, and the caption."""
        shown = self.records[-LIMIT:]
        names = {r: f"v{k}" for k, r in enumerate(shown, 1)}
        lines = [f"… {len(self.records) - LIMIT:,} older"] if len(self.records) > LIMIT else []
        for r in shown:
            inputs = [
                given_text(r, k) if e is None else names.get(e, "…") for k, e in enumerate(r.inputs)
            ]
            what = f"{r.op.name}({', '.join(inputs)})" if inputs else own_name(r, self.paths[r])
            note = self.record_extra(r)[0].replace("\n", "  ")
            lines.append(f"{names[r]} = {what} : {spec_text(r)}{note}")
        return "\n".join([*lines, self.caption()])

    def tree(self) -> dict:
        """Nested by scope: {key: (scope, subtree) | (unit, its records)}, oldest first."""
        tree = {}
        for r in self.records:
            place, shown = tree, self.units[r]
            if shown is not OLDER:
                for scope in self.paths[r][: self.depth]:
                    place = place.setdefault(id(scope), (scope, {}))[1]
            place.setdefault(key(shown), (shown, []))[1].append(r)
        return tree

    def write(self, g, tree) -> None:
        for shown, inside in tree.values():
            if isinstance(inside, dict):
                label, kind = layer_label(shown), type(shown[1])
                with cluster(g, self.name(shown), label, f"{kind.__module__}.{kind.__name__}") as c:
                    self.write(c, inside)
            elif shown is OLDER:
                self.write_older(g)
            elif isinstance(shown, tuple):
                self.write_closed(g, shown, inside)
            else:
                self.write_record(g, shown)

    def write_older(self, g) -> None:
        self.roles.add("more")
        tip = f"{count(self.hidden, 'older record')}; depth=1 (or more) draws everything"
        node(g, self.name(OLDER), f"… {self.hidden:,} more\n(older)", "more", tip)

    def write_closed(self, g, scope, records) -> None:
        self.roles.add("layer")
        made = count(sum(bool(r.inputs) for r in records), "record")
        kept = bytes_text(kept_bytes(records))
        tip = f"{made}: open with depth={self.depth + 1}\nkeeps {kept} alive"
        extra, attrs = self.closed_extra(scope, records)
        label = f"{layer_label(scope)}\n{made}{extra}"
        node(g, self.name(scope), label, "layer", tip, **attrs)

    def write_record(self, g, record) -> None:
        role = "output" if record in self.results and record.inputs else role_of(record)
        self.roles.add(role)
        label = label_of(record, self.paths[record])
        extra, attrs = self.record_extra(record)
        if record.saved is FREED:
            extra, attrs = f"{extra}\nfreed", attrs | {"style": "filled,dashed"}
        if record.op.name in self.yours:
            self.roles.add("yours")
            label, attrs = marked(attrs, label)
        elif record.op.name in self.reference:
            self.roles.add("reference")
            attrs = faded(attrs)
        node(g, self.name(record), label + extra, role, tooltip_of(record), **attrs)
        for k, edge in enumerate(record.inputs):
            if edge is None:
                self.write_given(g, record, k)

    def write_given(self, g, record, k: int) -> None:
        """A grey dot for an input that gets no gradient."""
        self.roles.add("given")
        name = f"{self.name(record)}_{k}"
        dot(g, name, f"{input_name(record.op, k)}: {given_text(record, k)} (needs no gradient)")
        g.edge(name, self.name(record), arrowsize="0.4", tooltip=input_name(record.op, k))

    def write_edges(self, g) -> None:
        seen = set()
        for r in self.records:
            for k, edge in enumerate(r.inputs):
                if edge is None or self.units[edge] is self.units[r]:
                    continue
                pair = self.name(self.units[edge]), self.name(self.units[r])
                single = self.units[edge] is edge and self.units[r] is r
                if single or pair not in seen:
                    tip = f"{input_name(r.op, k)}: {spec_text(edge)}"
                    g.edge(*pair, **({"tooltip": tip} | self.edge_extra(edge)))
                seen.add(pair)

    def name(self, shown) -> str:
        return self.names.setdefault(key(shown), f"n{len(self.names)}")

    def caption(self) -> str:
        made = [r for r in self.records if r.inputs]
        freed = sum(r.saved is FREED for r in made)
        text = f"{count(len(made), 'record')}, keeping {bytes_text(kept_bytes(made))} alive"
        return f"{text}; {freed:,} freed by a backward" if freed else text

    # ---- what a subclass may add -------------------------------------------------------------

    def record_extra(self, record) -> tuple[str, dict]:
        """More text for a record's label, and attributes of its node."""
        return "", {}

    def closed_extra(self, scope, records) -> tuple[str, dict]:
        """The same for a closed layer call."""
        return "", {}

    def edge_extra(self, edge) -> dict:
        """Attributes of an edge that leaves the record `edge`."""
        return {}

    def more_legend(self) -> list:
        """More cells of the legend, as pairs (text, colour)."""
        return []


def operators(names) -> set[str]:
    """The operators whose rules are among the slots named."""
    return {name.split(".")[1] for name in names if name.startswith("ops.")}


OLDER = "older"


def key(shown):
    """Scopes compare by identity: each is one call. Records and OLDER stand for themselves."""
    return id(shown) if isinstance(shown, tuple) else shown


def unit(record, path, depth: int):
    """The record itself, or the closed layer call that hides it."""
    return path[depth] if len(path) > depth else record


def paths_of(records) -> dict:
    """For each record the layer calls it was made in, outermost first.

    A parameter belongs where it is used, in what is common to all uses.
    """

    paths = {r: layers_of(r.scope) for r in records}
    homes = {}
    for r in records:
        for edge in r.inputs:
            if edge is not None and is_parameter(edge):
                homes[edge] = common(homes.get(edge, paths[r]), paths[r])
    return paths | homes


def common(a, b) -> tuple:
    """The part two paths begin with."""
    n = 0
    while n < min(len(a), len(b)) and a[n] is b[n]:
        n += 1
    return a[:n]
