"""Horizontal fusion: small kernels that do not wait for each other become one launch.

A launch takes a GPU as long as some hundred thousand elements do. So a small kernel waits until a
record needs what it computes, or to the end, as the updates of vectors do. All that wait then are
one launch: a block finds its kernel by its number, and the operands in a table of addresses. What
reads a result of a waiting kernel, or updates a state that this reads, is of the next launch.
A long reduction ends with a small kernel, which joins the results of parts: that waits alone.
Source: "multi-tensor apply" of NVIDIA's Apex, which does this for lists of tensors.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from ...engine.codegen.kernel import buffers, results
from ...engine.codegen.step import is_alias, kernel_name
from ...engine.core import dtype as dt
from ...engine.core.record import Record, Spec
from ...engine.executors.native import find_in_place
from ...engine.ir.control import Control, cond, while_loop
from ...engine.ir.edit import in_branches, substitute, with_records
from ...engine.ir.program import ITEM, Program, item_of
from ...engine.ops.marks import after
from ...engine.passes.list_scheduling import ScheduleInput
from ...engine.passes.memory import never, no_workspace
from ..indices.index_checks import index_inputs
from .calls import KernelCalls, Launch, Operand
from .tables import join_launches, joinable

SMALL = 1 << 16
"""Most bytes of an operand: of floats as many as half of the blocks that keep a GPU busy have."""

NAME = "KERNEL__"
"""The name of a kernel until its record has a number."""


class Lowered(Control):
    """The operator of records that are known by their calls alone; no list of operators has it."""

    name = "calls"

    def __init__(self):
        pass


LOWERED = Lowered()


class HorizontalFusion:
    """A program whose small kernels are joined, and the calls of its records (`works`)."""

    def __init__(self, program: Program, emit: Callable[[Record, str], KernelCalls | None]):
        self.emit, self.works = emit, {}
        self.program = self.join_all(program)

    def join_all(self, program: Program) -> Program:
        """The program, its branches and loops too, with small kernels joined."""
        program = self.lower(in_branches(program, self.join_all))
        before = ScheduleInput(program, no_workspace, never).before
        groups: list[list[Record]] = []  # of small kernels, with the views of their results
        of: dict[int, int] = {}  # the group of a record, by number
        records, new, done = [], {}, 0  # done: the number of groups that are launched
        for k, record in enumerate(program.records):
            last = max((of[j] for j in before[k] if j in of), default=-1)
            view = is_alias(record)
            if last >= done if view else self.is_small(record):
                of[k] = max(last + (not view), done)
                groups += [[] for _ in range(of[k] + 1 - len(groups))]
                groups[of[k]].append(record)
                continue
            for group in groups[done : last + 1]:
                records += self.join(group, new)
            done = max(done, last + 1)
            records.append(self.keep(record, new))
        for group in groups[done:]:
            records += self.join(group, new)
        return with_records(program, records, new)

    def is_small(self, record: Record) -> bool:
        """Whether a record is one small kernel. Whole numbers stay: their range may be known."""
        work = self.works.get(record)
        if work is None or len(work.calls) != 1 or not joinable(*work.calls):
            return False
        if record.op.effect or index_inputs(record):
            return False
        if any(spec.dtype not in (*dt.FLOATS, dt.bool_.numpy) for spec in results(record)):
            return False
        specs = [*results(record), *(x.spec for x in buffers(record))]
        return all(0 < spec.nbytes <= SMALL for spec in specs)

    def keep(self, record: Record, new: dict) -> Record:
        """The record applied to what stands for its inputs, with its calls."""
        now = substitute(record, new)
        if record in self.works:
            self.works[now] = self.works[record]
        return now

    def join(self, group: list[Record], new: dict) -> list[Record]:
        """A record of one launch for a group, its results, and the views of them."""
        members = [r for r in group if not is_alias(r)]
        if len(members) == 1:
            return [self.keep(r, new) for r in group]
        read = {r: [new.get(x, x) for x in buffers(r)] for r in members}
        readers = Counter(x for own in read.values() for x in {*own})
        inputs, calls, specs, pairs = [*readers], [], [], []
        places: dict[tuple[Record, int], int] = {}
        for r in members:
            first = len(specs)
            specs += results(r)
            places |= {(r, k): first + k for k in range(len(specs) - first)}
            at = {"in": [*map(inputs.index, read[r])], "out": range(first, len(specs))}
            (call,) = self.works[r].calls
            calls.append(move(call, lambda o, at=at: Operand(o.kind, at[o.kind][o.k], o.offset)))
            for k, j in in_place(r):
                x = new.get(r.inputs[j], r.inputs[j])
                pairs += [(first + k, inputs.index(x))] * (readers[x] == 1)
        whole = build_lowered(members[-1], "small", inputs, specs, pairs)
        self.works[whole] = KernelCalls((join_launches(NAME, calls),))
        items = {place: item_of(whole, k) for place, k in places.items()}
        views = []
        for r in group:
            place = (r.inputs[0], r.attrs["k"]) if r.op is ITEM else (r, 0)
            if place in items:
                new[r] = items[place]
            else:
                views.append(substitute(r, new))
        return [whole, *items.values(), *views]

    # ---- a small kernel at the end of a record -------------------------------------------------

    def lower(self, program: Program) -> Program:
        """The program in which the last kernel of a record is a record if others can join it."""
        records, new = [], {}
        parts: dict[Record, list[Record]] = {}  # the results of records that are two now
        for record in program.records:
            if record.op is after:  # the records have their order
                new[record] = new.get(record.inputs[0], record.inputs[0])
            elif record.op is ITEM and record.inputs[0] in parts:
                new[record] = parts[record.inputs[0]][record.attrs["k"]]
            elif record.op in (cond, while_loop) or is_alias(record):
                records.append(substitute(record, new))
            elif can_split(record, work := self.emit(record, NAME)):
                two, parts[record] = self.split(record, work, new)
                new[record] = parts[record][0]
                records += two
            else:
                records.append(substitute(record, new))
                self.works[records[-1]] = work
        return with_records(program, records, new)

    def split(self, record: Record, work: KernelCalls, new: dict) -> tuple[list, list]:
        """A record of all kernels but the last, one of the last, both with their results; and which
        of these are the results of `record`.
        """
        *first, last = work.calls
        values = {("in", k): new.get(x, x) for k, x in enumerate(buffers(record))}
        specs = {("out", k): spec for k, spec in enumerate(results(record))}
        room = {("work", 0): Spec((work.workspace,), dt.uint8.numpy)}
        records = []
        for calls, written in ((first, specs | room), ([last], specs)):
            used = dict.fromkeys((o.kind, o.k) for call in calls for o in call.given)
            ins, outs = ([key for key in used if key in table] for table in (values, written))
            at = {key: ("in", k) for k, key in enumerate(ins)}
            at |= {key: ("out", k) for k, key in enumerate(outs)}
            both = ((at.get(("out", k)), at.get(("in", j))) for k, j in in_place(record))
            pairs = [(out[1], x[1]) for out, x in both if out and x]
            inputs, own = [values[key] for key in ins], [written[key] for key in outs]
            part = build_lowered(record, kernel_name(record), inputs, own, pairs)
            calls = (move(c, lambda o, at=at: Operand(*at[o.kind, o.k], o.offset)) for c in calls)
            self.works[part] = KernelCalls(tuple(calls))
            items = {key: item_of(part, k) for k, key in enumerate(outs)}
            values |= items
            records += [part, *items.values()]
        return records, [values[key] for key in specs]


def build_lowered(like: Record, name: str, inputs, specs, pairs) -> Record:
    """A record that is known by its calls; `pairs` (result, input) may share memory."""
    attrs = {"name": name, "in_place": pairs}
    return like.derive(LOWERED, inputs, attrs, tuple(specs), 0)


def move(call: Launch, place: Callable[[Operand], Operand]) -> Launch:
    """The call with other operands."""
    return call._replace(given=tuple(map(place, call.given)))


def can_split(record: Record, work: KernelCalls | None) -> bool:
    """Whether the last kernel of several could be joined with others, and alone writes its results.
    A record with indices is left whole: they are checked before it.
    """
    calls = work.calls if work else ()
    if len(calls) < 2 or not all(isinstance(c, Launch) for c in calls) or not joinable(calls[-1]):
        return False
    if index_inputs(record) or len(buffers(record)) < len(record.inputs):
        return False
    *first, last = ({o.k for o in call.given if o.kind == "out"} for call in calls)
    return last.isdisjoint(set().union(*first))


def in_place(record: Record) -> list[tuple[int, int]]:
    """Pairs (result, input): the kernel may write the result over the input."""
    return record.attrs["in_place"] if record.op is LOWERED else find_in_place(record)
