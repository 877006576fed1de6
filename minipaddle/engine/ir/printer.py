"""A program as text: one line a record, small and always the same; `parser.py` reads it back.

    program step(x: float32[batch, 4]) {
      state w: float32[4, 2]
      v1 = matmul(x, w, transpose_x=False, transpose_y=False) : float32[batch, 2]
      v2 = cond(v1, true=(a: float32[2]) {
        return a
      }, …) : (float32[2])
      update w = v1
      return v2
    }

`~` before a value: no gradient flows back to it here, though one could; `~` after the name of an
input or a state: none ever does. Sizes that are known only at run time are names.
"""

from __future__ import annotations

import math
import os
import re

import numpy

from ..core import dim as dims
from ..core.dtype import FLOATS, public
from ..core.errors import line_of
from ..core.record import Record, spec_text
from .program import ITEM, NUMBER, Program

INDENT = "  "
NAME = re.compile(r"[A-Za-z_][\w.]*\Z", re.ASCII)
RESERVED = re.compile(r"(v\d+|True|False|None|nan|inf)\Z")
"""Names that mean something else: records, numbers."""


def text(program: Program, *, lines: bool = False) -> str:
    """The program as text; with `lines` each record says where the user wrote it."""
    return "\n".join(Printer(lines).block(program, f"program {plain(program.name)}", ""))


def plain(name: str) -> str:
    """A name that can stand in a text: itself if it can."""
    if not NAME.match(name):
        name = re.sub(r"[^\w.]+", "_", name, flags=re.ASCII).strip("_")
        name = name if NAME.match(name) else f"_{name}"
    return f"{name}_" if RESERVED.match(name) else name


class Printer:
    """Gives every value its name: those given have one, records are v1, v2, … in order.

    A region begins again: nothing in it is of the outside.
    """

    def __init__(self, lines: bool = False):
        self.lines = lines
        self.names: dict[Record, str] = {}
        self.taken: set[str] = set()
        self.count = 0

    def block(self, program: Program, head: str, margin: str) -> list[str]:
        """A program or a region, from its head to its closing brace."""
        flow, outside = Flow(program), (self.taken, self.count)
        self.taken, self.count = set(), 0
        inputs = [self.declare(r, flow, k) for k, r in enumerate(program.inputs)]
        inner = margin + INDENT
        lines = [f"{head}({', '.join(inputs)}) {{"]
        for state in program.states:
            lines.append(f"{inner}state {self.declare(state.record, flow, 0, state.name)}")
        for guard in program.guards:
            left, sign, right, answer = guard
            lines.append(f"{inner}{'assume' if answer else 'deny'} {left} {sign} {right}")
        for record in program.records:
            lines += self.record(record, flow, inner)
        for state in program.states:
            if state.update is not None:
                lines.append(f"{inner}update {self.name(state.record)} = {self.name(state.update)}")
        results = ", ".join(map(self.name, program.outputs))
        self.taken, self.count = outside
        return [*lines, f"{inner}return {results}".rstrip(), f"{margin}}}"]

    def declare(self, record: Record, flow: Flow, k: int, name: str = "") -> str:
        """`x: float32[2]`: the unique name and the spec of an input or a state."""
        name = name or record.attrs.get("name", "") or f"a{k}"
        base = name = plain(name)
        n = 1
        while name in self.taken:
            n += 1
            name = f"{base}_{n}"
        self.taken.add(name)
        self.names[record] = name
        still = record.dtype in FLOATS and record not in flow.given
        return f"{name}{'~' * still}: {record.spec}"

    def record(self, record: Record, flow: Flow, margin: str) -> list[str]:
        """`v3 = add(v1, 2.0) : float32[4]`, over several lines if it has regions."""
        inputs = [flow.mark(record, k) + self.name(e) for k, e in enumerate(record.inputs)]
        lines = [f"{margin}{{}} = {record.op.name}({', '.join(inputs)}"]
        between = ", " if inputs else ""
        for key, value in record.attrs.items():
            if isinstance(value, Program):
                block = self.block(value, f"{between}{key}=", margin)
                lines[-1] += block[0]
                lines += block[1:]
            else:
                lines[-1] += f"{between}{key}={literal(value)}"
            between = ", "
        self.count += 1
        self.names[record] = f"v{self.count}"
        lines[0] = lines[0].replace("{}", self.names[record], 1)
        lines[-1] += f") : {spec_text(record)}"
        if self.lines and record.where:
            lines[-1] += f"  @ {os.path.basename(line_of(record.where))!r}"
        return lines

    def name(self, record: Record) -> str:
        return literal(record.attrs["value"]) if record.op is NUMBER else self.names[record]


class Flow:
    """Where gradients flow in a program; most of this follows from its inputs and states."""

    def __init__(self, program: Program):
        arguments = set(program.given)
        bits = {(r, k): e for r in program.records for k, e in enumerate(r.inputs) if flows(r, k)}
        self.given = arguments.intersection(bits.values())
        self.flowing = self.given | {r for r, _ in bits}
        for record in program.records:
            if record.op is ITEM and record.inputs[0] not in self.flowing:
                self.flowing.discard(record)

    def mark(self, record: Record, k: int) -> str:
        """`~` where none flows although it could, `^` where one flows although it is new."""
        edge = record.inputs[k]
        if record.op is ITEM or edge.op is NUMBER or edge.dtype not in MAY_FLOW:
            return ""
        if flows(record, k) == (edge in self.flowing):
            return ""
        return "^" if flows(record, k) else "~"


MAY_FLOW = {None, *FLOATS}
"""Dtypes of values to which a gradient may flow back; None is that of several results."""


def flows(record: Record, k: int) -> bool:
    """Whether a gradient may flow back to input k of a record."""
    return bool(record.saved and record.saved >> k & 1 and record.inputs[k].dtype in MAY_FLOW)


def literal(value) -> str:
    """An attribute as text that `parser.py` reads back; of what only a process has, as it shows."""
    value = value.item() if isinstance(value, numpy.generic) else value
    if isinstance(value, tuple | list):
        return f"({''.join(f'{literal(v)}, ' for v in value).rstrip()})" if value else "()"
    if isinstance(value, numpy.dtype):
        return public(value).name
    if type(value) is float and not math.isfinite(value):
        return "nan" if value != value else "inf" if value > 0 else "-inf"
    if isinstance(value, dims.Dim):
        return f"<{value}>"
    return repr(value)


Program.__str__ = text  # a program is text where this is imported
