"""Elementwise groups whose rows are a few elements, such as the channels of an image.

A row of three elements is no vector. The loop over rows is: the compiler unrolls the few elements
of each, and vectors of them are mixed before they are stored. Where an element is loaded only under
a condition, the few are not unrolled: GCC 12 mixes up the masks of such vectors, and loses values.
"""

from __future__ import annotations

from ...engine.codegen.kernel import GROUP_EMITTERS, GroupEmitter, Kernel, c_function
from ...engine.codegen.nest_kernel import inputs_of, nest_writer, rebase_loads
from ...engine.core.record import Record
from ...engine.ops.elementwise import where
from ...engine.passes.nest import NestNode

MOST = 4
"""Most elements of a row."""


def is_interleaved(record: Record) -> bool:
    """Whether a group is elementwise, with one result of many rows of a few elements."""
    region = record.attrs["region"]
    (out, *others), kinds = region.outputs, {r.op.kind for r in region.records}
    if others or out.dtype is None or not kinds <= {"elementwise", "movement"}:
        return False
    if out.spec.ndim < 2 or not 1 < out.shape[-1] <= MOST:
        return False
    loops = nest_writer(record)[0].nest.loops
    return len(loops) > 1 and loops[-1].extent == out.shape[-1]


def is_conditional(node: NestNode) -> bool:
    """Whether a value may be loaded only under a condition."""
    return bool(node.guard) or (node.kind == "apply" and node.of.op is where)


def emit_interleaved(record: Record, name: str) -> Kernel:
    """The kernel of such a group."""
    writer, parameters = nest_writer(record)
    starts = rebase_loads(writer.nest, inputs_of(record))
    *images, rows, row = writer.nest.loops
    with writer.loop(images), writer.along_rows(rows):
        if not any(map(is_conditional, writer.nest.nodes())):
            writer.put(f"#pragma GCC unroll {MOST}")
        with writer.loop([row]):
            writer.assign(writer.stores(writer.outputs(), {}))
    text = c_function(name, parameters, "\n".join(writer.lines))
    return Kernel(name, text, starts=starts)


GROUP_EMITTERS.append(GroupEmitter(is_interleaved, emit_interleaved, lambda record: []))
