"""Checks of 10_training_programs/hostile_file."""

import json
import os
import tempfile
import time
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
from minipaddle import nn
from minipaddle.engine.core import dim as dims
from minipaddle.ir.parser import LARGEST, parse
from minipaddle.jit.saved import DEEPEST, DamagedModel, sign_programs
from minipaddle.learn import Exercise, expect, expect_that

exercise = Exercise(
    title="A hostile file: sizes and names first",
    level="medium",
    minutes=40,
    slots={
        "ir.elements": "elements",
        "jit.check_names": "check_names",
        "jit.check_paths": "check_paths",
    },
    hints=(
        "What would happen if a file called a method `train`, or `__class__`? If it said that one "
        "tensor is both `block` and `block.0`? If two axes were -1?",
        "Go through `minipaddle/jit/loading.py`: `TranslatedLayer._house` puts the tensors where "
        "the paths say, and `__init__` the methods. What do they rely on?",
        "elements: a product; not an integer: 1; negative: LARGEST + 1; else at least 1\n"
        "check_names: taken = dir(Layer) and program, without forward; each name against them\n"
        "check_paths: a set of the tensors, and one of all beginnings of paths, up to a dot;\n"
        "    no path twice, no empty part, no more than DEEPEST; the two sets share nothing",
    ),
    wrong={
        "two negative sizes make a positive": (
            "count *= LARGEST + 1 if size < 0 else max(size, 1) → count *= size or 1"
        ),
        "an axis of 0 makes all small": (
            "count *= LARGEST + 1 if size < 0 else max(size, 1) → count *= LARGEST + 1 if size "
            "< 0 else size"
        ),
        "a negative size is none": (
            "count *= LARGEST + 1 if size < 0 else max(size, 1) → count *= max(size, 1)"
        ),
        "a product of 64 bits": "return count → return (count + 2 ** 63) % 2 ** 64 - 2 ** 63",
        "forward is taken": "taken.remove('forward') → pass",
        "a name of the loaded layer": "set(dir(Layer)) | {'program'} → set(dir(Layer))",
        "names of every Layer allowed": "set(dir(Layer)) → {'forward'}",
        "underscores allowed": (
            "name in taken or name in seen or (not name.isidentifier()) or "
            "name.startswith('_') → name in taken or name in seen or (not name.isidentifier())"
        ),
        "anything may be an attribute": (
            "name in taken or name in seen or (not name.isidentifier()) or "
            "name.startswith('_') → name in taken or name in seen or name.startswith('_')"
        ),
        "a name twice": (
            "name in taken or name in seen or (not name.isidentifier()) or "
            "name.startswith('_') → name in taken or not name.isidentifier() or "
            "name.startswith('_')"
        ),
        "constants with a place": "('constant', 'random') → ('random',)",
        "an empty part": (
            "len(parts) > DEEPEST or '' in parts or path in tensors → len(parts) > DEEPEST or "
            "path in tensors"
        ),
        "two states in one place": (
            "len(parts) > DEEPEST or '' in parts or path in tensors → len(parts) > DEEPEST or "
            "'' in parts"
        ),
        "without end": (
            "len(parts) > DEEPEST or '' in parts or path in tensors → '' in parts or path in "
            "tensors"
        ),
        "only neighbours compared: a tensor in a tensor": (
            "for k in range(1, len(parts)): → layers.add('.'.join(parts[:-1]))"
        ),
        "beginnings of names taken for layers": (
            "'.'.join(parts[:k]) → path[:k]",
            "range(1, len(parts)) → range(1, len(path))",
        ),
        "every path with every other": (
            "tensors & layers → {a for a in tensors for b in tensors if b.startswith(a + '.')}"
        ),
        "the whole name in the message": "path[:80] → path",
        "an assertion": (
            "DamagedModel(f'{name[:80]!r} cannot be the name of a method or a property') → "
            "AssertionError(name[:80])"
        ),
        "False for a bad name": (
            "raise DamagedModel(f'{name[:80]!r} cannot be the name of a method or a property') → "
            "return False"
        ),
        "an open size is no size": (
            "if isinstance(size, int): → count *= isinstance(size, int); if isinstance(size, int):"
        ),
    },
    unkillable={
        "for k in range(1, len(parts)): → for k in range(0, len(parts)):": (
            "the empty path is refused before"
        ),
        "count *= LARGEST + 1 if size < 0 else max(size, 1) → "
        "count *= LARGEST + 2 if size < 0 else max(size, 1)": "both are more than LARGEST",
    },
)


def verdict(check, thing):
    """What a check says of a thing: "right" or "damaged"."""
    try:
        answer = check(thing)
    except DamagedModel as error:
        message = str(error)
        expect_that(0 < len(message) < 200, "a message of less than 200 letters", got=message)
        return "damaged"
    expect_that(answer is None, "an error, or nothing", got=answer)
    return "right"


@exercise.example
def how_many_elements(yours):
    """Open sizes and empty axes count as 1; anything negative is too many."""
    n = dims.symbol("n", 4)
    for shape, expected in (
        ((), 1), ((3,), 3), ((2, 3, 5), 30), ((3, n, 0, 5), 15), ((n, n * 2), 1), ((0,), 1),
        ((1 << 40, 1 << 40), 1 << 80), ((1 << 32, 1 << 32, 4), 1 << 66), ((2,) * 9, 1 << 9),
    ):  # fmt: skip
        expect(str(yours.elements(shape)), str(expected), given={"shape": shape})
    for shape in ((-1,), (-1, -1), (2, -3, -5), (-1, 0), (0, -1), (-(1 << 60), n)):
        got = yours.elements(shape)
        expect_that(got > LARGEST, f"more than LARGEST, {LARGEST}", given=shape, got=got)


@exercise.example
def names_of_methods(yours):
    """forward, encode, température: yes. train, _run, __class__, a b, program: no."""
    says = {"names": "right"}
    for names in (
        [],
        ["forward"],
        ["forward", "encode", "decode_2"],
        ["température"],
        [*"abcdefgh"],
    ):
        got = {"names": verdict(yours.check_names, names)}
        expect(got, says, given=names)
    for name in ("train", "eval", "parameters", "_run", "__class__", "__init__", "a b", "", "2a",
                 "a.b", "program", "state_dict", "_x", "a" * 10**6 + "-"):  # fmt: skip
        for names in ([name], ["forward", name], [name, "forward"]):
            got = verdict(yours.check_names, names)
            expect(got, "damaged", given=[x[:20] for x in names])
    for names in (["forward", "forward"], ["encode", "forward", "encode"]):
        expect(verdict(yours.check_names, names), "damaged", given=names)


def states(*pairs):
    return [SimpleNamespace(kind=kind, paths=list(paths)) for kind, *paths in pairs]


@exercise.example
def places_of_states(yours):
    """A tree: each place is a tensor, or a layer, once."""
    right = (
        [],
        [("parameter", "weight"), ("buffer", "mean")],
        [("parameter", "a.weight", "b.weight"), ("parameter", "a.bias")],
        [("parameter", "block.0.w"), ("parameter", "block.1.w"), ("transient", "block.01")],
        [("parameter", "layer"), ("parameter", "layers.w"), ("buffer", "l")],
        [("constant",), ("random",), ("parameter",)],
        [("parameter", ".".join("a" * DEEPEST))],
    )
    wrong = (
        [("constant", "c")],
        [("random", "generator")],
        [("parameter", "w"), ("random", "r")],
        [("parameter", "")],
        [("parameter", "a..w")],
        [("parameter", ".w")],
        [("parameter", "w.")],
        [("parameter", "w"), ("buffer", "w")],
        [("parameter", "w", "w")],
        [("parameter", "a"), ("parameter", "a.b")],
        [("parameter", "a.b.c.d"), ("parameter", "a.b")],
        [("parameter", "a.b.c", "a")],
        [("parameter", ".".join("a" * (DEEPEST + 1)))],
        [("parameter", "a" * 10**6 + ".")],
        [("parameter", "w" * 10**5 + ".x"), ("parameter", "w" * 10**5)],
        [("constant", "c" * 10**6)],
    )
    for expected, lists in (("right", right), ("damaged", wrong)):
        for pairs in lists:
            got = verdict(yours.check_paths, states(*pairs))
            expect(got, expected, given=str(pairs)[:200])


@exercise.property(
    paths=st.lists(st.lists(st.sampled_from(("a", "b", "ab")), min_size=1, max_size=4), max_size=6)
)
def trees_at_random(yours, paths):
    """Whether it is a tree, by putting the tensors into nested dicts."""
    tree, expected = {}, "right"
    for parts in paths:
        here = tree
        for part in parts[:-1]:
            here = here.setdefault(part, {}) if isinstance(here, dict) else None
            if not isinstance(here, dict):
                expected, here = "damaged", {}
        if parts[-1] in here:
            expected = "damaged"
        here[parts[-1]] = "tensor"
    got = verdict(yours.check_paths, states(*(("parameter", ".".join(p)) for p in paths)))
    expect(got, expected, given=[".".join(p) for p in paths])


@exercise.example
def many_states(yours):
    """Twenty thousand states: no path is compared with every other."""
    many = states(*(("parameter", f"block.{k}.w") for k in range(20_000)))
    began = time.process_time()
    expect(verdict(yours.check_paths, many), "right", given="block.0.w to block.19999.w")
    seconds = time.process_time() - began
    expect_that(seconds < 1.0, "less than a second", got=f"{seconds:.1f} s")


@exercise.example
def texts_of_programs(yours):
    """A text with a size that is too large is refused as it is read, with its line."""
    text = "program p(x: float32[SIZE]) {\n  v1 = tanh(x) : float32[SIZE]\n  return v1\n}"
    with exercise.plugged(yours):
        for size in ("4", "n, 3", "0, 16", "281474976710656"):
            parse(text.replace("SIZE", size))
        for size in ("281474976710657", "0, 281474976710657", "65536, 65536, 65537, n"):
            try:
                parse(text.replace("SIZE", size))
            except ValueError:
                continue
            expect_that(False, "a ValueError", given=text.replace("SIZE", size))


class Model(nn.Layer):
    """Two methods and a parameter."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 2)

    def forward(self, x):
        return self.linear(x).tanh()

    @paddle.jit.to_static(input_spec=[paddle.static.InputSpec([None, 2])])
    def encode(self, x):
        return self.linear(x)


@cache
def saved() -> dict:
    """The files of a model, by their endings."""
    paddle.seed(0)
    model = Model()
    model.forward = paddle.jit.to_static(
        model.forward, input_spec=[paddle.static.InputSpec([None, 2])]
    )
    with tempfile.TemporaryDirectory() as folder:
        paddle.jit.save(model, os.path.join(folder, "model"))
        return {file.name[5:]: file.read_bytes() for file in Path(folder).iterdir()}


def loaded(yours, **changed):
    """A model of the changed files, or the message about them."""
    with tempfile.TemporaryDirectory() as folder:
        files = {
            ending: changed.get(ending.split(".")[-1], data) for ending, data in saved().items()
        }
        programs = files[".pdmodel"].partition(b"\n")[2]  # an enemy can sign
        files[".pdmodel"] = sign_programs(programs, files[".pdiparams.info"], files[".pdiparams"])
        for ending, data in files.items():
            Path(folder, f"model{ending}").write_bytes(data)
        with exercise.plugged(yours):
            try:
                return paddle.jit.load(os.path.join(folder, "model"))
            except ValueError as error:
                return str(error)


@exercise.example
def files(yours):
    """A saved model loads; with another name for a method or another place for a weight not."""
    model = loaded(yours)
    expect_that(isinstance(model, nn.Layer), "the model that was saved", got=model)
    text, description = saved()[".pdmodel"].decode(), json.loads(saved()[".pdiparams.info"])
    x = paddle.ones([1, 2])
    expect(model.encode(x).tanh(), model(x), given="encode(x).tanh() and forward(x)", rtol=1e-5)
    for name in ("train", "__call__", "state_dict", "program"):
        other = json.loads(json.dumps(description))
        other["methods"][name] = other["methods"].pop("encode")
        changed = text.replace("program encode(", f"program {name}(").encode()
        got = loaded(yours, pdmodel=changed, info=json.dumps(other).encode())
        expect_that(isinstance(got, str), "refused", given=f"encode called {name}", got=got)
    names = list(description["states"])
    for paths in (["linear.weight", "linear.weight.x"], ["linear", "linear.bias"], ["w", "w"],
                  ["", "b"]):  # fmt: skip
        other = json.loads(json.dumps(description))
        for name, path in zip(names, paths, strict=True):
            other["states"][name]["paths"] = [path]
        got = loaded(yours, info=json.dumps(other).encode())
        expect_that(isinstance(got, str), "refused", given=f"paths {paths}", got=got)


@exercise.example
def a_loaded_model_learns(yours):
    """Loaded with your checks, and trained on."""
    model = loaded(yours)
    adam = paddle.optimizer.Adam(learning_rate=0.05, parameters=model.parameters())
    x = paddle.to_tensor(np.random.default_rng(0).normal(size=(16, 2)).astype("float32"))
    losses = []
    for _ in range(30):
        loss = ((model(x) - x[:, ::-1] * 0.5) ** 2).mean()
        loss.backward()
        adam.step()
        adam.clear_grad()
        losses.append(loss.item())
    expect_that(losses[-1] < 0.5 * losses[0], "a smaller loss after 30 steps", got=losses[::10])
