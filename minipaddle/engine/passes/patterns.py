"""Rewriting rules: a pair of ordinary functions, the pattern and its replacement.

    Rule(lambda x, *, p, q: transpose(transpose(x, perm=p), perm=q),
         lambda x, *, p, q: transpose(x, perm=tuple(p[d] for d in q)))

Positional parameters stand for any values, keyword parameters for attributes and numbers. `before`
is traced once: applied to holes, it records the tree of operators to look for. `after` is ordinary
code and runs where the tree was found, if `when`, called with the same arguments, returns True.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from itertools import repeat
from typing import NamedTuple

from ..core.dispatch import Interpreter, current, interpreter
from ..core.op import OPS
from ..core.record import Record
from ..ir.program import NUMBER
from ..ops.creation import full
from ..ops.var import Var
from .rewriting import Rules, made_by

COMMUTATIVE = {OPS[name] for name in ("add", "multiply", "maximum", "minimum")}


class Hole(Var):
    """Stands for any value: a parameter of a rule."""

    def __init__(self, name: str):
        self.name = name


class Wildcard(NamedTuple):
    """Stands for any attribute or number: a keyword parameter of a rule."""

    name: str


class PatternTree(Var):
    """An operator applied to holes, numbers and other trees."""

    def __init__(self, op, inputs, attrs):
        self.op, self.inputs, self.attrs = op, inputs, attrs


class Tracing(Interpreter):
    """Applying an operator leaves a tree."""

    def apply(self, op, inputs, attrs):
        return PatternTree(op, inputs, attrs)


class RewriteRule:
    """Replaces `before` by `after`. With `alone` nothing else may use the values in between.
    `attrs` are the names of the attributes that `before` takes as `**attrs`.
    """

    def __init__(
        self, before: Callable, after: Callable, when: Callable | None = None, alone=False, attrs=()
    ):
        self.after, self.when, self.alone = after, when, alone
        names = inspect.signature(before).parameters.values()
        self.holes = [p.name for p in names if p.kind is p.POSITIONAL_OR_KEYWORD]
        known = [*(p.name for p in names if p.kind is p.KEYWORD_ONLY), *attrs]
        with interpreter(Tracing()):
            self.tree = before(*map(Hole, self.holes), **{k: Wildcard(k) for k in known})
        self.op = self.tree.op

    def __call__(self, record: Record, sources):
        """The replacement of a record with these inputs; None if the rule does not match."""
        match: dict = {}
        if not matches(self.tree.inputs, self.tree.attrs, record, sources, match):
            return None
        between = match.pop("between", ())
        if self.alone and any(current.top.builder.uses(r) > 1 for r in between):
            return None
        args = {name: as_tensor(x) if isinstance(x, Record) else x for name, x in match.items()}
        if self.when is not None and not self.when(**args):
            return None
        values = [args.pop(name) for name in self.holes]
        y = self.after(*values, **args)
        return y if y.spec == record.spec else None


def as_tensor(record: Record):
    """A value of the program that is being built, as a tensor."""
    return current.top.builder.tensor(record)


def matches(inputs, attrs, record: Record, sources, match: dict) -> bool:
    """Whether the inputs and attributes of a tree match a record that has these inputs."""
    if len(inputs) != len(sources):
        return False
    for name, wanted in attrs.items():
        if not fits_attribute(wanted, record.attrs[name], match):
            return False
    orders = [sources, sources[::-1]] if record.op in COMMUTATIVE else [sources]
    for order in orders:
        trial = dict(match)
        if all(map(fits, inputs, order, repeat(trial))):
            match.update(trial)
            return True
    return False


def fits_attribute(wanted, value, match: dict) -> bool:
    wildcard = type(wanted) is Wildcard
    return same(match.setdefault(wanted.name, value) if wildcard else wanted, value)


def fits(wanted, source, match: dict) -> bool:
    """Whether a part of a tree matches a value: a record, or a number."""
    if isinstance(wanted, Hole):
        return isinstance(source, Record) and match.setdefault(wanted.name, source) is source
    if not isinstance(wanted, PatternTree):
        return (n := number_in(source)) is not None and fits_attribute(wanted, n, match)
    if not isinstance(source, Record) or source.op is not wanted.op:
        return False
    match["between"] = [*match.get("between", ()), source]
    return matches(wanted.inputs, wanted.attrs, source, read_numbers(source.inputs), match)


def read_numbers(inputs) -> list:
    """The inputs of a record, with Python numbers instead of records of numbers."""
    return [r.attrs["value"] if r.op is NUMBER else r for r in inputs]


def number_in(source):
    """The number that fills a value; None if it is not filled by one number."""
    if not isinstance(source, Record):
        return source
    return source.attrs["value"] if source.op is full else None


def same(a, b) -> bool:
    """Whether two numbers are equal; 0.0 is not -0.0."""
    return a == b and (a != 0 or str(a)[0] == str(b)[0])


def by_rules(rules: list[RewriteRule]) -> Rules:
    """The rules by their first operator, in the form the rewriter takes. The first rule that
    matches is applied, and then those that match its replacement.
    """
    table: dict = {}
    for rule in rules:
        table.setdefault(rule.op, []).append(rule)

    def apply(record, *inputs):
        replacement, sources = None, read_numbers(inputs)
        while record is not None and record.op in table:
            for rule in table[record.op]:
                new = rule(record, sources)
                if new is not None:
                    break
            else:
                break
            replacement, record = new, made_by(new)
            sources = [] if record is None else read_numbers(record.inputs)
        return replacement

    apply.on_records = True
    return dict.fromkeys(table, apply)
