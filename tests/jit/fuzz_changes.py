"""The fuzzer of what changes outside of converted functions, between their calls.

    python -m tests.jit.fuzz_changes --statements 100000 --seed 1

A random function reads and writes objects, a layer, variables of its module and of a function
around it, lists and dicts; some it is given. It is called several times, eagerly and as a program,
each in a world of its own; between the calls both worlds change in the same way. After each call
all tensors that anybody holds must be equal, and the same ones must be the same object. A failure
prints the seed.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path
from random import Random

import numpy as np

import minipaddle as paddle
from tests.jit.fuzz_compare import REFUSALS, Hang, limited

CALLS = 6

WORLD = """
import minipaddle as paddle
from minipaddle import nn

G, T = 1, paddle.to_tensor([0.5, -0.25])


class Thing:
    limit = 2

    def __init__(self):
        self.h, self.m, self.n = paddle.zeros([2]), None, 1
        self.s = (paddle.ones([2]), paddle.to_tensor([0.5, -1.0]))
        self.l = [paddle.ones([2]), paddle.to_tensor([0.25, 0.5])]
        self.o = self.h

    def mixed(self, x):
        self.h = self.h * 0.5 + x
        return self.h


def linear(seed):
    paddle.seed(seed)
    return nn.Linear(2, 2)


class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.fc, self.h, self.p, self.more = linear(1), paddle.zeros([2]), 1, [nn.Tanh()]

    def forward(self, x):
        x = self.fc(x.reshape([1, 2])).reshape([2]) * self.p
        for each in self.more:
            x = each(x)
        self.h = self.h * 0.5 + x
        return self.h if self.training else x


o, net, hist, table = Thing(), Net(), [], {"a": 1, "t": paddle.ones([2])}
a, d = [paddle.ones([2])], {"t": paddle.zeros([2]), "n": 1, "l": []}


def make():
    c, ct = 2, paddle.to_tensor([1.0, 2.0])

    def f(x, a, d):
        global G, T
        nonlocal c, ct
        v = x * 0.5
BODY

    def change(what, value):
        nonlocal c, ct
        if what == "c":
            c = value
        else:
            ct = value

    return f, change, lambda: ct
"""

VALUES = [
    "x", "x", "v", "v", "o.h", "o.h", "o.s[0]", "o.s[1]", "o.l[0]", "o.l[-1]", "T", "ct", "net.h",
    'table["t"]', "(x if o.m is None else o.m)", "o.o", "sum(o.l)", "hist[-1] if hist else x",
]  # fmt: skip
NUMBERS = ["o.n", "G", "c", "len(o.l)", "len(hist)", 'table["a"]', "net.p", "o.limit",
           "Thing.limit", 'table.get("b", 1)', 'getattr(o, "q", 1)']  # fmt: skip
CALLED = ["net(V)", "o.mixed(V)", "net.fc(V.reshape([1, 2])).reshape([2])"]
STATEMENTS = [
    "v = V", "v = V", "o.h = V", "o.h = V", "o.m = V", "o.s = (V, V)", "o.l = [V, V]",
    "o.l[0] = V", "o.n = (o.n + 1) % 3",
    "hist.append(V)", 'table["t"] = V', "net.h = V", "T = V", "ct = V", "o.o = o.h", "o.o = V",
    "o.h, net.h = net.h, o.h", "o.m = None", "h, c_ = o.s; o.s = (c_, h + V)",
    "G = (G + 1) % 2", "o.l = [t * 0.5 for t in o.l]", "v = T = V", "o.last = v",
    "o.last = V", 'if hasattr(o, "last"): del o.last', 'v = getattr(o, "last", V)',
]  # fmt: skip
TESTS = ["o.n > 1", "o.m is None", "G == c", "net.training", "len(hist) > 2",
         "table['a'] > 1"]  # fmt: skip
IDENTITY = "o.h is o.o"  # no question where tensors decide what o.h is
CHOICES = ["V.sum() > 0", "V.sum() > 0", "o.m is not None and o.m.sum() > 0"]
IN_PLACE = ["o.h.add_(V)", "v = V * 1.0; v.scale_(0.5)", "T.scale_(0.5)", "net.h.add_(V)"]
BETWEEN = [
    "o.h = t", "o.h = t", "o.h = kept", "o.m = None", "o.m = t", "o.n = k", "o.s = (t, t2)",
    "o.l.append(t)", "o.l[0] = t", "o.l = [t]", 'table["t"] = t', 'table["a"] = k',
    'table["b"] = k', "o.s = o.s[::-1]",
    "G = k", "T = t", "T = kept", "net.h = t", "net.p = k", "net.fc = linear(k)", "net.eval()",
    "net.train()", "Thing.limit = k", "o.limit = k", "o.q = k", "o.h = o.o", "o.o = t",
    "net.more.append(nn.Sigmoid())", "net.more[0] = nn.ReLU()", "hist.clear()", "kept.add_(t)",
    "o.h = net.h", "net.h = T", "o.last = t", 'vars(o).pop("last", None)',
]  # fmt: skip


GIVEN = [
    "a.append(V)", "a[0] = V", "a[-1] = V", "a.reverse()", "a.insert(0, V)", "a[:1] = [V, V]",
    "v = a.pop() if len(a) > 1 else V", "a.extend([V, v])", 'd["t"] = V',
    'd["n"] = (d["n"] + 1) % 3', 'd["l"].append(V)', 'v = d.pop("new", v)', 'd["new"] = V',
    "v = a[0] + len(a)", "o.l = a",
    'v = d["t"] * d["n"]', 'a, d["l"] = d["l"], a', "hist.append(a[-1])", "hist.extend(a)",
]  # fmt: skip
"""Statements about a list `a` and a dict `d` that the function is given."""
GIVEN_RETURNS = ["return a", "return [a[0]]", 'return d["t"], a[-1]', 'return d["l"]', "return v"]
BETWEEN_GIVEN = ["a.append(t)", "a[:] = [t]", "a = [t, t2]", 'd["t"] = t', 'd["n"] = k',
                 'd["l"] = [t]']  # fmt: skip
SHARED = ["a = o.l", 'a = d["l"]']  # no question where tensors decide which list o.l is


class Writer:
    """Writes the body of a function, and what happens between its calls."""

    def __init__(self, seed: int):
        self.random, self.statements = Random(seed), 0
        self.gradients = seed % 3 != 0
        self.chooses = seed % 2 == 0  # whether tensors decide: what they choose is a new tensor
        self.in_place = not (self.gradients or self.chooses)
        self.given = seed % 7 in (1, 6)  # whether it uses the list and the dict that it is given

    def value(self, depth: int = 2) -> str:
        kind = self.random.random()
        if depth and kind < 0.4:
            return f"({self.value(depth - 1)} {self.random.choice('+-')} {self.value(depth - 1)})"
        if depth and kind < 0.55:
            return f"({self.value(depth - 1)} * {self.random.choice(NUMBERS)} * 0.25)"
        if depth and kind < 0.65:
            called = self.random.choice(CALLED).replace("V", self.value(depth - 1))
            return f"({called} * 0.5)"
        return self.random.choice(VALUES)

    def fill(self, text: str) -> str:
        while "V" in text:
            text = text.replace("V", self.value(), 1)
        return text

    def block(self, size: int, depth: int) -> list[str]:
        lines = []
        for _ in range(size):
            lines += self.statement(depth)
        return lines

    def statement(self, depth: int) -> list[str]:
        self.statements += 1
        kind = self.random.random()
        if depth and kind < 0.25:
            test = self.random.choice([*TESTS, *(CHOICES if self.chooses else [IDENTITY])])
            body = self.block(self.random.choice((1, 1, 2)), depth - 1)
            lines = [f"if {self.fill(test)}:", *(f"    {line}" for line in body)]
            if self.random.random() < 0.5:
                body = self.block(1, depth - 1)
                lines += ["else:", *(f"    {line}" for line in body)]
            return lines
        if depth and kind < 0.32:
            head = self.random.choice(["for _ in range(o.n):", "for t in o.l:", "for t in [*o.s]:"])
            body = self.block(self.random.choice((1, 2)), depth - 1)
            return [head, *(f"    {line}" for line in body)]
        forms = STATEMENTS + IN_PLACE if self.in_place else STATEMENTS
        if self.given and self.random.random() < 0.5:
            forms = GIVEN
        return [self.fill(self.random.choice(forms))]

    def returned(self) -> str:
        if self.given:
            return self.random.choice(GIVEN_RETURNS)
        return "return " + self.fill(self.random.choice(["V", "V", "V, V", "o.h", "v, x", "[o.h]"]))

    def changes(self) -> list[tuple]:
        """(statement, its values) for the time between two calls."""
        forms = BETWEEN if self.in_place else [b for b in BETWEEN if "add_" not in b]
        given = BETWEEN_GIVEN if self.chooses else BETWEEN_GIVEN + SHARED
        forms = [*forms, *(given * 2 if self.given else [])]
        chosen = self.random.choices([*forms, "c", "ct"], k=self.random.choice((0, 1, 1, 2)))
        return [(what, self.random.randrange(1 << 30)) for what in chosen]


class World:
    """A module with a function of its own, converted or not."""

    def __init__(self, path: Path, convert):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        self.module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.module)
        self.function, self.change_free, self.free = self.module.make()
        self.call, self.kept, self.own = convert(self.function), [], []

    def step(self, changes, x: np.ndarray) -> None:
        """Change the world, then call the function."""
        for what, seed in changes:
            draw = np.random.default_rng(seed)
            t, t2 = (paddle.to_tensor(draw.normal(size=2).astype("f4")) for _ in range(2))
            k, kept = int(draw.integers(4)), self.kept[seed % len(self.kept)] if self.kept else t
            kept = kept if isinstance(kept, paddle.Tensor) else t
            if what in ("c", "ct"):
                self.change_free(what, k if what == "c" else t)
            else:
                vars(self.module).update(t=t, t2=t2, k=k, kept=kept)
                exec(what, vars(self.module))  # the fuzzer's own text
        x, m = paddle.to_tensor(x), self.module
        found = self.call(x, m.a, m.d)
        self.own += [found is m.a, found is m.d["l"]]
        self.kept += [x, *(found if isinstance(found, tuple | list) else [found])]

    def held(self) -> list:
        """All tensors and numbers that anybody holds."""
        m = self.module
        values = [m.o.h, m.o.m, m.o.n, *m.o.s, *m.o.l, m.o.o, getattr(m.o, "last", None), m.T, m.G,
                  self.free(), m.net.h, m.net.fc.weight, m.net.fc.bias, m.table["t"], *self.kept,
                  *m.hist, len(m.a), *m.a, m.d["t"], m.d["n"], len(m.d["l"]), *m.d["l"],
                  m.d.get("new")]  # fmt: skip
        return values

    def gradients(self) -> list:
        """Those of the layer's weights, of a sum over what was returned: zeros if none is there."""
        kept = [x for x in self.kept if isinstance(x, paddle.Tensor)]
        losses = [(x * (k + 1)).sum() for k, x in enumerate(kept) if not x.stop_gradient]
        if losses:
            sum(losses[1:], losses[0]).backward()
        weights = self.module.net.fc.parameters()
        return [paddle.zeros_like(p) if p.grad is None else p.grad for p in weights]


def same(a: list, b: list, *, identity: bool = False) -> str:
    """How two lists of held values differ; with `identity` also in which are the same object."""
    if len(a) != len(b):
        return f"{len(a)} and {len(b)} values"
    for k, (x, y) in enumerate(zip(a, b, strict=True)):
        if isinstance(x, int) and isinstance(y, paddle.Tensor) and not y.shape:
            y = y.item()  # a number that a tensor has chosen
        if isinstance(x, paddle.Tensor) is not isinstance(y, paddle.Tensor):
            return f"value {k}: {x!r} and {y!r}"
        if isinstance(x, paddle.Tensor):
            x, y = x.numpy(), y.numpy()
            if x.shape != y.shape or not np.allclose(x, y, rtol=1e-4, atol=1e-4, equal_nan=True):
                return f"value {k}: {x} and {y}"
        elif x != y:
            return f"value {k}: {x!r} and {y!r}"
    if not identity:
        return ""
    first, second = ([[*map(id, v)].index(id(x)) for x in v if x is not None] for v in (a, b))
    return "" if first == second else f"other objects are the same: {first} and {second}"


def compare(text: str, writer: Writer, folder: Path, backend: str) -> str:
    """How the program of a function differs; "refused" if it cannot be converted, "" if nothing."""
    path = folder / f"changes_{abs(hash(text))}.py"
    path.write_text(text)
    eager = World(path, lambda f: f)
    static = World(path, lambda f: paddle.jit.to_static(f, backend=backend))
    draw = np.random.default_rng(writer.statements)
    for call in range(CALLS):
        changes = writer.changes() if call else []
        x = draw.normal(size=2).astype("f4")
        try:
            with limited(20):
                eager.step(changes, x)
        except (Hang, Exception):
            return "skipped"
        try:
            with limited(20):
                static.step(changes, x)
        except REFUSALS as error:
            named = str(path) in str(error) or ", in step" in str(error)  # in it, or where called
            return "refused" if named else f"refusal without a line: {error}"
        except Exception as error:
            return f"call {call} raises {type(error).__name__}: {error}"
        identity = not writer.chooses  # what tensors choose from two lists is a new one, too
        held = [world.held() + world.own * identity for world in (eager, static)]
        if found := same(*held, identity=identity):
            return f"after call {call} and {changes}: {found}"
    if not writer.gradients:
        return ""
    try:
        wanted = eager.gradients()
    except RuntimeError:
        return "skipped"
    found = same(wanted, static.gradients())
    return f"gradients: {found}" if found else ""


def examine(seed: int, folder: Path, backend: str = "interpreter") -> tuple[str, str, int]:
    """(what differs, the text, the statements) of the function of a seed."""
    writer = Writer(seed)
    with_gradients = writer.gradients
    body = [*writer.block(writer.random.randint(1, 6), 2), writer.returned()]
    text = WORLD.replace("BODY", "\n".join(f"        {line}" for line in body))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with paddle.set_grad_enabled(with_gradients):
            return compare(text, writer, folder, backend), text, writer.statements


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--statements", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--functions", type=int, default=0, help="that many, from this seed on")
    parser.add_argument("--backend", default="interpreter")
    arguments = parser.parse_args()
    counts, statements, failures, start = Counter(), 0, 0, time.perf_counter()
    seed = arguments.seed if arguments.functions else arguments.seed * 1_000_000
    end = seed + (arguments.functions or 1_000_000)
    with tempfile.TemporaryDirectory(prefix="changes") as folder:
        while seed < end and (arguments.functions or statements < arguments.statements):
            found, text, count = examine(seed, Path(folder), arguments.backend)
            known = found in ("", "skipped", "refused")
            counts[(found or "same") if known else "different"] += 1
            statements += count
            if not known:
                failures += 1
                body = text[text.index("        v = x * 0.5") : text.index("    def change")]
                print(f"# seed {seed}: {found}\n{body}", flush=True)
            seed += 1
    seconds = time.perf_counter() - start
    print(f"{statements:,} statements, {seconds:.0f} s: {dict(counts)}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
