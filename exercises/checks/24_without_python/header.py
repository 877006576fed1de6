"""Checks of 24_without_python/header."""

import re
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
from minipaddle.engine.core.record import Spec
from minipaddle.engine.executors.compiler import compiler
from minipaddle.export.header import HeaderArray
from minipaddle.learn import Exercise, expect, expect_that

exercise = Exercise(
    title="The header: what a C program must know of a model",
    level="easy",
    minutes=20,
    slots={"export.identifiers": "identifiers", "export.declaration": "declaration"},
    hints=(
        "Two inputs called `x` and `X` become one name in lower case. What if a third one is "
        "called `x_2` already?",
        "`re.sub` with a set of characters that are *not* allowed replaces the others. Count up "
        "while the name is taken. The lines are f-strings; a brace in one is written twice.",
        "identifiers: base = 'input_' + cleaned; own = base; while own is taken: the next number\n"
        "declaration: shape as text, '1' if there are no axes; both names joined, and in capitals",
    ),
    wrong={
        "the same name twice": "while own in found: → while False:",
        "numbers pile up": "own = f'{base}_{n}' → own = f'{own}_{n}'",
        "numbers from 1": "(base, 1) → (base, 0)",
        "numbers from 3": "n += 1 → n += 2",
        "capitals": "name.lower() → name",
        "letters of all languages": (
            "re.sub('[^a-z0-9_]', '_', name.lower()) → re.sub('\\\\W', '_', name.lower())"
        ),
        "what is not allowed goes": "re.sub('[^a-z0-9_]', '_', name.lower()) → "
                                    "re.sub('[^a-z0-9_]', '', name.lower())",
        "no prefix": "'input_' + re.sub('[^a-z0-9_]', '_', name.lower()) → "
                     "re.sub('[^a-z0-9_]', '_', name.lower())",
        "no shape without axes": "spec.shape or (1,) → spec.shape",
        "small macros": "function.upper() → function",
        "macros without the library's name": "function.upper() → array.name.upper()",
        "the axes as the count": "f'#define {macro}_COUNT {spec.size}' → "
                                 "f'#define {macro}_COUNT {spec.ndim}'",
        "bytes as the count": "f'#define {macro}_COUNT {spec.size}' → "
                              "f'#define {macro}_COUNT {spec.nbytes}'",
        "a shape without braces": "f'#define {macro}_SHAPE {{{sizes}}}' → "
                                  "f'#define {macro}_SHAPE {sizes}'",
        "always floats": "f'{array.type} *{function}(void *arena);' → "
                         "f'float *{function}(void *arena);'",
        "an element, no pointer": "f'{array.type} *{function}(void *arena);' → "
                                  "f'{array.type} {function}(void *arena);'",
        "the dtype of NumPy": "f'{array.type} *{function}(void *arena);' → "
                              "f'{spec.dtype} *{function}(void *arena);'",
    },
)  # fmt: skip

TYPES = {"float32": "float", "float64": "double", "int8": "int8_t", "int64": "int64_t",
         "bool": "uint8_t"}  # fmt: skip


def named(names):
    """The oracle: letter by letter, with a set of what is taken."""
    found = []
    for name in names:
        letters = [c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in name.lower()]
        base = "input_" + "".join(letters)
        tries = [base, *(f"{base}_{n}" for n in range(2, len(names) + 2))]
        found.append(next(t for t in tries if t not in found))
    return found


@exercise.property(
    names=st.lists(
        st.sampled_from(
            ["x", "X", "x_2", "x_3", "my image", "größe", "a.b", "a-b", "", "K9", "層"]
        ),
        max_size=8,
    ),
    examples=60,
)
def any_names(yours, names):
    """Names with spaces, signs, foreign letters, capitals; the same one several times."""
    before = [*names]
    got = yours.identifiers(names)
    expect_that(isinstance(got, list), "a list", given={"names": before}, got=got)
    expect([*got], named(before), given={"names": before})
    expect(names, before, given={"names": before}, why="what was given, afterwards")


@exercise.example
def the_same_name_ten_times(yours):
    """Ten inputs of one name, and one that takes a number from them."""
    names = ["x"] * 5 + ["x 4"] + ["x"] * 5
    expect(yours.identifiers(names), named(names), given={"names": names})


def check(yours, library, name, shape, dtype):
    """The lines about an array, read as a C compiler reads them."""
    array = HeaderArray(name, Spec(tuple(shape), np.dtype(dtype)), 64)
    lines = yours.declaration(library, array)
    given = {"name": library, "array": f"{name}: {array.spec}, {array.type}"}
    lists = isinstance(lines, list) and all(isinstance(x, str) for x in lines)
    expect_that(lists, "a list of texts", given=given, got=lines)
    text = "\n".join(lines)
    comments = re.findall(r"/\*(.*?)\*/", text, re.DOTALL)
    said = len(comments) == 1 and comments[0].strip().startswith(f"{name}: {array.spec}")
    expect_that(said, f"one comment, /* {name}: {array.spec} … */", given=given, got=text)
    code = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    macros = dict(re.findall(r"^#define (\w+) (.+)$", code, re.MULTILINE))
    both = f"{library.upper()}_{name.upper()}"
    sizes = ",".join(map(str, shape)) if len(shape) else "1"
    wanted = {f"{both}_COUNT": str(int(np.prod(shape))), f"{both}_RANK": str(len(shape)),
              f"{both}_SHAPE": f"{{{sizes}}}"}  # fmt: skip
    found = {key: re.sub(r"\s", "", value) for key, value in macros.items()}
    expect(found, wanted, given=given, why="the macros")
    rest = " ".join(re.sub(r"^#.*$", "", code, flags=re.MULTILINE).split()).replace("* ", "*")
    kind = TYPES[dtype]
    expect(rest, f"{kind} *{library}_{name}(void *arena);", given=given, why="the declaration")


@exercise.property(
    shape=st.lists(st.integers(1, 9), max_size=4), dtype=st.sampled_from([*TYPES]), examples=25
)
def any_array(yours, shape, dtype):
    """Arrays of all types, with none to four axes."""
    check(yours, "digits", "input_x", shape, dtype)


@exercise.example
def an_empty_array(yours):
    """A size of 0; a large array; capitals in the name of the library."""
    check(yours, "model", "output_0", (0, 3), "float32")
    check(yours, "Net2", "output_12", (3, 224, 224), "int64")
    check(yours, "Net2", "output_1", (1, 2, 3, 4, 5, 6, 7), "int64")


PROGRAM = """
#include "net.h"
#define TYPE(f, t) _Static_assert(_Generic(f((void *)0), t *: 1, default: 0), "the type of " #f)
_Static_assert(NET_INPUT_MY_IMAGE_COUNT == 12 && NET_INPUT_MY_IMAGE_RANK == 3, "the image");
_Static_assert(NET_INPUT_MY_IMAGE_2_COUNT == 1 && NET_INPUT_MY_IMAGE_2_RANK == 0, "the number");
_Static_assert(NET_OUTPUT_0_COUNT == 12 && NET_OUTPUT_1_COUNT == 4, "the outputs");
TYPE(net_input_my_image, float);
TYPE(net_input_my_image_2, int64_t);
TYPE(net_output_1, uint8_t);
const int shape[] = NET_INPUT_MY_IMAGE_SHAPE, one[] = NET_INPUT_MY_IMAGE_2_SHAPE;
_Static_assert(sizeof shape == 3 * sizeof(int) && sizeof one == sizeof(int), "the shapes");
"""


@exercise.example
def in_the_engine(yours):
    """A model is exported with your header; C's compiler checks it, if there is one."""
    with tempfile.TemporaryDirectory() as folder:
        specs = [
            paddle.static.InputSpec([2, 3, 2], "float32", "my image"),
            paddle.static.InputSpec([], "int64", "My.Image"),
        ]
        with exercise.plugged(yours):
            paddle.jit.save(
                lambda x, k: (x * 2.0 + k.astype("float32"), x.sum([1]) > 0), folder, specs,
                format="c", name="net",
            )  # fmt: skip
        if compiler() is None:
            return
        Path(folder, "check.c").write_text(PROGRAM)
        command = [*compiler().command, "-std=gnu11", "-fsyntax-only", "-Werror", "check.c"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        text = Path(folder, "net.h").read_text()
        expect_that(done.returncode == 0, f"a program compiles: {done.stderr[:500]}", given=text)
        done = subprocess.run([*command[:-1], "net.c"], cwd=folder, capture_output=True, text=True)
        expect_that(done.returncode == 0, f"the library compiles: {done.stderr[:500]}", given=text)
