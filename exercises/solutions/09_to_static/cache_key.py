"""A cache key: what must be equal for a program to serve again.

`to_static` looks for a program in a dict, by a key that it makes of each call. A key that leaves
something out finds a program that was written for something else: wrong numbers. A key that holds
too much never finds one: a program for each call. Write the three functions that make it:

- `cache_key(leaves, structure, places, specs)`. The arguments of a call, lists and dicts taken
  apart, are `leaves`, a list; `structure` says how they were nested (it has a hash). The leaves at
  `places`, a list of indices, are tensors that may differ from call to call, and `specs` is a list
  of what the program depends on of each of them: (shape, dtype, stop_gradient). What is in them
  is no part of the key. Every other leaf is: by `constant`, in the order of the leaves.
  Return `Key(structure, places, specs, values, settings)`, all but the first being tuples.
- `constant(x)`: a leaf that belongs to the program, as a tuple (type, value), or (type, value,
  more). Two of them must be equal exactly if no function could tell the values from each other:
    - 2, 2.0 and np.float32(2) are three keys, and so are 1 and True;
    - 0.0 and -0.0 are two, though 0.0 == -0.0; nan and nan are one, though nan != nan. This holds
      for all floating numbers, NumPy's too: `isinstance(x, numbers.Real)` and no `int`;
    - two equal texts are one;
    - a tensor (also one that is no argument, but that the function knows from elsewhere), anything
      that has no hash (`hash(x)` raises TypeError), and an object whose class says in Python what
      is equal (`type(type(x).__eq__) is FunctionType`) stand for themselves alone: `Itself(x)` has
      a hash and equals another `Itself` only if it holds the same object.
- `settings()`: what a program depends on besides its arguments, a tuple of three: whether
  gradients are recorded (`current.top.recording`), the default dtype, and `slots.epoch`, a number
  that changes whenever code is plugged in or out. (It would be silly to test your key with programs
  that somebody else's key has kept.)

    f(x, 2.0)     values ((float, 2.0, …),)     places (0,)
    f(2.0, x)     values ((float, 2.0, …),)     places (1,)

Source: the signatures of `tf.function`, in Agrawal and others, "TensorFlow Eager", MLSys 2019.
"""

import math
from numbers import Real
from types import FunctionType

import minipaddle as paddle
from minipaddle.engine.core import slots
from minipaddle.engine.core.dispatch import current
from minipaddle.engine.jit.cache import Itself, Key


def cache_key(leaves, structure, places, specs):
    """What must be equal for a program to serve again."""
    values = [constant(x) for k, x in enumerate(leaves) if k not in places]
    return Key(structure, tuple(places), tuple(specs), tuple(values), settings())


def constant(x):
    """A leaf that belongs to the program, as a part of the key."""
    if isinstance(x, Real) and not isinstance(x, int):
        # one object for all nans: a tuple finds it equal to itself, without asking ==
        value = math.nan if math.isnan(x) else x
        return type(x), value, math.copysign(1.0, value)
    if isinstance(x, paddle.Tensor) or type(type(x).__eq__) is FunctionType:
        return type(x), Itself(x)  # equal, for its class, is not the same
    try:
        hash(x)
    except TypeError:
        return type(x), Itself(x)
    return type(x), x


def settings():
    """What a program depends on besides its arguments."""
    return current.top.recording, paddle.get_default_dtype(), slots.epoch
