"""A whole program as one C file: a function for each record, and one that calls them in turn.

    int step(char *arena, void *const *in, void *const *state, void *const *out)
    int PREFIX_run(void *const *all)

`in`, `state` and `out` point to inputs, states and outputs. All other values are in the arena,
where the memory plan puts them. `all` is one table of these pointers: arena, in, state, out. `cond`
and `while_loop` become `if` and `for` in C; each region is a function like `step`. If a record has
no kernel in C, the host (Python) computes it: `host(k, …)`. The result is 0, or 1 if a call of the
host fails.
"""

from __future__ import annotations

import hashlib
import re
from functools import cached_property

from ..core.errors import line_of
from ..core.record import Record
from ..ir.control import cond, fused, while_loop
from ..ir.program import ITEM, NUMBER, Program, regions
from ..passes.buffer_assignment import Location, MemoryPlan
from ..passes.lifetimes import specs_of, value_of_view
from ..passes.nest import NotOneNest
from . import plain_products  # noqa: F401  (registers its emitters)
from .kernel import (
    BAD_INDEX,
    C_TYPES,
    EMITTERS,
    Kernel,
    group_emitter,
    has_mixed_dtypes,
    normalize_names,
)
from .kernel_schedule import KernelSchedule, following
from .nest_kernel import emit_nest
from .scalar import NARROWED, CannotWrite, literal, wide
from .translation_unit import SourceFile


class KernelTexts:
    """The texts of kernels. Those that differ only in names are written once, with the names of the
    first.
    """

    def __init__(self):
        self.written: dict[str, str] = {}  # the text without names -> the name
        self.texts: dict[str, str] = {}  # by name
        self.helpers: dict[str, None] = {}
        self.needs: dict[str, tuple[str, ...]] = {}  # the helpers of each kernel

    def once(self, record: Record, kernel):
        """A kernel with its name, or with that of an earlier one with the same text."""
        name = self.written.setdefault(normalize_names(kernel.source, kernel.name), kernel.name)
        if name == kernel.name:
            self.helpers.update(dict.fromkeys(kernel.helpers))
            self.needs[name] = kernel.helpers
            self.texts[name] = comment(record) + kernel.source
        return kernel._replace(name=name)


class KernelTable(KernelTexts):
    """The kernels of a program's records."""

    functions: tuple[str, ...] = ()  # further functions of the C file

    def __init__(self, program: Program, tuned: dict | None = None):
        """`tuned` has the choices for the schedules of some kernels, by signature."""
        super().__init__()
        self.of: dict[Record, Kernel | None] = {}
        self.tuned = tuned or {}
        self.tuned_records: list[Record] = []
        self.hosted: list[Record] = []
        for record in records_with_kernels(program):
            self.add(record)

    def add(self, record: Record) -> None:
        """Write the kernel of a record."""
        name = f"k{len(self.texts)}_{kernel_name(record)}"
        plain = kernel_of(record, name) if self.tuned else None
        choices = plain and self.tuned.get(signature_of(plain))
        with following(KernelSchedule(choices) if choices else None):
            kernel = self.kernel(record, name)
        if choices:
            self.tuned_records.append(record)
        if kernel is None or BAD_INDEX in kernel.helpers:
            self.hosted.append(record)
        self.of[record] = kernel and self.once(record, kernel)

    def kernel(self, record: Record, name: str) -> Kernel | None:
        """The kernel of a record; None if the host computes it."""
        return kernel_of(record, name)

    @cached_property
    def signatures(self) -> dict[Record, str]:
        """The signature of each kernel."""
        return {r: signature_of(kernel_of(r, k.name)) for r, k in self.of.items() if k}

    def workspace(self, record: Record) -> int:
        """The bytes of workspace that the kernel of a record needs."""
        kernel = self.of.get(record)
        return kernel.workspace if kernel is not None else 0


def records_with_kernels(program: Program):
    """The records that have kernels, also inside branches and loops. A group counts as one."""
    for record in program.records:
        if record.op in (cond, while_loop):
            for region in regions(record).values():
                yield from records_with_kernels(region)
        elif not is_alias(record):
            yield record


def is_alias(record: Record) -> bool:
    return record.op is ITEM or (record.dtype is not None and value_of_view(record) is not None)


def kernel_of(record: Record, name: str) -> Kernel | None:
    """The kernel of a record; None if the host computes the record."""
    try:
        return write_kernel(record, name)
    except (NotOneNest, CannotWrite):
        return None


def refusal(record: Record) -> str:
    """Why the host computes a record that has no kernel."""
    try:
        write_kernel(record, "kernel")
    except (NotOneNest, CannotWrite) as error:
        return str(error)


def write_kernel(record: Record, name: str) -> Kernel:
    """The kernel of a record; raises CannotWrite or NotOneNest with the reason if there is none."""
    group = group_emitter(record)
    emit = group.emit if group else EMITTERS.get(record.op.name, emit_nest)
    if record.op.effect and emit is emit_nest:
        raise CannotWrite("it has an effect outside of the program")
    first = record.attrs["region"].records[0] if group else record
    if has_mixed_dtypes(first) and not getattr(emit, "mixes", emit is emit_nest):
        raise CannotWrite("operands of several floating dtypes")
    return emit(record, name)


def signature_of(kernel: Kernel) -> str:
    """The identity of a kernel for tuning: its text without a schedule, and without the names of
    the kernel and of its parameters, which are the user's.
    """
    texts = normalize_names(kernel.source, kernel.name), *kernel.helpers
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:20]


def kernel_name(record: Record) -> str:
    """The name of a kernel: its last operator."""
    op = record.attrs["region"].outputs[-1].op.name if record.op is fused else record.op.name
    return re.sub(r"\W", "_", op, flags=re.ASCII)


def comment(record: Record) -> str:
    """A comment that names the user's lines."""
    records = record.attrs["region"].records if record.op is fused else [record]
    lines = "; ".join(dict.fromkeys(line_of(r.where) for r in records if r.where))
    return f"/* {lines.replace('*/', '* /')} */\n" if lines else ""


class StepWriter:
    """Writes the file of a program with its kernels and its plan."""

    def __init__(self, kernels: KernelTable, plan: MemoryPlan):
        self.kernels = kernels
        self.functions: list[str] = []
        self.count = 0
        self.function(plan, "step")
        inputs, states = len(plan.program.inputs), len(plan.program.states)
        table = f"all[0], all + 1, all + {1 + inputs}, all + {1 + inputs + states}"
        self.functions.append(RUN.replace("TABLE", table))
        self.functions += kernels.functions

    def function(self, plan: MemoryPlan, name: str) -> None:
        lines = [self.copy(plan, c) for c in plan.before]
        for record in plan.program.records:
            lines += self.record(plan, record)
        lines += [*(self.copy(plan, c) for c in plan.copies), "return 0;"]
        arguments = "char *arena, void *const *in, void *const *state, void *const *out"
        body = "\n".join(f"    {line}" for line in lines)
        self.functions.append(f"static int {name}({arguments})\n{{\n{body}\n}}\n")

    # ---- places ------------------------------------------------------------------------------

    def pointer(self, location: Location) -> str:
        if location.kind == "arena":
            return f"arena + {self.offset(location.offset)}"
        return {"input": "in", "state": "state", "output": "out"}[location.kind] + f"[{location.k}]"

    def offset(self, number: int) -> str:
        """C text of an offset in the arena."""
        return str(number)

    def at(self, plan: MemoryPlan, record: Record, k: int = 0, const: bool = False) -> str:
        """The address of a value, as a pointer of its type."""
        place = plan.location(record, k)
        spec = specs_of(record)[k]
        kind = f"const {C_TYPES[spec.dtype]} *" if const else f"{C_TYPES[spec.dtype]} *"
        text = self.pointer(place)
        return f"({kind})({text})" if "+" in text else f"({kind}){text}"

    def copy(self, plan: MemoryPlan, copy) -> str:
        value, source, target = copy
        return self.store(value, value.spec, source, self.pointer(target))

    def store(self, value: Record, spec, source: Location, target: str) -> str:
        """A statement that stores a value, or a number, at a pointer."""
        if value.op is NUMBER:
            number = literal(value.attrs["value"], wide(spec.dtype)).template
            number = NARROWED.get(spec.dtype, "{}").format(number)
            return f"*({C_TYPES[spec.dtype]} *)({target}) = {number};"
        return f"memcpy({target}, {self.pointer(source)}, {spec.nbytes});"

    # ---- records -----------------------------------------------------------------------------

    def record(self, plan: MemoryPlan, record: Record) -> list[str]:
        if record.op is cond:
            return self.branches(plan, record)
        if record.op is while_loop:
            return self.loop(plan, record)
        if record not in self.kernels.of:
            return []
        kernel = self.kernels.of[record]
        if kernel is None:
            return self.call_host(plan, record)
        inputs = [self.at(plan, x, const=True) for x in record.inputs if x.op is not NUMBER]
        outputs = [self.at(plan, record, k) for k in range(len(specs_of(record)))]
        work = self.pointer(plan.work[record]) if kernel.workspace else ""
        lines = [f"{kernel.call(inputs, outputs, work)};"]
        if BAD_INDEX in kernel.helpers:  # NumPy has the right error message
            asked = ["    " + line for line in self.call_host(plan, record)]
            lines += ["if (bad_index != before) {", *asked, "}"]
            lines = ["{", *(f"    {x}" for x in ["const int before = bad_index;", *lines]), "}"]
        return lines

    def array(self, name: str, pointers: list[str]) -> str:
        return f"void *const {name}[] = {{{', '.join(f'(void *)({p})' for p in pointers) or 0}}};"

    def pointers(self, plan: MemoryPlan, records) -> list[str]:
        return [self.pointer(plan.location(x)) for x in records if x.op is not NUMBER]

    def call_host(self, plan: MemoryPlan, record: Record) -> list[str]:
        k = self.kernels.hosted.index(record)
        return [
            f"{{  /* {record.op.name} by the host */",
            *self.operands(plan, record, record.inputs),
            f"    if (host({k}, given, made)) return 1;",
            "}",
        ]

    def operands(self, plan: MemoryPlan, record: Record, inputs) -> list[str]:
        """The declarations of two tables: the addresses of these inputs and of the results."""
        results = [self.pointer(plan.location(record, j)) for j in range(len(specs_of(record)))]
        arguments = self.pointers(plan, inputs)
        return ["    " + self.array("given", arguments), "    " + self.array("made", results)]

    def region_functions(self, plan: MemoryPlan, record: Record, *keys: str) -> list[str]:
        """The names of the functions of two regions, and their arena."""
        names, prefix = [], "if_" if record.op is cond else ""
        for key in keys:
            self.count += 1
            names.append(f"{prefix}{key}{self.count}")
            self.function(plan.regions[record][key], names[-1])
        return [*names, self.pointer(plan.work[record]) if record in plan.work else "arena"]

    def branches(self, plan: MemoryPlan, record: Record) -> list[str]:
        yes, no, arena = self.region_functions(plan, record, "true", "false")
        test = self.at(plan, record.inputs[0], const=True)
        return [
            "{",
            *self.operands(plan, record, record.inputs[1:]),
            f"    if (*{test} ? {yes}({arena}, given, 0, made) : {no}({arena}, given, 0, made))",
            "        return 1;",
            "}",
        ]

    def loop(self, plan: MemoryPlan, record: Record) -> list[str]:
        test, body, arena = self.region_functions(plan, record, "test", "body")
        n, trips, region = map(record.attrs.get, ("carried", "trip_count", "body"))
        reads, writes = (record.attrs.get(key, ()) for key in ("reads", "writes"))
        results = [self.pointer(plan.location(record, k)) for k in range(len(record.shape))]
        w, rest = len(results) - len(writes), self.pointers(plan, record.inputs[n:])
        now, stacks = results[:n], results[n + 1 : w] if trips else []
        shared = len(rest) - len(reads)

        def slices(pointers, parts, turned):  # as an iteration reads or writes them
            at = ("trip", f"({trips} - 1 - trip)")
            parts = zip(pointers, parts, turned, strict=True)
            return [f"(char *)({p}) + {at[bool(back)]} * {x.spec.nbytes}" for p, x, back in parts]

        outs = slices(results[w:], region.outputs[n:], writes)
        rest[shared:] = slices(rest[shared:], region.inputs[n + shared :], reads)
        entering = list(zip(record.inputs[:n], stacks or now, specs_of(record)))
        if stacks:  # an iteration reads one place of a stack and writes the next one
            slots = [f"(char *)({y}) + trip * {x.nbytes}" for _, y, x in entering]
            ends = [f"trip + 1 < {trips} ? {slot} + {x.nbytes} : (char *)({y})"
                    for slot, y, (*_, x) in zip(slots, now, entering)]  # fmt: skip
            call = f"{body}({arena}, given, 0, following)"
            names = [self.array("given", [*slots, *rest]), self.array("following", [*ends, *outs])]
        else:
            call = f"{body}({arena}, rest, carried, made)"
            names = [*map(self.array, ("carried", "rest", "made"), (now, rest, outs))]
        lines = [
            self.store(x, spec, plan.location(x), target)
            for x, target, spec in entering
            if x.op is NUMBER or self.pointer(plan.location(x)) != target
        ]
        count = [f"*({self.at(plan, record, n)}) = {trips};"] if w > n else []
        asks = [
            f"{C_TYPES[record.attrs['test'].outputs[0].dtype]} go;",
            self.array("all", [*now, *rest]),
            "void *const answer[] = {&go};",
            f"if ({test}({arena}, all, 0, answer)) return 1;",
            "if (!go) break;",
        ]
        head = f"for (int64_t trip = 0; trip < {trips}; trip++) {{"
        head, asks = ("for (;;) {", asks) if trips is None else (head, [])
        inside = [*names, *asks, f"if ({call}) return 1;"]
        return [*lines, head, *(f"    {line}" for line in inside), "}", *count]


RUN = """\
__attribute__((visibility("default"))) int PREFIX_run(void *const *all)
{
    return step(TABLE);
}
"""


def source_of(kernels: KernelTable, plan: MemoryPlan) -> SourceFile:
    """The C file of a program."""
    return SourceFile(kernels, StepWriter(kernels, plan).functions)
