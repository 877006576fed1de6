"""Checks of 23_smaller_networks/letters."""

from types import SimpleNamespace

import numpy as np

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle import nn, slim
from minipaddle.engine.sharding.letters import Axis, LetterRule
from minipaddle.learn import Exercise, expect, expect_that
from minipaddle.slim.channels import Axes, CannotFollow, Channels
from minipaddle.slim.shrink import program_of

exercise = Exercise(
    title="A channel, everywhere: follow the letters",
    level="hard",
    minutes=45,
    before=("17_a_tensor_in_pieces",),
    slots={
        "slim.spread_letters": "spread_letters",
        "slim.find_removed_rows": "find_removed_rows",
    },
    hints=(
        "A sum x + y has the letters AB, AB -> AB. The labels 1, 2, 3 come along B of x, "
        "and 4, 5, 6 "
        "along B of y. Which labels are there along B of the result, and how many different ones?",
        "First collect for each letter the places (value, axis, unit) that have it. Then join what "
        "labels there are: `labels.reshape(-1, unit)` has a row for each block, and each of its "
        "columns is an array with one label for each block.",
        "no rule: refuse; for each axis of each value: without a letter and with labels: refuse\n"
        "for each letter: blocks = the join of all columns of all labels; none: the next letter\n"
        "summed over and no product: refuse\n"
        "set every place: the labels of the blocks, each repeated `unit` times",
    ),
    wrong={
        "an operator without a rule is passed over": (
            "raise refuse(record, 'nobody said which of its axes are one') → return"
        ),
        "axes that are needed whole are cut": (
            "raise refuse(record, f'it needs axis {d} whole') → pass"
        ),
        "a mean over channels is let through": (
            "raise refuse(record, 'it makes one value of all of them') → pass"
        ),
        "products are refused": (
            "letter in rule.terms and not is_product(record, rule, letter) → letter in rule.terms"
        ),
        "only from inputs to results": (
            "channels.set(value, d, np.repeat(blocks, unit)) → "
            "value in results and channels.set(value, d, np.repeat(blocks, unit))"
        ),
        "only from results to inputs": (
            "channels.set(value, d, np.repeat(blocks, unit)) → "
            "value in inputs and channels.set(value, d, np.repeat(blocks, unit))"
        ),
        "the first labels win": "blocks = channels.join(blocks, column) → pass",
        "rows of a block keep their own labels": (
            "columns += list(labels.reshape(-1, unit).T) → "
            "columns += list(labels.reshape(-1, unit).T[:1])"
        ),
        "blocks laid out the other way": ("labels.reshape(-1, unit).T → labels.reshape(unit, -1)"),
        "blocks repeated the other way": ("np.repeat(blocks, unit) → np.tile(blocks, unit)"),
        "rows that were joined stay": "channels.root(found) → found",
        "only the weight that was named": (
            "channels.labels.items() → list(channels.labels.items())[:1]"
        ),
        "the rows that stay": (
            "np.isin(channels.root(found), labels) → ~np.isin(channels.root(found), labels)"
        ),
        "numbers are looked at": "if value is None: → if False:",
    },
    unkillable={
        "for value, axes in zip((*inputs, *results), (*rule.inputs, *rule.results), "
        "strict=True): → "
        "for value, axes in zip((*inputs, *results), (*rule.inputs, *rule.results), "
        "strict=False):": ("a rule has an entry for each value"),
        "blocks = channels.join(blocks, column) → blocks = channels.join(column, blocks)": (
            "where both have a label it is the same one afterwards"
        ),
        "for column in columns[1:]: → for column in columns[0:]:": (
            "joined with itself an array is what it was"
        ),
        "columns += list(labels.reshape(-1, unit).T) → "
        "columns += list(labels.reshape(-2, unit).T)": "NumPy takes any negative size",
    },
)


class Board:
    """Labels of the axes of values "x", "y", …, with what the engine offers for them."""

    def __init__(self, rule, **labels):
        self.axes = SimpleNamespace(rules=lambda record: rule)
        self.labels = {(k[0], int(k[1:])): np.array(v) for k, v in labels.items()}
        self.same = {}

    def root(self, labels):
        def last(k):
            while k in self.same:
                k = self.same[k]
            return k

        return np.array([last(k) for k in np.asarray(labels).tolist()], int)

    def of(self, value, d):
        found = self.labels.get((value, d))
        return None if found is None else self.root(found)

    def join(self, a, b):
        for x, y in zip(a.tolist(), b.tolist(), strict=True):
            x, y = self.root([x, y])
            if x and y and x != y:
                self.same[max(x, y)] = min(x, y)
        return self.root(np.where(np.asarray(a) == 0, b, a))

    def set(self, value, d, labels):
        old = self.labels.get((value, d), np.zeros(len(labels), int))
        self.labels[value, d] = self.join(np.array(labels), old)

    @property
    def now(self):
        return {f"{v}{d}": self.root(found).tolist() for (v, d), found in self.labels.items()}


def axes(text, **units):
    """`a.b`: letters of axes, a point for none."""
    return tuple(None if c == "." else Axis(c, units.get(c, 1)) for c in text)


def rule(text, terms="", units=({}, {}, {})):
    """A rule from `ab,b->ab`; `units` of the letters for each value."""
    left, right = text.split("->")
    every = [axes(t, **u) for t, u in zip([*left.split(","), right], [*units, *[{}] * 9])]
    return LetterRule(every[:-1], every[-1:], dict.fromkeys(terms, "sum"))


RECORD = SimpleNamespace(
    op=SimpleNamespace(name="an operator", linear=({0}, {1})), scope=None, where=None
)


def spread(yours, found, inputs, board):
    """The labels after one operator whose result is z."""
    yours.spread_letters(board, RECORD, inputs, ["z"])
    return board.now


CASES = {
    "a sum": (
        "ab,ab->ab",
        "xy",
        {"x1": [1, 2, 3]},
        {"x1": [1, 2, 3], "y1": [1, 2, 3], "z1": [1, 2, 3]},
    ),
    "labels that meet": (
        "ab,ab->ab",
        "xy",
        {"x1": [1, 2, 0], "y1": [0, 5, 6]},
        {"x1": [1, 2, 6], "y1": [1, 2, 6], "z1": [1, 2, 6]},
    ),
    "from the result back": (
        "ab,b->ab",
        "xy",
        {"z1": [4, 0, 5]},
        {"z1": [4, 0, 5], "x1": [4, 0, 5], "y0": [4, 0, 5]},
    ),
    "two letters": (
        "ab,ab->ab",
        "xy",
        {"x0": [1, 2], "y1": [3, 4]},
        {k: v for n in "xyz" for k, v in ((f"{n}0", [1, 2]), (f"{n}1", [3, 4]))},
    ),
    "two axes of one value": (
        "aa,a->a",
        "xy",
        {"x0": [1, 2]},
        {k: [1, 2] for k in ("x0", "x1", "y0", "z0")},
    ),
    "axes without letters and labels": (
        "a..,a.->a",
        "xy",
        {"y0": [7, 0]},
        {k: [7, 0] for k in ("x0", "y0", "z0")},
    ),
    "crossed labels": (
        "a,a->a",
        "xy",
        {"x0": [1, 2, 3], "y0": [2, 3, 4]},
        {k: [1, 1, 1] for k in ("x0", "y0", "z0")},
    ),
    "many inputs": (
        "a,a,a,a,a,a,a->a",
        "tuvwxyk",
        {"x0": [1, 2]},
        {f"{v}0": [1, 2] for v in "tuvwxykz"},
    ),
    "nothing": ("ab,b->ab", "xy", {"w0": [1]}, {"w0": [1]}),
}


@exercise.example
def one_operator(yours):
    """Letters of two values and a result z, and what the labels become."""
    for name, (text, inputs, labels, expected) in CASES.items():
        board = Board(rule(text), **labels)
        got = spread(yours, text, list(inputs), board)
        expect(got, expected, given={name: text, "labels": labels}, why="labels afterwards")


@exercise.example
def blocks(yours):
    """Two rows of x for one of y and three of z; labels of one block become one."""
    units = ({"a": 2}, {"a": 1}, {"a": 3})
    cases = (
        ({"y0": [1, 2]}, [1, 1, 2, 2], [1, 2], [1, 1, 1, 2, 2, 2]),
        ({"x0": [1, 2, 3, 4]}, [1, 1, 3, 3], [1, 3], [1, 1, 1, 3, 3, 3]),
        ({"x0": [0, 2, 0, 4], "y0": [1, 0]}, [1, 1, 4, 4], [1, 4], [1, 1, 1, 4, 4, 4]),
        ({"z0": [0, 5, 0, 0, 0, 6]}, [5, 5, 6, 6], [5, 6], [5, 5, 5, 6, 6, 6]),
        ({"x0": [1, 2, 3, 4], "z0": [2, 0, 0, 0, 0, 3]}, [1, 1, 3, 3], [1, 3], [1, 1, 1, 3, 3, 3]),
    )
    for labels, x, y, z in cases:
        got = spread(yours, "", ["x", "y"], Board(rule("a,a->a", units=units), **labels))
        given = {"units of x, y, z": (2, 1, 3), "labels": labels}
        expect(got, {"x0": x, "y0": y, "z0": z}, given=given, why="labels afterwards")


@exercise.example
def sums_and_refusals(yours):
    """A product sums over a letter; a mean, an axis without letter, no rule: refused."""
    got = spread(yours, "", ["x", "y"], Board(rule("mk,kn->mn", "k"), x1=[1, 2]))
    expect(got, {"x1": [1, 2], "y0": [1, 2]}, given="mk,kn->mn, labels along k of x")
    got = spread(yours, "", ["x", None], Board(rule("ab,->ab"), x1=[1, 2]))
    expect(got, {"x1": [1, 2], "z1": [1, 2]}, given="x + 1")
    got = spread(yours, "", ["x", None], Board(rule("ab,b->ab"), x1=[1, 2]))
    expect(got, {"x1": [1, 2], "z1": [1, 2]}, given="a number that has a letter")
    for what, board in (
        ("a sum over b: ab,c->ac", Board(rule("ab,c->ac", "b"), x1=[1, 2])),
        ("axis 1 without a letter: a.,a->a", Board(rule("a.,a->a"), x1=[1, 2])),
        ("no rule", Board(None, x1=[1, 2])),
    ):
        try:
            got = spread(yours, "", ["x", "y"], board)
        except CannotFollow:
            continue
        expect_that(False, f"{what} cannot be followed: refuse", got=got)
    got = spread(yours, "", ["x", "y"], Board(rule("ab,c->ac", "b"), x0=[1, 2]))
    expect(got, {"x0": [1, 2], "z0": [1, 2]}, given="ab,c->ac, a sum over b, labels along a")


@exercise.example
def what_goes(yours):
    """Rows of labels 2 and 3, of which 3 was joined to 1."""
    board = Board(None, x0=[1, 2, 3], y1=[0, 0, 2, 4], z0=[3, 3, 0])
    board.join(np.array([1]), np.array([3]))
    for labels, x, y, z in (
        ([2], [0, 1, 0], [0, 0, 1, 0], [0, 0, 0]),
        ([1, 4], [1, 0, 1], [0, 0, 0, 1], [1, 1, 0]),
        ([*range(4, 30)], [0, 0, 0], [0, 0, 0, 1], [0, 0, 0]),
    ):
        got = yours.find_removed_rows(board, labels)
        expected = {place: np.array(rows, bool) for place, rows in
                    ((("x", 0), x), (("y", 1), y), (("z", 0), z))}  # fmt: skip
        given = {"labels": {"x": "1 2 3", "y": "0 0 2 4", "z": "3 3 0"}, "3": "is 1 now",
                 "gone": labels}  # fmt: skip
        expect(set(got), set(expected), given=given, why="all axes with labels")
        for place, rows in expected.items():
            expect(got[place], rows, given={**given, "of": place}, why="the rows that go")
            expect(got[place].dtype.name, "bool", given=given, why="what says whether a row goes")


class Block(nn.Layer):
    """A residual block with a norm, then a linear layer."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv2D(1, 4, 3, padding=1), nn.Conv2D(4, 4, 3, padding=1, groups=2)
        self.norm, self.last = nn.BatchNorm2D(4), nn.Linear(16, 3)

    def forward(self, x):
        x = F.relu(self.a(x))
        x = x + F.relu(self.norm(self.b(x)))
        return self.last(F.max_pool2d(x, 2).flatten(1))


@exercise.example
def a_residual_block(yours):
    """In the engine: half of the channels go, from seven weights and statistics at once."""
    paddle.seed(0)
    net, x = Block().eval(), paddle.randn([2, 1, 4, 4])
    with exercise.plugged(yours):
        pruner = slim.L1NormFilterPruner(net, [x])
        pruner.prune_vars({net.a.weight.name: 0.5}, apply="lazy")
        zeroed = net(x).numpy()
        pruner.restore()
        pruner.prune_vars({net.a.weight.name: 0.5})
        found = net(x).numpy()
        shapes = [p.shape for p in (net.a.weight, net.b.weight, net.norm.weight, net.last.weight)]
        expected = [[2, 1, 3, 3], [2, 2, 3, 3], [2], [8, 3]]
        expect(shapes, expected, given="weights of a, b, norm, last")
        expect(found, zeroed, given="scores without channels, and with zeros there", atol=1e-6)
        mean = nn.Sequential(nn.Linear(3, 4), nn.Softmax())
        tracks = Axes(program_of(mean, [paddle.ones([1, 3])]))
        value = next(v for v, s in tracks.states.items() if s.storage.tensor is mean[0].weight)
        try:
            got = Channels(tracks, value, 1).labels
        except CannotFollow:
            return
    expect_that(False, "a softmax needs all of its scores: refuse", given="a softmax", got=got)
