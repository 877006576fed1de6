"""Open sizes in C: numbers while code is written, arguments of the code when it runs.

A program with open sizes is specialised for the sizes of a call, and goes through the same passes
and emitters as any other. But each of its sizes is an `OpenSize`: a number that knows the formula
by which it was computed, and the formula is what C text has. So two lengths have the same C file
unless a choice depends on the length (a tile for few rows, a row that fits a buffer), and then the
library of one serves the other. A text is always right for the sizes for which it was written: if
a formula gets lost, or a choice differs, the texts differ, and both are compiled.
"""

from __future__ import annotations

import operator
import re
from contextvars import ContextVar

from ..engine.codegen.kernel import Kernel
from ..engine.codegen.kernel_schedule import within
from ..engine.codegen.step import KernelTable, StepWriter
from ..engine.codegen.translation_unit import SourceFile
from ..engine.core.dim import Dim, larger, smaller, symbol
from ..engine.core.spec import LIFTS, SCALAR
from ..engine.core.symbols import Composite, Symbol, hint_of, symbols
from ..engine.eager.tracer import NUMBERS
from ..engine.executors.native import OPEN, Executable
from ..engine.ir.program import Program
from ..engine.passes.buffer_assignment import MemoryPlan

MOST = 16
"""Most open sizes of a program that are arguments; if there are more, all are numbers."""

OPEN_SIZES = f"""\
static int64_t open_sizes[{MOST}];  /* the sizes of this copy of the library */
"""

PREFIX = "size_"
"""The names of sizes begin so."""

USED = re.compile(rf"\b{PREFIX}\d+\b")
NAMED = re.compile(rf"\w{PREFIX}\d|{PREFIX}\d+[a-zA-Z_]|(enum|static const) [^;]*\b{PREFIX}\d")
"""Where a size is a part of a name, or of a constant."""

BODY = re.compile(r"^(\S.*\b(?:void|int) .*?\(.*\)\n{\n)((?:(?!^}).*\n)*)", re.MULTILINE)
"""A function: its head, and its body."""


_literal: ContextVar[bool] = ContextVar("literal", default=False)


def as_literals():
    """Within the block, C text has the numbers of sizes instead of their formulas."""
    return within(_literal, True)


def compute(apply):
    """Two methods of `OpenSize`, one for the size on the right, that compute number and formula."""

    def apply_both(a, b) -> int:
        if not (isinstance(a, int) and isinstance(b, int)):
            return NotImplemented  # a float; an index, which has the size as a coefficient
        memo = a.memo if type(a) is OpenSize else b.memo
        if type(a) is type(b) and b.memo is not memo:
            memo = None  # of other sizes
        key = apply, formula_of(a), formula_of(b)
        size = None if memo is None else memo.get(key)
        if size is None:
            size = OpenSize(apply(int(a), int(b)), apply(*key[1:]), memo)
            if memo is not None:
                memo[key] = size
        return size

    return apply_both, lambda self, other: apply_both(other, self)


def quotient(a, b):
    """a // b; in C, which rounds to 0, of numbers that are not negative."""
    return -((b - 1 - a) // b) if hint_of(a) < 0 < hint_of(b) else a // b


class OpenSize(int):
    """A whole number that knows its formula, a polynomial of open sizes.

    >>> from minipaddle.codegen.open_sizes import OpenSize
    >>> from minipaddle.engine.core.dim import symbol
    >>> n = OpenSize(50, symbol("size_0", 50))
    >>> n * 64 + 1, f"{n * 64 + 1}", f"{-(-n // 8)}"
    (3201, '(64*size_0 + 1)', '((size_0 + 7) / 8)')
    """

    formula: Dim
    memo: dict | None
    """The sizes that were computed from those of one call, by function and formulas."""

    def __new__(cls, number: int, formula, memo: dict | None = None):
        if not isinstance(formula, Dim) or abs(number) <= 1:
            return number  # an axis of size 1 is another kind of axis
        size = super().__new__(cls, number)
        size.formula, size.memo = formula, memo
        return size

    __add__, __radd__ = compute(operator.add)
    __sub__, __rsub__ = compute(operator.sub)
    __mul__, __rmul__ = compute(operator.mul)
    __floordiv__, __rfloordiv__ = compute(quotient)
    __mod__, __rmod__ = compute(operator.mod)

    def __truediv__(self, other):
        return Ratio(int(self) / other, self, other) if isinstance(other, int) else NotImplemented

    def __rtruediv__(self, other):
        return Ratio(other / int(self), other, self) if isinstance(other, int) else NotImplemented

    def __divmod__(self, other):
        return self // other, self % other

    def __rdivmod__(self, other):
        return other // self, other % self

    def __pos__(self) -> OpenSize:
        return self

    def __neg__(self) -> int:
        return self * -1

    def __abs__(self) -> int:
        return self if self >= 0 else -self

    def __hash__(self) -> int:  # what was computed for a number is not for this one
        return hash((int(self), self.formula))

    __eq__ = int.__eq__

    def __str__(self) -> str:
        return int.__repr__(self) if _literal.get() else text_of(self.formula)

    def __format__(self, spec: str) -> str:
        return format(str(self), spec.rstrip("d"))

    def __reduce__(self):
        return OpenSize, (int(self), self.formula)


def is_open(n: int) -> bool:
    """Whether a number depends on open sizes."""
    return type(n) is OpenSize and not _literal.get()


def clamp(n: int, low: int, high: int) -> int:
    """The number, or the limit that it exceeds. An open one keeps its formula either way, so texts
    do not differ on account of the limit.
    """
    formula = larger(smaller(formula_of(n), high), low)
    return OpenSize(max(min(int(n), high), low), formula, getattr(n, "memo", None))


def count_of(name: str, most: int) -> int:
    """A number that C computes in the variable `name`: at most this one."""
    return OpenSize(most, symbol(name, most))


class Ratio(float):
    """A quotient of sizes, which knows its formula in C."""

    formula: str

    def __new__(cls, number: float, over: int, under: int):
        ratio = super().__new__(cls, number)
        ratio.formula = f"((double){over} / {under})"
        return ratio

    def __str__(self) -> str:
        return float.__repr__(self) if _literal.get() else self.formula

    def __hash__(self) -> int:
        return hash((float(self), self.formula))

    __eq__, __format__ = float.__eq__, OpenSize.__format__


def formula_of(x: int):
    return x.formula if type(x) is OpenSize else x


def text_of(x) -> str:
    """A formula as an expression of C."""
    if not isinstance(x, Dim):
        return str(x)
    terms = sorted(x.terms.items(), key=lambda term: (-len(term[0]), term[0]))
    parts = ["*".join([*[str(c)] * (c != 1 or not names), *map(symbol_text, names)])
             for names, c in terms]  # fmt: skip
    alone = len(terms) == 1 and len(terms[0][0]) == terms[0][1] == 1
    text = " + ".join(parts).replace("+ -", "- ")
    return text if alone else f"({text})"


def symbol_text(a: Symbol) -> str:
    """A symbol of a formula as an expression of C."""
    if type(a) is not Composite:
        return str(a)
    over, under = text_of(a.over), text_of(a.under)
    if a.sign in ("max", "min"):
        return f"({over} {'>' if a.sign == 'max' else '<'} {under} ? {over} : {under})"
    if hint_of(a.under) <= 0:
        return f"({a.hint})"
    if hint_of(a.over) >= 0:
        return f"({over} {a.sign[0]} {under})"
    # C rounds to 0
    if a.sign == "%":
        return f"(({over} % {under} + {under}) % {under})"
    return f"(-(({under} - 1 - {over}) / {under}))"


def as_arguments(sizes: dict[str, int]) -> dict[str, int]:
    """The open sizes of a program by name, as numbers that know what C calls them."""
    if len(sizes) > MOST:
        return sizes
    names, memo = sorted(sizes), {}
    formulas = (symbol(f"{PREFIX}{k}", sizes[x]) for k, x in enumerate(names))
    return {x: OpenSize(sizes[x], each, memo) for x, each in zip(names, formulas)}


def declare_sizes(text: str) -> str:
    """The same functions; each begins with the sizes that it uses."""

    def declare(function) -> str:
        used = sorted({*USED.findall(function[0])})
        lines = (f"    const int64_t {x} = open_sizes[{x[len(PREFIX) :]}];\n" for x in used)
        return f"{function[1]}{''.join(lines)}{function[2]}"

    return BODY.sub(declare, text) if USED.search(text) else text


def with_sizes(kernel: Kernel) -> Kernel:
    """The same kernel, which reads the sizes that it uses."""
    source = declare_sizes(kernel.source)
    if source is kernel.source:
        return kernel
    return kernel._replace(source=source, helpers=(OPEN_SIZES, *kernel.helpers))


def wants_literals(kernel: Kernel) -> bool:
    """Whether C wants a literal for one of the sizes, as in the name of a function."""
    return any(map(NAMED.search, kernel.helpers)) or bool(NAMED.search(kernel.source))


# ---- the file ----------------------------------------------------------------------------------

ARGUMENTS = """\
static int64_t offsets[COUNT];  /* where this copy of the library has its values in the arena */
__attribute__((visibility("default"))) void PREFIX_arguments(const int64_t *x)
{
    memcpy(open_sizes, x, sizeof open_sizes);
    memcpy(offsets, x + MOST, sizeof offsets);
}
"""


class SizedStep(StepWriter):
    """A file that reads the offsets of an arena with open sizes from a table. The `sizes` of the
    program are those of its inputs.
    """

    def __init__(self, kernels: KernelTable, plan: MemoryPlan):
        self.sizes, self.offsets = find_sizes(plan.program), []
        super().__init__(kernels, plan)

    def offset(self, number: int) -> str:
        if not self.sizes:
            return super().offset(number)
        self.offsets.append(int(number))
        return f"offsets[{len(self.offsets) - 1}]"


def find_sizes(program: Program) -> list[int]:
    """The open sizes that a program is given, by their numbers; none if it has none."""
    formulas = (n.formula for record in program.given for n in record.shape if is_open(n))
    named = {int(x[len(PREFIX) :]): x.hint for formula in formulas for x in symbols(formula)}
    return [named.get(k, 0) for k in range(MOST)] if named else []


def write_sized_source(kernels: KernelTable, step: SizedStep) -> SourceFile:
    """The C file of a program whose open sizes are arguments."""
    if not step.sizes:
        return SourceFile(kernels, step.functions)
    kernels.helpers[OPEN_SIZES] = None
    table = ARGUMENTS.replace("COUNT", str(max(len(step.offsets), 1))).replace("MOST", str(MOST))
    source = SourceFile(kernels, [table, *map(declare_sizes, step.functions)])
    assert all(step.sizes[int(x[len(PREFIX) :])] for x in {*USED.findall(source.own)})
    source.arguments = (*step.sizes, *step.offsets)
    return source


def write_source(kernels: KernelTable, plan: MemoryPlan) -> SourceFile:
    """The C file of a program."""
    return write_sized_source(kernels, SizedStep(kernels, plan))


OPEN.append(as_arguments)
for own, kind in ((OpenSize, int), (Ratio, float)):
    NUMBERS.add(own)
    LIFTS[own], SCALAR[own] = LIFTS[kind], SCALAR[kind]
Executable.source_of = staticmethod(write_source)
