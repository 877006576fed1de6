"""Ring all-reduce: every rank ends with the sum, and no link carries more than it must.

`n` ranks each have an array of the same shape. In the end all have the sum over the ranks. Each
rank sends to the next one alone, and receives from the one before: rank `n - 1` is before rank 0.
Write `ring(group, array, op)`:

- `group.rank` is this rank's number, `group.size` is `n`;
- `array` is a NumPy array in row-major order. What you compute is written into it; return nothing;
- `op` is "sum", "max", "min" or "prod": add, or take the maximum, the minimum, the product;
- `group.send(x, dst, wait=False)` begins to send an array and gives something with `wait()`: until
  then x must stay as it is. `group.recv(x, src)` fills x with what comes. Without `wait=False` a
  rank waits until its message has been taken: if all ranks wait, nobody takes.

Cut the flattened array in n parts: part k is `flat[size * k // n : size * (k + 1) // n]`. There are
2 (n - 1) steps, numbered from 0. In step s rank r sends part r - s and receives part r - s - 1
(both counted modulo n). In the first n - 1 steps what comes is added to one's own part; after them
rank r has the whole sum of part r + 1. In the others it takes the place of one's own.

    n = 2, [1, 2] and [10, 20]: step 0: rank 0 sends 1, rank 1 sends 20 -> [1, 22] and [11, 20]
                                step 1: rank 0 sends 22, rank 1 sends 11 -> [11, 22] and [11, 22]

Each rank sends 2 (n - 1) messages of 1/n of the data: twice the data in all, however many ranks
there are.

Source: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations",
2009.
"""

import numpy as np

COMBINE = {"sum": np.add, "max": np.maximum, "min": np.minimum, "prod": np.multiply}


def ring(group, array, op) -> None:
    """Let `array` become the sum (or "max", "min", "prod") over the ranks."""
    n, rank = group.size, group.rank
    flat = array.reshape(-1)  # looks into the same memory

    def part(k):
        k %= n
        return flat[flat.size * k // n : flat.size * (k + 1) // n]

    for step in range(2 * (n - 1)):
        mine, came = part(rank - step - 1), np.empty_like(part(rank - step - 1))
        sending = group.send(part(rank - step), (rank + 1) % n, wait=False)
        group.recv(came, (rank - 1) % n)
        sending.wait()
        mine[...] = COMBINE[op](mine, came) if step < n - 1 else came
