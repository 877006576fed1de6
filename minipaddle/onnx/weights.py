"""Which arrays of a file are weights: parameters, buffers, or numbers of the program.

Initializers and Constant nodes follow one rule, in branches and loops too: a floating array of one
axis or more is a parameter, unless it is a statistic or a scale (a buffer), or a number that an
operator needs while the file is read. Whole numbers are no parameters.

Weights beneath the smallest normal number (1.2e-38 in float32) are read as 0. Trained networks have
them, two thirds of a matrix in PP-OCRv6, and a processor takes a hundred times as long for each.
"""

from collections import Counter
from collections.abc import Iterator
from functools import partial
from math import prod

import numpy

from ..core.prelude import FLOATS, Parameter, Tensor, creation, dt
from ..nn import Layer
from .graph import value_of
from .reading import DEEPEST, DamagedFile, array_of, subgraphs

STATISTICS = {"BatchNormalization": (3, 4), "QuantizeLinear": (1, 2), "DequantizeLinear": (1, 2)}
"""Inputs (by place) that are no weights to train, unless they are something else too."""
NUMBERS = {"Clip": (1, 2), "Dropout": (1, 2), "OneHot": (2,), "Pad": (1, 2), "Pow": (1,),
           "Range": (0, 1, 2), "Resize": (1, 2), "Upsample": (1,)}  # fmt: skip
"""Inputs that say what to compute."""
KINDS = ("parameter", "buffer", "transient", "constant")
"""Of weights, as `paddle.onnx.export` notes them in the properties of a file."""


def weights_of(graph, folder: str, properties: dict) -> tuple[Layer, dict]:
    """(a layer that holds the weights, each value by its name): parameters, buffers, constants."""
    owner, weights = Layer("onnx"), {}
    noted = {name: (kind, path) for key, path in properties.items()
             for kind, _, name in [key.partition(":")] if kind in KINDS}  # fmt: skip
    arrays = [*arrays_in(graph, folder)]
    count = Counter(name for name, _ in arrays)
    statistics, numbers = uses_of(graph, STATISTICS, all), uses_of(graph, NUMBERS, any)
    taken: set[str] = set()
    for name, array in arrays:
        if count[name] > 1:  # it has other values in other branches
            continue
        few = not array.ndim or (array.size <= 64 and array.dtype.kind in "iub")
        if few or (name in numbers and name not in noted):
            weights[name] = array
            continue
        if array.dtype.name not in dt.NAMES:
            raise DamagedFile(f"the tensor {name[:80]!r} has the dtype {array.dtype}")
        if name not in noted and counts_up(array):
            weights[name] = partial(count_up, array.shape, array.dtype)
            continue
        kind, path = noted.get(name, ("parameter", name))
        trains = array.dtype in FLOATS and name not in statistics and kind == "parameter"
        weights[name] = keep_weight(owner, array, path_of(path, taken), trains)
    return owner, weights


def arrays_in(graph, folder: str) -> Iterator[tuple]:
    """The name and the array of each initializer and each Constant, in subgraphs too."""
    for t in graph.initializer:
        yield t.name, array_of(t, folder)
    for node in graph.node:
        if node.op_type == "Constant" and node.domain in ("", "ai.onnx"):
            for a in node.attribute:
                if a.name == "value":
                    yield node.output[0], array_of(a.t, folder)
                if a.name == "value_floats":
                    yield node.output[0], numpy.array(value_of(a), "float32")
        for inner in subgraphs(node):
            yield from arrays_in(inner, folder)


def uses_of(graph, table: dict, how) -> set[str]:
    """The names of values that nodes take at the places in a table: in `any` use, or in `all`."""
    uses: dict[str, list[bool]] = {}
    for name, kind, place in find_uses(graph, {}):
        uses.setdefault(name, []).append(place in table.get(kind, ()))
    return {name for name, places in uses.items() if how(places)}


def find_uses(graph, same: dict) -> Iterator[tuple]:
    """(name, operator, place) of each input of a node; what Identity gives is its input."""
    for node in graph.node:
        if node.op_type == "Identity":
            same[node.output[0]] = same.get(node.input[0], node.input[0])
            continue
        for place, name in enumerate(node.input):
            yield same.get(name, name), node.op_type, place
        for inner in subgraphs(node):
            yield from find_uses(inner, same)


def counts_up(array) -> bool:
    """Whether an array holds 0, 1, 2, …: then a program counts, and its passes know the numbers."""
    return array.dtype.kind in "iu" and bool((array.ravel() == numpy.arange(array.size)).all())


def count_up(shape: tuple, dtype) -> Tensor:
    """0, 1, 2, … in this shape."""
    return creation.arange(size=prod(shape), dtype=dtype).reshape(shape)


def path_of(name: str, taken: set[str]) -> str:
    """The path of a weight in the layer: its name, if that is a path and free."""
    parts = [part if part.isidentifier() or part.isdigit() else "" for part in name.split(".")]
    path = name if all(parts) and len(parts) < DEEPEST else "w_" + "".join(
        c if c.isalnum() else "_" for c in name)[:80]  # fmt: skip
    while any(path == t or path.startswith(f"{t}.") or t.startswith(f"{path}.") for t in taken):
        path = path.replace(".", "_") + "_"
    taken.add(path)
    return path


def drop_subnormal(array):
    """The array with 0 for what is no normal number; half precision needs these numbers."""
    if array.dtype.name not in ("float32", "float64"):
        return array
    return numpy.where(numpy.abs(array) < numpy.finfo(array.dtype).tiny, array.dtype.type(0), array)


def keep_weight(owner: Layer, array, path: str, trains: bool) -> Tensor:
    """A weight in its place."""
    x = Parameter(()) if trains else Tensor(())
    x.array = Tensor(numpy.ascontiguousarray(drop_subnormal(array))).array
    x.name, x.stop_gradient = path, not trains
    layer, (*outer, key) = owner, path.split(".")
    for part in outer:
        layer = layer._sub_layers.setdefault(part, Layer(part))
    (layer._parameters if trains else layer._buffers)[key] = x
    return x
