"""A program from its text: what `printer.py` wrote, or somebody by hand, or an enemy.

Nothing in the text is executed: operators are looked up by name, attributes are literals, and the
result is verified before it is handed out.
"""

from __future__ import annotations

import ast
from functools import cache

import lark

from ..core import dim as dims
from ..core.dtype import NAMES, int64
from ..core.errors import teach
from ..core.op import OPS
from ..core.record import Record, Spec
from ..core.spec import scalar_dtype
from .input_spec import HINT
from .program import INPUT, NUMBER, Program, State
from .verifier import verify

LONGEST = 1 << 26
DEEPEST = 50
WIDEST = 32
"""What a text may be at most: characters, regions in regions, axes."""

GRAMMAR = r"""
program: "program" NAME "(" [param ("," param)*] ")" block
block: "{" line* "return" [operand ("," operand)*] "}"
?line: state | guard | record | update
state: "state" param
guard: VERDICT dim SIGN dim
update: "update" NAME "=" operand
record: NAME "=" NAME "(" [argument ("," argument)*] ")" ":" specs ["@" STRING]
?argument: operand | attribute
attribute: NAME "=" (value | region)
region: "(" [param ("," param)*] ")" block
param: NAME [STILL] ":" spec
operand: [MARK] NAME | number
number: NUMBER | WORD | "<" dim ">"
?value: number | STRING -> string | NAME -> dtype
     | "(" ")" -> empty | "(" (value ",")+ ")" -> several
?specs: spec | "(" [spec ("," spec)*] ")" -> specs
spec: NAME "[" [dim ("," dim)*] "]"
?dim: product | dim "+" product -> plus
?product: atom | product "*" atom -> times
?atom: NAME -> symbol | INT -> whole | "(" dim ")" | "(" atom "//" atom ")" -> floor
     | "(" atom "%" atom ")" -> modulo
VERDICT.2: "assume" | "deny"
SIGN: "==" | "<=" | ">=" | "<" | ">"
STILL: "~"
MARK: "~" | "^"
WORD.2: /(True|False|None|nan|-?inf)\b/
NAME: /[A-Za-z_][\w.]*/
NUMBER: /-?\d+(\.\d*)?(e[+-]?\d+)?/
INT.0: /-?\d+/
STRING: /'([^'\\\n]|\\.)*'|"([^"\\\n]|\\.)*"/
%import common.WS
%ignore WS
"""


@cache
def grammar() -> lark.Lark:
    return lark.Lark(GRAMMAR, start="program", parser="lalr", maybe_placeholders=True)


class ParseError(ValueError):
    """A text is no program; the message says the line."""


def parse(text: str) -> Program:
    """The program of a text. Raises ParseError or VerifyError with what is wrong, and where."""
    depth = deepest(text)
    if len(text) > LONGEST or depth > DEEPEST:
        raise ParseError(f"a program of {len(text):,} characters, {depth} regions deep: too large")
    try:
        tree = grammar().parse(text)
    except lark.exceptions.UnexpectedInput as error:
        line = text.splitlines()[error.line - 1].strip() if error.line > 0 else ""
        raise ParseError(
            teach(f"line {error.line} of the program can not be read: {line:.80}")
        ) from None
    name, *params, block = tree.children
    try:
        return verify(Reader(str(name)).program(str(name), params, block))
    except (RecursionError, OverflowError, ZeroDivisionError) as error:
        raise ParseError(f"the program can not be read: {type(error).__name__}: {error}") from None


def deepest(text: str) -> int:
    depth = most = 0
    for c in text:
        depth += (c in "{(<") - (c in "})>")
        most = max(most, depth)
    return most // 2


class Reader:
    """Builds a program from its tree."""

    def __init__(self, name: str):
        self.symbols: dict[str, dims.Dim] = {}

    def program(self, name: str, params, block) -> Program:
        """A program or a region: its values are known by name inside it alone."""
        values: dict[str, Record] = {}
        flowing: set[Record] = set()
        program = Program(name)
        for param in filter(None, params):
            program.inputs.append(self.declared(param, values, flowing))
        *lines, results = self.split(block)
        updates = []
        for line in lines:
            if line.data == "state":
                record = self.declared(line.children[0], values, flowing)
                program.states.append(State(record.attrs["name"], record))
            elif line.data == "guard":
                verdict, left, sign, right = line.children
                answer = verdict == "assume"
                program.guards.append((self.dim(left), str(sign), self.dim(right), answer))
            elif line.data == "update":
                updates.append(line.children)
            else:
                program.records.append(self.record(line, values, flowing))
        states = {s.name: s for s in program.states}
        for target, operand in updates:
            if str(target) not in states or states[str(target)].update is not None:
                raise ParseError(f"an update of {target}: there is no such state, or two updates")
            states[str(target)].update = self.operand(operand, values)[1]
        program.outputs = [self.operand(o, values)[1] for o in results if o is not None]
        return program

    @staticmethod
    def split(block):
        lines = [c for c in block.children if c is not None and c.data != "operand"]
        return [*lines, [c for c in block.children if c is not None and c.data == "operand"]]

    def declared(self, param, values: dict, flowing: set) -> Record:
        name, still, spec = param.children
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
        op = OPS.get(str(op_name))
        if op is None or op in (INPUT, NUMBER) or op.name == "leaf":
            raise ParseError(f"there is no operator {op_name}")
        edges, attrs, flow = [], {}, 0
        for argument in filter(None, arguments):
            if argument.data == "attribute":
                key, value = argument.children
                attrs[str(key)] = self.value(value)
                continue
            mark, edge = self.operand(argument, values)
            flows = (edge in flowing) != (mark is not None)
            flow |= flows << len(edges)
            edges.append(edge)
        if attrs.keys() != op.attrs.keys():
            raise ParseError(f"{op.name} has the attributes {[*op.attrs]}, not {[*attrs]}")
        if not op.variadic and len(edges) != len(op.inputs):
            raise ParseError(f"{op.name} has the inputs {op.inputs}; {len(edges)} are given")
        found = self.specs(specs)
        several = not isinstance(found, Spec)
        record = Record(op, edges, attrs, *((found, None) if several else found), flow)
        record.where = None if where is None else ast.literal_eval(str(where))
        self.define(str(name), record, values)
        if flow:
            flowing.add(record)
        return record

    def operand(self, tree, values: dict) -> tuple:
        """(mark, record) of a value or a number."""
        *mark, what = tree.children
        if isinstance(what, lark.Tree):
            value = self.value(what)
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
            return ast.literal_eval(str(tree.children[0]))
        if tree.data == "dtype":
            return self.dtype(tree.children[0])
        if tree.data in ("empty", "several"):
            return tuple(map(self.value, tree.children))
        what = tree.children[0]
        if not isinstance(what, lark.Token) or what.type not in ("NUMBER", "WORD"):
            return self.dim(what)
        text = str(what)
        if text.strip("-") in ("inf", "nan"):
            return float(text)
        if len(text) > 400:
            raise ParseError("a number of more than 400 digits")
        return ast.literal_eval(text)

    @staticmethod
    def dtype(name):
        if str(name) not in NAMES:
            raise ParseError(f"there is no dtype {name}")
        return NAMES[str(name)].numpy

    def specs(self, tree):
        if tree.data == "spec":
            return self.spec(tree)
        return tuple(self.spec(s) for s in tree.children if s is not None)

    def spec(self, tree) -> Spec:
        name, *sizes = tree.children
        shape = tuple(self.dim(n) for n in sizes if n is not None)
        if len(shape) > WIDEST or any(isinstance(n, int) and not 0 <= n < 1 << 48 for n in shape):
            raise ParseError(f"no shape: {list(shape)}")
        return Spec(shape, self.dtype(name))

    def dim(self, tree):
        """A size: a number or a polynomial."""
        if isinstance(tree, lark.Token):
            return int(tree)
        a, *rest = tree.children
        if tree.data == "symbol":
            return self.symbols.setdefault(str(a), dims.symbol(str(a), HINT))
        if tree.data == "whole":
            return int(str(a)[:20])
        a, b = self.dim(a), self.dim(*rest)
        if tree.data in ("plus", "times"):
            return a + b if tree.data == "plus" else a * b
        return a // b if tree.data == "floor" else a % b
