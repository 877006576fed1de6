"""A hostile file: sizes and names are looked at before anything is done with them.

A saved model is a program as text, tensors, and a description. The loader does not know who
wrote it. Nothing in it is executed but operators of the engine; but a file may also ask for a
tensor with more elements than there are atoms, or for a method that takes the place of one that the
loaded layer needs. So the reader asks first. Write three functions:

- `elements(shape)`: how many elements a tensor of this shape has, to be compared with LARGEST. A
  size is a Python integer, or it is open and no integer at all: then it counts as 1. So does a size
  of 0, for another tensor may well have all the other axes. A negative size makes no sense: the
  answer is more than LARGEST, whatever the other sizes are.

- `check_names(names)`: `names` is a list of what a loaded model will have as methods and
  properties. Each becomes an attribute of a Layer. Raise `DamagedModel` unless each is an
  identifier of Python, does not begin with an underscore, and is none of the names that every Layer
  has (`dir(Layer)`), nor `"program"`, which the loaded layer has as well. The one exception is
  `"forward"`. No name may stand there twice.

- `check_paths(states)`: each state has a `kind` and a list of `paths`, the places in the tree of
  layers where it is put: "block.0.weight" is the tensor `weight` in the layer `0` in the layer
  `block`. Raise `DamagedModel`, unless
    - states of kind "constant" and "random", which stand in no layer, have no paths;
    - each path has at most DEEPEST parts, none of which is empty;
    - no path is there twice, not even for the same state;
    - no place is a tensor and a layer: with "block" there may be no "block.0".

Raise `DamagedModel(message)`. The message shows what was found, but at most its first 80
characters: a name may be a megabyte long. All three functions take time in proportion to what they
are given.

    elements((3, n, 0, 5)) -> 15
    check_names(["forward", "__init__"]) -> DamagedModel: '__init__' ...

Source: "never trust a length field": CERT C Coding Standard, rule INT04-C, for what comes from
outside; and the description of the format in minipaddle/jit/saved.py.
"""

from minipaddle.ir.parser import LARGEST
from minipaddle.jit.saved import DEEPEST, DamagedModel
from minipaddle.nn import Layer


def elements(shape) -> int:
    """How many elements a shape has: open sizes and empty axes count as 1, negative as too many."""
    count = 1
    for size in shape:
        if isinstance(size, int):
            count *= LARGEST + 1 if size < 0 else max(size, 1)
    return count


def check_names(names) -> None:
    """Raise DamagedModel unless methods and properties can be attributes of a loaded model."""
    taken = set(dir(Layer)) | {"program"}
    taken.remove("forward")
    seen = set()
    for name in names:
        if name in taken or name in seen or not name.isidentifier() or name.startswith("_"):
            raise DamagedModel(f"{name[:80]!r} cannot be the name of a method or a property")
        seen.add(name)


def check_paths(states) -> None:
    """Raise DamagedModel unless every path leads to a place of its own, in a tree."""
    tensors, layers = set(), set()
    for state in states:
        if state.paths and state.kind in ("constant", "random"):
            raise DamagedModel(f"a {state.kind} has the path {state.paths[0][:80]!r}")
        for path in state.paths:
            parts = path.split(".")
            if len(parts) > DEEPEST or "" in parts or path in tensors:
                raise DamagedModel(f"{path[:80]!r} is no path, or it is there twice")
            tensors.add(path)
            for k in range(1, len(parts)):
                layers.add(".".join(parts[:k]))
    both = tensors & layers
    if both:
        raise DamagedModel(f"{min(both)[:80]!r} is a tensor and a layer")
