"""The inputs and outputs as the header describes them."""

import re
from dataclasses import dataclass

from ..engine.codegen.kernel import C_TYPES
from ..engine.core import dtype as dt
from ..engine.core.record import Spec
from ..engine.core.slots import slot


@dataclass
class HeaderArray:
    """An array of the caller's or of the library's: its name, spec and bytes, where in the arena it
    lies, and what Python calls it.
    """

    name: str
    spec: Spec
    at: int = 0
    label: str = ""

    @property
    def type(self) -> str:
        """Its type in C."""
        return "uint16_t" if self.spec.dtype == dt.bfloat16.numpy else C_TYPES[self.spec.dtype]


@slot("export.identifiers")
def identifiers(names: list[str]) -> list[str]:
    """Names of inputs for C, each its own: `x` becomes `input_x`."""
    taken: list[str] = []
    for name in names:
        base = own = "input_" + re.sub(r"\W", "_", name, flags=re.ASCII).lower()
        n = 1
        while own in taken:
            n += 1
            own = f"{base}_{n}"
        taken.append(own)
    return taken


@slot("export.declaration")
def declaration(name: str, array: HeaderArray) -> list[str]:
    """The lines of the header about an input or output of the library `name`: its number of
    elements, its rank and its shape as macros, and the function that says where it lies.
    """
    macro, spec = f"{name}_{array.name}".upper(), array.spec
    shape = ", ".join(map(str, spec.shape)) or "1"
    return [
        f"/* {array.name}: {spec}, row-major{remark(array)}. */",
        f"#define {macro}_COUNT {spec.size}",
        f"#define {macro}_RANK {spec.ndim}",
        f"#define {macro}_SHAPE {{{shape}}}",
        f"{accessor(name, array)};",
    ]


def accessor(name: str, array: HeaderArray) -> str:
    """The head of the function that gives the address of an input or output."""
    return f"{array.type} *{name}_{array.name}(void *arena)"


def remark(array: HeaderArray) -> str:
    """A remark on types that C lacks."""
    if array.spec.dtype.name == "bool":
        return ", 0 or 1"
    return ", the upper halves of floats" if array.type == "uint16_t" else ""
