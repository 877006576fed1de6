"""Joining groups: the group between, and the value that must not stay inside.

Fusion puts records into groups; each becomes one loop nest, one kernel. What it knows is kept in
`fusion`: `fusion.of[record]` is the group that a record of the program is in (inputs, states and
numbers are in none), `fusion.users.get(record, ())` the records that take it, `fusion.needed` the
set of the program's results. `group.records` is a list. At the beginning every record is a group by
itself, and then two groups at a time are joined. Write two functions:

- `outputs(fusion, records)`: the list of those of `records` (which are, or would be, a group) that
  others need: results of the program, and what a record outside the group takes. They are stored.
  A value that only the group itself needs never reaches memory; that is what fusion is for. In the
  order in which they stand in `records`.
- `has_path_through(fusion, a, b)`: must a third group run between the groups a and b, so that they
  cannot be joined? It must if there is a path from one of them to the other, in either direction,
  from a record to one that takes it and so on, that goes through any other group. That one needs
  something of the first and makes something for the second, and a kernel cannot stop in the middle
  and wait. A path that leads from a to b directly does no harm.

    v1 = exp(x); v2 = matmul(v1, v1); v3 = add(v1, v2): v1 and v3 may not be joined. And v1 is an
    output of [v1], because the product takes it.

Source: Kennedy and McKinley, "Maximizing loop parallelism and improving data locality via loop
fusion and distribution", 1993: the fusion-preventing path.
"""


def outputs(fusion, records) -> list:
    """The records of a group that others need."""
    raise NotImplementedError


def has_path_through(fusion, a, b) -> bool:
    """Must another group run after one of the two and before the other?"""
    raise NotImplementedError
