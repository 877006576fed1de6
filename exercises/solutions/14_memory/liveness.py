"""From when to when a value is needed, where several names may mean one memory.

In chapter 6 a value was let go when its last reader had run. Memory asks for more. A reshape looks
into the memory of its input, so a record that reads the reshape reads the input's memory; a record
may have several results; and a value that nobody reads must lie somewhere while it is made. A
*value* here is a pair (record, k): result number k of a record. Write two functions.

`roots(program)`: a dict that has, for each of `program.given` (inputs and states), each number that
is an input of a record or a result of the program, and each of `program.records` with one result,
the value whose memory holds it.

- A record has one result if its `dtype` is not None. A number is a record whose `op` is NUMBER.
- Given records and numbers hold themselves: (record, 0).
- `value_of_view(record)` (for a record with one result) is None if it has memory of its own;
  otherwise it is the value one step back: result k of another record. Views may look into views.

`lifetimes(program, root)`: a dict from each value that is given or made to its `Life(start, end,
nbytes)`. Time counts records: while record t runs, what it reads and what it makes are both there.

- A given value starts at GIVEN, a made one at the number of the record that makes it. A record with
  several results makes (record, 0), (record, 1) and so on, `len(record.shape)` of them. A record
  with one result makes a value if it is its own root. `is_view(record, root)` is True for what
  neither reads nor makes anything when its turn comes: skip it.
- It ends one after the last time it is read, through whatever name; if nobody reads it, one after
  it started, even if it is a given one. Inputs that have several results (dtype None) are not read
  as a whole. What the program hands out (`program.results`) ends at `len(program.records) + 1`.
- `nbytes` is `bytes_of(specs_of(record)[k])`.

    v1 = exp(x);  v2 = reshape(v1);  v3 = tanh(x);  v4 = add(v2, v3);  return v4
    ->  roots: v2 -> (v1, 0);   v1: [0, 4), v3: [2, 4), v4: [3, 5), x: [-1, 3)

The memory plan of every program is made with them.
Source: Aho, Lam, Sethi and Ullman, "Compilers", 2nd ed., section 8.4.2, "next use".
"""

from minipaddle.engine.ir.program import NUMBER
from minipaddle.engine.passes.lifetimes import (
    GIVEN,
    Life,
    bytes_of,
    is_view,
    specs_of,
    value_of_view,
)


def roots(program) -> dict:
    """For each record of one result the value whose memory holds it."""
    found = {record: (record, 0) for record in program.given}
    for record in [*program.records, *program.results]:
        numbers = [r for r in (record, *record.inputs) if r.op is NUMBER]
        found.update((number, (number, 0)) for number in numbers)
        if record in found or record.dtype is None:
            continue
        below = value_of_view(record) or (record, 0)
        found[record] = found.get(below[0], below)  # a view of a view ends where that ends
    return found


def lifetimes(program, root) -> dict:
    """From when to when each value is needed, and its bytes."""
    start = {(record, 0): GIVEN for record in program.given}
    last = {}
    for t, record in enumerate(program.records):
        if is_view(record, root):
            continue
        for k in range(len(specs_of(record))):
            start[record, k] = t
        last.update((root[r], t) for r in record.inputs if r.dtype is not None)
    last.update((root[r], len(program.records)) for r in program.results)
    found = {}
    for value, begun in start.items():
        record, k = value
        end = last.get(value, begun) + 1
        found[value] = Life(begun, end, bytes_of(specs_of(record)[k]))
    return found
