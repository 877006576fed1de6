"""The rules of the pass `algebra` that were applied, by running it once more."""

from ...engine.core.record import Record
from ...engine.ir.program import Program
from ...engine.passes import algebra
from ...engine.passes.patterns import Hole, PatternTree, RewriteRule, Wildcard, by_rules
from ...engine.passes.rewriting import rewritten


class NotedRule:
    """A rule that notes the records it was applied to."""

    def __init__(self, rule: RewriteRule, notes: dict[Record, str]):
        self.rule, self.notes, self.op = rule, notes, rule.op

    def __call__(self, record: Record, sources):
        y = self.rule(record, sources)
        if y is not None:
            self.notes.setdefault(record, write_tree(self.rule.tree))
        return y


def find_applied_rules(program: Program) -> dict[Record, str]:
    """For each record that `algebra` replaces in a program the pattern that it fits."""
    notes: dict[Record, str] = {}
    rules = [*algebra.numbers(), *algebra.transposes(), *algebra.OTHERS]
    for change in algebra.BEFORE:
        program = change(program)
    rewritten(program, by_rules([NotedRule(rule, notes) for rule in rules]))
    return notes


def write_tree(tree) -> str:
    """A pattern as an expression: `transpose(transpose(x, perm=p), perm=q)`."""
    if isinstance(tree, PatternTree):
        inputs = [write_tree(x) for x in tree.inputs]
        attrs = [f"{name}={write_tree(value)}" for name, value in tree.attrs.items()]
        return f"{tree.op.name}({', '.join(inputs + attrs)})"
    return tree.name if isinstance(tree, Hole | Wildcard) else f"{tree!r}"
