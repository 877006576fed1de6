"""The eager tape as a picture: the records and their inputs, in frames of layers."""

from collections.abc import Iterator
from contextlib import ContextDecorator

from ..engine.core.errors import value_error
from ..engine.core.grad import history
from ..engine.core.record import FREED
from ..engine.eager.execution import Eager
from ..engine.eager.tensor import Tensor
from ..engine.jit.tree import flatten
from ..nn.layer.tree import layers_of
from . import records as words
from .collapse import LIMIT, common, draw_records
from .parts import Edge, Legend, Node, TextLine
from .records import input_name, layer_frame, spec_text
from .style import bytes_text, count


class source_lines(ContextDecorator):
    """Note in every record the user's line that made it; it costs a tenth of a small operator.

    A call switches it, `with source_lines(True): ...` only for the block.

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
    """The tape behind `tensors` as a graph; or `tape(f, *args)`: the tape of a call.

    Layers are boxes; `depth` says how many levels of them are open, by default as many as fit in
    150 nodes. Of a tape that is longer still, the newest part is drawn, unless `depth` is given.
    The tooltip of a node gives its operator, spec, what it keeps alive for the backward, and the
    source line that made it, if `source_lines` was on; it is on while `f` runs.

    >>> from minipaddle import viz
    >>> x = paddle.to_tensor([1.0], stop_gradient=False)
    >>> viz.tape(paddle.tanh(x) * x).source.count("->")
    3
    """
    if tensors and callable(tensors[0]) and not isinstance(tensors[0], Tensor):
        with source_lines(True):
            tensors = tensors[0](*tensors[1:])
    return draw_records(tape_parts(roots_of(tensors)), title, depth, close_layer)


def roots_of(results) -> list:
    """The records of all tensors in nested results; raises ValueError if there are none."""
    roots = [t.record for t in tensors_in(results) if t.record is not None]
    if not roots:
        hint = "set stop_gradient=False on an input, and compute outside paddle.no_grad()"
        raise value_error("no tape leads to these tensors", hint=hint)
    return roots


def tensors_in(results) -> list[Tensor]:
    """The tensors in nested tuples, lists and dicts, in order."""
    return [x for x in flatten(results)[0] if isinstance(x, Tensor)]


def tape_parts(roots) -> Iterator:
    """The records that led to `roots`, framed by layer call, and the values between them."""
    records = history.reference(roots)
    frames, results = frames_of(records), set(roots)
    names = {r: f"v{k}" for k, r in enumerate(records[-LIMIT:], 1)}
    if len(records) > LIMIT:
        yield TextLine(f"… {len(records) - LIMIT:,} older")
    for r in records:
        role = "output" if r in results and r.inputs else words.role_of(r)
        freed = r.saved is FREED
        label = words.label_of(r, frames[r]) + "\nfreed" * freed
        attrs = {"style": "filled,dashed"} if freed else {}
        constants = [k for k, e in enumerate(r.inputs) if e is None]
        dots = tuple((k, input_name(r.op, k), words.describe_input(r, k)) for k in constants)
        text = line_of_text(r, frames[r], names) if r in names else ""
        yield Node(r, label, role, words.tooltip_of(r), frames[r], attrs, dots, text=text)
    for r in records:
        for k, e in enumerate(r.inputs):
            if e is not None:
                yield Edge(e, r, f"{input_name(r.op, k)}: {spec_text(e)}")
    yield Legend(tape_caption(records))


def line_of_text(record, frames: tuple, names: dict) -> str:
    """`v3 = add(v1, v2) : float32[4]`."""
    inputs = [
        words.describe_input(record, k) if e is None else names.get(e, "…")
        for k, e in enumerate(record.inputs)
    ]
    what = f"{record.op.name}({', '.join(inputs)})" if inputs else words.name_record(record, frames)
    return f"{names[record]} = {what} : {spec_text(record)}"


def tape_caption(records) -> str:
    """How many records were applied, and how much memory they keep alive."""
    applied = [r for r in records if r.inputs]
    freed = sum(r.saved is FREED for r in applied)
    text = f"{count(len(applied), 'record')}, keeping {bytes_text(words.count_kept(applied))} alive"
    return f"{text}; {freed:,} freed by a backward" if freed else text


def close_layer(records) -> tuple[str, str, dict]:
    """The addition to a closed frame's label, tip and attributes."""
    return "", f"\nkeeps {bytes_text(words.count_kept(records))} alive", {}


def frames_of(records) -> dict:
    """For each record the layer calls it was made in, outermost first, as frames.

    A parameter belongs to the innermost call around all its uses.
    """
    calls = {id(scope): scope for r in records for scope in layers_of(r.scope)}
    frames = {k: layer_frame(scope) for k, scope in calls.items()}
    paths = {r: tuple(frames[id(scope)] for scope in layers_of(r.scope)) for r in records}
    homes: dict = {}
    for r in records:
        for e in r.inputs:
            if e is not None and words.is_parameter(e):
                homes[e] = common(homes.get(e, paths[r]), paths[r])
    return paths | homes
