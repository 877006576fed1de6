"""A whole program as one C file: a function for each record, and one that calls them in turn.

    int step(char *arena, void *const *in, void *const *state, void *const *out)
    int PREFIX_run(void *const *all)

`in`, `state` and `out` are the memory of inputs, states and outputs; everything else lies in the
arena where the plan put it. `all` is one table of these pointers: arena, in, state, out. `cond` and
`while_loop` are C's `if` and `for`; each region is a function like the first one. A record that has
no kernel in C is computed by the host: `host(k, …)`. The result is 0, or what the host returned
when it was no success.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter

from ..core.errors import line_of
from ..core.record import Record
from ..ir.control import cond, fused, while_loop
from ..ir.program import ITEM, NUMBER, Program, regions
from ..passes.lifetimes import looked_into, specs_of
from ..passes.nest import NotOneNest
from ..passes.places import Place, Plan
from .group import emit_nest
from .kernel import (
    BAD_INDEX,
    C_TYPES,
    EMITTERS,
    Ahead,
    Kernel,
    group_emitter,
    keeping,
    mixed,
    without_names,
)
from .scalar import CannotWrite, literal
from .schedule import Schedule, following
from .translation_unit import Source


class Kernels:
    """The kernels of a program's records; those that differ in names alone are written once, with
    the names of the first."""

    def __init__(self, program: Program, tuned=None, kept=()):
        """`tuned`, from the signature of a kernel to the choices to write it by, or None. `kept`
        are states that hold the same in every run: kernels may want something made of them
        (`ahead`).
        """
        self.of: dict[Record, Kernel | None] = {}
        self.signatures: dict[Record, str] = {}
        self.choices: dict[str, dict] = {}  # of the kernels that are not as the rules say
        self.tuned = tuned or (lambda signature: None)
        self.written: dict[str, str] = {}  # the text without names -> the name
        self.texts: dict[str, str] = {}  # by name
        self.helpers: dict[str, None] = {}
        self.hosted: list[Record] = []
        self.ahead: dict[Record, Ahead] = {}
        uses = Counter(x for r in program.records for x in r.inputs)
        self.kept = {x for x in kept if uses[x] == 1 and x not in program.results}
        for record in computed(program):
            self.add(record)

    def add(self, record: Record) -> None:
        kernel = kernel_of(record, f"k{len(self.texts)}_{named(record)}")
        self.of[record] = kernel
        if kernel is None or BAD_INDEX in kernel.helpers:
            self.hosted.append(record)
        if kernel is None:
            return
        self.signatures[record] = signature = signature_of(kernel)
        choices, kept = self.tuned(signature), self.kept_by(record)
        if choices:
            self.choices[signature] = choices
        if choices or kept:
            with following(Schedule(choices) if choices else None), keeping(kept):
                kernel = kernel_of(record, kernel.name)
        if kernel.ahead is not None:
            self.ahead[kept[kernel.ahead.edge]] = kernel.ahead
        name = self.written.setdefault(without_names(kernel.source, kernel.name), kernel.name)
        if name == kernel.name:
            self.helpers.update(dict.fromkeys(kernel.helpers))
            self.texts[name] = comment(record) + kernel.source
        self.of[record] = kernel._replace(name=name)

    def kept_by(self, record: Record) -> dict[Record, Record]:
        """What is kept of a record's inputs, by the inputs of its first record if it is a group."""
        inner = record.attrs["region"].inputs if record.op is fused else record.inputs
        pairs = zip(inner, record.inputs, strict=True) if self.kept else ()
        return {x: y for x, y in pairs if y in self.kept}

    def workspace(self, record: Record) -> int:
        """The bytes of memory of its own that a record's kernel needs."""
        kernel = self.of.get(record)
        return kernel.workspace if kernel is not None else 0


def computed(program: Program):
    """The records that kernels compute: also those of branches and loops, not those of groups."""
    for record in program.records:
        if record.op in (cond, while_loop):
            for region in regions(record).values():
                yield from computed(region)
        elif not is_alias(record):
            yield record


def is_alias(record: Record) -> bool:
    return record.op is ITEM or (record.dtype is not None and looked_into(record) is not None)


def kernel_of(record: Record, name: str) -> Kernel | None:
    """The kernel of a record; None if the host must compute it."""
    if record.op.effect:
        return None
    group = group_emitter(record)
    emit = group.emit if group else EMITTERS.get(record.op.name)
    if emit is not None and mixed(record.attrs["region"].records[0] if group else record):
        return None
    try:
        return emit(record, name) if emit is not None else emit_nest(record, name)
    except (NotOneNest, CannotWrite):
        return None


def signature_of(kernel: Kernel) -> str:
    """What a kernel is known by: its text as the rules make it, but for names: its own, and those
    of its parameters, which are the user's."""
    texts = without_names(kernel.source, kernel.name), *kernel.helpers
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:20]


def named(record: Record) -> str:
    """What a kernel is called: its last operator, and the layer it is in."""
    op = record.attrs["region"].outputs[-1].op.name if record.op is fused else record.op.name
    return re.sub(r"\W", "_", op, flags=re.ASCII)


def comment(record: Record) -> str:
    """The user's line, as a comment."""
    line = line_of(record.where) if record.where else ""
    return f"/* {line.replace('*/', '* /')} */\n" if line else ""


class Step:
    """Writes the file of a program with its kernels and its plan."""

    def __init__(self, kernels: Kernels, plan: Plan, prefix: str, timed: bool = False):
        self.kernels, self.prefix = kernels, prefix
        self.timed: list[Record] | None = [] if timed else None
        self.functions: list[str] = []
        self.count = 0
        self.function(plan, "step")
        inputs, states = len(plan.program.inputs), len(plan.program.states)
        table = f"all[0], all + 1, all + {1 + inputs}, all + {1 + inputs + states}"
        self.functions.append(RUN.replace("PREFIX", prefix).replace("TABLE", table))
        if kernels.ahead:
            self.functions.append(self.ahead())

    def function(self, plan: Plan, name: str) -> None:
        lines = [f"    {self.copy(plan, c)}" for c in plan.before]
        for record in plan.program.records:
            lines += [f"    {line}" for line in self.record(plan, record)]
        lines += [f"    {self.copy(plan, c)}" for c in plan.copies]
        arguments = "char *arena, void *const *in, void *const *state, void *const *out"
        body = "\n".join([*lines, "    return 0;"])
        self.functions.append(f"static int {name}({arguments})\n{{\n{body}\n}}\n")

    def ahead(self) -> str:
        """The function that makes of kept states what kernels want in their place."""
        lines = []
        for k, (state, ahead) in enumerate(self.kernels.ahead.items()):
            kind = C_TYPES[state.dtype]
            names = f"const {kind} *given = all_given[{k}]; {kind} *made = all_made[{k}];"
            lines.append(f"    {{ {names} {ahead.call} }}")
        return AHEAD.replace("PREFIX", self.prefix).replace("LINES", "\n".join(lines))

    # ---- places ------------------------------------------------------------------------------

    def pointer(self, place: Place) -> str:
        if place.kind == "arena":
            return f"arena + {place.offset}"
        return {"input": "in", "state": "state", "output": "out"}[place.kind] + f"[{place.k}]"

    def at(self, plan: Plan, record: Record, k: int = 0, const: bool = False) -> str:
        """Where a value lies, as a pointer of its type."""
        place = plan.place(record, k)
        spec = specs_of(record)[k]
        kind = f"const {C_TYPES[spec.dtype]} *" if const else f"{C_TYPES[spec.dtype]} *"
        text = self.pointer(place)
        return f"({kind})({text})" if "+" in text else f"({kind}){text}"

    def copy(self, plan: Plan, copy) -> str:
        value, source, target = copy
        if source.kind == "number":
            kind, number = C_TYPES[value.dtype], literal(value.attrs["value"], value.dtype)
            return f"*({kind} *){self.pointer(target)} = {number.template};"
        return f"memcpy({self.pointer(target)}, {self.pointer(source)}, {target.nbytes});"

    # ---- records -----------------------------------------------------------------------------

    def record(self, plan: Plan, record: Record) -> list[str]:
        if record.op is cond:
            return self.branches(plan, record)
        if record.op is while_loop:
            return self.rounds(plan, record)
        if record not in self.kernels.of:
            return []
        kernel = self.kernels.of[record]
        if kernel is None:
            return self.by_host(plan, record)
        given = [self.at(plan, x, const=True) for x in record.inputs if x.op is not NUMBER]
        made = [self.at(plan, record, k) for k in range(len(specs_of(record)))]
        work = self.pointer(plan.work[record]) if kernel.workspace else ""
        lines = self.call(f"{kernel.call(given, made, work)};", record)
        if BAD_INDEX in kernel.helpers:  # NumPy knows best how to say what is wrong
            asked = ["    " + line for line in self.by_host(plan, record)]
            lines += ["if (bad_index != before) {", *asked, "}"]
            lines = ["{", *(f"    {x}" for x in ["const int before = bad_index;", *lines]), "}"]
        return lines

    def call(self, call: str, record: Record) -> list[str]:
        """The call of a kernel, and if they are taken, its time."""
        if self.timed is None:
            return [call]
        self.timed.append(record)
        seconds = f"{self.prefix}_seconds[{len(self.timed) - 1}]"
        return [f"{seconds} -= now();", call, f"{seconds} += now();"]

    def array(self, name: str, pointers: list[str]) -> str:
        return f"void *const {name}[] = {{{', '.join(f'(void *)({p})' for p in pointers) or 0}}};"

    def pointers(self, plan: Plan, records) -> list[str]:
        return [self.pointer(plan.place(x)) for x in records if x.op is not NUMBER]

    def by_host(self, plan: Plan, record: Record) -> list[str]:
        k = self.kernels.hosted.index(record)
        made = [self.pointer(plan.place(record, j)) for j in range(len(specs_of(record)))]
        return [
            f"{{  /* {record.op.name} by the host */",
            "    " + self.array("given", self.pointers(plan, record.inputs)),
            "    " + self.array("made", made),
            f"    if (host({k}, given, made)) return 1;",
            "}",
        ]

    def called(self, base: str, plan: Plan) -> str:
        self.count += 1
        name = f"{base}{self.count}"
        self.function(plan, name)
        return name

    def inner_arena(self, plan: Plan, record: Record) -> str:
        return self.pointer(plan.work[record]) if record in plan.work else "arena"

    def branches(self, plan: Plan, record: Record) -> list[str]:
        regions, arena = plan.regions[record], self.inner_arena(plan, record)
        yes, no = self.called("if_true", regions["true"]), self.called("if_false", regions["false"])
        made = [self.pointer(plan.place(record, j)) for j in range(len(specs_of(record)))]
        test = self.at(plan, record.inputs[0], const=True)
        return [
            "{",
            "    " + self.array("given", self.pointers(plan, record.inputs[1:])),
            "    " + self.array("made", made),
            f"    if (*{test} ? {yes}({arena}, given, 0, made) : {no}({arena}, given, 0, made))",
            "        return 1;",
            "}",
        ]

    def rounds(self, plan: Plan, record: Record) -> list[str]:
        regions, arena = plan.regions[record], self.inner_arena(plan, record)
        test, body = self.called("test", regions["test"]), self.called("body", regions["body"])
        n = record.attrs["carried"]
        now = [self.pointer(plan.place(record, j)) for j in range(n)]
        rest = self.pointers(plan, record.inputs[n:])
        kind = C_TYPES[record.attrs["test"].outputs[0].dtype]
        starts = []
        for x, target, spec in zip(record.inputs[:n], now, specs_of(record), strict=True):
            if x.op is NUMBER:
                number = literal(x.attrs["value"], spec.dtype).template
                starts.append(f"*({C_TYPES[spec.dtype]} *)({target}) = {number};")
            elif (source := self.pointer(plan.place(x))) != target:
                starts.append(f"memcpy({target}, {source}, {spec.nbytes});")
        return [
            *starts,
            "for (;;) {",
            f"    {kind} go;",
            "    " + self.array("carried", now),
            "    " + self.array("rest", rest),
            "    " + self.array("all", [*now, *rest]),
            "    void *const answer[] = {&go};",
            f"    if ({test}({arena}, all, 0, answer)) return 1;",
            "    if (!go) break;",
            f"    if ({body}({arena}, rest, carried, 0)) return 1;",
            "}",
        ]


RUN = """\
__attribute__((visibility("default"))) int PREFIX_run(void *const *all)
{
    return step(TABLE);
}
"""

AHEAD = """\
/* what is made of weights before the first run, and again when they have changed */
__attribute__((visibility("default")))
void PREFIX_ahead(void *const *all_given, void *const *all_made)
{
LINES
}
"""

NOW = """\
#include <time.h>

static double now(void)  /* seconds; of one thread those in which the processor works for it */
{
    struct timespec t;
    if (threads > 1 || clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t))
        clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

"""


def source_of(kernels: Kernels, plan: Plan, prefix: str, *, timed: bool = False) -> Source:
    """The C file of a program; `timed` adds up how long each kernel takes."""
    step = Step(kernels, plan, prefix, timed)
    functions = step.functions
    if timed:
        functions = [
            NOW + '__attribute__((visibility("default"))) '
            f"double {prefix}_seconds[{max(len(step.timed), 1)}];\n",
            *functions,
        ]
    helpers, hosted = [*kernels.helpers], kernels.hosted
    return Source(helpers, kernels.texts, functions, prefix, hosted, step.timed or [])
