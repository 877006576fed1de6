"""The kernel of a group, or of a single elementwise, movement or reduction record."""

from __future__ import annotations

import re

from ..core.record import Record
from ..ir.control import fused
from ..ir.program import INPUT, ITEM, NUMBER
from ..passes.nest import Nest, NotOneNest
from .kernel import C_TYPES, Kernel, buffers, c_function, parameters_of, results
from .rows import collapse, row_nest
from .writer import FUNCTIONS, NestWriter

FORMS: list = [(lambda writer: True, row_nest)]
"""The forms of a nest with reductions: (which writers it fits, what writes it)."""


def emit_nest(record, name: str) -> Kernel:
    """The C function of a record that is one loop nest. Its buffers may overlap where
    `Nest.in_place` allows it.
    """
    if not any(spec.size for spec in results(record)):
        return Kernel(name, c_function(name, parameters_of(record, pointer="*"), ""))
    writer, parameters = nest_writer(record)
    pairs = writer.nest.in_place()
    starts = rebase_loads(writer.nest, inputs_of(record))
    body = body_of(writer)
    return Kernel(name, c_function(name, parameters, body), starts=starts, in_place=pairs)


def body_of(writer: NestWriter) -> str:
    """The body of the function that computes a nest."""
    loops = writer.nest.loops
    if not writer.nest.reduces:
        elementwise(writer, loops)
    else:
        next(write for fits, write in FORMS if fits(writer))(writer)
    return "\n".join(writer.lines)


def elementwise(w: NestWriter, loops) -> None:
    """A nest without reductions: each element once."""
    if len(loops) == 1:
        with w.along_rows(loops[0]):
            w.assign(w.stores(w.outputs(), {}))
        return
    threads = collapse(w.threads(w.nest.size), loops[:-1], 1)
    with w.each_row(loops[:-1], *threads), w.loop(loops[-1:], w.simd):
        w.assign(w.stores(w.outputs(), {}))


def rebase_loads(nest: Nest, inputs: list[Record]) -> tuple[int, ...]:
    """Count the indices of each input from the first element that the nest reads; return how many
    elements that skips. So the same work on other slices (time steps, heads) shares one kernel.
    """
    loads: dict[Record, list] = {x: [] for x in inputs}
    for node in nest.nodes():
        if node.kind == "load":
            loads.setdefault(nest.loaded_input(node), []).append(node)
    starts = tuple(max(0, min((n.index.low for n in loads[x]), default=0)) for x in inputs)
    for x, start in dict(zip(inputs, starts, strict=True)).items():
        for node in loads[x] if start else ():
            node.index -= start
    return starts


def inputs_of(record: Record) -> list[Record]:
    """The inputs of a record's kernel, as its nest knows them."""
    inner = record.attrs["region"].inputs if record.op is fused else record.inputs
    return [x for x in inner if x.op is not NUMBER]


def nest_writer(record, types=C_TYPES, taken=()) -> tuple[NestWriter, list[str]]:
    """(The writer of a record that is one loop nest, the parameters of its function)."""
    inputs = inputs_of(record)
    if record.op is fused:
        region = record.attrs["region"]
        records, outputs = region.records, region.outputs
    elif record.dtype is None:
        raise NotOneNest("several results")
    else:
        records = outputs = [record]
    nest = Nest(records, outputs).merged()
    names, outs, parameters = signature(record, outputs, taken, types)
    of = dict(zip(reversed(inputs), reversed(names), strict=True))
    writer = NestWriter(nest, [of[x] for x in nest.inputs], outs)
    writer.taken |= dict.fromkeys(names, 0)  # also those that the nest does not read
    return writer, parameters


def signature(record, outputs, taken=(), types=C_TYPES) -> tuple[list[str], list[str], list[str]]:
    """(Readable names of the inputs, of the outputs, the parameters of the kernel)."""
    taken, inputs = set(taken), buffers(record)
    names = [unique_name(readable_name(x), taken) for x in inputs]
    outs = [unique_name(f"{r.op.name}_", taken) for r in outputs]
    parameters = [f"const {types[x.dtype]} *{n}" for x, n in zip(inputs, names, strict=True)]
    parameters += [f"{types[r.dtype]} *{n}" for r, n in zip(outputs, outs, strict=True)]
    return names, outs, parameters


def readable_name(x) -> str:
    """A readable name for the value of a record."""
    if x.op is ITEM:
        group = x.inputs[0]
        inner = group.attrs["region"].outputs[x.attrs["k"]] if group.op is fused else group
        return inner.op.name
    return (x.op is INPUT and x.attrs.get("name")) or x.op.name


def unique_name(base: str, taken: set) -> str:
    """A C identifier like `base` that is not in `taken`, where it is added."""
    base = re.sub(r"\W", "_", base, flags=re.ASCII)[:40] or "x"
    base = base if base[0].isalpha() and base not in KEYWORDS else f"x_{base}"
    name, k = base, 1
    while name in taken:
        k += 1
        name = f"{base}_{k}"
    taken.add(name)
    return name


WORDS = """
auto break case char const continue default do double else enum extern float for goto if inline int
long register restrict return short signed sizeof static struct switch typedef union unsigned void
volatile while bool true false pow fabs rint max min sum prod total start end row t threads work
first last i j k l m n p q r s widen narrow memcpy memset
"""
"""Words that C or the generated code uses."""
KEYWORDS = {*WORDS.split(), *FUNCTIONS, *(f"{name}f" for name in FUNCTIONS)}
