"""A program as ONNX can say it: norms in one piece, other composite operators in small ones."""

from ..engine.core.op import OPS
from ..engine.core.record import Record
from ..engine.ir.program import Program, regions
from ..engine.ops.gather import extent
from ..engine.ops.linalg import matmul
from ..engine.ops.movement import reshape
from ..engine.passes.decompose import RULES, by_body
from ..engine.passes.patterns import RewriteRule, by_rules
from ..engine.passes.rewriting import rewritten
from ..ops.arithmetic import rsqrt
from ..ops.norm import standardize
from ..ops.weight_only import floats, weight_only_matmul
from .forms import FORMS
from .forms.norms import layer_norm_fits


def one(x, m, v, w, b, eps, per):
    """The batch norm that the pattern below computes as one factor and one term."""
    place = per.index(-1)
    parts = [p if isinstance(p, float) else reshape(p, shape=per) for p in (w, b, m, v)]
    axes = tuple(d for d in range(len(per)) if d != place)
    return standardize(x, *parts, axes=axes, epsilon=eps, centered=True)


def of_channels(x, per, **_) -> bool:
    """Whether the factor varies along axis 1 alone, where ONNX has the channels."""
    return len(per) == x.spec.ndim and per[1:2] == (-1,) and set(per) <= {1, -1}


def batch_norms() -> list[RewriteRule]:
    """Batch norms at inference, with and without scale and shift (`nn.functional.normalize_by`)."""

    def scale(x, f, t, per):
        return x * reshape(f, shape=per) + reshape(t, shape=per)

    return [
        RewriteRule(lambda x, m, v, w, b, *, eps, per: scale(
                 x, rsqrt(v + eps) * w, b - m * (rsqrt(v + eps) * w), per), one, of_channels),
        RewriteRule(
             lambda x, m, v, *, eps, per: scale(x, rsqrt(v + eps), -m * rsqrt(v + eps), per),
             lambda x, m, v, **at: one(x, m, v, 1.0, 0.0, **at), of_channels),
        RewriteRule(lambda x, m, v, w, *, eps, per: scale(
                 x, rsqrt(v + eps) * w, -m * (rsqrt(v + eps) * w), per),
             lambda x, m, v, w, **at: one(x, m, v, w, 0.0, **at), of_channels),
        RewriteRule(lambda x, m, v, b, *, eps, per: scale(
                 x, rsqrt(v + eps), b - m * rsqrt(v + eps), per),
             lambda x, m, v, b, **at: one(x, m, v, 1.0, b, **at), of_channels),
    ]  # fmt: skip


def dequantize_product(record, x, w, scale):
    """A product with a weight of few bits as one of floats."""
    return matmul(x, floats(w, scale, record.attrs["bits"]).astype(x.spec.dtype))


def prepare(program: Program) -> Program:
    """The program with the operators that have an ONNX form, as far as there are rules."""
    simplified = rewritten(program, by_rules(batch_norms()))
    return rewritten(simplified, small())


def composites() -> list:
    return [op for op in OPS.values() if op.composite]


def small() -> dict:
    """Rules that write an operator without a form in operators that have one."""
    rules = {op: RULES.get(op, by_body) for op in {*RULES, *composites()}}
    chosen = {op: rule for op, rule in rules.items() if op.name not in FORMS}
    return chosen | {weight_only_matmul: dequantize_product}


def read_by(record: Record) -> list[Record]:
    """The inputs that the form of a record reads."""
    fits = record.op is standardize and layer_norm_fits(record)
    return record.inputs[:3] if fits else record.inputs


def find_needed(program: Program) -> list[Record]:
    """The records that the results need, in order; effects are none of them."""
    wanted, needed = set(program.results), []
    for record in reversed(program.records):
        shows = record.dtype is not None and record.op is extent
        if record in wanted or shows:
            needed.append(record)
            wanted.update(read_by(record))
    return needed[::-1]


def effects(program: Program) -> list[Record]:
    """The records with an effect, in regions too."""
    inside = [effects(x) for r in program.records for x in regions(r).values()]
    return [r for r in program.records if r.op.effect] + [r for each in inside for r in each]
