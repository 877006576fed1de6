"""A record in words: its name, its spec, the memory it keeps alive, the user's line."""

from ..engine.core.dispatch import OUT
from ..engine.core.errors import line_of
from ..engine.core.record import FREED, Spec, owner
from ..engine.eager.execution import Packed
from ..engine.eager.pylayer import PyLayerContext
from ..nn.layer.tree import child_name
from .parts import Frame
from .style import LOOKS, bytes_text


def tensor_of(record):
    """The tensor of a leaf while it exists, else None."""
    return None if record.inputs else record.tensor()


def is_parameter(record) -> bool:
    tensor = tensor_of(record)
    return tensor is not None and tensor.is_parameter


def role_of(record) -> str:
    """The role (a key of LOOKS) of a record's node."""
    if not record.inputs:
        return "parameter" if is_parameter(record) else "input"
    return role_of_operator(record.op)


def role_of_operator(op) -> str:
    """The role of an operator's node: its kind, if that has a look of its own."""
    return op.kind if op.kind in LOOKS else "opaque"


def label_of(record, frames=()) -> str:
    """The operator (or the leaf's name), and the spec."""
    return f"{name_record(record, frames)}\n{spec_text(record)}"


def name_record(record, frames=()) -> str:
    """The name of a record: its operator; for a leaf its attribute in the layer, or its name."""
    if record.inputs:
        return f"[{record.attrs['k']}]" if record.op.name == "item" else record.op.name
    tensor = tensor_of(record)
    if frames and tensor is not None:
        for name, part in frames[-1].layer._parameters.items():
            if part is tensor:
                return name
    return (tensor is not None and tensor._name) or role_of(record)  # a name somebody chose


def tooltip_of(record) -> str:
    """Operator, attributes, spec, the values it keeps alive, and the line that made it."""
    attrs = ", ".join(f"{k}={short(v)}" for k, v in record.attrs.items())
    lines = [f"{record.op.name}({attrs}) : {spec_text(record)}"]
    if record.inputs:
        lines.append(describe_saved(record))
    if record.where:
        lines.append(line_of(record.where))
    return "\n".join(lines)


def list_saved(record) -> dict:
    """The values a record keeps for its derivative: arrays, specs, scalars."""
    if record.saved is None or record.saved is FREED:
        return {}
    if isinstance(record.saved, PyLayerContext):
        return record.saved.list_saved()
    if isinstance(record.saved, tuple):  # of a whole program
        residuals, _, own = record.saved
        named = {f"residual {k}": x for k, x in enumerate(residuals)}
        return named | {f"input {k}": x for k, x in enumerate(own)}
    return record.saved


def is_array(value) -> bool:
    return hasattr(value, "nbytes") and not isinstance(value, Spec)


def describe_saved(record) -> str:
    """The values a record keeps for its derivative, by name, with the bytes."""
    if record.saved is FREED:
        return "freed: a backward has used what it kept"
    parts = []
    for k, v in list_saved(record).items():
        if is_array(v) or isinstance(v, Packed):
            size = "packed by a hook" if isinstance(v, Packed) else bytes_text(v.nbytes)
            own = k if isinstance(k, str) else "its result" if k == OUT else ""  # a PyLayer's own
            parts.append(f"{own or input_name(record.op, k)} {size}")
    return f"keeps {', '.join(parts)}" if parts else "keeps nothing"


def count_kept(records) -> int:
    """The memory that records keep alive; shared memory counts once."""
    alive = {}
    for r in records:
        for v in list_saved(r).values():
            if is_array(v):
                memory = owner(v)
                alive[id(memory)] = memory.nbytes
    return sum(alive.values())


def input_name(op, k: int) -> str:
    """The name of input `k`, as the operator's formula has it."""
    rest = k - len(op.inputs) + 1
    return f"{op.inputs[-1]}[{rest}]" if op.variadic and rest >= 0 else op.inputs[k]


def describe_input(record, k: int) -> str:
    """The spec or the value of an input that has no record."""
    saved = list_saved(record)
    value = saved.get(k, saved.get(("spec", k)))
    if isinstance(value, Spec):
        return str(value)
    if hasattr(value, "shape"):
        return str(Spec(value.shape, value.dtype))
    return repr(value) if isinstance(value, int | float) else "a value"


def spec_text(record) -> str:
    """`float32[2, 3]`, or several of them for an operator with several results."""
    return str(record.spec) if record.dtype is not None else ", ".join(map(str, record.shape))


def short(value) -> str:
    text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


# ---- layer calls -----------------------------------------------------------------------------


def layers_of(scope) -> tuple:
    """The layer calls of a scope (the call around it, the layer), outermost first."""
    calls = []
    while scope is not None:
        calls.append(scope)
        scope = scope[0]
    return tuple(reversed(calls))


def layer_name(scope) -> str:
    """The name a layer has in its parent; the outermost is called by its class."""
    outer, layer = scope
    return type(layer).__name__ if outer is None else child_name(outer[1], layer)


def layer_frame(scope) -> Frame:
    """The frame of a layer call, `conv1 (Conv2D)`; its tooltip is where the class is defined."""
    name, kind = layer_name(scope), type(scope[1])
    label = name if name == kind.__name__ else f"{name} ({kind.__name__})"
    return Frame(label, f"{kind.__module__}.{kind.__name__}", layer=scope[1])
