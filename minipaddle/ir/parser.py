"""A program from its text: what `printer.py` wrote, or somebody by hand, or an enemy.

Nothing in the text is executed: operators are looked up by name, attributes are literals, and the
result is verified before it is handed out. Specs and sizes are one token each and read once.
"""

from __future__ import annotations

import re
import threading
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from ..engine.core import dim as dims
from ..engine.core.dtype import NAMES, int64
from ..engine.core.op import OPS
from ..engine.core.record import Record, Spec
from ..engine.core.slots import slot
from ..engine.core.spec import scalar_dtype
from ..engine.ir.printer import MAY_FLOW
from ..engine.ir.program import INPUT, NUMBER, Program, State
from ..engine.ir.verifier import verify

if TYPE_CHECKING:  # importing it takes 50 ms, and few processes read programs
    import lark

LONGEST = 1 << 24
DEEPEST = 50
WIDEST = 32
LARGEST = 1 << 48
DIGITS = 400
SIZE_LENGTH = 10_000
"""The limits of a text: characters, brackets in brackets, axes, elements, digits of a number,
characters of a size."""

BRACKETS = re.compile(r"'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\"|([{(])|[})]")
WORDS = {"True": True, "False": False, "None": None}
OPTIONAL = {"trip_count", "reads", "writes"}
"""The attributes that a loop may lack."""
SIGN = re.compile(r"(assume|deny) (.+) (==|<=|>=|<|>) (.+)")


BUILDING = threading.Lock()
"""Held while lark reads the grammar: it builds syntax trees by `ast.literal_eval`. Python before
3.11.8 and 3.12.2 raises SystemError where two threads do so (python/cpython#106905), and a server
reads models in threads."""


@cache
def grammar() -> lark.Lark:
    import lark

    text = Path(__file__).with_name("program.lark").read_text("utf-8")
    with BUILDING:
        return lark.Lark(text, start=["text", "size"], parser="lalr", maybe_placeholders=True)


class ParseError(ValueError):
    """A text is no program; the message says the line."""


def parse(text: str) -> Program:
    """The program of a text. Raises ParseError or VerifyError with the fault, and its line."""
    programs = parse_all(text)
    if len(programs) > 1:
        raise ParseError(f"{len(programs)} programs in a text that holds one")
    return programs[0]


def parse_all(text: str) -> list[Program]:
    """The programs of a text that has one or more."""
    if len(text) > LONGEST:
        raise ParseError(f"a program of {len(text):,} characters: {LONGEST:,} are allowed")
    depth = most = 0
    for bracket in BRACKETS.finditer(text):
        if bracket[0][0] in "{()}":
            depth += 1 if bracket[1] else -1
            most = max(most, depth)
    if most > 2 * DEEPEST:
        raise ParseError(f"brackets in brackets, {most} deep: {2 * DEEPEST} are allowed")
    try:
        return [verify(read(tree)) for tree in tree_of(text, "text").children]
    except RecursionError:
        raise ParseError("nested too deeply") from None
    except (OverflowError, ZeroDivisionError) as error:
        raise ParseError(f"its sizes make no sense: {error}") from None


def tree_of(text: str, start: str):
    """The syntax tree of a text or of a size."""
    from lark.exceptions import UnexpectedInput

    try:
        return grammar().parse(text, start=start)
    except UnexpectedInput as error:
        lines = text.splitlines()
        inside = 0 < error.line <= len(lines)
        line = lines[error.line - 1].strip() if inside else "the end"
        raise ParseError(f"line {error.line} cannot be read, at {line[:80]!r}") from None


def unquote(token) -> str:
    """The string that `repr` wrote so, without `ast.literal_eval`: see `BUILDING`."""
    return token[1:-1].encode("latin-1", "backslashreplace").decode("unicode_escape")


def read(tree) -> Program:
    """The program of a syntax tree, not verified yet."""
    name, *params, block = tree.children
    reader = Reader()
    try:
        return reader.program(str(name), params, block)
    except (ParseError, OverflowError, ZeroDivisionError) as error:
        raise ParseError(f"line {reader.line}: {error}") from None


class Reader:
    """Builds a program from its tree."""

    def __init__(self):
        self.line = 0  # where we are
        self.read: dict[str, object] = {}  # specs and sizes, by their text

    def program(self, name: str, params, block) -> Program:
        """A program or a region: its values are known by name inside it alone."""
        values: dict[str, Record] = {}
        flowing: set[Record] = set()
        program = Program(name)
        for param in filter(None, params):
            program.inputs.append(self.declare(param, values, flowing))
        states, updates, results = {}, [], []
        for line in filter(None, block.children):
            if line.data == "operand":
                results.append(line)
            elif line.data == "state":
                record = self.declare(line.children[0], values, flowing)
                state = states[record.attrs["name"]] = State(record.attrs["name"], record)
                program.states.append(state)
            elif line.data == "guard":
                program.guards.append(self.guard(line.children[0]))
            elif line.data == "update":
                updates.append(line.children)
            else:
                program.records.append(self.record(line, values, flowing))
        for target, operand in updates:
            self.line = target.line
            state = states.get(str(target))
            if state is None or state.update is not None:
                raise ParseError(f"an update of {target}: there is no such state, or two updates")
            state.update = self.operand(operand, values)[1]
        program.outputs = [self.operand(o, values)[1] for o in results]
        return program

    def guard(self, token) -> tuple:
        self.line = token.line
        match = SIGN.fullmatch(str(token).strip())
        if match is None:
            raise ParseError(f"{str(token)[:80]!r} is no comparison of sizes")
        verdict, left, sign, right = match.groups()
        return self.size(left), sign, self.size(right), verdict == "assume"

    def declare(self, param, values: dict, flowing: set) -> Record:
        name, still, spec = param.children
        self.line = name.line
        record = Record(INPUT, (), {"name": str(name)}, *self.spec(spec), 0)
        self.define(str(name), record, values)
        if still is None:
            flowing.add(record)
        return record

    @staticmethod
    def define(name: str, record: Record, values: dict) -> None:
        if name in values:
            raise ParseError(f"{name} is defined twice")
        values[name] = record

    def record(self, line, values: dict, flowing: set) -> Record:
        name, op_name, *arguments, specs, where = line.children
        self.line = name.line
        op = OPS.get(str(op_name))
        if op is None or op in (INPUT, NUMBER) or op.name == "leaf":
            raise ParseError(f"there is no operator {op_name}")
        edges, attrs, flow = [], {}, 0
        for argument in filter(None, arguments):
            if argument.data == "attribute":
                key, value = argument.children
                if str(key) in attrs:
                    raise ParseError(f"the attribute {key} is given twice")
                attrs[str(key)] = self.value(value)
                continue
            mark, edge = self.operand(argument, values)
            flows = edge.dtype in MAY_FLOW and (edge in flowing) != (mark is not None)
            flow |= flows << len(edges)
            edges.append(edge)
        self.line = name.line
        if attrs.keys() != op.attrs.keys() - (OPTIONAL - attrs.keys()):
            raise ParseError(f"{op.name} has the attributes {[*op.attrs]}, not {[*attrs]}")
        if any(type(attrs.get(key, ())) is not tuple for key in ("reads", "writes")):
            raise ParseError("reads and writes are tuples")
        if not op.variadic and len(edges) != len(op.inputs):
            raise ParseError(f"{op.name} has the inputs {op.inputs}; {len(edges)} are given")
        each = [self.spec(s) for s in specs.children if s is not None]
        spec = each[0] if specs.data == "specs" else (tuple(each), None)
        record = Record(op, edges, attrs, *spec, flow)
        record.where = None if where is None else unquote(where)
        self.define(str(name), record, values)
        if flow:
            flowing.add(record)
        return record

    def operand(self, tree, values: dict) -> tuple:
        """(mark, record) of a value or a number."""
        *mark, what = tree.children
        if not isinstance(what, str):  # a tree
            value = self.value(what)
            if value is None:
                raise ParseError("None is no number")
            dtype = int64.numpy if isinstance(value, dims.Dim) else scalar_dtype(value)
            return None, Record(NUMBER, (), {"value": value}, (), dtype)
        if str(what) not in values:
            raise ParseError(f"{what} is not defined")
        return (mark[0] if mark else None), values[str(what)]

    # ---- attributes --------------------------------------------------------------------------

    def value(self, tree):
        """An attribute."""
        if tree.data == "region":
            *params, block = tree.children
            return self.program("region", params, block)
        if tree.data == "string":
            return unquote(tree.children[0])
        if tree.data == "dtype":
            return dtype_named(str(tree.children[0]))
        if tree.data in ("empty", "several"):
            return tuple(map(self.value, tree.children))
        text = str(tree.children[0])
        if text[0] == "<":
            return self.size(text[1:-1])
        if text in WORDS:
            return WORDS[text]
        if len(text) > DIGITS:
            raise ParseError(f"a number of more than {DIGITS} digits")
        return int(text) if text.lstrip("-").isdecimal() else float(text)

    def spec(self, token) -> Spec:
        text = str(token)
        spec = self.read.get(text)
        if spec is None:
            name, _, inside = text[:-1].partition("[")
            shape = tuple(map(self.size, pieces(inside)))
            if len(shape) > WIDEST or elements(shape) > LARGEST:
                raise ParseError(f"{text[:80]} is too large: {LARGEST:,} elements are allowed")
            spec = self.read[text] = Spec(shape, dtype_named(name))
        return spec

    def size(self, text: str):
        """A number or a polynomial."""
        text = text.strip()
        size_ = self.read.get(text)
        if size_ is None:
            if len(text) > SIZE_LENGTH:
                raise ParseError(f"a size of {len(text):,} characters")
            size_ = self.read[text] = int(text) if text.isdecimal() else size(tree_of(text, "size"))
        return size_


def dtype_named(name: str):
    if name not in NAMES:
        raise ParseError(f"there is no dtype {name[:80]}")
    return NAMES[name].numpy


def pieces(text: str) -> list[str]:
    """The sizes of a shape: commas inside brackets part nothing."""
    if "(" not in text:
        return text.split(",") if text.strip() else []
    parts, depth = [""], 0
    for part in re.split(r"([(),])", text):
        depth += (part == "(") - (part == ")")
        if part == "," and not depth:
            parts.append("")
        else:
            parts[-1] += part
    return parts


@slot("ir.elements")
def elements(shape: tuple) -> int:
    """How many elements, sizes that are not known counting as 1; negative sizes as too many."""
    n = 1
    for size in shape:
        if isinstance(size, int):
            n *= max(size, 1) if size >= 0 else LARGEST + 1
    return n


def size(tree):
    """The size that a tree says."""
    parts = [str(x) if isinstance(x, str) else size(x) for x in tree.children]
    return SIZES[tree.data](*parts)


def whole(text: str) -> int:
    if len(text) > len(str(LARGEST)):
        raise ParseError(f"a size of {len(text)} digits")
    return int(text)


SIZES = {
    "symbol": lambda name: dims.symbol(name, dims.HINT),
    "whole": whole,
    "negative": lambda a: -a,
    "plus": lambda a, b: a + b,
    "minus": lambda a, b: a - b,
    "times": lambda a, b: a * b,
    "floor": lambda a, b: a // b,
    "modulo": lambda a, b: a % b,
    "larger": lambda _, a, b: dims.larger(a, b),
    "smaller": lambda _, a, b: dims.smaller(a, b),
}
