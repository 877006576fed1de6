"""Statements of one line, and jumps, for the programs of the fuzzer."""

from __future__ import annotations

from tests.jit.fuzz_expressions import KINDS, PARAMETERS, Expressions

IN_PLACE = [
    "add_({v})",
    "scale_({c})",
    "subtract_({v})",
    "multiply_({v})",
    "clip_(-1.0, 1.0)",
    "tanh_()",
    "zero_()",
]
STATE = [
    "STATE.add_({v}.detach())",
    "STATE[{i} % 3] = {s}.detach()",
    "STATE.scale_(0.5)",
    "STATE[0] += {c}",
    "STATE.add_({v})",
    "STATE[1:] = {f}",
    "STATE.copy_({v}.detach())",
]
LIST = [
    "NAME[0] = {v}",
    "NAME[-1] = {v}",
    "NAME[0] += {v}",
    "NAME[{p} % len(NAME)] = {v}",
    "NAME[0], NAME[-1] = NAME[-1], NAME[0]",
]
GROWING = [
    "NAME.append({v})",
    "NAME.append({v})",
    "NAME.insert(0, {v})",
    "NAME += [{v}]",
    "NAME.extend([{v}, {v}])",
    "NAME.reverse()",
    "if len(NAME) > 1: NAME.pop()",
    "if len(NAME) > 2: del NAME[0]",
]
DICT = [
    'NAME["a"] = {v}',
    'NAME["b"] += {v}',
    'NAME["a"], NAME["b"] = NAME["b"], NAME["a"]',
    "NAME.update(a={v})",
]
OBJECT = [
    "NAME.value = {v}",
    "NAME.value += {v}",
    "NAME.count += 1",
    "NAME.push({v})",
    "NAME.count = {i} % 4",
]
ARRAY = [
    "NAME[{p} % 3] = {q}",
    "NAME[1:] *= {c}",
    "NAME *= {c}",
    "NAME += 1",
    "NAME.fill({q})",
    "np.add(NAME, {c}, out=NAME)",
    "NAME.sort()",
]
QUEUE = [
    "NAME.append({v})",
    "NAME.appendleft({v})",
    "NAME.rotate(1)",
    "if len(NAME) > 1: NAME.popleft()",
    "NAME[0] = {v}",
]
EFFECTS = [
    "GATE.count += 1",
    'setattr(GATE, "count", {n})',
    "QUEUE.append({q})",
    "ARRAY[{p} % 3] += {c}",
    "COUNTS.__setitem__({n}, {p})",
    "COUNTS.move_to_end(next(iter(COUNTS)))",
    "random.random()",
]
RAISED = ['ValueError("chosen")', "KeyError(1)", "ZeroDivisionError"]
HANDLED = ["ValueError", "Exception", "(KeyError, ValueError)", "ArithmeticError as error", ""]
CHECKS = [
    *["assert {i} % 5 < 5"] * 4,
    *['assert {s}.tanh() < 2.0, "large"'] * 4,
    *["assert {v}.sum() < 100.0 or {cond}"] * 4,
    *["assert {b} or True"] * 4,
    "assert {cond}",
]


class Statements(Expressions):
    """Each method writes the lines of a statement, or gives None where it cannot stand."""

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
        lines = [] if raw else [f"{name} = {first} * 1.0"]
        if self.random.random() < 0.2:  # a slice that begins where the data say
            start = self.expression("k", scope)
            at = self.bind("k", scope)
            lines.append(f"{at} = {start} % 2")
            place = self.random.choice(
                [f"{at} : {at} + 1", f"{at} : 2 + {at}", f"{at} + 1 : {at} + 2"]
            )
        return [*lines, f"{name}[{place}] {sign} {value}"]

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
        call = self.fill(self.random.choice(IN_PLACE), scope)
        return [f"{name} = {self.expression('v', scope)} * 1.0", f"{name}.{call}"]

    def write_state(self, scope):
        return [self.fill(self.random.choice(STATE), scope)]

    def write_list(self, scope):
        return self.write("l", LIST + GROWING * 2 if scope.free else LIST, scope)

    def write(self, kind: str, forms: list, scope):
        """One of the forms, of a name of a kind."""
        name = self.have(kind, scope, own=True)
        return [self.fill(self.random.choice(forms).replace("NAME", name), scope)] if name else None

    def write_dict(self, scope):
        return self.write("d", DICT, scope)

    def write_object(self, scope):
        return self.write("o", OBJECT, scope)

    def write_array(self, scope):
        return self.write("a", ARRAY, scope) if self.changes(scope) else None

    def write_queue(self, scope):
        return self.write("w", QUEUE, scope) if self.changes(scope) else None

    def changes(self, scope) -> bool:
        """May code that is not converted change something here? Seldom where a tensor decides."""
        return scope.free or self.random.random() < 0.03

    def effect(self, scope):
        """A change of something outside the function, for which each run must trace it again."""
        if not scope.tensor or self.random.random() > 0.1:
            return None
        return [self.fill(self.random.choice(EFFECTS), scope)]

    def take(self, scope):
        """The next item of an iterator."""
        name = self.have("y", scope, own=True) if self.changes(scope) else ""
        return [f"{self.bind('q', scope)} = next({name}, 0.75)"] if name else None

    def raises(self, scope):
        """An error that only some runs raise, when a tensor decides."""
        if self.random.random() > 0.3:
            return None
        test = self.expression(self.random.choice(["cond", "g"]), scope)
        return [f"if {test}:", f"    raise {self.random.choice(RAISED)}"]

    def say(self, scope):
        return [self.fill(self.random.choice(['print("v", {v} * 1.0)', "print({s} + 0.0)"]), scope)]

    def check(self, scope):
        return [self.fill(self.random.choice(CHECKS), scope)]

    def jump(self, scope):
        """A jump under a condition, or at the end of a block."""
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
                n
                for n, k in scope.names.items()
                if k in KINDS and k not in "oayw" and n not in PARAMETERS
            ]
            return f"return {{{', '.join(f'{n!r}: {n}' for n in names)}}}"
        values = [self.expression(k, scope, 1) for k in scope.function.returns]
        return f"return {', '.join(values)}"
