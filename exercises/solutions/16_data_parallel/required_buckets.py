"""The pass: what must wait for a bucket, and what need not.

A program computes gradients, averages them over the ranks, and updates weights. The averages are
fetched from *buckets*, numbered 0, 1, 2, … in the order in which they leave. Between a bucket's
leaving and its fetching the program should compute all that it can. The pass sorts the records of a
program by the *bucket they require*, smallest first; records that require the same one stay in
their order. Bucket k is fetched in front of the first record that requires bucket k or a later one.
Write `required_buckets(program, found)`:

- `program.records` is a list in which each record stands after its `inputs` (records too; those
  that are given to the program are not in the list);
- `found` is a list of buckets; each has its `number`, and `members`, the averages in it. A record
  that takes an average as an input needs what is in that bucket. The average itself does not: its
  own input is the gradient of this rank alone;
- return a dict: for each record of the program the bucket it requires, the largest number of all
  buckets that it needs, directly or through others; -1 if it needs none.

One more thing: a record with an *effect*, such as printing, must not come before one that stood
before it and has an effect as well. `has_effect(record)` says whether it has one. (So has an
average, but its bucket keeps the order.) The number of such a record is at least that of every
record with an effect before it. What takes its result comes after it, of course.

    average a (bucket 0), exp(x), multiply(a, exp), average b (bucket 1) of that product,
    tanh(b)  ->  -1, -1, 0, 0, 1

Source: the order of Li et al., "PyTorch Distributed", 2020, brought about by a pass.
"""

from minipaddle.engine.ir.cut import has_effect


def required_buckets(program, found) -> dict:
    """For each record the last bucket that it needs."""
    number = {member: bucket.number for bucket in found for member in bucket.members}
    required, effects = {}, -1
    for record in program.records:
        own = -1
        for value in record.inputs:
            # an average is in its bucket; any other value needs what it requires
            own = max(own, number[value] if value in number else required.get(value, -1))
        if has_effect(record) and record not in number:
            effects = own = max(own, effects)
        required[record] = own
    return required
