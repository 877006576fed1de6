"""A schedule: the same records in an order that needs less memory.

Four sums of long arrays can be computed one after the other, each array let go before the next is
made; or all four arrays are made first, and wait. The results are the same, the peaks are not. The
best order is NP-hard to find (it is a pebble game); a greedy one is often good.

Write `order(work)`, which returns the numbers of all records, each once. `work` is a program as
numbers; record k is one of 0, 1, …, `len(work.records) - 1`:

- `work.before[k]` is the set of records that must come before k (those that make what it reads,
  and those whose order must stay as it is); `work.after[k]` is a list of those that have k in
  their `before`;
- `work.makes[k]` and `work.reads[k]` are lists of values, by number, each once;
- `work.sizes[v]` are the bytes of value v (0 if it has memory elsewhere); `work.readers[v]` is a
  list of the records that read it.

A value is there from the record that makes it until the last of its readers has run; if nobody
reads it, to the end. The peak is the most bytes that are there at one time; while a record runs,
both what it reads and what it makes are there. Of the records that can come next take the one after
which the fewest bytes are there, and among equals the first. Your peaks need not come from this
rule: over many programs they must be no higher than those of the rule.

    v0 = tanh(x); v1 = exp(x); v2 = sum(v0); v3 = sum(v1); v4 = v2 + v3   ->  [0, 2, 1, 3, 4]

The engine takes your order where its peak is lower than that of the order given. 1000 records must
be ordered in a few seconds.
Source: list scheduling, Graham 1966; registers for trees, Sethi and Ullman, "The generation of
optimal code for arithmetic expressions", 1970.
"""


def order(work) -> list:
    """The numbers of all records, each after those it waits for."""
    left = [len(readers) for readers in work.readers]  # how many have yet to read each value
    waits = [len(before) for before in work.before]
    ready = {k for k, n in enumerate(waits) if n == 0}
    found = []

    def growth(k):
        """How many more bytes are there after record k than before it."""
        dying = sum(work.sizes[v] for v in work.reads[k] if left[v] == 1)
        return sum(work.sizes[v] for v in work.makes[k]) - dying

    while ready:
        k = min(ready, key=lambda k: (growth(k), k))
        ready.remove(k)
        found.append(k)
        for v in work.reads[k]:
            left[v] -= 1
        for j in work.after[k]:
            waits[j] -= 1
            if waits[j] == 0:
                ready.add(j)
    return found
