"""A kernel that computes in floats: half precision is converted around its loops."""

from __future__ import annotations

from ..engine.codegen.kernel import C_TYPES, Kernel, function
from ..engine.codegen.scalar import CannotWrite
from ..engine.core import dtype as dt
from . import microkernel
from .c_text import Workspace, epilogue_after
from .finish import Finish


class FloatKernel:
    """The common parts of kernels that compute in floats: types, conversions, the epilogue."""

    def __init__(self, record, name, rows, parameters):
        self.record, self.name, self.rows, self.parameters = record, name, rows, parameters
        self.out, self.room = record.spec, Workspace()
        if self.out.dtype not in dt.FLOATS:
            raise CannotWrite(f"{record.op.name} of {self.out.dtype}")
        self.half = self.out.dtype in dt.HALVES
        self.dtype = dt.float32.numpy if self.half else self.out.dtype
        self.T, self.text = C_TYPES[self.dtype], ""
        self.names = [f"in{k}" for k in range(len(record.inputs))]
        for k, edge in enumerate(record.inputs if self.half else ()):
            if edge.dtype in dt.FLOATS:
                self.names[k] = self.array(f"wide{k}", edge.spec.size)
                self.text += self.converted(f"wide{k}", "widen", f"in{k}", edge.spec)
        self.target = self.array("result", self.out.size) if self.half else "out0"

    def array(self, name: str, elements: int) -> str:
        """Declare an array in the workspace; return its name."""
        self.text += f"    {self.T} *{name} = {self.room.array(self.T, elements)};\n"
        return name

    @staticmethod
    def converted(to: str, function: str, source: str, spec) -> str:
        """C text that copies an array between half precision and floats."""
        value = f"{function}({source}[i])" if spec.dtype == dt.bfloat16.numpy else f"{source}[i]"
        return f"    for (int64_t i = 0; i < {spec.size}; i++) {to}[i] = {value};\n"

    @property
    def empty(self) -> bool:
        """Whether all sums are empty."""
        return not all(edge.spec.size for edge in self.record.inputs)

    @property
    def inline(self):
        """The epilogue, if it can run for each block of finished rows."""
        return None if self.half else self.rows

    @property
    def finish(self) -> Finish | None:
        """What a kernel may do to sums in registers instead."""
        return getattr(self.inline, "finish", None)

    def kernel(self, text: str, helpers=(), done: bool = False) -> Kernel:
        """The kernel with these loops. `done`: they contain the epilogue. The `helpers` are others
        than block functions."""
        if self.out.size and self.empty:
            text = f"    memset({self.target}, 0, {self.out.size} * sizeof({self.T}));\n"
            helpers, done = (), False
        if self.half:
            text += self.converted("out0", "narrow", "result", self.out)
        text = self.text + text
        if self.out.size and not (done and self.inline):
            text += epilogue_after(self.rows, self.out)
        space = self.room.size
        text = function(self.record, self.name, text, work=space > 0, parameters=self.parameters)
        return Kernel(self.name, text, space, (*microkernel.blocks(text), *helpers))
