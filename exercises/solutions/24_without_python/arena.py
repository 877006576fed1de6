"""Binding an arena: where everything lies, and how a run is told.

The compiled function of chapter 13 takes a table of pointers: one for each input, each state, each
output, in this order. In a program without Python nobody allocates these arrays. The caller hands
in one block of memory, the *arena*; its first 64 bytes are a head, then comes the table, then
whatever the library needs itself. Write two functions.

`lay_out(pointers, sizes, work)`: a table of so many pointers (8 bytes each) follows the head; then
come arrays of these `sizes` in bytes, in their order, then the `work` bytes of the memory plan
(chapter 14). Each array and the plan's bytes begin at the next multiple of 64. Return (list of the
arrays' places, the place of the plan's bytes, the bytes of the arena, a multiple of 64 as well).
An array of 0 bytes takes no room.

`bind_state(k, at, nbytes, place, updated)`: a list of statements of C that set pointer k to a
state. The state lies `at` bytes behind `file`, the address of the weights, which nobody may write;
`here` is the address of the arena.

- `place` is None: a run reads the state where it is. So `own->all[k] = file + at;`
- `place` is a number: it has a place in the arena, so many bytes behind `here`, and the pointer
  goes there.
- If it is `updated`, a run writes its new value into that place. It begins with the `nbytes` bytes
  of the file, so copy them first: `memcpy(to, from, bytes);`. Otherwise a function that runs later
  fills the place, with the weight in another form; nothing is to be copied.

    lay_out(pointers=3, sizes=[12, 200], work=10)  ->  [128, 192], 448, 512
    bind_state(4, 64, 40, 256, True)               ->  ["memcpy(here + 256, file + 64, 40);",
                                                        "own->all[4] = here + 256;"]
"""


def lay_out(pointers, sizes, work):
    """(places of the arrays, place of the plan's bytes, bytes of the arena)."""
    places, at = [], _next(64 + 8 * pointers)
    for size in sizes:
        places.append(at)
        at = _next(at + size)
    return places, at, _next(at + work)


def bind_state(k, at, nbytes, place, updated):
    """Statements of C that set pointer k to a state."""
    if place is None:
        return [f"own->all[{k}] = file + {at};"]
    copy = f"memcpy(here + {place}, file + {at}, {nbytes});"
    return [copy] * updated + [f"own->all[{k}] = here + {place};"]


def _next(at):
    return (at + 63) // 64 * 64
