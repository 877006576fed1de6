"""A kernel that computes in floats: half precision is converted around its loops."""

from __future__ import annotations

from ..engine.codegen.kernel import C_TYPES, Kernel, function
from ..engine.codegen.scalar import CannotWrite
from ..engine.core import dtype as dt
from .matmul import Workspace, epilogue_after, widen_input


class FloatKernel:
    """The common parts of kernels that compute in floats: types, conversions, the epilogue."""

    def __init__(self, record, name, rows, parameters):
        self.record, self.name, self.rows, self.parameters = record, name, rows, parameters
        self.out, self.room, self.helpers = record.spec, Workspace(), ()
        if self.out.dtype not in dt.FLOATS:
            raise CannotWrite(f"{record.op.name} of {self.out.dtype}")
        self.half = self.out.dtype in dt.HALVES
        self.T = "float" if self.half else C_TYPES[self.out.dtype]
        floats = [k for k, edge in enumerate(record.inputs) if edge.dtype in dt.FLOATS]
        self.names = [f"in{k}" for k in range(len(record.inputs))]
        self.text, self.target = "", "out0"
        if self.half:
            for k in floats:
                self.text += widen_input(self.room, f"in{k}", f"wide{k}", record.inputs[k].spec)
                self.names[k] = f"wide{k}"
            self.target, size = "result", self.out.size
            self.text += f"    float *result = {self.room.array('float', size)};\n"

    @property
    def empty(self) -> bool:
        """Whether all sums are empty."""
        return not all(edge.spec.size for edge in self.record.inputs)

    @property
    def inline(self):
        """The epilogue, if it can run for each block of finished rows."""
        return None if self.half else self.rows

    def kernel(self, text: str, helpers=(), done: bool = False) -> Kernel:
        """The kernel with these loops. `done`: they contain the epilogue."""
        if self.out.size and self.empty:
            text = f"    memset({self.target}, 0, {self.out.size} * sizeof({self.T}));\n"
            helpers, done = (), False
        if self.half:
            value = "narrow(result[i])" if self.out.dtype == dt.bfloat16.numpy else "result[i]"
            text += f"    for (int64_t i = 0; i < {self.out.size}; i++) out0[i] = {value};\n"
        text = self.text + text
        if self.out.size and not (done and self.inline):
            text += epilogue_after(self.rows, self.out)
        space = self.room.size
        text = function(self.record, self.name, text, work=space > 0, parameters=self.parameters)
        return Kernel(self.name, text, space, tuple(helpers))
