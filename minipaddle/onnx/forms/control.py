"""Forms of control flow: If and Loop; and of marks that compute nothing."""

from ..graph import INT64, OnnxGraph, OnnxValue
from ..table import FORMS, form
from .movement import same


def output_values(g: OnnxGraph, records) -> list[OnnxValue]:
    """Results of a subgraph: values of its own, each once."""
    return [g("Identity", g.read(r), shape=r.shape) for r in records]


def subgraph(g: OnnxGraph, name: str, inputs, outputs):
    """A graph that another one holds."""
    return g.proto(name, inputs, outputs)


def branch(g: OnnxGraph, region, given, name: str):
    """A region as the branch of an If: it sees the values around it."""
    inner = type(g)(g)
    inner.enter(region, given)
    return subgraph(inner, name, [], output_values(inner, region.outputs))


@form("cond")
def _(g, pred, *inputs, true, false):
    branches = {
        "then_branch": branch(g, true, inputs, "then"),
        "else_branch": branch(g, false, inputs, "else"),
    }
    outputs = g("If", pred, results=len(true.outputs), **branches)
    return attach_specs(outputs, g.record.shape)


def attach_specs(values, specs) -> tuple[OnnxValue, ...]:
    """Results with their dtypes."""
    values = values if isinstance(values, tuple) else (values,)
    return tuple(OnnxValue(v.graph, v.name, s.dtype, s.shape) for v, s in zip(values, specs))


@form("while_loop")
def _(g, *inputs, test, body, carried, keep):
    """The test of the first iteration is before the Loop, the test of the next one in its body.
    What `keep` stacks is left out where nobody reads it.
    """
    keep = keep and g.reads_beyond(g.record, carried)
    now, rest = (
        [g.value(x, r.dtype) for x, r in zip(inputs, body.inputs)][:carried],
        inputs[carried:],
    )
    first = g.inline(test, (*now, *rest))[0]
    inner = type(g)(g)
    number = OnnxValue(inner, inner.main.name("iteration"), INT64, ())
    going = OnnxValue(inner, inner.main.name("going"), bool, ())
    own = [
        OnnxValue(inner, inner.main.name("carried"), r.dtype, r.shape)
        for r in body.inputs[:carried]
    ]
    inner.enter(body, (*own, *rest))
    after = output_values(inner, body.outputs)
    again = inner("Identity", inner.inline(test, (*after, *rest))[0], shape=())
    scans = [inner("Identity", x, shape=x.shape) for x in own] if keep else []
    count = [inner("Identity", number, shape=())] if keep else []
    graph = subgraph(inner, "body", [number, going, *own], [again, *after, *count, *scans])
    n = carried + (1 + carried if keep else 0)
    outputs = g("Loop", None, first, *now, results=n, body=graph)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    if not keep:
        return attach_specs(outputs, g.record.shape)
    rounds = OnnxValue(g, outputs[carried].name, INT64)
    stacks = outputs[carried + 1 :]
    size = g("Squeeze", g("Shape", rounds, dtype=INT64), (0,))
    return attach_specs((*outputs[:carried], size, *stacks), g.record.shape)


@form("fused")
def _(g, *inputs, region):
    return tuple(g.inline(region, inputs))


@form("custom")
def _(g, *inputs, backward, results):
    return tuple(same(g, x) for x in inputs[:results])


FORMS["after"] = lambda g, x, *others: same(g, x)
FORMS["reshard"] = lambda g, x, mesh, placements: same(g, x)
FORMS["placed_as"] = lambda g, x, y: same(g, x)
FORMS["move"] = lambda g, x, place, source: same(g, x)
