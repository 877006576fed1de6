"""The frame of kernels around a product: types, the workspace, packed weights, the epilogue.

It knows nothing of what is multiplied: an emitter hands it the loops.
"""

from __future__ import annotations

from functools import wraps
from typing import NamedTuple

from ..engine.codegen.kernel import C_TYPES, Kernel, emits, function
from ..engine.codegen.scalar import CannotWrite
from ..engine.codegen.writer import least
from ..engine.core import dtype as dt
from .c_text import SIZES, Workspace, indent, loop_over_epilogue, share_loop, share_parts
from .open_sizes import is_open
from .products import microkernel
from .products.bias_and_bounds import BiasAndBounds
from .products.epilogue import declare_block
from .products.prepacking import Prepack, is_constant_input


class RowBlocks(NamedTuple):
    """The iterations that threads share: each computes `block` of the `rows` rows of one of `count`
    images. A row is `stride` rows of `width` pixels in the result, which has `high` of these.
    """

    count: int
    rows: int
    block: int
    width: int = 1
    stride: int = 1
    high: int = 0  # 0: rows

    @property
    def each(self) -> int:
        """The blocks of an image."""
        return -(-self.rows // self.block)

    @property
    def total(self) -> int:
        """The blocks of all images."""
        return self.count * self.each

    @property
    def head(self) -> str:
        """C text of block i: the number `n` of its image, its first row `top`, and its `rows`."""
        if self.each == 1 and not is_open(self.each):
            return f"const int64_t n = i, top = 0, rows = {self.rows};\n"
        uneven = is_open(self.rows) or self.rows % self.block
        rows = least(f"{self.rows} - top", self.block) if uneven else self.block
        return (
            f"const int64_t n = i / {self.each}, top = i % {self.each} * {self.block};\n"
            f"const int64_t rows = {rows};\n"
        )

    @property
    def span(self) -> tuple[str, str]:
        """C texts: the first pixel of the result that a block computes, and the end."""
        high, w, s = self.high or self.rows, self.width, self.stride
        end = f"(top + rows) * {s}" if s > 1 else "top + rows"
        end = f"({least(end, high)})" if (is_open(high) and s > 1) or high % s else end
        return f"(n * {high} + top{f' * {s}' * (s > 1)}) * {w}", f"(n * {high} + {end}) * {w}"


class KernelFrame:
    """A kernel that is being written: `text` precedes its loops; `names` are its inputs'. It may
    add to the result that is there.
    """

    half = False  # whether its result is rounded
    as_stored = False  # whether the loops do that

    def __init__(self, record, name, rows=None, parameters=(), add=False):
        self.how = record, name, rows, parameters, add
        self.record, self.name, self.rows, self.parameters = record, name, rows, parameters
        self.out, self.room, self.prepack, self.adds = record.spec, Workspace(), None, add
        self.T, self.text, self.target = C_TYPES[self.out.dtype], "", "out0"
        self.names = [f"in{k}" for k in range(len(record.inputs))]

    def array(self, name: str, elements: int, T: str = "") -> str:
        """Declare an array in the workspace; return its name."""
        T = T or self.T
        self.text += f"    {T} *{name} = {self.room.array(T, elements)};\n"
        return name

    def is_constant(self, k: int) -> bool:
        """Whether an input is the same in every run, and may be packed before the first."""
        return self.names[k] == f"in{k}" and is_constant_input(self.record.inputs[k])

    def pack(self, name: str, k: int, elements: int, call: str, T: str = "", source="") -> None:
        """Declare `name`: an input in the form that the statement `call` brings it into, from
        `{given}` to `{made}`: before the runs if the input is constant, else in this kernel.
        """
        T, edge, source = T or self.T, self.record.inputs[k], source or self.names[k]
        if not (source == f"in{k}" and is_constant_input(edge)):
            self.array(name, elements, T)
            self.text += f"    {call.format(given=source, made=name)}\n"
            return
        same = C_TYPES[edge.dtype] == T
        packed, source = ("made", source) if same else (f"({T} *)made", f"(const {T} *){source}")
        size = -(-elements * SIZES[T] // edge.dtype.itemsize)
        self.prepack = Prepack(edge, size, call.format(given="given", made=packed))
        self.text += f"    const {T} *{name} = {source};  /* packed before the run */\n"

    def pack_panels(
        self, k: int, t: microkernel.Tile, columns, terms, column, step, T: str
    ) -> None:
        """Declare `panels`: an input in panels, the columns of a tile, to multiply it as T."""
        stored = C_TYPES[self.record.inputs[k].dtype] if self.is_constant(k) else self.T
        T, source = (T, "bfloat16") if T == microkernel.PAIRS else (stored, "")
        sizes = columns, terms, "{given}", column, step, "{made}"
        call = microkernel.call_panels(T, t, *sizes, source)
        self.pack("panels", k, microkernel.panels_size(columns, terms, t), call.rstrip(), T)

    @property
    def empty(self) -> bool:
        """Whether there is no result, or all sums are empty."""
        return not (self.out.size and all(edge.spec.size for edge in self.record.inputs))

    @property
    def inline(self):
        """The epilogue, if it can run for each block of finished rows."""
        return None if self.half and not self.as_stored else self.rows

    @property
    def finish(self) -> BiasAndBounds | None:
        """The operators that a kernel may apply to sums in registers instead."""
        return None if self.half else getattr(self.inline, "finish", None)

    def write_block(self, blocks: RowBlocks, tiles: str) -> str:
        """C text of one block: its `tiles`, and the epilogue. If only the epilogue needs the
        block's results, they are on the stack.
        """
        if not self.inline:
            return blocks.head + tiles
        most = blocks.block * blocks.stride * blocks.width
        memory = declare_block(self.rows, self.out, blocks.span[0], most)
        return blocks.head + memory + tiles + self.rows(*blocks.span)

    def write_tiled_kernel(
        self, blocks: RowBlocks, tiles: str, pays: str, helpers=(), finish=None, parts: int = 0
    ):
        """The kernel of blocks of rows, which threads share if that `pays`. Tiles that `finish`
        their sums need no epilogue. Those of thread p use part p of a workspace in `parts`.
        """
        tiles += self.convert_block(blocks)
        block = blocks.head + tiles if finish else self.write_block(blocks, tiles)
        if parts:
            text = share_parts(blocks.total, parts, block, pays)
        else:
            text = share_loop("i", blocks.total, block, pays)
        return self.kernel(indent(text, 4), helpers, done=True)

    def kernel(self, text: str, helpers=(), done: bool = False) -> Kernel:
        """The kernel with these loops. `done`: they contain the epilogue. The `helpers` are others
        than block functions."""
        prepack, text = self.prepack, self.text + text
        if self.out.size and self.empty:
            clear = f"    memset({self.target}, 0, {self.out.size} * sizeof({self.T}));\n"
            text, helpers, done, prepack = self.text + clear * (not self.adds), (), False, None
        text += self.convert_result()
        if self.out.size and not (done and self.inline):
            text += loop_over_epilogue(self.rows, self.out)
        space = self.room.size
        source = function(self.record, self.name, text, work=space > 0, parameters=self.parameters)
        return Kernel(self.name, source, space, (*microkernel.blocks(text), *helpers), prepack)

    def convert_block(self, blocks: RowBlocks) -> str:
        """C text after the tiles of a block."""
        return ""

    def convert_result(self) -> str:
        """C text after the loops."""
        return ""


class FloatKernel(KernelFrame):
    """A kernel that computes in floats: half precision is converted around its loops, only its
    results if inputs are `paired`; or by the loops, which read it so or in pairs, and write it
    `as_stored`. E is the type in which inputs are read.
    """

    def __init__(self, *how, paired: bool = False, as_stored: bool = False, **options):
        super().__init__(*how, **options)
        if self.out.dtype not in dt.FLOATS:
            raise CannotWrite(f"{self.record.op.name} of {self.out.dtype}")
        self.half, self.as_stored = self.out.dtype in dt.HALVES, as_stored
        self.dtype = dt.float32.numpy if self.half else self.out.dtype
        self.T = C_TYPES[self.dtype]
        self.E = microkernel.PAIRS if paired else self.T
        converts = self.half and not as_stored
        for k, edge in enumerate(self.record.inputs if converts and not paired else ()):
            if edge.dtype in dt.FLOATS:
                self.widen(k)
        if converts:
            self.target = self.array("result", self.out.size)

    def widen(self, k: int) -> None:
        """Copy an input of half precision to floats, which the loops read instead."""
        spec = self.record.inputs[k].spec
        self.names[k] = self.array(f"wide{k}", spec.size)
        self.text += self.convert_array(f"wide{k}", "widen", f"in{k}", spec)

    @staticmethod
    def convert_array(to: str, function: str, source: str, spec, span=()) -> str:
        """C text that copies an array, or a span of it, between half precision and floats."""
        function += "_half" if spec.dtype == dt.float16.numpy else ""
        value, (first, end) = f"{function}({source}[i])", span or (0, spec.size)
        return f"    for (int64_t i = {first}; i < {end}; i++) {to}[i] = {value};\n"

    def convert_block(self, blocks: RowBlocks) -> str:
        if not self.half or self.as_stored:
            return ""
        span, self.target = [f"{pixel} * {self.out.shape[-1]}" for pixel in blocks.span], "out0"
        return self.convert_array("out0", "narrow", "result", self.out, span).lstrip()

    def convert_result(self) -> str:
        if self.target == "out0":
            return ""
        return self.convert_array("out0", "narrow", "result", self.out)


def writes(*names: str, frame: type[KernelFrame] = FloatKernel):
    """Decorator that registers a function of a frame, which writes the kernels of the operators
    with these names. Where there is nothing to multiply, the result is 0.
    """

    def register(write):
        @emits(*names)
        @wraps(write)
        def emit(*how, **options) -> Kernel:
            begun = frame(*how, **options)
            return begun.kernel("") if begun.empty else write(begun)

        return write

    return register
