"""The server of a table's row, and the row's first value.

Both follow from the number of the row alone. So every worker knows the server of a row without
asking, and a table of 10⁸ rows takes no memory for the rows that nobody has touched: any server,
whenever it is asked, computes the same first values for a row.
"""

import math

from ...engine.core.dtype import resolve
from ...engine.core.errors import not_supported
from ...engine.core.slots import slot
from ...engine.eager.device import NUMPY
from ...engine.eager.tensor import wrap
from ...nn import initializer as init
from ...ops.gamma import erfinv
from ...ops.random import random_normal, random_uniform, scramble


@slot("ps.place")
def place(ids, servers: int):
    """The server of each row: int64 [n], 0 to servers - 1.

    The number of a row is scrambled first: rows whose numbers share a factor with the number of
    servers (all even ones, say) are spread evenly too.
    """
    return (scramble(ids.astype("uint64")) % servers).astype("int64")


@slot("ps.first_rows")
def first_rows(ids, width: int, draw):
    """The first values of the rows `ids`: [n, width].

    `draw(index)` gives the number at each place of an endless stream. Row r has the places from
    r · width on, as if the full table were drawn at once.
    """
    return draw(ids[:, None] * width + NUMPY.arange(width))


def recipe_of(initializer, shape: tuple[int, int]) -> list:
    """An initializer of one element of a table as data: [kind, two to four numbers]."""
    match initializer:
        case init.Constant():
            return ["constant", initializer.value]
        case init.Uniform():
            return ["uniform", initializer.low, initializer.high]
        case init.Normal():
            return ["normal", initializer.mean, initializer.std]
        case init.TruncatedNormal():
            return ["truncated", *(getattr(initializer, n) for n in ("mean", "std", "a", "b"))]
        case init.ByFan():
            std = initializer.std(shape)
            limit = math.sqrt(3) * std
            return ["uniform", -limit, limit] if initializer.uniform else ["normal", 0.0, std]
    raise not_supported(
        f"a table with {type(initializer).__name__}: its rows cannot be drawn one by one",
        expected="Constant, Uniform, Normal, TruncatedNormal, Xavier…, Kaiming…",
    )


def drawer(recipe: list, base: int, dtype: str):
    """The function that draws the numbers of a recipe at places of the stream `base`."""
    distribution, *numbers = recipe
    dtype = resolve(dtype)

    def draw(index):
        if distribution == "constant":
            return NUMPY.full(index.shape, numbers[0], dtype)
        stream = wrap(index), wrap(NUMPY.asarray(base, "int64"))
        if distribution == "normal":
            mean, std = numbers
            return random_normal(*stream, mean=mean, std=std, dtype=dtype).array
        if distribution == "uniform":
            low, high = numbers
            return random_uniform(*stream, low=low, high=high, dtype=dtype).array
        mean, std, a, b = numbers
        low, high = (math.erf((x - mean) / std / math.sqrt(2)) for x in (a, b))
        z = erfinv(random_uniform(*stream, low=low, high=high, dtype=dtype)) * math.sqrt(2)
        return (z * std + mean).clip(a, b).array

    return draw
