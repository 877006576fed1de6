"""What the programs of the fuzzer find around them: captured tensors, classes, helpers."""

import numpy as np

import minipaddle as paddle

DTYPE = "float64"
paddle_of = {"W": [0.5, -1.25, 0.75], "BIAS": 0.375, "STATE": [1.0, -0.5, 0.25]}


def captured(name: str):
    return paddle.to_tensor(paddle_of[name], dtype=DTYPE)


W, BIAS, STATE = map(captured, paddle_of)
W.stop_gradient = BIAS.stop_gradient = False
PARAMETERS = (W, BIAS)


class Box:
    """An object whose attributes programs read and write."""

    def __init__(self, value, count=0):
        self.value = value
        self.count = count

    def push(self, v):
        if v.sum() > self.value.sum():
            self.value = self.value + v
            self.count += 1
        else:
            self.value = self.value * 0.5
        return self.value

    @property
    def size(self):
        return self.count + 1 if self.value[0] > 0 else self.count

    @staticmethod
    def halved(v):
        return v * 0.5 if v.max() > 1 else v


def steps(v, n):
    """A generator."""
    for k in range(n):
        yield v * k


def power(v, n):
    """Recursion on a Python number."""
    if n <= 0:
        return v * 1.0
    return power(v, n - 1) * 0.5 + v


def clipped(v, low=-1.0, *, high=1.0):
    """Early returns on tensors."""
    if v.sum() < low:
        return v * 0.0 + low
    if v.sum() > high:
        return v * 0.25
    return v


def first_above(v, limit):
    """A return from inside a loop over a tensor."""
    for item in v:
        if item > limit:
            return item
    return v.sum()


def arguments(seed: int):
    """x, m, s, n, p, q, flag: tensors by the seed, Python values by its group of three."""
    draw, fixed = np.random.default_rng(seed), np.random.default_rng(seed // 3)
    x, m, s = (
        paddle.to_tensor(np.round(draw.normal(size=shape), 3), dtype=DTYPE)
        for shape in ((3,), (2, 3), ())
    )
    for each in (x, m, s):
        each.stop_gradient = False
    n = paddle.to_tensor(int(draw.integers(-1, 5)))
    p, q = int(fixed.integers(-2, 5)), float(fixed.integers(-8, 9)) / 4
    return x, m, s, n, p, q, bool(fixed.integers(2))


def reset(seed: int = 0) -> None:
    """The captured tensors without a past, in new memory; BIAS holds another value by the seed."""
    for name, x in (("W", W), ("BIAS", BIAS), ("STATE", STATE)):
        x.array = captured(name).array
        x.record = None
        x.clear_gradient(set_to_zero=False)
    BIAS.array = (captured("BIAS") * (1 - seed % 3)).array
    STATE.stop_gradient = True
