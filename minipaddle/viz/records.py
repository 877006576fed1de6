"""A record in words: its name, its spec, the memory it keeps alive, the user's line."""

from itertools import groupby

from ..engine.core.dispatch import OUT
from ..engine.core.errors import line_of
from ..engine.core.record import FREED, Spec, owner
from ..engine.eager.execution import Packed
from ..engine.eager.pylayer import PyLayerContext, SavedResult
from ..engine.eager.tensor import Tensor
from ..engine.ir.control import fused
from ..engine.ir.program import NUMBER, Program
from ..nn.layer.tree import layer_name
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
        entries = [x for x in record.saved.entries if isinstance(x, Tensor | SavedResult)]
        return {f"saved tensor {k}": x.array for k, x in enumerate(entries)}
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


def records_in(record) -> list:
    """The records of a group, or the record alone."""
    return record.attrs["region"].records if record.op is fused else [record]


def name_lines(record) -> str:
    """The user's lines of a record, or of those in a group: `net.py:12, 14; train.py:31`."""
    texts = (line_of(r.where).partition(", ")[0] for r in records_in(record) if r.where)
    places = dict.fromkeys(text.rpartition("/")[2].rpartition(":") for text in texts)
    files = groupby(places, lambda place: "".join(place[:2]))
    return "; ".join(file + ", ".join(place[2] for place in group) for file, group in files)


def sources_of(record):
    """A record, the one that it was made from, and so on back to the captured one."""
    while record is not None:
        yield record
        record = record.source


def is_same(one, other) -> bool:
    """Whether two records differ in nothing but their inputs; numbers among these are equal."""
    if one.op is not other.op or (one.shape, one.dtype) != (other.shape, other.dtype):
        return False
    mine, its = (r.attrs | dict(enumerate(numbers_of(r))) for r in (one, other))
    return mine.keys() == its.keys() and all(is_equal(x, its[k]) for k, x in mine.items())


def numbers_of(record) -> list:
    """The numbers among the inputs of a record."""
    return [x.attrs["value"] for x in record.inputs if x is not None and x.op is NUMBER]


def is_equal(a, b) -> bool:
    """Whether two attributes are equal; of programs and arrays nobody asks."""
    if a is b or (isinstance(a, Program) and isinstance(b, Program)):
        return True
    return type(a) is type(b) and not hasattr(a, "__array__") and a == b


def short(value) -> str:
    text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


# ---- layer calls -----------------------------------------------------------------------------


def layer_frame(scope) -> Frame:
    """The frame of a layer call, `conv1 (Conv2D)`; its tooltip is where the class is defined."""
    name, kind = layer_name(scope), type(scope[1])
    label = name if name == kind.__name__ else f"{name} ({kind.__name__})"
    return Frame(label, f"{kind.__module__}.{kind.__name__}", layer=scope[1])
