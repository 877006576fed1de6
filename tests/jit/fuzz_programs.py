"""Random programs: functions of nested control flow over tensors and Python values.

Every name has one kind for ever, told by its first letter, and an expression of a kind is a template
with holes for expressions of other kinds. So programs are right by construction: what is read is
defined, loops end, and what depends on a tensor stays of one shape. Python values that must stay
Python's (list lengths, numbers that loops unroll by) change only where no tensor decides. A *wild*
function breaks that last rule: there the converter may refuse.
"""

from __future__ import annotations

import re
from random import Random

KINDS = {
    "v": "float[3]", "m": "float[2, 3]", "s": "float[]", "k": "int64[]", "t": "bool[]",
    "i": "int, or a tensor", "f": "float, or a tensor", "b": "bool, or a tensor",
    "p": "int", "q": "float", "g": "bool", "l": "list of float[3]", "d": "dict", "u": "(v, s)",
    "o": "Box",
}  # fmt: skip
RETURNED = "vvvvmmssskktiiffbdul"
PURE = {"p", "q", "g", "l", "o"}
WIDER = {"i": "ip", "f": "fq", "b": "bg"}
"""The kinds whose names serve where a kind is asked for."""

PARAMETERS = {"x": "v", "m": "m", "s": "s", "n": "k", "p": "p", "q": "q", "flag": "g"}

EXPRESSIONS = {
    "v": """W|x0|{v} + {v}|{v} - {v}|{v} * {c}|{v} * paddle.tanh({v})|paddle.tanh({v})|abs({v})|-{v}
        |{m}[0]|{m}[-1]|{m}[{i} % 2]|{m}[{k} % 2]|{m}.sum(0)|{v} + {s}|{v} * {f}|{v} + {i}|{v}.clone()
        |{v}.detach()|paddle.where({v} > {c}, {v}, {v})|{v} if {cond} else {v}|{v} if {b} else {v}
        |paddle.concat([{v}[1:], {v}[:1]])|paddle.stack([{s}, {s}, {s}])|{l}[0]|{l}[-1]
        |{l}[{p} % len({l})]|{l}[{i} % len({l})]|sum({l})|sum([e * {c} for e in {l}])|{d}["a"]|{d}["b"]
        |{u}[0]|STATE * {c}|STATE + {v}|(lambda e: e * {c} + {v})({v})|max({l}, key=lambda e: 1)
        |clipped({v})|clipped({v}, {c}, high={f})|power({v}, {p} % 3)|{o}.value|{o}.push({v})
        |Box.halved({v})|Box({v}).push({v})|paddle.maximum({v}, {v})|{v}.reshape([3, 1]).flatten()
        |sum(steps({v}, 2))|{v}.astype({v}.dtype)|{v} * ({v} > {c}).astype({v}.dtype)
        |paddle.clip({v}, -2.0, 2.0)|{v} ** 2 / ({v} ** 2 + 1)|paddle.zeros_like({v})|{v}.tanh()
        |dict(a={v})["a"]|[e for e in {m}][{i} % 2]|({v}, {v})[{p} % 2]|paddle.flip({v}, [0])""",
    "m": """{m} + {m}|{m} * {v}|{m} * {c}|paddle.tanh({m})|paddle.stack([{v}, {v}])|{m} - {s}
        |{m} if {cond} else {m}|paddle.stack([e * {c} for e in {m}])|{m}.clone()|-{m}
        |{m}.t().t()|paddle.where({m} > {c}, {m}, {m})|paddle.concat([{m}[1:], {m}[:1]])""",
    "s": """{v}.sum()|{v}.mean()|{v}.max()|{v}[{idx}]|{v}[{i} % 3]|{v}[{k} % 3]|{m}.sum()|{s} + {s}
        |{s} * {c}|{s} - {f}|paddle.tanh({s})|{s} if {cond} else {s}|{u}[1]|BIAS|{s} * {s}.tanh()
        |paddle.dot({v}, {v}).tanh()|{m}[{i} % 2, {idx}]|first_above({v}, {f})|abs({s})|max({s}, {s})
        |min({s}, {s})|{s} if {b} else {s}|sum(e for e in {v})|-{s}|s0|{v}[1:].sum()""",
    "k": """{k} + {k}|{k} - {i}|{k} * 2|{k} % {n}|({v} > {c}).sum()|{v}.argmax()|{k} // 2|abs({k})
        |{k} if {cond} else {k}|n0|max({k}, {i})|-{k}|paddle.where({s} > {f}, {k}, {k})|{k} // {n}""",
    "t": """{s} > {c}|{s} < {s}|{k} > {i}|{k} == {k}|({v} > {c}).any()|({v} > {v}).all()|{k} % 2 == 0
        |paddle.logical_not({t})|{t} & {t}|{t} if {b} else {t}|{v}.sum() >= {f}|{s} != {s}""",
    "i": """{n}|{i} + {i}|{i} - {n}|{i} * 2|len({l})|{v}.shape[0]|int(paddle.clip({s}, -4.0, 4.0))|int({k})
        |min({i}, {i})|max({i}, {i}, {n})|{i} if {b} else {i}|{i} if {cond} else {i}|abs({i})|{o}.count
        |{o}.size|int({b})|len({v})|{i} // {n}|{i} % {n}|sum([{i}, {n}])|-{i}|int({f})|round({q})
        |sum(e for e in range({p} % 4))|{p}|len([e for e in {v}])""",
    "f": """{c}|{f} + {f}|{f} - {c}|{f} * 0.5|float({s})|{f} if {b} else {f}|{f} if {cond} else {f}
        |min({f}, {f})|max({f}, {f})|abs({f})|-{f}|{i} / 2|{q}|float({i})""",
    "b": """True|False|{i} < {i}|not {b}|{b} and {b}|{b} or {b}|bool({t})|{i} % 2 == 0|{i} in (0, {n})|{g}
        |{f} > {f}|{i} < {n} < {i}|bool({s} > {f})|not {t} if {g} else {b}|{i} not in [{n}, {p}]""",
    "p": "{n}|{p} + {n}|{p} * 2 % 5|len({l})|{p} if {g} else {p}|{p} - {n}|{p} // 2|max({p}, {n})",
    "q": "{c}|{q} + {c}|{q} * 0.5|{q} if {g} else {q}|-{q}|abs({q})|{p} / 2",
    "g": "True|False|{p} > {n}|{q} < {q}|not {g}|{g} and {g}|{g} or {g}|{p} % 2 == 0|{p} in (0, {n})",
    "l": """[{v}, {v}]|[{v}]|[{v} for e in range(2)]|[e * {c} for e in {l}]|[e + {v} for e in {m}]
        |{l} + [{v}]|{l}[::-1]|[e for e in {l} if {g}] or [{v}]|list({m})|list({l})|[*{l}, {v}]""",
    "d": '{{"a": {v}, "b": {v}}}|{{e: r * {c} for e, r in {d}.items()}}|dict({d})|{{**{d}, "b": {v}}}',
    "u": "({v}, {s})|({v}, {s}) if {cond} else ({v}, {s})|({u}[0], {s})",
    "cond": """{t}|{t}|{s} > {f}|{t} and {t}|{t} or {b}|{b} and {t}|not {t}|{c} < {s} < {s}
        |{t} and {s} > {c}|{k} in (0, {n})|{s} > {c} and {p} > {n}|{b}|{g}|{i} < {k} <= {i}|not ({t} or {b})
        |any(e > {c} for e in {v})|all([{t}, {b}])|{k} > {n} or {g} or {t}|{v}.sum() > {m}.sum()""",
    "c": "0.5|0.25|1.5|-0.5|2.0|-1.25|0.75|-1.0",
    "n": "0|1|2|3|4",
    "idx": "0|1|2|-1",
}  # fmt: skip
ALONE = {
    "v": "x0", "m": "m0", "s": "s0", "k": "n0", "t": "(s0 > {c})", "i": "{n}", "f": "{c}", "b": "True",
    "p": "{n}", "q": "{c}", "g": "False", "l": "[x0]", "d": '{{"a": x0, "b": W}}', "u": "(x0, s0)",
    "o": "Box(x0)",
}  # fmt: skip
"""Where no name of a kind is at hand; `x0`… stand for the parameters."""
EXPRESSIONS = {
    kind: re.split(r"\s*\|\s*(?![^(]*~)", text.strip()) for kind, text in EXPRESSIONS.items()
}
# an operator "|" is never used in the templates
HOLE = re.compile(r"\{(\w+)\}")


class Scope:
    """What holds at a point of a program."""

    def __init__(self, function: Function, names: dict, own: set):
        self.function, self.names, self.own = function, names, own
        self.tensor = False  # does a tensor decide whether we come here?
        self.near = False  # the same, since the innermost loop or function began
        self.loop = ""  # of the innermost loop: "free", "python", or "tensor" may end it
        self.frozen = False  # is some loop around one that a tensor may not end?
        self.depth = 0

    def inner(self, **changes) -> Scope:
        new = Scope(self.function, dict(self.names), self.own)
        new.__dict__ |= {k: v for k, v in vars(self).items() if k not in ("names",)} | changes
        new.depth = self.depth + 1
        return new

    @property
    def free(self) -> bool:
        """May what must stay Python's change here?"""
        return self.function.wild or not (self.tensor or self.function.left)


class Function:
    """What is decided once for a function."""

    def __init__(self, returns: str, wild: bool, prefix: str = ""):
        self.returns, self.wild, self.prefix = returns, wild, prefix
        self.left = False  # may a tensor have ended it before the point being written?
        self.early = "l" not in returns and returns != ""  # may it return before its end?


class Writer:
    """Writes one random function of about `size` statements."""

    def __init__(self, random: Random, size: int, wild: bool = False):
        self.random, self.budget, self.wild = random, size, wild
        self.count = 0

    # ---- expressions -------------------------------------------------------------------------

    def fill(self, template: str, scope: Scope, depth: int = 2) -> str:
        """A template with its holes filled."""
        text = HOLE.sub(lambda hole: self.expression(hole[1], scope, depth), template)
        return text.replace("{{", "{").replace("}}", "}")

    def expression(self, kind: str, scope: Scope, depth: int = 2) -> str:
        """A random expression of a kind."""
        names = [n for n, k in scope.names.items() if k in WIDER.get(kind, kind)]
        if kind in ("c", "n", "idx"):
            return self.random.choice(EXPRESSIONS[kind])
        if kind in ALONE and (depth <= 0 or self.random.random() < 0.35 or kind == "o"):
            made = [n for n in names if n not in PARAMETERS]
            if made and self.random.random() < 0.75:
                return self.random.choice(made)
            return self.random.choice(names) if names else self.parameter(ALONE[kind], scope)
        template = self.random.choice(EXPRESSIONS[kind])
        holes = set(HOLE.findall(template))
        if "l" in holes and "l" not in scope.names.values():
            return self.expression(kind, scope, depth - 1)
        if "o" in holes and "o" not in scope.names.values():
            return self.expression(kind, scope, depth - 1)
        return f"({self.parameter(template, scope, depth - 1)})"

    def parameter(self, template: str, scope: Scope, depth: int = 0) -> str:
        """A filled template, `x0` being whichever first names there are."""
        for letter in "xmsn":
            template = re.sub(rf"\b{letter}0\b", letter, template)
        return self.fill(template, scope, depth)

    def target(self, kind: str, scope: Scope) -> str:
        """A name of a kind to bind."""
        owned = [n for n in scope.own if n[0] == kind and n in scope.names]
        if owned and self.random.random() < 0.3:
            return self.random.choice(sorted(owned))
        return f"{kind}{scope.function.prefix}{self.random.randint(1, 3)}"

    def bind(self, kind: str, scope: Scope) -> str:
        name = self.target(kind, scope)
        scope.names[name] = kind
        return name

    def kind(self, scope: Scope, kinds: str = "vvvvmsskktiiifbdu") -> str:
        if scope.free and self.random.random() < 0.3:
            return self.random.choice("ppqglo")
        return self.random.choice(kinds)

    def have(self, kind: str, scope: Scope, own: bool = False) -> str:
        """A name of a kind that is there, or ""."""
        found = [n for n, k in scope.names.items() if k == kind]
        if own:
            found = [n for n in found if n[1:2].isdigit() or n in scope.own]
            found = [n for n in found if n.startswith(kind + scope.function.prefix)]
        return self.random.choice(found) if found else ""

    # ---- blocks ------------------------------------------------------------------------------

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
            found = getattr(self, name)(scope)
            if found is not None:
                return found if isinstance(found, tuple) else (found, False)
        return self.assign(scope), False

    # ---- simple statements -------------------------------------------------------------------

    def assign(self, scope):
        kind = self.kind(scope)
        value = self.expression(kind, scope, 3)
        if kind in "ip":
            value = f"{value} % {self.random.randint(3, 7)}"
        if kind in "fq":
            value = f"max(min({value}, 4.0), -4.0)"
        return [f"{self.bind(kind, scope)} = {value}"]

    def assign_twice(self, scope):
        kind = self.random.choice("vsmkif")
        value = self.expression(kind, scope)
        if kind == "i":
            value += " % 5"
        return [f"{self.bind(kind, scope)} = {self.bind(kind, scope)} = {value}"]

    def augment(self, scope):
        kind = self.random.choice("vvmsskif")
        name = self.have(kind, scope, own=True)
        if not name:
            return None
        sign = self.random.choice("+-") if kind in "ik" else self.random.choice("+-*")
        other = {"v": "vsfc", "m": "vmsc", "s": "sfc", "k": "n", "i": "n", "f": "c"}[kind]
        return [f"{name} {sign}= {self.expression(self.random.choice(other), scope)}"]

    def swap(self, scope):
        kind = self.random.choice("vvsmif")
        names = [
            n
            for n, k in scope.names.items()
            if k == kind
            and n[0] == kind
            and n.startswith(kind + scope.function.prefix)
            and n[len(kind + scope.function.prefix) :].isdigit()
        ]
        if len(names) < 2:
            return None
        a, b = self.random.sample(names, 2)
        return [f"{a}, {b} = {b}, {a}"]

    def unpack(self, scope):
        form = self.random.randrange(5)
        if form == 0:
            value = self.expression("v", scope)
            names = [self.bind("s", scope) for _ in range(3)]
        elif form == 1:
            value = self.expression("m", scope)
            names = [self.bind("v", scope) for _ in range(2)]
        elif form == 2:
            value = self.expression("u", scope)
            names = [self.bind("v", scope), self.bind("s", scope)]
        elif form == 3:
            value = self.fill("({v}, ({s}, {i} % 5))", scope)
            v, s, i = (self.bind(k, scope) for k in "vsi")
            return [f"{v}, ({s}, {i}) = {value}"]
        elif scope.free:
            value = self.fill("[{v}, {v}, {v}]", scope)
            names = [self.bind("v", scope), "*" + self.bind("l", scope)]
        else:
            return None
        return [f"{', '.join(names)} = {value}"]

    def walrus(self, scope):
        value = self.expression("v", scope)
        inner = self.bind("v", scope)
        return [f"{self.bind('v', scope)} = ({inner} := {value}) * {self.expression('c', scope)}"]

    def subscript(self, scope):
        name = self.have("v", scope, own=True)
        if not name:
            return None
        raw = self.random.random() < 0.05
        place = self.fill(
            self.random.choice(["0", "-1", "1:", "{i} % 3", "{k} % 3", ":2", "..."]), scope
        )
        sign = self.random.choice(["=", "=", "+=", "*="])
        first = self.expression("v", scope)
        value = self.expression(self.random.choice("sfc"), scope)
        return [*([] if raw else [f"{name} = {first} * 1.0"]), f"{name}[{place}] {sign} {value}"]

    def subscript_rows(self, scope):
        name = self.have("m", scope, own=True)
        if not name:
            return None
        place, kind = self.random.choice(
            [("0", "v"), ("{i} % 2", "v"), ("1, {k} % 3", "s"), (":, 0", "s")]
        )
        first, place = self.expression("m", scope), self.fill(place, scope)
        return [f"{name} = {first} * 1.0", f"{name}[{place}] = {self.expression(kind, scope)}"]

    def in_place(self, scope):
        name = self.have("v", scope, own=True)
        if not name:
            return None
        call = self.fill(self.random.choice(["add_({v})", "scale_({c})", "subtract_({v})", "multiply_({v})",
                                             "clip_(-1.0, 1.0)", "tanh_()", "zero_()"]), scope)  # fmt: skip
        return [f"{name} = {self.expression('v', scope)} * 1.0", f"{name}.{call}"]

    def write_state(self, scope):
        call = self.random.choice(["STATE.add_({v}.detach())", "STATE[{i} % 3] = {s}.detach()",
                                   "STATE.scale_(0.5)", "STATE[0] += {c}", "STATE.add_({v})",
                                   "STATE[1:] = {f}", "STATE.copy_({v}.detach())"])  # fmt: skip
        return [self.fill(call, scope)]

    def write_list(self, scope):
        name = self.have("l", scope)
        if not name:
            return None
        forms = ["{0}[0] = {{v}}", "{0}[-1] = {{v}}", "{0}[0] += {{v}}", "{0}[{{p}} % len({0})] = {{v}}",
                 "{0}[0], {0}[-1] = {0}[-1], {0}[0]"]  # fmt: skip
        if scope.free:
            forms += ["{0}.append({{v}})"] * 4 + ["{0}.insert(0, {{v}})", "{0} += [{{v}}]",
                      "{0}.extend([{{v}}, {{v}}])", "{0}.reverse()",
                      "if len({0}) > 1: {0}.pop()", "if len({0}) > 2: del {0}[0]"]  # fmt: skip
        form = self.random.choice(forms)
        if "+= [" in form and not name.startswith("l" + scope.function.prefix + ""):
            return None
        return [self.fill(form.format(name), scope)]

    def write_dict(self, scope):
        name = self.have("d", scope)
        if not name:
            return None
        form = self.random.choice(['{0}["a"] = {{v}}', '{0}["b"] += {{v}}', '{0}["a"], {0}["b"] = {0}["b"], {0}["a"]',
                                   "{0}.update(a={{v}})"])  # fmt: skip
        return [self.fill(form.format(name), scope)]

    def write_object(self, scope):
        name = self.have("o", scope)
        if not name:
            return None
        form = self.random.choice(["{0}.value = {{v}}", "{0}.count += 1", "{0}.value += {{v}}", "{0}.push({{v}})",
                                   "{0}.count = {{i}} % 4"])  # fmt: skip
        return [self.fill(form.format(name), scope)]

    def say(self, scope):
        return [self.fill(self.random.choice(['print("v", {v} * 1.0)', "print({s} + 0.0)"]), scope)]

    def check(self, scope):
        return [self.fill(self.random.choice(["assert {i} % 5 < 5", 'assert {s}.tanh() < 2.0, "large"',
                                              "assert {v}.sum() < 100.0 or {cond}",
                                              "assert {cond}" if self.random.random() < 0.1
                                              else "assert {b} or True"]), scope)]  # fmt: skip

    def jump(self, scope):
        """A jump behind a condition, or at the end of a block."""
        function = scope.function
        python = not scope.near or function.wild
        options = []
        if scope.loop == "tensor" or (scope.loop == "python" and python):
            options += ["break", "continue"]
        if function.early and ((not scope.frozen) or (not scope.tensor and not function.left)):
            options.append("return")
        if not options:
            return None
        what = self.random.choice(options)
        pure = scope.loop != "tensor" if what != "return" else scope.frozen
        test = self.expression(
            "g" if pure else self.random.choice(["cond", "cond", "g", "t"]), scope
        )
        if what == "return":
            what = self.returning(scope)
            if not pure or scope.tensor:
                function.left = True
        lines = [f"if {test}:"]
        if self.random.random() < 0.4:
            inside = scope.inner(tensor=True, near=True) if not pure else scope.inner()
            lines += [f"    {line}" for line in self.assign(inside)]
        lines.append(f"    {what}")
        return lines

    def returning(self, scope) -> str:
        if not scope.function.returns:
            names = [
                n for n, k in scope.names.items() if k in KINDS and k != "o" and n not in PARAMETERS
            ]
            return f"return {{{', '.join(f'{n!r}: {n}' for n in names)}}}"
        values = [self.expression(k, scope, 1) for k in scope.function.returns]
        return f"return {', '.join(values)}"

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
        """The scope of the body; `tensor`: does a tensor say how many rounds there are?"""
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
        form = self.random.choice([f"for e, {name} in {items}.items():", f"for {name} in {items}.values():",
                                   f"for {name} in ({', '.join(self.expression('v', scope) for _ in range(2))}):",
                                   f"for {name} in steps({self.expression('v', scope)}, 2):"])  # fmt: skip
        return self.looped(scope, form, [], inner, sure=True)

    def for_constants(self, scope):
        inner = self.loop_scope(scope, False)
        name = self.bind("p" if inner.free else "i", inner)
        return self.looped(scope, f"for {name} in {self.random.choice(['(1, 2)', '[0, 3, 1]', '{4: 1, 2: 0}'])}:",
                           [], inner, sure=True)  # fmt: skip

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
        default = "=0.5" if taken == "s" else "=1" if taken in ("vi", "vp") else ""
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
        if taken in ("vi", "vp", "s") and self.random.random() < 0.3:
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
        meet(scope, [inner.names, other.names])
        return ["try:", *lines, "except ValueError:", *handler]

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
    "write_object", "say", "check", *["jump"] * 4, *["call"] * 4,
)  # fmt: skip
COMPOUND = (
    *["branch"] * 8, *["for_range"] * 3, "for_tensor", "for_tensor", "for_items", "for_constants",
    *["while_fuel"] * 3, "define", "define", "quietly", "attempt", "match", *["jump"] * 2,
)  # fmt: skip


def meet(scope: Scope, ends: list[dict]) -> None:
    """After branches what is defined on all ways that come here is defined."""
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


def module_text(seed: int, count: int) -> str:
    """The source of a module of `count` random functions `f0`, `f1`, …"""
    random = Random(seed)
    texts = [function_text(f"f{k}", random) for k in range(count)]
    return "\n\n\n".join([HEADER, *texts]) + "\n"
