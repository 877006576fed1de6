"""Random graphs: operators of all kinds applied to whatever there is, of random shapes and dtypes.

A graph is a function of tensors that draws what it does from a seed. While it is traced it finds
out which of its steps are possible; afterwards it always does those. Sizes 0 and 1, broadcasting,
views, equal records, dead values, tensors written in place, branches and loops all occur, and so
do single numbers, NaN and infinities, and several floating dtypes in one graph.
"""

from __future__ import annotations

from random import Random

import numpy as np

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle.engine.core.op import OPS
from minipaddle.engine.eager.tensor import Tensor
from tests.executors.steps import Steps, swarm
from tests.ops.test_operators import ALL, CASES

FLOATS = ["float32"] * 6 + ["float64"] * 3 + ["bfloat16", "float16"]
SIZES = [1, 1, 2, 2, 3, 3, 4, 5, 7, 8, 16, 17, 33]
REFUSED = (ValueError, TypeError, IndexError, NotImplementedError, KeyError, AttributeError)
"""The errors that a step may raise while it is traced: then it is left out."""
JUMPS = ("pinv",)
"""Their result depends on the last bits of a matrix that is singular up to rounding."""
OPERATORS = [
    (n, k)
    for n, k in ALL
    if n in OPS and n not in JUMPS and not OPS[n].effect and OPS[n].kind != "control"
]


class Graph(Steps):
    """A random graph: call it with its inputs, eagerly or in a trace."""

    def __init__(self, seed: int, length: int | None = None):
        random = Random(seed)
        self.seed, self.main, self.steps = seed, random.choice(FLOATS), swarm(random)
        self.sizes = random.sample(SIZES, 4) + ([0] if random.random() < 0.05 else [])
        self.length = length or random.choice((2, 4, 8, 8, 12, 16, 24))
        self.shapes = [self.shape(random) for _ in range(random.randint(1, 3))]
        self.choose_kinds(Random(f"kinds {seed}"))
        self.taken: list[int] | None = None  # the steps that are possible
        self.wanted = random.random() < 0.6  # does anything want a gradient?
        draw = np.random.default_rng(seed)
        self.parameters = [self.drawn(draw, self.shape(random), d) for d in self.dtypes[-2:]]
        self.states = [self.drawn(draw, s, self.main) for s in (self.shape(random), ())]
        for x in self.parameters:
            x.stop_gradient = not self.wanted
        self.learns = self.wanted and random.random() < 0.15
        kind = random.choice((paddle.optimizer.SGD, paddle.optimizer.Adam))
        self.optimizer = kind(0.1, parameters=self.parameters) if self.learns else None

    def shape(self, random: Random) -> tuple:
        rank = random.choice((0, 1, 1, 2, 2, 2, 3, 3, 4))
        return tuple(random.choice(self.sizes) for _ in range(rank))

    def choose_kinds(self, random: Random) -> None:
        """Some graphs have NaN and infinities among their values, several floating dtypes, or
        single numbers for arrays.
        """
        self.strange, mixed, single = (random.random() < share for share in (0.15, 0.15, 0.1))
        places = range(len(self.shapes) + 2)
        self.dtypes = [random.choice(FLOATS) if mixed else self.main for _ in places]
        if single:
            self.shapes = [s if random.random() < 0.3 else () for s in self.shapes]

    def drawn(self, draw, shape, dtype) -> Tensor:
        values = np.round(draw.standard_normal(shape), 2)
        if self.strange:
            chosen = draw.choice([np.nan, np.inf, -np.inf], shape)
            values = np.where(draw.random(shape) < 0.1, chosen, values)
        return paddle.to_tensor(values).astype(dtype)

    def arguments(self, call: int) -> list[Tensor]:
        """What to call it with: floats, then whole numbers, then booleans."""
        draw = np.random.default_rng((self.seed, call))
        tensors = [self.drawn(draw, s, d) for s, d in zip(self.shapes, self.dtypes)]
        for x in tensors:
            x.stop_gradient = not self.wanted
        shape = self.shapes[0]
        tensors.append(paddle.to_tensor(draw.integers(-3, 6, shape)))
        tensors.append(paddle.to_tensor(draw.random(shape) < 0.5))
        return tensors

    def __call__(self, *inputs) -> list[Tensor]:
        """The results: some of what was computed."""
        self.pool = [*inputs, *self.parameters, *self.states]
        possible, before = [], 0
        for k in range(self.length) if self.taken is None else self.taken:
            self.random = Random(f"{self.seed} {before if self.random_again(k) else k}")
            before = k
            try:
                results = self.step()
            except REFUSED:
                if self.taken is not None:
                    raise
                continue
            possible.append(k)
            self.pool += [x for x in results if x.spec.size <= 5000 and x.ndim <= 6]
        self.taken = possible
        return self.results(len(inputs))

    def random_again(self, k: int) -> bool:
        """Does step k what the one before did? Equal records are for passes to find."""
        return k > 0 and Random(f"again {self.seed} {k}").random() < 0.05

    def results(self, leaves: int) -> list[Tensor]:
        random = Random(f"results {self.seed}")
        computed = self.pool[leaves + len(self.parameters) + len(self.states) :] or self.pool[:1]
        chosen = random.sample(computed, min(len(computed), random.randint(1, 4)))
        chosen += [x for x in computed[-2:] if all(x is not y for y in chosen)]
        if self.learns:
            floats = [x for x in chosen if not x.stop_gradient]
            if floats:
                loss = sum([F.sigmoid(x).mean() for x in floats[1:]], F.sigmoid(floats[0]).mean())
                loss.backward()
                self.optimizer.step()
                self.optimizer.clear_grad()
            chosen = [x.detach() for x in chosen]
        return chosen

    # ---- any operator ------------------------------------------------------------------------

    def by_case(self):
        """An operator as the suite calls it, on values of the graph that are made to fit."""
        name, k = self.random.choice(OPERATORS)
        case = CASES[name][k]
        inputs = []
        for x in case.build(np.random.default_rng(self.random.randrange(1 << 30))):
            if isinstance(x, np.ndarray) and x.dtype.kind == "f" and self.main in case.dtypes:
                low, high = (float(x.min()), float(x.max())) if x.size else (0.0, 1.0)
                value = self.fitted(self.floating(), x.shape)
                inputs.append(F.sigmoid(value) * (high - low) + low)
            elif isinstance(x, np.ndarray) and x.dtype.kind in "fiub":
                inputs.append(paddle.to_tensor(x))
            else:
                inputs.append(x)
        result = OPS[name](*inputs, **case.attrs)
        return [x for x in (result if isinstance(result, tuple | list) else [result]) if of_use(x)]


def of_use(x) -> bool:
    return (isinstance(x, Tensor) and x.spec.dtype.kind in "fiub") or "float16" in str(x.spec.dtype)
