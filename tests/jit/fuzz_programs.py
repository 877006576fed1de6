"""Random programs: functions of nested control flow over tensors and Python values.

They are right by construction: what is read is defined, loops end, and what depends on a tensor
stays of one shape. Python values that must stay Python's (list lengths, numbers that loops unroll
by) change only where no tensor decides. A *wild* function breaks that last rule: there the
converter may refuse.
"""

from __future__ import annotations

from random import Random

from tests.jit.fuzz_expressions import PARAMETERS, RETURNED, Function, Scope
from tests.jit.fuzz_statements import HANDLED, Statements


class Writer(Statements):
    """Writes one random function of about `size` statements."""

    def block(self, scope: Scope, size: int) -> tuple[list[str], bool]:
        """Statements, and whether they always jump away."""
        lines: list[str] = []
        for _ in range(max(1, size)):
            if self.budget <= 0 and lines:
                break
            new, jumps = self.statement(scope)
            lines += new
            if jumps:
                return lines, True
        return lines, False

    def indented(self, scope: Scope, size: int) -> tuple[list[str], bool]:
        lines, jumps = self.block(scope, size)
        return [f"    {line}" for line in lines], jumps

    def size(self) -> int:
        return self.random.choice((1, 1, 2, 2, 3, 4))

    def statement(self, scope: Scope) -> tuple[list[str], bool]:
        self.budget -= 1
        deep = scope.depth >= 4 or self.budget < 2
        choices = SIMPLE if deep or self.random.random() < 0.5 else COMPOUND
        for _ in range(20):
            name = self.random.choice(choices)
            written = getattr(self, name)(scope)
            if written is not None:
                return written if isinstance(written, tuple) else (written, False)
        return self.assign(scope), False

    # ---- compound statements -----------------------------------------------------------------

    def branch(self, scope):
        pure = self.random.random() < 0.3
        test = self.expression("g" if pure else "cond", scope, 3)
        lines, ends, jumps = [], [], []
        count = self.random.choice((1, 1, 2, 2, 3))
        if not pure and self.random.random() < 0.1:
            value = self.expression("s", scope)
            test = f"({self.bind('s', scope)} := {value}) > {self.expression('c', scope)}"
        for k in range(count):
            last = k == count - 1 and count > 1
            inner = scope.inner() if pure else scope.inner(tensor=True, near=True)
            head = (
                f"if {test}:"
                if not k
                else "else:"
                if last
                else f"elif {self.expression('g' if pure else 'cond', scope)}:"
            )
            new, jump = self.indented(inner, self.size())
            lines += [head, *new]
            ends.append(inner.names)
            jumps.append(jump)
        if count == 1:
            ends.append(dict(scope.names))
            jumps.append(False)
        meet(scope, [e for e, j in zip(ends, jumps) if not j])
        return lines, all(jumps)

    def loop_scope(self, scope, tensor: bool) -> Scope:
        """The scope of the body; `tensor`: does a tensor say how many iterations there are?"""
        if tensor:
            return scope.inner(tensor=True, near=True, loop="tensor")
        loop = self.random.choice(["free", "python", "python", "tensor"])
        decided = loop == "tensor"
        return scope.inner(
            tensor=scope.tensor or decided, near=decided, loop=loop,
            frozen=scope.frozen or not decided,
        )  # fmt: skip

    def looped(self, scope, head, before, inner, sure=False):
        """A loop, with `else` sometimes."""
        body, _ = self.indented(inner, self.size() + 1)
        lines = [head, *(f"    {line}" for line in before), *body]
        if self.random.random() < 0.12:
            other = scope.inner(tensor=scope.tensor or inner.near, near=scope.near or inner.near)
            lines += ["else:", *self.indented(other, 1)[0]]
        if sure and inner.loop == "free":
            meet(scope, [inner.names])
        return lines

    def for_range(self, scope):
        kind = self.random.choice("pppki")
        inner = self.loop_scope(scope, kind != "p")
        limit = {"p": "{n}", "k": "{k} % 4", "i": "{i} % 4"}[kind]
        if kind == "p" and self.random.random() < 0.4:
            limit = "{p} % 4"
        form = self.random.choice(
            ["{limit}", "{limit}", "1, {limit}", "{limit}, -1, -1", "0, {limit} + 1, 2"]
        )
        name = self.bind("p" if kind == "p" and inner.free else "i", inner)
        text = self.fill(form.replace("{limit}", limit), scope, 1)
        return self.looped(scope, f"for {name} in range({text}):", [], inner)

    def for_tensor(self, scope):
        inner = self.loop_scope(scope, False)
        source, kind = self.random.choice([("v", "s"), ("m", "v"), ("v", "s"), ("l", "v")])
        if source == "l" and not self.have("l", scope):
            return None
        items = self.expression(source, scope, 1)
        item = self.bind(kind, inner)
        form = self.random.randrange(5)
        if source == "l":
            items = f"list({items})"
        if form == 0 and inner.free:
            count = self.bind("p", inner)
            return self.looped(
                scope, f"for {count}, {item} in enumerate({items}):", [], inner, sure=True
            )
        if form == 1:
            other = self.bind("v", inner)
            more = self.expression("m", scope, 1)
            return self.looped(
                scope, f"for {item}, {other} in zip({items}, {more}):", [], inner, sure=True
            )
        if form == 2:
            items = f"reversed({items})"
        return self.looped(scope, f"for {item} in {items}:", [], inner, sure=source != "l")

    def for_items(self, scope):
        inner = self.loop_scope(scope, False)
        items = self.expression("d", scope, 1)
        name = self.bind("v", inner)
        several = ", ".join(self.expression("v", scope) for _ in range(2))
        if self.random.random() < 0.2 and self.changes(scope):
            return self.looped(scope, f"for e in {self.expression('y', scope)}:", [], inner)
        heads = [
            f"for e, {name} in {items}.items():",
            f"for {name} in {items}.values():",
            f"for {name} in ({several}):",
            f"for {name} in steps({self.expression('v', scope)}, 2):",
        ]
        return self.looped(scope, self.random.choice(heads), [], inner, sure=True)

    def for_constants(self, scope):
        inner = self.loop_scope(scope, False)
        name = self.bind("p" if inner.free else "i", inner)
        items = self.random.choice(["(1, 2)", "[0, 3, 1]", "{4: 1, 2: 0}"])
        return self.looped(scope, f"for {name} in {items}:", [], inner, sure=True)

    def while_fuel(self, scope):
        self.count += 1
        fuel = f"fuel{scope.function.prefix}{self.count}"
        form = self.random.randrange(5)
        n = self.random.randint(1, 4)
        pure = form in (0, 3)
        inner = self.loop_scope(scope, not pure)
        step = f"{fuel} -= 1"
        test = self.expression("g" if pure else "cond", scope)
        if form in (0, 1):
            head, before = f"while {fuel} > 0 and {test}:", [step]
        elif form == 2:
            head, before = f"while {test} and {fuel} > 0:", [step]
        else:
            head = "while True:"
            before = [step, f"if {fuel} < 0 or {test}:", "    break"]
            if form == 3:
                before[1] = f"if {fuel} < 0:"
        start = [f"{fuel} = {n}"]
        if form == 1 and self.random.random() < 0.4:
            start = [f"{fuel} = {self.fill('{k} % 4', scope)}"]
        return [*start, *self.looped(scope, head, before, inner)]

    def define(self, scope):
        """A nested function; it may read the variables around, and rebind some."""
        if scope.function.prefix or scope.depth > 2:
            return None
        self.count += 1
        name = f"helper{self.count}"
        returns = self.random.choice(["v", "s", "i", "vs", "k", "m", "f"])
        function = Function(returns, self.wild, "h")
        taken = self.random.choice(["v", "s", "vs", "vi", "vp", "k"])
        parameters = {f"{k}h{n}": k for n, k in enumerate(taken, 1)}
        rebound = [n for n, k in scope.names.items() if k in "vsif" and n[1:].isdigit()]
        rebound = (
            self.random.sample(rebound, min(len(rebound), 1)) if self.random.random() < 0.4 else []
        )
        inner = Scope(function, dict(scope.names) | parameters, {*parameters})
        inner.tensor, inner.depth = True, scope.depth + 1
        inner.names = {n: k for n, k in inner.names.items() if not k.startswith("def ")}
        if rebound:
            inner.own.update(rebound)
        default = "=1" if taken in ("vi", "vp") else ""
        lines = [f"def {name}({', '.join(parameters)}{default}):"]
        lines += [f"    nonlocal {n}" for n in rebound]
        for n in rebound:
            lines.append(f"    {n} = {self.value_like(n[0], inner)}")
        body, jumps = self.indented(inner, self.size() + 1)
        lines += body
        if not jumps:
            lines.append(f"    {self.returning(inner)}")
        scope.names[name] = f"def {returns} {taken}"
        return lines

    def value_like(self, kind, scope):
        value = self.expression(kind, scope)
        return f"{value} % 5" if kind == "i" else value

    def call(self, scope):
        known = [n for n, k in scope.names.items() if k.startswith("def ")]
        if not known:
            return None
        name = self.random.choice(known)
        _, returns, taken = scope.names[name].split()
        values = [self.expression(k, scope) for k in taken]
        if taken in ("vi", "vp") and self.random.random() < 0.3:
            values.pop()
        call = f"{name}({', '.join(values)})"
        targets = [self.bind(k, scope) for k in returns]
        return [f"{', '.join(targets)} = {call}" + (" % 5" if returns == "i" else "")]

    def quietly(self, scope):
        inner = scope.inner()
        lines, jumps = self.indented(inner, 2)
        if not jumps:
            scope.names = inner.names
        return ["with paddle.no_grad():", *lines], jumps

    def attempt(self, scope):
        inner, other = scope.inner(), scope.inner()
        inner.loop = other.loop = ""
        inner.function, keep = Function("v", self.wild, scope.function.prefix), scope.function
        inner.function.early, inner.function.left = False, keep.left
        lines, _ = self.indented(inner, 2)
        handler = [f"    {line}" for line in self.assign(other)]
        if scope.free and self.random.random() < 0.5:
            lines.append(f"    if {self.expression('g', scope)}:")
            lines.append('        raise ValueError("chosen")')
        if self.random.random() < 0.1:  # refused, where a handler may catch it
            lines += [f"    {line}" for line in self.raises(inner) or ()]
        lines = ["try:", *lines, f"except {self.random.choice(HANDLED)}".rstrip() + ":", *handler]
        if self.random.random() < 0.3:
            after = scope.inner(loop="")
            after.function = inner.function
            lines += ["else:", *self.indented(after, 1)[0]]
        if self.random.random() < 0.3:
            after = scope.inner(loop="")
            after.function = inner.function
            lines += ["finally:", *self.indented(after, 1)[0]]
        meet(scope, [inner.names, other.names])
        return lines

    def gate(self, scope):
        """A context manager of the user's, which counts."""
        inner = scope.inner()
        lines, jumps = self.indented(inner, 2)
        if not jumps:
            scope.names = inner.names
        return ["with Gate():", *lines], jumps

    def match(self, scope):
        subject = self.expression("p", scope)
        lines, ends, jumps = [f"match {subject}:"], [], []
        for case in ("0", "1 | 2", "_"):
            inner = scope.inner()
            new, jump = self.indented(inner, 1)
            lines += [f"    case {case}:", *(f"    {line}" for line in new)]
            ends.append(inner.names)
            jumps.append(jump)
        meet(scope, [e for e, j in zip(ends, jumps) if not j])
        return lines, all(jumps)


SIMPLE = (
    *["assign"] * 12, *["augment"] * 4, "assign_twice", "swap", "unpack", "walrus", "subscript",
    "subscript", "subscript_rows", "in_place", "write_state", *["write_list"] * 3, "write_dict",
    "write_object", "say", "check", *["jump"] * 4, *["call"] * 4, "write_array", "write_array",
    "write_queue", "take", "effect", "raises",
)  # fmt: skip
COMPOUND = (
    *["branch"] * 8, *["for_range"] * 3, "for_tensor", "for_tensor", "for_items", "for_constants",
    *["while_fuel"] * 3, "define", "define", "quietly", "attempt", "attempt", "gate",
    "match", *["jump"] * 2,
)  # fmt: skip


def meet(scope: Scope, ends: list[dict]) -> None:
    """After branches a name is defined if it is defined on all paths."""
    if ends:
        scope.names = {n: k for n, k in ends[0].items() if all(n in e for e in ends)}


def function_text(name: str, random: Random) -> str:
    """The source of a random function."""
    returns = "".join(random.choice(RETURNED) for _ in range(random.choice((0, 0, 0, 1, 2, 3))))
    wild = random.random() < 0.08
    writer = Writer(random, random.randint(4, 24), wild)
    function = Function(returns, wild)
    scope = Scope(function, dict(PARAMETERS), set())
    lines: list[str] = []
    while writer.budget > 0:
        new, jumps = writer.statement(scope)
        lines += new
        if jumps:
            break
    else:
        lines.append(writer.returning(scope))
    return "\n".join([f"def {name}({', '.join(PARAMETERS)}):", *(f"    {line}" for line in lines)])


HEADER = "import minipaddle as paddle\nfrom tests.jit.fuzz_world import *\n"


def compiles(text: str) -> bool:
    """Whether Python takes it: a dropped statement may leave a name that `nonlocal` then misses."""
    try:
        compile(text, "<fuzzed>", "exec")
    except SyntaxError:
        return False
    return True


def module_text(seed: int, count: int) -> str:
    """The source of a module of `count` random functions `f0`, `f1`, …"""
    random, texts = Random(seed), []
    while len(texts) < count:
        text = function_text(f"f{len(texts)}", random)
        if compiles(text):
            texts.append(text)
    return "\n\n\n".join([HEADER, *texts]) + "\n"
