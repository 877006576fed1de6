"""Buckets: a few compiled shapes for requests of any size.

A compiled program is for one shape, and compiling takes longer than most requests may wait. So
compile for a few batches only, the *buckets*, before anybody asks, and put a request into the next
larger one. Write two functions.

`bucket_for(rows, buckets)`: the batch that serves so many rows: the smallest of the buckets that
holds them. If none does, the request gets a batch of its own size. `buckets` is a list or a tuple
of whole numbers in any order, maybe empty; `rows` may be 0.

`fill(memory, arrays)`: several requests share a run. `memory` is the input of the compiled program,
an array of so many rows as its batch has; `arrays` are the requests, with fewer rows in all, or as
many. Write their rows into `memory`, one request after the other, and return a list with a slice
for each: the rows where it lies.

- Rows that are left over have to be valid, too: an index out of range would stop the run, for all.
  So they repeat the last row of the last request that has one. If there is no row at all, `memory`
  stays as it is.
- An array may have no rows. What was given does not change.

    bucket_for(3, (1, 4, 16))  ->  4
    fill(memory of 4 rows, [[[1, 1], [2, 2]], [[3, 3]]])  ->  [slice(0, 2), slice(2, 3)]
    and memory is then [[1, 1], [2, 2], [3, 3], [3, 3]]

Source: the buckets of Paddle's and TensorRT's serving; MiniPaddle's own `Config.set_buckets`.
"""


def bucket_for(rows, buckets):
    """The smallest bucket that holds the rows, or else their own number."""
    fitting = [n for n in buckets if n >= rows]
    return min(fitting) if fitting else rows


def fill(memory, arrays):
    """Put arrays one after the other into memory; where each lies."""
    places, at = [], 0
    for array in arrays:
        end = at + len(array)
        memory[at:end] = array
        places.append(slice(at, end))
        at = end
    if at:
        memory[at:] = memory[at - 1]
    return places
