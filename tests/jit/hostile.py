"""Saved models, damaged at random: each gives a clear error or a valid model.

`python -m tests.jit.hostile 10000 [seed]` prints what became of them. A mutation that crashes,
hangs, takes more than twice the memory of the honest model, or raises anything but ValueError with
a message is a failure, and is printed with the number that makes it again.
"""

from __future__ import annotations

import contextlib
import json
import random
import re
import resource
import signal
import sys
import tempfile
import tracemalloc
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle.engine.ir.printer import text
from minipaddle.ir.parser import parse
from minipaddle.jit.saved import sign_programs
from minipaddle.static import InputSpec

SECONDS = 20
SLACK = 1 << 21
"""Bytes that do not count: the parser builds its states when it first meets them."""
SUFFIXES = (".pdmodel", ".pdiparams", ".pdiparams.info")


class Mlp(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.first, self.second = paddle.nn.Linear(4, 8), paddle.nn.Linear(8, 3)

    def forward(self, x):
        return {"logits": self.second(F.relu(self.first(x))), "size": x.shape[0] * 2}


class Conv(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.conv, self.bn = (
            paddle.nn.Conv2D(2, 4, 3, stride=2, padding=1),
            paddle.nn.BatchNorm2D(4),
        )
        self.pool, self.drop = paddle.nn.MaxPool2D(2), paddle.nn.Dropout(0.25)

    def forward(self, x):
        h = self.drop(self.pool(F.relu(self.bn(self.conv(x)))))
        return [h.reshape([x.shape[0], -1]), h.mean()]


class Control(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.linear = paddle.nn.Linear(3, 3)

    def forward(self, x, steps):
        i = paddle.zeros([], dtype="int64")
        while i < steps:
            if x.sum() > 1:
                x = self.linear(x)
            else:
                x = x + 1
            i = i + 1
        return x, i


MODELS = {
    "mlp": (Mlp, [InputSpec([None, 4])]),
    "conv": (Conv, [InputSpec([None, 2, None, 8])]),
    "control": (Control, [InputSpec([None, 3]), InputSpec([], "int64")]),
}


@dataclass
class Honest:
    """The files of a model, and what loading them takes."""

    name: str
    files: dict[str, bytes]
    peak: int


def honest(name: str, folder: Path) -> Honest:
    kind, spec = MODELS[name]
    paddle.seed(0)
    paddle.jit.save(kind(), folder / name, input_spec=spec)
    paddle.jit.load(folder / name)  # the grammar is made once
    found = Honest(name, {s: (folder / f"{name}{s}").read_bytes() for s in SUFFIXES}, 0)
    _, found.peak = measured(found.files, folder)
    return found


# ---- mutations -------------------------------------------------------------------------------

TOKEN = re.compile(rb"[A-Za-z_][\w.]*|-?\d+(?:\.\d+)?(?:e-?\d+)?|[^\w\s]|\n")
NUMBER = re.compile(rb"-?\d+(?:\.\d+)?")
HUGE = [b"-1", b"0", b"1", b"65537", b"281474976710657", b"9223372036854775808", b"1e999", b"nan",
        b"-9223372036854775809", b"9" * 399, b"9" * 5000, b"0.5", b"1099511627776", b"None",
        b"True", b"<batch*batch>", b"((1,),)", b"'x'"]  # fmt: skip


def flipped(rng, data):
    new = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8))):
        new[rng.randrange(len(new))] ^= 1 << rng.randrange(8)
    return bytes(new)


def truncated(rng, data):
    return data[: rng.randrange(len(data))]


def swapped(rng, data):
    a, b = sorted(rng.sample([m.span() for m in TOKEN.finditer(data)], 2))
    return data[: a[0]] + data[slice(*b)] + data[a[1] : b[0]] + data[slice(*a)] + data[b[1] :]


def replaced(rng, data):
    a, b = (m.span() for m in rng.sample(list(TOKEN.finditer(data)), 2))
    return data[: a[0]] + data[slice(*b)] + data[a[1] :]


def dropped(rng, data):
    a, b = rng.choice(list(TOKEN.finditer(data))).span()
    return data[:a] + data[b:]


def huge(rng, data):
    a, b = rng.choice(list(NUMBER.finditer(data))).span()
    return data[:a] + rng.choice(HUGE) + data[b:]


def lines(rng, data):
    rows = data.split(b"\n")
    j, k = rng.randrange(len(rows)), rng.randrange(len(rows))
    change = rng.choice(("duplicate", "delete", "swap", "move"))
    if change == "duplicate":
        rows[k:k] = [rows[j]] * rng.choice((1, 1, 50))
    elif change == "delete":
        del rows[j]
    elif change == "swap":
        rows[j], rows[k] = rows[k], rows[j]
    else:
        rows.insert(k, rows.pop(j))
    return b"\n".join(rows)


def nested(rng, data):
    a, b = rng.choice(list(TOKEN.finditer(data))).span()
    left, right = rng.choice(((b"(", b")"), (b"{", b"}"), (b"[", b"]"), (b"<", b">"), (b"'", b"'"),
                              (b"max(", b",1)"), (b"(", b"//2)"),
                              (b'{"list":[', b"]}")))  # fmt: skip
    n = rng.choice((1, 5, 200))
    return data[:a] + left * n + data[a:b] + right * n + data[b:]


def product(rng, data):
    """A size that would have millions of terms."""
    symbol = rng.choice((b"batch", b"x", b"q"))
    factor = b"(" + symbol + b" + " + rng.choice((b"m", b"k", b"1")) + b")"
    a, b = rng.choice(list(NUMBER.finditer(data))).span()
    return data[:a] + b"*".join([factor] * rng.choice((3, 40, 400))) + data[b:]


def inserted(rng, data):
    k = rng.randrange(len(data))
    return data[:k] + rng.randbytes(rng.choice((1, 4, 64))) + data[k:]


MUTATIONS = [flipped, truncated, swapped, replaced, dropped, huge, lines, nested, product, inserted]


def resigned(files: dict[str, bytes]) -> bytes:
    """The `.pdmodel` of changed files, which says that they belong together."""
    model, *others = (files[s] for s in (".pdmodel", ".pdiparams.info", ".pdiparams"))
    first, _, programs = model.partition(b"\n")
    return sign_programs(programs, *others) if first.startswith(b"# minipaddle 2 ") else model


def mutated(model: Honest, number: int, seed: int) -> tuple[str, dict[str, bytes]]:
    """Mutation `number`: what was done, and the files."""
    rng = random.Random(f"{seed}-{number}")
    suffix = rng.choice((".pdmodel", ".pdmodel", ".pdiparams", ".pdiparams.info"))
    files, done = dict(model.files), []
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        change = rng.choice(MUTATIONS)
        with contextlib.suppress(ValueError, IndexError):  # nothing is left to change
            files[suffix] = change(rng, files[suffix])
        done.append(change.__name__)
    if rng.random() < 0.8:  # an enemy can sign too
        files[".pdmodel"] = resigned(files)
    return f"{model.name}{suffix} {'+'.join(done)}", files


# ---- what becomes of them ------------------------------------------------------------------------


def measured(files: dict[str, bytes], folder: Path) -> tuple[str, int]:
    """What loading gives ("valid", or the error), and the most memory it took."""
    for suffix, data in files.items():
        (folder / f"m{suffix}").write_bytes(data)
    tracemalloc.start()
    try:
        loaded = paddle.jit.load(folder / "m")
        peak = tracemalloc.get_traced_memory()[1]
    except ValueError as error:
        peak = tracemalloc.get_traced_memory()[1]
        if not str(error).strip() or len(str(error)) > 5000:
            raise AssertionError(f"an error of {len(str(error))} characters") from error
        return f"{type(error).__name__}", peak
    finally:
        tracemalloc.stop()
    for method in loaded._methods.values():
        again = text(method.program)
        assert text(parse(again)) == again, "what was loaded does not print and parse again"
    return "valid", peak


@contextlib.contextmanager
def limited(seconds: int):
    """Raises TimeoutError in the block after some seconds."""

    def late(*_):
        raise TimeoutError(f"still at it after {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def attack(count: int, seed: int = 0, first: int = 0) -> tuple[Counter, list[str]]:
    """What became of `count` mutations, and the failures among them."""
    outcomes, failures = Counter(), []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        models = [honest(name, folder) for name in MODELS]
        for number in range(first, first + count):
            model = models[number % len(models)]
            done, files = mutated(model, number, seed)
            try:
                with limited(SECONDS):
                    outcome, peak = measured(files, folder)
                if peak > 2 * model.peak + SLACK:
                    failures.append(f"{number}: {done}: {peak:,} bytes, not {model.peak:,}")
            except BaseException as error:
                if isinstance(error, KeyboardInterrupt):
                    raise
                outcome = "failure"
                failures.append(f"{number}: {done}: {type(error).__name__}: {error!s:.300}")
            outcomes[outcome] += 1
    return outcomes, failures


def main(count: str = "10000", seed: str = "0", first: str = "0") -> int:
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
    outcomes, failures = attack(int(count), int(seed), int(first))
    print(json.dumps(outcomes, sort_keys=True))
    print("\n".join(failures[:40]) or "no failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
