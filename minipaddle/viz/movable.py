"""Pictures that a reader moves: one for each position of a few sliders, all drawn beforehand.

They stand in a frame of their own that reaches no other host. A notebook that is not trusted drops
the frame and shows the first picture.
"""

import base64
import json
import zlib
from collections.abc import Callable, Mapping
from itertools import product
from numbers import Real
from pathlib import Path
from string import Template
from typing import NamedTuple

from ..core.display import Display
from ..engine.core.errors import type_error, value_error
from .graph_engine import Drawn
from .markup import GREY, embed_page, escape, find_values, size_of, tag
from .style import bytes_text, count

UNNAMED = "a movable picture"
LIMIT = 2**20
"""Bytes of what is put into a notebook, at most."""


def movable(picture: Callable, *, start: Mapping | None = None, title: str = "", **positions):
    """A picture that the reader moves: `picture(**values)` for each combination of positions.

    positions: for each argument of `picture` its values, as a sequence or as {label: value}; three
    numbers or more make a slider, all else a list to choose from; start: the values shown first, by
    default the first of each
    picture: returns a picture of `viz`, whose text is the caption, or a pair (picture, caption);
    a press or a drag on a bar that `sets` positions, such as `{"ranks": "3"}`, chooses these

    Works without a network and without Python, in a notebook that is trusted and on a page. Raises
    ValueError for positions that are no positions, and beyond a megabyte.

    >>> from minipaddle import viz
    >>> from minipaddle.distributed.simulator import ring
    >>> print(viz.movable(lambda ranks: viz.collective(ring(ranks)), ranks=[2, 3, 4]))
    3 pictures: ranks 2 | 3 | 4
    ranks 2:
    start    | 11 | 11
    round 1  | 12 | 21
    round 2  | 22 | 22
    """
    controls = [MovableControl.of(*each) for each in positions.items()]
    if not controls:
        hint = "viz.movable(picture, stages=[2, 4, 8])"
        raise value_error("a movable picture without positions", hint=hint)
    first, shown = find_start(controls, start or {}), {}
    for where in product(*(range(len(each.labels)) for each in controls)):
        values = {each.name: each.values[k] for each, k in zip(controls, where)}
        try:
            shown[where] = draw_at(picture, values)
        except Exception as error:
            error.add_note(f"while viz.movable drew {values}")
            raise
    return MovablePicture(controls, shown, first, title)


class MovableControl(NamedTuple):
    """An argument of a picture: its values, and how each is called."""

    name: str
    values: tuple
    labels: tuple[str, ...]

    @classmethod
    def of(cls, name: str, values) -> "MovableControl":
        if isinstance(values, str) or not hasattr(values, "__iter__"):
            expected = "a sequence of values, or {label: value}"
            raise type_error(f"positions of {name}: {values!r}", expected=expected)
        if not isinstance(values, Mapping):
            values = [*values]
            named = {label_of(value): value for value in values}
            if len(named) < len(values):
                what = f"positions of {name} that look alike: {', '.join(map(label_of, values))}"
                raise value_error(what, expected="{label: value}, or values that differ in print")
            values = named
        if not values:
            raise value_error(f"{name} has no positions", expected="one value at least")
        return cls(name, tuple(values.values()), tuple(map(str, values)))

    def find(self, wanted) -> int:
        """The position of a value, or of its label."""
        for k, (value, label) in enumerate(zip(self.values, self.labels)):
            if wanted is value or label_of(wanted) == label:
                return k
        expected = ", ".join(self.labels)
        raise value_error(f"start at {self.name} {label_of(wanted)}", expected=expected)

    @property
    def words(self) -> str:
        return self.name.replace("_", " ")

    def write(self, k: int, at: int) -> str:
        """The k-th control of the page, standing at a position."""
        key, numbers = f"c{k}", sum(isinstance(x, Real) for x in self.values)
        name = tag("label", escape(self.words), for_=key)
        if numbers < max(3, len(self.values)):
            options = [tag("option", escape(label)) for label in self.labels]
            options[at] = options[at].replace("<option", "<option selected", 1)
            return tag("div", name, tag("select", *options, id=key))
        last = len(self.values) - 1
        slider = tag("input", id=key, type="range", max=last, value=at).removesuffix("</input>")
        less, more = (
            tag("button", sign, type="button", data_step=step, aria_label=f"{word} {self.words}")
            for sign, step, word in (("−", "stepDown", "less"), ("+", "stepUp", "more"))
        )
        return tag("div", name, less, slider, more, tag("output", for_=key, aria_live="off"))


def label_of(value) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def find_start(controls, start: Mapping) -> tuple[int, ...]:
    """The position where a picture begins."""
    if unknown := start.keys() - {each.name for each in controls}:
        expected = ", ".join(each.name for each in controls)
        raise value_error(f"start at {', '.join(sorted(unknown))}", expected=expected)
    return tuple(each.find(start[each.name]) if each.name in start else 0 for each in controls)


def draw_at(picture: Callable, values: Mapping) -> tuple[str, str]:
    """(the `<svg>` element, the caption) of one position."""
    drawn = picture(**values)
    drawn, caption = drawn if isinstance(drawn, tuple) else (drawn, str(drawn))
    if not hasattr(drawn, "svg"):
        expected = "a picture of viz, or a pair (picture, caption)"
        raise type_error(f"the picture returned {type(drawn).__name__}", expected=expected)
    head, inside = drawn.svg().split(">", 1)
    head = head if " color=" in head else head.replace(" viewBox", f' color="{GREY}" viewBox')
    return f"{head}>{inside.replace(GREY, 'currentColor')}", caption


class MovablePicture(Drawn, Display):
    """The pictures of all positions, by the places of their values."""

    kinds, noun = ("svg", "png"), UNNAMED

    def __init__(self, controls, shown: Mapping, first: tuple, title: str):
        self.controls, self.shown, self.first, self.title = controls, shown, first, title
        self.page = self.write_page()
        if len(self.page) > LIMIT:
            what = f"a movable picture of {bytes_text(len(self.page))}"
            expected = f"at most {bytes_text(LIMIT)}, with all {len(shown)} positions"
            raise value_error(what, expected=expected, hint="fewer positions, or less to draw")

    @property
    def text(self) -> str:
        ways = [f"{each.words} {' | '.join(each.labels)}" for each in self.controls]
        here = [f"{each.words} {each.labels[k]}" for each, k in zip(self.controls, self.first)]
        head = f"{count(len(set(self.shown.values())), 'picture')}: {'; '.join(ways)}"
        return f"{head}\n{', '.join(here)}:\n{self.shown[self.first][1]}"

    def svg(self) -> str:
        """The picture that is shown first."""
        return self.shown[self.first][0]

    def html(self) -> str:
        """A frame with all pictures, and the first one as an image, which the frame replaces."""
        high = size_of(self.svg())[1] * 4 / 3 + 110
        return embed_page(self.page, self.svg(), self.title or UNNAMED, high)

    def write_page(self) -> str:
        """The document in the frame."""
        controls = "".join(
            each.write(k, at) for k, (each, at) in enumerate(zip(self.controls, self.first))
        )
        title = escape(self.title or UNNAMED)
        return PAGE.substitute(controls=controls, store=pack(self.write_store()), title=title)

    def write_store(self) -> str:
        """Every line of every picture once, and which of them each picture has, in JSON."""
        parts, pictures, captions = {}, {}, {}
        positions = []
        for svg, caption in self.shown.values():
            lines = tuple(number(parts, line) for line in svg.split("\n"))
            positions.append((number(pictures, lines), number(captions, caption)))
        store = {"parts": [*parts], "pictures": [*pictures], "captions": [*captions]}
        store |= {"positions": positions, "labels": [each.labels for each in self.controls]}
        store["names"] = [each.name for each in self.controls]
        check_sets(parts, dict(zip(store["names"], store["labels"])))
        return json.dumps(store, ensure_ascii=False, separators=(",", ":"))


def check_sets(parts, labels: Mapping) -> None:
    """Raise ValueError where a press on a picture chooses a position that no control has."""
    for text in find_values("\n".join(parts), "data-set"):
        for name, label in json.loads(text).items():
            if label not in labels.get(name, ()):
                expected = ", ".join(labels.get(name, labels))
                raise value_error(f"a press that sets {name} to {label!r}", expected=expected)


def number(known: dict, each) -> int:
    """The place of something among what is known, where it is put if it is new."""
    return known.setdefault(each, len(known))


def pack(text: str) -> str:
    """Deflated, in Base64, as the page's script unpacks it."""
    deflate = zlib.compressobj(9, wbits=-15)
    return base64.b64encode(deflate.compress(text.encode()) + deflate.flush()).decode()


PAGE = Template(Path(__file__).with_name("movable.html").read_text(encoding="utf-8"))
"""The document in the frame."""
