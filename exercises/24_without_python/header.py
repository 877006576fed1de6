"""The header: what a C program must know of a model, and no more.

A compiler of C sees one file of the model, the header. It has to say, for each input and output,
how many elements there are, of which type, in which shape, and how to get at them. Write two
functions.

`identifiers(names)`: names for C, in the same order, each its own. In Python an input may be called
anything. Take "input_" and the name in lower case, with "_" for each character that is no letter
from a to z, no digit and no "_". If an earlier one is called so, append "_2", or else "_3", and so
on: the first that is free.

`declaration(name, array)`: the lines about one array in the header of the library `name`, a list of
texts. `array.name` is its name for C, `array.type` the type of its elements in C ("float"),
`array.spec` has its `shape`, `ndim`, `size` and `dtype`. With N for both names in capitals, joined
by "_", the lines are

- a comment that begins with the name and the spec as text (`str(array.spec)`),
- `#define N_COUNT`, the number of elements; `#define N_RANK`, the number of axes; and
  `#define N_SHAPE`, the sizes in braces, for `const int shape[] = N_SHAPE;`. C knows no empty
  array: without axes write {1}.
- the declaration of the function that gives the address: its name is both names joined by "_", it
  takes `void *arena` and returns a pointer to elements.

    identifiers(["x", "X", "my image"])  ->  ["input_x", "input_x_2", "input_my_image"]

    declaration("digits", array)  ->  /* input_x: float32[1, 64], row-major. */
                                      #define DIGITS_INPUT_X_COUNT 64
                                      #define DIGITS_INPUT_X_RANK 2
                                      #define DIGITS_INPUT_X_SHAPE {1, 64}
                                      float *digits_input_x(void *arena);
"""

import re


def identifiers(names):
    """Names of inputs for C, each its own."""
    raise NotImplementedError


def declaration(name, array):
    """The lines of the header about an input or output."""
    raise NotImplementedError
