"""What programs of the fuzzer are made of: kinds of values; expressions, templates with holes.

Every name has one kind for ever, told by its first letter; a hole is filled with an expression of
its kind.
"""

from __future__ import annotations

import re
from random import Random

KINDS = {
    "v": "float[3]", "m": "float[2, 3]", "s": "float[]", "k": "int64[]", "t": "bool[]",
    "i": "int, or a tensor", "f": "float, or a tensor", "b": "bool, or a tensor",
    "p": "int", "q": "float", "g": "bool", "l": "list of float[3]", "d": "dict", "u": "(v, s)",
    "o": "Box", "a": "NumPy's float[3]", "y": "iterator of floats", "w": "deque of float[3]",
}  # fmt: skip
RETURNED = "vvvvmmssskktiiffbdul"
WIDER = {"i": "ip", "f": "fq", "b": "bg"}
"""The kinds whose names serve where a kind is asked for."""

PARAMETERS = {"x": "v", "m": "m", "s": "s", "n": "k", "p": "p", "q": "q", "flag": "g"}

EXPRESSIONS = {
    "v": """W|x0|{v} + {v}|{v} - {v}|{v} * {c}|{v} * paddle.tanh({v})|paddle.tanh({v})|abs({v})
        |-{v}|{m}[0]|{m}[-1]|{m}[{i} % 2]|{m}[{k} % 2]|{m}.sum(0)|{v} + {s}|{v} * {f}|{v} + {i}
        |{v}.clone()|{v}.detach()|paddle.where({v} > {c}, {v}, {v})|{v} if {cond} else {v}
        |{v} if {b} else {v}|paddle.concat([{v}[1:], {v}[:1]])|paddle.stack([{s}, {s}, {s}])|{l}[0]
        |{l}[-1]|{l}[{p} % len({l})]|{l}[{i} % len({l})]|sum({l})|sum([e * {c} for e in {l}])
        |{d}["a"]|{d}["b"]|{u}[0]|STATE * {c}|STATE + {v}|(lambda e: e * {c} + {v})({v})
        |max({l}, key=lambda e: 1)|clipped({v})|clipped({v}, {c}, high={f})|power({v}, {p} % 3)
        |{o}.value|{o}.push({v})|Box.halved({v})|Box({v}).push({v})|paddle.maximum({v}, {v})
        |{v}.reshape([3, 1]).flatten()|sum(steps({v}, 2))|{v}.astype({v}.dtype)
        |{v} * ({v} > {c}).astype({v}.dtype)|paddle.clip({v}, -2.0, 2.0)|{v} ** 2 / ({v} ** 2 + 1)
        |paddle.zeros_like({v})|{v}.tanh()|dict(a={v})["a"]|[e for e in {m}][{i} % 2]
        |({v}, {v})[{p} % 2]|paddle.flip({v}, [0])|slope({v}, {v})|moved(Pair({v}, {s}), {s}).first
        |Pair({v}).first|counted({v})|{v} * paddle.rand([3])
        |paddle.nn.functional.dropout({v}, 0.5)|{v} * paddle.to_tensor({a}, dtype={v}.dtype)|{w}[0]
        |{w}[-1]|{v} * {q}""",
    "m": """{m} + {m}|{m} * {v}|{m} * {c}|paddle.tanh({m})|paddle.stack([{v}, {v}])|{m} - {s}
        |{m} if {cond} else {m}|paddle.stack([e * {c} for e in {m}])|{m}.clone()|-{m}|{m}.t().t()
        |paddle.where({m} > {c}, {m}, {m})|paddle.concat([{m}[1:], {m}[:1]])""",
    "s": """{v}.sum()|{v}.mean()|{v}.max()|{v}[{idx}]|{v}[{i} % 3]|{v}[{k} % 3]|{m}.sum()|{s} + {s}
        |{s} * {c}|{s} - {f}|paddle.tanh({s})|{s} if {cond} else {s}|{u}[1]|BIAS|{s} * {s}.tanh()
        |paddle.dot({v}, {v}).tanh()|{m}[{i} % 2, {idx}]|first_above({v}, {f})|abs({s})
        |moved(Pair({v}, {s}), {f}).second|slope({v}, {s}).sum()
        |max({s}, {s})|min({s}, {s})|{s} if {b} else {s}|sum(e for e in {v})|-{s}|s0
        |{v}[1:].sum()""",
    "k": """{k} + {k}|{k} - {i}|{k} * 2|{k} % {one}|({v} > {c}).sum()|{v}.argmax()|{k} // 2
        |abs({k})|{k} if {cond} else {k}|n0|max({k}, {i})|-{k}|paddle.where({s} > {f}, {k}, {k})
        |{k} // {one}""",
    "t": """{s} > {c}|{s} < {s}|{k} > {i}|{k} == {k}|({v} > {c}).any()|({v} > {v}).all()
        |{k} % 2 == 0|paddle.logical_not({t})|{t} & {t}|{t} if {b} else {t}|{v}.sum() >= {f}
        |{s} != {s}""",
    "i": """{n}|{i} + {i}|{i} - {n}|{i} * 2|len({l})|{v}.shape[0]|int(paddle.clip({s}, -4.0, 4.0))
        |int({k})|min({i}, {i})|max({i}, {i}, {n})|{i} if {b} else {i}|{i} if {cond} else {i}
        |abs({i})|{o}.count|{o}.size|int({b})|len({v})|{i} // {one}|{i} % {one}|sum([{i}, {n}])
        |-{i}|int({f})|round({q})|sum(e for e in range({p} % 4))|{p}|len([e for e in {v}])""",
    "f": """{c}|{f} + {f}|{f} - {c}|{f} * 0.5|float({s})|{f} if {b} else {f}|{f} if {cond} else {f}
        |min({f}, {f})|max({f}, {f})|abs({f})|-{f}|{i} / 2|{q}|float({i})""",
    "b": """True|False|{i} < {i}|not {b}|{b} and {b}|{b} or {b}|bool({t})|{i} % 2 == 0
        |{i} in (0, {n})|{g}|{f} > {f}|{i} < {n} < {i}|bool({s} > {f})|not {t} if {g} else {b}
        |{i} not in [{n}, {p}]""",
    "p": "{n}|{p} + {n}|{p} * 2 % 5|len({l})|{p} if {g} else {p}|{p} - {n}|{p} // 2|max({p}, {n})",
    "q": """{c}|{q} + {c}|{q} * 0.5|{q} if {g} else {q}|-{q}|abs({q})|{p} / 2|float({a}[{idx}])
        |float({a}.sum())|next({y}, 0.5)|sum({y})""",
    "a": """np.array([{q}, 1.0, -0.5])|{a} * {q}|{a}[::-1]|{a} + 1|{a}.copy()|np.zeros(3)
        |np.maximum({a}, {a})""",
    "y": """iter([{q}, 1.5])|(e * {c} for e in [{q}, 2.0])|map(abs, [{q}, -0.5])|iter({a}.tolist())
        |(e + r for e, r in zip([{q}, 1.0], {y}))|reversed([{q}, 0.25])""",
    "w": "deque([{v}])|deque([{v}, {v}], 3)|deque({l})|{w}.copy()",
    "g": """True|False|{p} > {n}|{q} < {q}|not {g}|{g} and {g}|{g} or {g}|{p} % 2 == 0
        |{p} in (0, {n})""",
    "l": """[{v}, {v}]|[{v}]|[{v} for e in range(2)]|[e * {c} for e in {l}]|[e + {v} for e in {m}]
        |{l} + [{v}]|{l}[::-1]|[e for e in {l} if {g}] or [{v}]|list({m})|list({l})|[*{l}, {v}]""",
    "d": """{{"a": {v}, "b": {v}}}|{{e: r * {c} for e, r in {d}.items()}}|dict({d})
        |{{**{d}, "b": {v}}}""",
    "u": "({v}, {s})|({v}, {s}) if {cond} else ({v}, {s})|({u}[0], {s})",
    "cond": """{t}|{t}|{s} > {f}|{t} and {t}|{t} or {b}|{b} and {t}|not {t}|{c} < {s} < {s}
        |{t} and {s} > {c}|{k} in (0, {n})|{s} > {c} and {p} > {n}|{b}|{g}|{i} < {k} <= {i}
        |not ({t} or {b})|any(e > {c} for e in {v})|all([{t}, {b}])|{k} > {n} or {g} or {t}
        |{v}.sum() > {m}.sum()""",
    "c": "0.5|0.25|1.5|-0.5|2.0|-1.25|0.75|-1.0",
    "n": "0|1|2|3|4",
    "one": "1|2|3|5",
    "idx": "0|1|2|-1",
}  # fmt: skip
ALONE = {
    "v": "x0", "m": "m0", "s": "s0", "k": "n0", "t": "(s0 > {c})", "i": "{n}", "f": "{c}",
    "b": "True", "p": "{n}", "q": "{c}", "g": "False", "l": "[x0]", "u": "(x0, s0)", "o": "Box(x0)",
    "d": '{{"a": x0, "b": W}}', "a": "np.ones(3)", "y": "iter([{c}, 0.5])", "w": "deque([x0])",
}  # fmt: skip
"""Used where no name of a kind is at hand; `x0`… stand for the parameters."""
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


class Expressions:
    """Writes expressions, and says which names there are."""

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
        if kind in ("c", "n", "one", "idx"):
            return self.random.choice(EXPRESSIONS[kind])
        if kind in ALONE and (depth <= 0 or self.random.random() < 0.35 or kind == "o"):
            computed = [n for n in names if n not in PARAMETERS]
            if computed and self.random.random() < 0.75:
                return self.random.choice(computed)
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
            return self.random.choice("ppqgloayw")
        return self.random.choice(kinds)

    def have(self, kind: str, scope: Scope, own: bool = False) -> str:
        """A name of a kind that is there, or ""."""
        candidates = [n for n, k in scope.names.items() if k == kind]
        if own:
            candidates = [n for n in candidates if n[1:2].isdigit() or n in scope.own]
            candidates = [n for n in candidates if n.startswith(kind + scope.function.prefix)]
        return self.random.choice(candidates) if candidates else ""
