"""Checks of 07_rewriting/modified_names."""

import ast
import symtable
from textwrap import dedent, indent

from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle import nn
from minipaddle.learn import Exercise, expect, expect_that

exercise = Exercise(
    title="The names a block binds",
    level="medium",
    minutes=30,
    slots={"jit.find_modified_names": "find_modified_names"},
    hints=(
        "Which nodes of the tree bind a name all by themselves, and at which must you stop walking "
        "down, because what is below belongs to somebody else?",
        "Look at `Names` in minipaddle/engine/jit/scope.py, or print(ast.dump(ast.parse(text), "
        "indent=2)) for each line of the task.",
        "for each node: add the name it binds itself, by its kind\n"
        "a function, a lambda, a class: do not look inside\n"
        "a comprehension: what its parts bind, without the targets of its generators\n"
        "anything else: what its children bind (ast.iter_child_nodes); a call of yourself",
    ),
    wrong={
        "taking names that are only read": (
            "isinstance(node, ast.Name) and (not isinstance(node.ctx, ast.Load)) → "
            "isinstance(node, ast.Name)"
        ),
        "forgetting del": "not isinstance(node.ctx, ast.Load) → isinstance(node.ctx, ast.Store)",
        "looking into nested functions": "(ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda) → ()",
        "forgetting the name of a function": (
            "found |= {node.name} if hasattr(node, 'name') else set() → pass"
        ),
        "a comprehension's variables taken for the function's": (
            "found |= find_modified_names(ast.iter_child_nodes(node)) - _own(node) → found |= "
            "find_modified_names(ast.iter_child_nodes(node))"
        ),
        "no := in a comprehension": (
            "found |= find_modified_names(ast.iter_child_nodes(node)) - _own(node) → pass"
        ),
        "the whole dotted name of an import": "node.name.split('.')[0] → node.name",
        "an import's own name where it has another": (
            "node.asname or node.name.split('.')[0] → node.name.split('.')[0]"
        ),
        "forgetting except … as name": (
            "(ast.ExceptHandler, ast.MatchStar, ast.MatchAs) → (ast.MatchStar, ast.MatchAs)"
        ),
        "None among the names": "found |= {node.name} - {None} → found |= {node.name}",
        "forgetting names bound in nested blocks": (
            "found |= find_modified_names(ast.iter_child_nodes(node)) → found |= "
            "find_modified_names(n for n in ast.iter_child_nodes(node) "
            "if not isinstance(n, ast.stmt))"
        ),
    },
)  # fmt: skip


class AsGenerators(ast.NodeTransformer):
    """Every comprehension as a generator, which has a table of its own.

    From Python 3.13 on a function's symbol table holds the variables of the others too (PEP 709).
    """

    def visit(self, node):
        node = self.generic_visit(node)
        if isinstance(node, ast.DictComp):
            return ast.GeneratorExp(ast.Tuple([node.key, node.value], ast.Load()), node.generators)
        if isinstance(node, (ast.ListComp, ast.SetComp)):
            return ast.GeneratorExp(node.elt, node.generators)
        return node


def python_says(text):
    """The names that Python's own symbol table calls assigned in a function with this body."""
    text = ast.unparse(AsGenerators().visit(ast.parse(text)))
    table = symtable.symtable("def f():\n" + indent(text, "    "), "<block>", "exec")
    # beside f, Python 3.14 has a scope for its annotations
    [f] = [child for child in table.get_children() if child.get_name() == "f"]
    return {s.get_name() for s in f.get_symbols() if s.is_assigned() or s.is_imported()}


def agrees(yours, text):
    """Your names of a block are Python's."""
    found = yours.find_modified_names(ast.parse(text).body)
    expect_that(isinstance(found, set), "a set", given={"block": text}, got=found)
    expect(sorted(map(str, found)), sorted(python_says(text)), given={"block": text})


@exercise.example
def targets(yours):
    """What stands to the left of =, also in tuples; attributes and items are no names."""
    agrees(yours, "if t:\n    a, (b, *c) = d\nelse:\n    e.f = 1")
    agrees(yours, "x.y[z] = 1")
    agrees(yours, "\n".join(f"x{k} = y" for k in range(9)))
    agrees(yours, "x += y")


LINES = """
x = y
x, (y, *z) = w
x += y
x.y = z
x[y] = z
x: int = y
del x
del x.y
import a.b
import a.b as c
from m import n, o as p
(x := y)
f(x := y, z)
y = [x for x in z]
y = [x for x in z if (w := x)]
y = {(u := i): j for i in z for j in i}
y = sum(x for x, _ in z)
f = lambda x: x + y
f(lambda: (w := 1))
pass
print(x)
""".strip().splitlines()
HEADS = """
if x:
while x < y:
for x in y:
for x, (y, z) in w:
with x as y, z:
with f() as (x, y):
def f(x, y=z):
async def g(x):
class C(x):
""".strip().splitlines()
TRIES = ["except E:", "except E as e:", "except (E, F) as x:"]
CASES = """
case 1:
case [x, *y]:
case [*_]:
case {"k": x, **y}:
case {"k": 1}:
case P(x, k=y) as z:
case (1 | 2) as x if (w := x):
case _:
""".strip().splitlines()


def under(head, block):
    return f"{head}\n{indent(block, '    ')}"


def compound(block):
    """Statements with blocks in them."""
    heads = st.builds(under, st.sampled_from(HEADS), block)
    both = st.builds(lambda a, b: under("if x:", a) + "\n" + under("else:", b), block, block)
    tries = st.builds(
        lambda a, head, b, c: "\n".join(
            [under("try:", a), under(head, b), under("else:", c), under("finally:", c)]
        ),
        block, st.sampled_from(TRIES), block, block,
    )  # fmt: skip
    cases = st.builds(
        lambda head, a: "match w:\n" + indent(under(head, a), "    "), st.sampled_from(CASES), block
    )
    return st.lists(heads | both | tries | cases, min_size=1, max_size=2).map("\n".join)


BLOCKS = st.recursive(
    st.lists(st.sampled_from(LINES), min_size=1, max_size=2).map("\n".join), compound, max_leaves=3
)


@exercise.example
def every_kind_of_statement(yours):
    """Each way to bind a name, and each that only seems to, by itself."""
    for line in LINES:
        agrees(yours, line)
    for head in HEADS:
        agrees(yours, under(head, "pass"))
        agrees(yours, under(head, "q = 1"))
    for head in TRIES:
        agrees(yours, "try:\n    q = 1\n" + under(head, "r = 2"))
    for head in CASES:
        agrees(yours, "match w:\n" + indent(under(head, "q = 1"), "    "))


@exercise.example
def several_statements(yours):
    """All of them count, in any order; none gives the empty set."""
    agrees(yours, "a = 1\nb = 2\nc = 3")
    agrees(yours, "pass")
    expect(sorted(yours.find_modified_names([])), [], given={"block": "no statement"})


@exercise.property(block=BLOCKS, examples=80)
def as_python_itself_says(yours, block):
    """Blocks in blocks, against Python's symbol table."""
    agrees(yours, dedent(block))


# ---- in the transpiler ---------------------------------------------------------------------------


def nested(x):
    y, n = x, 1
    if x.sum() > 0:
        if x.max() > 2:
            y = x * 2
        elif x.min() < 0:
            y, n = x * 3, n + 1
        else:
            for k in range(2):
                y = y + k
    return y * n


def deleted(x):
    t = x + 1
    if x.sum() > 0:
        y = t * 2
        del t
    else:
        y = t
    return y


def with_functions(x):
    factor = 2.0
    if x.sum() > 0:

        def scaled(v):
            factor = 10
            return v * factor

        x = scaled(x)
    else:
        factor = 3.0
    return x * factor


@exercise.example
def programs_give_what_python_gives(yours):
    """Functions converted with your names: on tensors with values, and as programs."""
    arrays = ([1.0, 3.0], [-1.0, 2.0], [-1.0, -2.0], [0.5, 1.0])
    for function in (nested, deleted, with_functions):
        for array in arrays:
            expected = function(paddle.to_tensor(array))
            with exercise.plugged(yours):
                got = paddle.jit.to_static(function)(paddle.to_tensor(array))
            expect(got, expected, given={"function": function.__name__, "x": array})


@exercise.example
def a_network_trains(yours):
    """A loss that is clipped where it is large: captured, it learns as it does without."""
    losses = []
    for static in (False, True):
        paddle.seed(0)
        x = paddle.linspace(-1, 1, 16).reshape([-1, 1])
        net = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))
        adam = paddle.optimizer.Adam(0.05, parameters=net.parameters())

        def loss_of(x, net=net):
            loss = F.mse_loss(net(x), x * x)
            if loss > 0.1:
                large = loss.sqrt()
                loss = large * 0.3
            return loss

        with exercise.plugged(yours):
            step = paddle.jit.to_static(loss_of) if static else loss_of
            for _ in range(30):
                loss = step(x)
                loss.backward()
                adam.step()
                adam.clear_grad()
        losses.append(loss.item())
    expect(losses[1], losses[0], given="30 steps, the last loss", rtol=1e-3)
