"""The gradient flow: the size of the gradient at every record of a tape, or in every layer."""

import math
from collections.abc import Iterator
from functools import partial

from ..engine.core.errors import type_error, value_error
from ..engine.core.grad import history
from ..engine.core.record import FREED
from ..engine.eager.tensor import Tensor
from ..nn.layer.layers import Layer
from .collapse import draw_records
from .gradient_norms import EXPLODING, MEANINGS, VANISHING, line, norm, words
from .module import Counts, draw_tree
from .parts import Edge, Legend, Node, TextLine
from .records import is_parameter, spec_text
from .style import count
from .tape import close_layer, roots_of, tape_parts


def gradient_flow(target, depth: int | None = None, *, retain_graph: bool = False, title: str = ""):
    """Where the gradient flows, and how large it is there.

    Of a tensor (a loss): runs its backward, which adds to `.grad` as usual, and draws the tape with
    the norm of the gradient at each record; lines get wider and redder with its logarithm. Of a
    layer, after a backward: its tree, with the norm of each parameter's `.grad`. Norms below 1e-6
    are marked ▼, above 1e3 ▲, nan and inf ✖.

    >>> from minipaddle import viz
    >>> x = paddle.to_tensor([3.0, 4.0], stop_gradient=False)
    >>> print(viz.gradient_flow((x * x).sum()).text)
    v1 = input : float32[2]  ‖g‖ 1.0e+01
    v2 = multiply(v1, v1) : float32[2]  ‖g‖ 1.4e+00
    v3 = sum(v2) : float32[]  ‖g‖ 1.0e+00
    2 records; norms from 1.0e+00 to 1.0e+01
    """
    if isinstance(target, Layer):
        return draw_tree(target, depth, Norms(target), title)
    if isinstance(target, Tensor):
        roots = roots_of(target)
        norms = measure(target, roots)
        parts = flow_parts(tape_parts(roots), norms)
        graph = draw_records(parts, title, depth, partial(close_flow, norms))
        if not retain_graph:
            release(roots)
        return graph
    expected = "a loss (Tensor), or a Layer after loss.backward()"
    raise type_error(f"gradient_flow of {type(target).__name__}", expected=expected)


def measure(loss, roots) -> dict:
    """Run the backward of `loss`; the norm of the gradient at each record it reaches.

    The records keep their values until they are drawn.
    """
    norms, records = {}, history(roots)
    before = {r: r.hooks for r in records}
    for r in records:
        r.hooks = [*(r.hooks or ()), partial(note, norms, r)]
    try:
        loss.backward(retain_graph=True)
    finally:
        for r, hooks in before.items():
            r.hooks = hooks
    return norms


def release(roots) -> None:
    """Free the saved values of the tape, as an ordinary backward does."""
    for r in history(roots):
        if r.inputs:
            r.saved = FREED


def note(norms: dict, record, g) -> None:
    """A hook that notes the norm and changes nothing."""
    norms[record] = norm(g)


def flow_parts(parts, norms: dict) -> Iterator:
    """A tape whose nodes and lines show the norm of the gradient."""
    records = 0
    for part in parts:
        if isinstance(part, Node):
            records += bool(part.key.inputs)
            value = norms.get(part.key)
            yield part.annotate(words(value), **line(value) | {"style": "filled"})
        elif isinstance(part, Edge):
            value = norms.get(part.source)
            tip = "no gradient" if value is None else f"‖g‖ = {value!r}"
            yield part._replace(tip=f"{spec_text(part.source)}: {tip}", attrs=line(value))
        elif isinstance(part, TextLine):
            yield part
    yield Legend(flow_caption(records, "record", norms), MEANINGS)


def close_flow(norms: dict, records) -> tuple[str, str, dict]:
    """A closed frame shows the norm of all its parameters together."""
    inside = [norms[r] for r in records if is_parameter(r) and r in norms]
    label, tip, attrs = close_layer(records)
    if inside:
        value = math.hypot(*inside)
        label, attrs = f"\nparameters {words(value)}", line(value) | {"style": "filled"}
    return label, tip, attrs


def flow_caption(n: int, noun: str, norms: dict) -> str:
    """The number of records or parameters, the range of the norms, and the faults among them."""
    finite = [v for v in norms.values() if math.isfinite(v)]
    text = count(n, noun)
    if finite:
        text += f"; norms from {min(finite):.1e} to {max(finite):.1e}"
    faults = {
        "vanishing": sum(v < VANISHING for v in finite),
        "exploding": sum(v > EXPLODING for v in finite),
        "nan or inf": len(norms) - len(finite),
    }
    return "; ".join([text, *(f"{k} {name}" for name, k in faults.items() if k)])


class Norms(Counts):
    """The notes of a layer's tree after a backward: the norm of each parameter's gradient."""

    cells = MEANINGS

    def __init__(self, layer):
        self.norms = {id(p): norm(p.grad) for p in layer.parameters() if p.grad is not None}
        if not self.norms:
            hint = "call loss.backward() first (and clear_grad after looking)"
            raise value_error(f"no parameter of {type(layer).__name__} has a gradient", hint=hint)

    def part(self, part) -> str:
        return words(self.norms.get(id(part)))

    def tip(self, layer) -> list[str]:
        parts = layer._parameters.items()
        return [f"{name}: ‖g‖ = {self.norms[id(p)]!r}" for name, p in parts if id(p) in self.norms]

    def layer(self, layer) -> str:
        value = self.measure_below(layer)
        return "" if value is None else words(value)

    def edge(self, layer) -> dict:
        return line(self.measure_below(layer))

    def measure_below(self, layer) -> float | None:
        """The norm of the gradients of all parameters of a layer together; None without any."""
        inside = [self.norms[id(p)] for p in layer.parameters() if id(p) in self.norms]
        return math.hypot(*inside) if inside else None

    def caption(self, layer) -> str:
        return flow_caption(len(layer.parameters()), "parameter tensor", self.norms)
