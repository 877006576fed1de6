"""The order of the walk: everything the results were computed from, inputs before uses.

A record knows its inputs: `record.inputs` is a list of records, or None where an input needs no
gradient. Nobody keeps a list of all records. Write `history(roots)`, which finds them:

- `roots` holds the records of the results, one or more;
- return a list of every record that they depend on, including the roots themselves, each **once**;
- a record stands **after** all its inputs. (The walk back takes the list from its end.)

Any such order will do. A record also has `record.time`, and it is newer (larger) than its inputs'.
Two things to beware of. A tape can be 10,000 records deep, so a function that calls itself for
every input meets Python's limit. And a value may be used often: look at the inputs of a record
once, or x + x, forty times over, has 2⁴⁰ paths to follow.

    a, b given; u = mul(a, b); v = tanh(a); y = add(u, v):  history([y]) -> [a, b, u, v, y], say

Source: topological order by depth-first search, Cormen et al., "Introduction to Algorithms", 3rd
ed., section 22.4.
"""


def history(roots):
    """Every record that the roots depend on, and the roots, in a list: inputs before uses."""
    raise NotImplementedError
