"""Checks of 29_reading_a_page/collapse."""

from itertools import groupby, product

import numpy as np
from hypothesis import strategies as st

from minipaddle.learn import Exercise, expect, expect_that
from minipaddle.vision import ocr

exercise = Exercise(
    title="Collapse: from a path to letters",
    level="easy",
    minutes=10,
    slots={"ocr.mark_letters": "mark_letters", "ocr.collapse": "collapse"},
    hints=(
        "The path 3, blank, 3 is two letters, the path 3, 3 is one. So with what do you compare a "
        "label: with the letter before it, or with the label before it?",
        "Compare the whole path with the blank at once, then the path without its first label with "
        "the path without its last. The first place has none before it.",
        "begins = path is not the blank\n"
        "begins, from its second place on, and also: path[1:] is not path[:-1]\n"
        "the letters: path, where it begins",
    ),
    wrong={
        "blanks first, so that no letter comes twice": (
            "begins[1:] &= path[1:] != path[:-1] → "
            "begins[begins] = np.diff(path[begins], prepend=blank) != 0"
        ),
        "equal neighbours stay": "begins[1:] &= path[1:] != path[:-1] → pass",
        "blanks stay": "path != blank → path == path",
        "where a letter ends": "begins[1:] &= path[1:] != path[:-1] → "
        "begins[:-1] &= path[1:] != path[:-1]",
        "the first label is never a letter": "return begins → return begins & (np.arange(len("
        "begins)) > 0)",
        "the blank is always 0": "path != blank → path != 0",
        "each letter once": "path[mark_letters(path, blank)].tolist() → "
        "list(dict.fromkeys(path[mark_letters(path, blank)].tolist()))",
        "an array, not a list": "path[mark_letters(path, blank)].tolist() → "
        "path[mark_letters(path, blank)]",
    },
)


def spell(path, blank):
    """The letters, by Python's groupby."""
    return [int(label) for label, _ in groupby(path) if label != blank]


def check(yours, path, blank):
    array = np.asarray(path, int) if isinstance(path, list) else path
    before, given = array.tolist(), {"path": array.copy(), "blank": blank}
    marks = yours.mark_letters(array, blank)
    changes = [k == 0 or before[k] != before[k - 1] for k in range(len(before))]
    expected = [new and label != blank for new, label in zip(changes, before, strict=True)]
    expect(marks, np.array(expected, bool), given=given, why="where letters begin")
    expect_that(np.asarray(marks).dtype == bool, "these are no bools", given=given, got=marks)
    letters = yours.collapse(path, blank)
    expect_that(isinstance(letters, list), "this is no list", given=given, got=letters)
    expect_that(all(type(c) is int for c in letters), "not all are ints", given=given, got=letters)
    expect(letters, spell(before, blank), given=given, why="the letters")
    expect(array.tolist(), before, given=given, why="what is given stays as it is")


@exercise.example
def in_the_task(yours):
    """A double letter with a blank between, and a single one."""
    path = [0, 3, 3, 0, 3, 5, 0]
    check(yours, path, 0)
    expect(yours.collapse(path), [3, 3, 5], given={"path": path}, why="the blank is 0")


@exercise.example
def every_short_path(yours):
    """All paths of no, one, and up to four columns, of three labels, each of which is the blank."""
    for length in range(5):
        for path in product(range(3), repeat=length):
            for blank in range(3):
                check(yours, list(path), blank)
    expect(yours.collapse(()), [], given="a path without columns")


@exercise.property(
    path=st.lists(st.integers(0, 4), max_size=300),
    blank=st.integers(0, 5),
    dtype=st.sampled_from(["int64", "int32", "uint8"]),
    by=st.sampled_from([1, -1, 2]),
)
def any_path(yours, path, blank, dtype, by):
    """Long paths, in integers of any kind, backwards and with gaps."""
    check(yours, np.array(path, dtype)[::by], blank)


@exercise.example
def a_long_line(yours):
    """A thousand columns."""
    path = np.random.default_rng(0).integers(0, 3, 1000).repeat(2)
    check(yours, path, 1)
    check(yours, path.tolist(), 2)


@exercise.example
def a_line_is_read(yours):
    """The score of a line is the mean of the probabilities where its letters begin."""
    p = np.array([[0.1, 0.9, 0.0], [0.2, 0.8, 0.0], [1.0, 0.0, 0.0], [0.3, 0.7, 0.0], [0, 0, 1.0]])
    with exercise.plugged(yours):
        letters, score = ocr.decode_greedily(p)
    expect(letters, [1, 1, 2], given={"probabilities": p}, why="the letters")
    expect(score, (0.9 + 0.7 + 1.0) / 3, given={"probabilities": p}, why="the score")
