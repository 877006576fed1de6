"""Padding: one run for many requests, and each gets its own rows back.

A compiled program has a fixed number of rows. So the server compiles a few *buckets*, 1, 2, 4, 8
and 16 rows, say, and fills up what is left with rows that nobody asked for. Write three functions
on NumPy arrays.

- `choose_bucket(buckets, rows)`: the least bucket that holds so many rows; if none does, the number
  of rows itself. `buckets` is a sorted list of whole numbers.
- `lay_together(memory, requests)`: `requests` is a list; each request is a list of arrays, one for
  each input of the model, all with as many rows (axis 0). `memory` is a list of arrays, one for
  each input, as many rows as the bucket has: write into them. The rows of the first request come
  first, then those of the next. The rows that are left get *the last row* that was asked for, again
  and again: valid data, which no model can stumble over. Nothing is returned.
- `cut_apart(outputs, rows)`: `outputs` is a list of arrays, one for each output of the model, and
  `rows` says how many rows each request had. For each request a list of its rows of each output;
  what padded the batch belongs to nobody. They are copies: the next run writes into the same
  memory.

    choose_bucket([1, 2, 4, 8], 3)                 ->  4
    lay_together([zeros(4)], [[[7.0, 8]], [[9.0]]])  writes 7, 8, 9, 9
    cut_apart([[70.0, 80, 90, 90]], [2, 1])        ->  [[[70, 80]], [[90]]]

Source: the protocol's axis 0, the batch, as in NVIDIA Triton's model configuration.
"""


def choose_bucket(buckets, rows):
    """The rows of the run for so many rows."""
    for bucket in buckets:
        if bucket >= rows:
            return bucket
    return rows


def lay_together(memory, requests):
    """Write the rows of all requests into memory, and pad them."""
    for k, place in enumerate(memory):
        end = 0
        for request in requests:
            start, end = end, end + len(request[k])
            place[start:end] = request[k]
        place[end:] = place[end - 1]


def cut_apart(outputs, rows):
    """The outputs of each request."""
    results, end = [], 0
    for count in rows:
        start, end = end, end + count
        results.append([output[start:end].copy() for output in outputs])
    return results
