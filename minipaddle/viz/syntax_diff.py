"""Two syntax trees compared: nodes that stayed, moved, are gone, or are new."""

import ast
from collections import Counter
from difflib import SequenceMatcher
from itertools import zip_longest

KEPT, AROUND, MOVED, GONE, NEW = "kept", "around", "moved", "gone", "new"


class Comparison:
    """`marks` gives every node of both trees, by id, one of the five words.

    A subtree that is the same in both is KEPT, one that is found elsewhere MOVED; a node whose own
    content is the same, but not all below it, is AROUND.
    """

    def __init__(self, before: ast.AST, after: ast.AST):
        self.marks: dict[int, str] = {}
        self.dumps: dict[int, str] = {}
        self.align(before, after)
        self.find_moved(before, after)

    def dump(self, node) -> str:
        text = self.dumps.get(id(node))
        if text is None:
            text = self.dumps[id(node)] = ast.dump(node)
        return text

    def mark(self, node, word: str) -> None:
        for inner in ast.walk(node):
            self.marks[id(inner)] = word

    def align(self, a, b) -> None:
        """Mark two nodes at the same position."""
        if self.dump(a) == self.dump(b):
            self.mark(a, KEPT)
            self.mark(b, KEPT)
        elif head(a) == head(b):
            self.marks[id(a)] = self.marks[id(b)] = AROUND
            for field in a._fields:
                self.align_lists(list_field(a, field), list_field(b, field))
        else:
            self.mark(a, GONE)
            self.mark(b, NEW)

    def align_lists(self, left, right) -> None:
        """Equal nodes belong together; between them those of the same kind, in order."""
        matcher = SequenceMatcher(None, [*map(self.dump, left)], [*map(self.dump, right)], False)
        for tag, i, j, k, n in matcher.get_opcodes():
            if tag == "equal":
                for a, b in zip(left[i:j], right[k:n]):
                    self.align(a, b)
                continue
            rest = list(right[k:n])
            for a in left[i:j]:
                same = next((b for b in rest if head(b) == head(a)), None)
                if same is None:
                    self.mark(a, GONE)
                else:
                    rest.remove(same)
                    self.align(a, same)
            for b in rest:
                self.mark(b, NEW)

    def find_moved(self, before, after) -> None:
        """Mark the largest parts that are both gone and new as moved."""
        gone, new = (
            Counter(self.dump(x) for x in ast.walk(tree) if self.marks[id(x)] == word and large(x))
            for tree, word in ((before, GONE), (after, NEW))
        )
        both = gone & new
        for tree, word in ((before, GONE), (after, NEW)):
            self.move(tree, word, both.copy())

    def move(self, node, word: str, left: Counter) -> None:
        if self.marks[id(node)] == word and left[self.dump(node)] > 0:
            for inner in ast.walk(node):
                left[self.dump(inner)] -= 1
            self.mark(node, MOVED)
            return
        for child in ast.iter_child_nodes(node):
            self.move(child, word, left)

    def whole(self, node) -> bool:
        """Whether a subtree is marked with one word."""
        return len({self.marks[id(x)] for x in ast.walk(node) if not small(x)}) <= 1


def list_field(node, field: str) -> list:
    """The nodes in a field."""
    value = getattr(node, field, None)
    values = value if isinstance(value, list) else [value]
    return [x for x in values if isinstance(x, ast.AST)]


def head(node) -> tuple:
    """A node without its children: its kind, and fields such as names."""
    fields = ((k, v) for k, v in ast.iter_fields(node) if not isinstance(v, ast.AST | list))
    return type(node), *((k, repr(v)) for k, v in fields if v is not None)


def small(node) -> bool:
    """Contexts and operators, which are no nodes to the eye."""
    return isinstance(node, SMALL)


SMALL = ast.expr_context | ast.operator | ast.unaryop | ast.cmpop | ast.boolop | ast.arguments


def large(node) -> bool:
    """Whether a move of the node is worth showing; that of a name alone is not."""
    return not small(node) and not isinstance(node, ast.Name | ast.Constant | ast.arg)


def title(node) -> str:
    """`FunctionDef train`, `Compare >`: a node in words."""
    words = [type(node).__name__]
    for field, value in ast.iter_fields(node):
        if field in ("name", "id", "attr", "arg") and value:
            words.append(str(value))
        if small(value) and not isinstance(value, ast.expr_context | ast.arguments):
            words.append(type(value).__name__)
    return " ".join(words)


def side_by_side(before: str, after: str):
    """Rows (word, line before or None, line after or None) of two sources; KEPT or not."""
    a, b = before.splitlines(), after.splitlines()
    for tag, i, j, k, n in SequenceMatcher(None, a, b, False).get_opcodes():
        word = KEPT if tag == "equal" else AROUND
        for left, right in zip_longest(a[i:j], b[k:n]):
            yield word, left, right
