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
  properties. Each becomes an attribute of a Layer. Raise `Damaged` unless each is an identifier of
  Python, does not begin with an underscore, and is none of the names that every Layer has
  (`dir(Layer)`), nor `"program"`, which the loaded layer has as well. The one exception is
  `"forward"`. No name may stand there twice.

- `check_paths(states)`: each state has a `kind` and a list of `paths`, the places in the tree of
  layers where it is put: "block.0.weight" is the tensor `weight` in the layer `0` in the layer
  `block`. Raise `Damaged`, unless
    - states of kind "constant" and "random", which stand in no layer, have no paths;
    - each path has at most DEEPEST parts, none of which is empty;
    - no path is there twice, not even for the same state;
    - no place is a tensor and a layer: with "block" there may be no "block.0".

Raise `Damaged(message)`. The message shows what was found, but at most its first 80 characters: a
name may be a megabyte long. All three functions take time in proportion to what they are given.

    elements((3, n, 0, 5)) -> 15;   check_names(["forward", "__init__"]) -> Damaged: '__init__' ...

Source: "never trust a length field": CERT C Coding Standard, rule INT04-C, for what comes from
outside; and the description of the format in minipaddle/jit/saved.py.
"""

from minipaddle.ir.parser import LARGEST
from minipaddle.jit.saved import DEEPEST, Damaged
from minipaddle.nn import Layer


def elements(shape) -> int:
    """How many elements a shape has: open sizes and empty axes count as 1, negative as too many."""
    raise NotImplementedError


def check_names(names) -> None:
    """Raise Damaged unless methods and properties can be attributes of a loaded model."""
    raise NotImplementedError


def check_paths(states) -> None:
    """Raise Damaged unless every path leads to a place of its own, in a tree."""
    raise NotImplementedError
