"""The eager tape as a picture: what was computed from what, grouped by the layer that asked."""

from __future__ import annotations

from contextlib import ContextDecorator

from ..engine.core.errors import teach
from ..engine.core.grad import history
from ..engine.core.record import FREED
from ..engine.eager.eager import Eager
from ..engine.eager.tensor import Tensor
from .drawing import LIMIT, RecordDrawing, common
from .records import (
    given_text,
    input_name,
    is_parameter,
    kept_bytes,
    label_of,
    layer_class,
    layer_label,
    layers_of,
    own_name,
    role_of,
    spec_text,
    tooltip_of,
)
from .style import bytes_text, count, dot


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


class TapeDrawing(RecordDrawing):
    """The records behind `roots`, framed by layer call."""

    def __init__(self, roots, depth: int | None = None):
        records = history.reference(roots)
        super().__init__(records, set(roots), paths_of(records), depth)

    def beside(self, record) -> int:
        return record.inputs.count(None)

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

    def frame_text(self, frame) -> tuple[str, str]:
        return layer_label(frame), layer_class(frame)

    def closed_tip(self, records) -> str:
        return f"\nkeeps {bytes_text(kept_bytes(records))} alive"

    def look(self, record) -> tuple[str, str, str, dict]:
        role = "output" if record in self.results and record.inputs else role_of(record)
        extra, attrs = self.record_extra(record)
        if record.saved is FREED:
            extra, attrs = f"{extra}\nfreed", attrs | {"style": "filled,dashed"}
        return role, label_of(record, self.paths[record]) + extra, tooltip_of(record), attrs

    def write_record(self, g, record) -> None:
        super().write_record(g, record)
        for k, edge in enumerate(record.inputs):
            if edge is None:
                self.write_given(g, record, k)

    def write_given(self, g, record, k: int) -> None:
        """A grey dot for an input that gets no gradient."""
        self.roles.add("given")
        name = f"{self.name(record)}_{k}"
        dot(g, name, f"{input_name(record.op, k)}: {given_text(record, k)} (needs no gradient)")
        g.edge(name, self.name(record), arrowsize="0.4", tooltip=input_name(record.op, k))

    def edges(self):
        for r in self.records:
            for k, edge in enumerate(r.inputs):
                if edge is not None:
                    tip = f"{input_name(r.op, k)}: {spec_text(edge)}"
                    yield edge, r, {"tooltip": tip} | self.edge_extra(edge)

    def caption(self) -> str:
        made = [r for r in self.records if r.inputs]
        freed = sum(r.saved is FREED for r in made)
        text = f"{count(len(made), 'record')}, keeping {bytes_text(kept_bytes(made))} alive"
        return f"{text}; {freed:,} freed by a backward" if freed else text

    # ---- what a subclass may add -------------------------------------------------------------

    def record_extra(self, record) -> tuple[str, dict]:
        """More text for a record's label, and attributes of its node."""
        return "", {}

    def edge_extra(self, edge) -> dict:
        """Attributes of an edge that leaves the record `edge`."""
        return {}


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
