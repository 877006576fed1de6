"""Index maps: where an element comes from.

A movement (a transpose, a reshape, a slice) changes no value. So it need not be done: a kernel that
uses its result can read the input at another place. The *index map* of a movement says at which.
Write it for five operators. Each function takes `i`, a list with an index of the *result*, a number
for each axis; `x`, the spec of the *input* (`x.shape`); and the attributes of the operator by name.
It returns a list, the index of the same element in the input:

- `transposed(i, x, *, perm)`: axis d of the result is axis perm[d] of x.
- `reshaped(i, x, *, shape)`: `shape` is that of the result. Elements keep their order: the
  row-major position of an element (row after row, the last axis fastest) stays the same.
- `broadcast(i, x, *, shape)`: x is repeated along axes of size 1, and along new axes in front.
- `sliced(i, x, *, index)`: `index` has an entry for each of the first axes of x; others stay whole.
  An int takes one place (negative: counted from the end), and the axis is gone. None is a new axis
  of size 1. A triple (start, stop, step) is Python's: `slice(*triple).indices(n)` gives it without
  None, and counted from the front, for an axis of n places.
- `flipped(i, x, *, axis)`: `axis` is a tuple of axes of x that run backward.

The numbers in `i` are Python ints when you try it out. In the engine they are sums of loop
variables, which know +, -, *, // and % with ints, and nothing else: no comparison, no `int()`. So
what you write computes an element's place, and writes a formula for it in C. Where x has only one
place along an axis, answer 0.

    transposed([1, 2], float32[4, 3], perm=(1, 0)) -> [2, 1]
    reshaped([5], float32[2, 3], shape=(6,))       -> [1, 2]

Source: access functions of arrays, Aho, Lam, Sethi and Ullman, "Compilers", 2nd ed., section 11.4.
"""


def transposed(i, x, *, perm) -> list:
    """Where element i of a transpose comes from."""
    there = [0] * len(perm)
    for d, axis in enumerate(perm):
        there[axis] = i[d]
    return there


def reshaped(i, x, *, shape) -> list:
    """Where element i of a reshape comes from."""
    position = 0
    for k, n in zip(i, shape, strict=True):
        position = position * n + k
    there = []
    for n in reversed(x.shape):
        there.insert(0, position % n)
        position = position // n
    return there


def broadcast(i, x, *, shape) -> list:
    """Where element i of what was repeated comes from."""
    own = i[len(shape) - len(x.shape) :]
    return [0 if n == 1 else k for k, n in zip(own, x.shape, strict=True)]


def sliced(i, x, *, index) -> list:
    """Where element i of a slice comes from."""
    result, sizes, there = iter(i), iter(x.shape), []
    for entry in index:
        if entry is None:
            next(result)
            continue
        n = next(sizes)
        if isinstance(entry, int):
            there.append(entry % n)
        else:
            start, _, step = slice(*entry).indices(n)
            there.append(start + next(result) * step)
    return [*there, *result]


def flipped(i, x, *, axis) -> list:
    """Where element i of what runs backward comes from."""
    return [n - 1 - k if d in axis else k for d, (k, n) in enumerate(zip(i, x.shape, strict=True))]
