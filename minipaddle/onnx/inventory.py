"""Which operators have an ONNX form."""

from ..engine.core import dtype as dt
from ..engine.core.op import OPS
from ..engine.core.record import Record
from ..engine.ir.program import INPUT, ITEM, NUMBER
from .forms import FORMS
from .formulas import elementwise
from .graph import NoForm
from .preparing import small
from .writer import GraphWriter

PLAIN = {INPUT, NUMBER, ITEM}


def forms() -> dict[str, str]:
    """How each operator that has an ONNX form gets it: by its formula, by a rule of its own, or by
    small operators. The others have none.

    >>> from minipaddle.onnx import forms
    >>> forms()["mish"], forms()["conv"], "svd" in forms()
    ('formula', 'rule', False)
    """
    origins, rules = {}, small()
    for name, op in OPS.items():
        if name in FORMS or op in PLAIN or op.kind == "contraction":
            origins[name] = "rule"
        elif op.kind == "elementwise" and has_formula(op):
            origins[name] = "formula"
        elif op in rules and "weight_grad" not in name:  # those serve volumes alone
            origins[name] = "small operators"
    return origins


def has_formula(op) -> bool:
    """Whether ONNX has the functions that a formula calls, for floats or for whole numbers."""
    return any(writes(op, dtype) for dtype in (dt.float32.numpy, dt.int64.numpy))


def writes(op, dtype) -> bool:
    attrs = {k: op.defaults.get(k, EXAMPLES.get(k)) for k in op.attrs}
    record = Record(op, [], attrs, (), dtype)
    g = GraphWriter()
    try:
        elementwise(
            g, record, [g.add_input(name, Record(INPUT, [], {}, (), dtype)) for name in op.inputs]
        )
    except (NoForm, TypeError):
        return False
    return True


EXAMPLES = {"low": -8, "high": 7, "dtype": dt.float32.numpy, "n": 1, "min": 0, "max": 1,
            "rate": 0.5}  # fmt: skip
"""Attributes to try a formula with."""
