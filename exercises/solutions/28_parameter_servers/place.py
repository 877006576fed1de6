"""Placement: which server has a row.

A table of 10⁸ rows lies on several servers. A worker that needs row 1,234,567 has to know where
it is, without asking, and all workers have to agree. Write `place(ids, servers)`:

- `ids` is an array of n whole numbers, 0 to 2⁶³ - 1, of any dtype of whole numbers, in any
  order. It stays as it is;
- return the server of each, 0 to servers - 1, as int64 [n].

`ids % servers` would do if ids were random. They are not: if a field of a log has only even
numbers, one of two servers gets all of its rows. So scramble the bits of each id first, as unsigned
numbers of 64 bits (`uint64`, whose products wrap around), by the last steps of SplitMix64:

    z = z ^ (z >> 30);  z = z * 0xBF58476D1CE4E5B9
    z = z ^ (z >> 27);  z = z * 0x94D049BB133111EB
    z = z ^ (z >> 31)

and take the remainder of that. Every bit of the id has an influence on every bit of the result.

    ids [0, 1, 2, 3, 4, 5], 4 servers  ->  [0, 1, 2, 0, 0, 0]

Source: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014.
"""


def place(ids, servers: int):
    """The server of each row: int64 [n]."""
    z = ids.astype("uint64")  # a copy, whose products wrap around
    z ^= z >> 30
    z *= 0xBF58476D1CE4E5B9
    z ^= z >> 27
    z *= 0x94D049BB133111EB
    z ^= z >> 31
    return (z % servers).astype("int64")
