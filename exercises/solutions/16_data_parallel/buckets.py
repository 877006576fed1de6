"""Buckets: gradients travel together, but not too many.

A message has a latency, however small it is; so gradients are gathered in *buckets*, each of which
is one message. But a bucket leaves only when all its gradients are there. Write
`assign_buckets(sizes, kinds, limits, last)`:

- `sizes[k]` are the bytes of gradient k. Gradients are numbered in the order in which the backward
  makes them; there is at least one;
- `kinds[k]` says with which others it may travel: a bucket has gradients of equal kind (a message
  has one dtype, say);
- `limits[k]` are the most bytes of a bucket in which it travels.

Return a list of buckets, each a list of numbers, such that all of them one after the other are
0, 1, 2, …: the gradients stay in their order. Go through them in that order. A gradient joins the
bucket before it if the kind is the same and the bytes of both together are at most its limit;
otherwise it begins a new one. A gradient that is too large for any bucket has one alone.

The bucket that leaves last is special: nothing is left to be computed while it travels, so it
should be small. Therefore one gradient begins a new bucket in any case: going back from the end,
add up sizes for as long as the sum is at most `last`, and at most the limit of the gradient just
added; the earliest one you have got to this way it is. If even the very last gradient is too large
for that, it is that one.

    assign_buckets([4, 4, 4, 1, 1], ["a"] * 5, [9] * 5, last=2)  ->  [[0, 1], [2], [3, 4]]

Source: Li et al., "PyTorch Distributed: Experiences on Accelerating Data Parallel Training", 2020.
"""


def assign_buckets(sizes, kinds, limits, last) -> list[list[int]]:
    """The numbers of gradients that travel together."""
    fresh = _begins_the_last(sizes, limits, last)
    buckets, filled = [], 0
    for k, size in enumerate(sizes):
        joins = k > 0 and k != fresh and kinds[k - 1] == kinds[k] and filled + size <= limits[k]
        if joins:
            buckets[-1].append(k)
            filled += size
        else:
            buckets.append([k])
            filled = size
    return buckets


def _begins_the_last(sizes, limits, last) -> int:
    """Where the last bucket begins at the earliest."""
    fresh, total = len(sizes) - 1, 0
    for k in range(len(sizes) - 1, -1, -1):
        total += sizes[k]
        if total > last or total > limits[k]:
            break
        fresh = k
    return fresh
