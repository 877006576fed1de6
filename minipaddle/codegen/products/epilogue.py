"""The kernel of a product with an epilogue, which uses rows while they are in the cache."""

from __future__ import annotations

from ...engine.codegen.kernel import (
    C_TYPES,
    EMITTERS,
    GROUP_EMITTERS,
    GroupEmitter,
    Kernel,
    buffers,
    c_function,
    has_mixed_dtypes,
    stack_array,
)
from ...engine.codegen.nest_kernel import body_of, rebase_loads, signature
from ...engine.codegen.scalar import CannotWrite
from ...engine.passes.nest import Nest
from ...passes.back_to_back_gemm import is_chain
from ...passes.epilogue import begins_with_product, in_place, room_of
from ...passes.strip_products import is_strips
from ..rows.partial_nest import RowsWriter
from .bias_and_bounds import BiasAndBounds, find_bias_and_bounds
from .requantize import HELPERS, find_requantize

IN_BLOCK = 1 << 18
"""Most bytes of a product that a kernel has on the stack at a time."""


class Epilogue:
    """The operators on the rows of a product: `write(first, last)` is its C text, as is a call.

    `alone` says that nothing else needs the product, `in_blocks` that its kernel asked for memory
    for some rows at a time. A kernel may `finish` sums instead while they are in registers.
    """

    def __init__(self, write, alone: bool, finish: BiasAndBounds | None = None):
        self.write, self.alone, self.in_blocks, self.finish = write, alone, False, finish

    def __call__(self, first: str, last: str) -> str:
        return self.write(first, last)


def declare_block(rows, spec, first: str, count: int) -> str:
    """C text that gives `out0` memory on the stack for `count` rows from `first` on; none where
    the whole product is needed, or if they do not fit.
    """
    n = spec.shape[-1]
    size = count * n
    if not (isinstance(rows, Epilogue) and rows.alone and size * spec.dtype.itemsize <= IN_BLOCK):
        return ""
    rows.in_blocks, T = True, C_TYPES[spec.dtype]
    return f"{stack_array(T, 'block', size)}\n{T} *const out0 = block - ({first}) * {n};\n"


def emit_epilogue(record, name: str) -> Kernel:
    """The kernel of a group that begins with a product: the product's own function, with the
    epilogue of finished rows inside. The product is in the memory of a result, or in the
    workspace.
    """
    region = record.attrs["region"]
    first, outputs = region.records[0], region.outputs
    if has_mixed_dtypes(first) and not getattr(EMITTERS[first.op.name], "mixes", False):
        raise CannotWrite("operands of several floating dtypes")
    shared = room_of(region).product
    nest = Nest(region.records[1:], outputs).merged()
    inputs, outs, takes = signature(record, outputs, {"first_row", "last_row", "row"})
    names = dict(zip(region.inputs, inputs, strict=True))
    operands = buffers(first)
    extra = [x for x in region.inputs if x not in operands]
    starts = dict(zip(extra, rebase_loads(nest, extra), strict=True))
    others = [k for k in range(len(outs)) if k != shared]
    declared = dict(zip([*region.inputs, *range(len(outs))], takes, strict=True))
    inside = {**names, **{x: f"in{k}" for k, x in enumerate(operands)}, first: "out0"}
    targets = ["out0" if k == shared else n for k, n in enumerate(outs)]

    usual = find_requantize(region) if shared is None else None
    pointers = {**inside, **dict(zip(outputs, targets, strict=True))}

    def rows(start: str, end: str) -> str:
        if usual:
            return usual.call(pointers, start, end, first.shape[-1])
        span = "first_row", "last_row", first.shape[-1]
        writer = RowsWriter(nest, [inside[x] for x in nest.inputs], targets, span)
        bounds = f"    const int64_t first_row = {start}, last_row = {end};"
        return f"{{\n{bounds}\n{body_of(writer)}\n}}\n"

    parameters = [declared[x] for x in (*extra, *others)]
    rows = Epilogue(
        rows, shared is None, find_bias_and_bounds(region, inside) if shared == 0 else None
    )
    inner = EMITTERS[first.op.name](first, f"{name}_rows", rows, parameters)
    size = -(-inner.workspace // 64) * 64
    product = f"({C_TYPES[first.dtype]} *)(work + {size})" if shared is None else outs[shared]
    workspace = inner.workspace if shared is not None else size + first.spec.nbytes
    if rows.in_blocks:
        product, workspace = "0", inner.workspace
    passed = [*(names[x] for x in operands), product, *(names[x] for x in extra)]
    passed += [*(outs[k] for k in others), *(["work"] if inner.workspace else [])]
    takes += ["char *work"] if workspace else []
    call = f"    {name}_rows({', '.join(passed)});"
    text = f"{inner.source}\n{c_function(name, takes, call)}"
    begins = tuple(starts.get(x, 0) for x in region.inputs)
    helpers = *inner.helpers, *(HELPERS if usual else ())
    return Kernel(name, text, workspace, helpers, inner.prepack, begins)


emit_epilogue.mixes = True  # where the product's kernel does


def is_epilogue(record) -> bool:
    """Whether a record is a group with one product, which is its first record."""
    return begins_with_product(record) and not (is_chain(record) or is_strips(record))


GROUP_EMITTERS.append(GroupEmitter(is_epilogue, emit_epilogue, in_place))
