"""Checks of 24_without_python/arena."""

import re
import tempfile

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
from minipaddle import nn
from minipaddle.engine.executors.compiler import compiler
from minipaddle.export import arena  # noqa: F401  (its slots)
from minipaddle.learn import Exercise, expect, expect_that
from minipaddle.testing import ExportedLibrary

exercise = Exercise(
    title="Binding an arena: where everything lies, and how a run is told",
    level="medium",
    minutes=25,
    before=("24_without_python/weights_file",),
    slots={"export.lay_out": "lay_out", "export.bind_state": "bind_state"},
    hints=(
        "The table begins at byte 64. At which byte does it end, and where can the first array "
        "begin? And who has the right to write into the file of weights?",
        "lay_out is one walk: remember where you are, go on by the size, up to the next multiple "
        "of 64. bind_state has three cases; the last statement is the pointer in all of them.",
        "at = up(64 + 8 * pointers); for each size: note at, at = up(at + size)\n"
        "None → the pointer is file + at; else here + place, after a memcpy if it is updated",
    ),
    wrong={
        "no head": "64 + 8 * pointers → 8 * pointers",
        "pointers of four bytes": "64 + 8 * pointers → 64 + 4 * pointers",
        "the table forgotten": "64 + 8 * pointers → 64",
        "not aligned": "_next(at + size) → at + size",
        "the first one not aligned": "_next(64 + 8 * pointers) → 64 + 8 * pointers",
        "one line of 64 more": "(at + 63) // 64 * 64 → (at + 64) // 64 * 64",
        "all at one place": "at = _next(at + size) → pass",
        "where they end": "places.append(at) → places.append(at + size)",
        "the plan forgotten": "_next(at + work) → at",
        "an end that is not aligned": "_next(at + work) → at + work",
        "the place of the end": "return (places, at, _next(at + work)) → "
                                "return places, _next(at + work), _next(at + work)",
        "updated in the file": "place is None → place is None or updated",
        "nothing copied": "[copy] * updated → []",
        "always copied": "[copy] * updated → [copy]",
        "copied backwards": "f'memcpy(here + {place}, file + {at}, {nbytes});' → "
                            "f'memcpy(file + {at}, here + {place}, {nbytes});'",
        "file and arena exchanged": "f'own->all[{k}] = here + {place};' → "
                                    "f'own->all[{k}] = file + {place};'",
        "the file's place in the arena": "f'own->all[{k}] = here + {place};' → "
                                         "f'own->all[{k}] = here + {at};'",
        "always the first pointer": "f'own->all[{k}] = here + {place};' → "
                                    "f'own->all[0] = here + {place};'",
        "a place of 0 is none": "place is None → not place",
        "the pointer first": "return [copy] * updated + [f'own->all[{k}] = here + {place};'] → "
                             "return [f'own->all[{k}] = here + {place};'] + [copy] * updated",
    },
    unkillable={
        "places, at = ([], _next(64 + 8 * pointers)) → "
        "places, at = ([], _next(63 + 8 * pointers))": "this is never one above a multiple of 64",
    },
)  # fmt: skip


def check(yours, pointers, sizes, work):
    """What must hold of every layout, and that nothing is wasted."""
    before = [*sizes]
    given = {"pointers": pointers, "sizes": before, "work": work}
    places, plan, size = yours.lay_out(pointers, sizes, work)
    expect(sizes, before, given=given, why="what was given, afterwards")
    expect_that(isinstance(places, list), "the places are a list", given=given, got=places)
    expect(len(places), len(sizes), given=given, why="how many places")
    numbers = [*places, plan, size]
    whole = all(type(n) is int and n % 64 == 0 for n in numbers)
    expect_that(whole, "whole numbers, multiples of 64", given=given, got=numbers)
    free = 64 + 8 * pointers  # the first byte that nothing has
    pieces = [*zip(places, before, strict=True), (plan, work), (size, 0)]
    for at, nbytes in pieces:
        expect_that(free <= at < free + 64, "one begins where the one before ends, or up to 63 "
                    "bytes further", given=given, got=numbers)  # fmt: skip
        free = at + nbytes


@exercise.example
def the_examples(yours):
    """Those of the text; no arrays; an exact fit."""
    for given, expected in (
        ((3, [12, 200], 10), ([128, 192], 448, 512)),
        ((0, [], 0), ([], 64, 64)),
        ((8, [64, 0, 1], 0), ([128, 192, 192], 256, 256)),
        ((9, [65], 64), ([192], 320, 384)),
    ):
        places, plan, size = yours.lay_out(*given)
        expect([[*places], plan, size], [*expected], given=given, why="places, plan, bytes")


@exercise.property(
    pointers=st.integers(0, 40),
    sizes=st.lists(st.sampled_from([0, 1, 4, 63, 64, 65, 100, 128, 4000]), max_size=9),
    work=st.integers(0, 300),
    examples=40,
)
def any_layout(yours, pointers, sizes, work):
    """Nothing overlaps, nothing is wasted, all is aligned."""
    check(yours, pointers, sizes, work)


def bound(statements, k):
    """What C does: the copies (to, from, bytes) and at last where pointer k goes."""
    copies, target = [], None
    side = r"(here|file)\+(\d+)"
    for text in statements:
        text = "".join(text.split())
        copy = re.fullmatch(rf"memcpy\({side},{side},(\d+)\);", text)
        pointer = re.fullmatch(rf"own->all\[{k}\]={side};", text)
        if copy:
            copies.append((copy[1], int(copy[2]), copy[3], int(copy[4]), int(copy[5])))
        elif pointer:
            target = pointer[1], int(pointer[2])
        else:
            return text
    return copies, target


@exercise.example
def the_three_cases(yours):
    """Read in the file; updated; filled later. A place may be 0."""
    for k, at, nbytes, place, updated, expected in (
        (4, 64, 40, 256, True, ([("here", 256, "file", 64, 40)], ("here", 256))),
        (0, 128, 4, None, False, ([], ("file", 128))),
        (7, 640, 12, 1024, False, ([], ("here", 1024))),
        (12, 64, 4, 0, True, ([("here", 0, "file", 64, 4)], ("here", 0))),
    ):
        given = {"k": k, "at": at, "nbytes": nbytes, "place": place, "updated": updated}
        lines = yours.bind_state(k, at, nbytes, place, updated)
        expect_that(isinstance(lines, list), "a list of statements", given=given, got=lines)
        got = bound(lines, k)
        expect_that(got == expected, f"copies and target: {expected}", given=given, got=lines)
        last = "all" in lines[-1]
        expect_that(last, "the pointer is set at last", given=given, got=lines)


class Counting(nn.Layer):
    """Convolutions, whose weights kernels want in another form, and a state that runs update."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2D(1, 4, 3, padding=1), nn.ReLU(), nn.Conv2D(4, 16, 3, padding=1)
        )
        self.register_buffer("total", paddle.full([1, 16, 8, 8], 3.0))

    def forward(self, x):
        self.total.set_value(self.total + self.net(x))
        return self.total * 2.0


@exercise.example
def in_the_engine(yours):
    """The C of a network runs on your layout and statements, if there is a compiler: twice on one
    arena, once on another."""
    paddle.seed(0)
    net = Counting()
    net.eval()
    x = np.random.default_rng(0).random((1, 1, 8, 8), "float32")
    with tempfile.TemporaryDirectory() as folder:
        with exercise.plugged(yours):
            spec = [paddle.static.InputSpec([1, 1, 8, 8], name="x")]
            paddle.jit.save(net, folder, spec, format="c")
        if compiler() is None:
            return
        library = ExportedLibrary(folder, "-O0")
        like = np.zeros((1, 16, 8, 8), "float32")
        before = [held.copy() for held in library.held]
        got = [library.run({"x": x}, [like])[0] for _ in range(2)]
        got.append(library.run({"x": x}, [like], library.instance())[0])
        same = all(np.array_equal(a, b) for a, b in zip(library.held, before))
        expect_that(same, "nobody writes into the weights", given="a network with a state")
    with paddle.no_grad():
        one = net.net(paddle.to_tensor(x)).numpy()
    for k, (found, times) in enumerate(zip(got, (1, 2, 1), strict=True)):
        expect(found, 2 * (3 + times * one), given={"x": x, "run": k + 1}, rtol=1e-4, atol=1e-5)
