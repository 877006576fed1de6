"""Random sequences of collectives on sub-groups, and what each rank must have after them.

A sequence is drawn from a number alone, so that all ranks draw the same. The oracle plays all
ranks at once, in NumPy, by the definitions of the collectives; it knows nothing of messages.

As a program, of a thousand: `mpiexec -n 4 python -m mpi4py -m tests.distributed.sequences 1000`.
"""

import sys

import numpy as np

import minipaddle.distributed as dist

FOLD = {"sum": np.add, "max": np.maximum, "min": np.minimum, "prod": np.multiply}
NAMES = [
    "all_reduce", "reduce", "broadcast", "all_gather", "gather", "reduce_scatter", "scatter",
    "all_to_all", "ring", "barrier",
]  # fmt: skip


def drawn(number: int, size: int) -> tuple[list, list]:
    """(sub-groups, calls): each call is (group, name, op, root, begun before the last?)."""
    rng = np.random.default_rng(number)
    groups = [sorted(rng.permutation(size)[: rng.integers(1, size + 1)]) for _ in range(3)]
    groups = [list(map(int, g)) for g in [range(size), *groups]]
    calls = []
    for _ in range(rng.integers(3, 9)):
        g = int(rng.integers(len(groups)))
        root, op = int(rng.integers(len(groups[g]))), str(rng.choice([*FOLD]))
        calls.append((g, str(rng.choice(NAMES)), op, root, bool(rng.integers(2))))
    return groups, calls


def begun_with(number: int, rank: int) -> np.ndarray:
    return np.random.default_rng((number, rank)).integers(-3, 4, 12).astype("float64")


def shortened(x: np.ndarray) -> np.ndarray:
    """Any array as twelve small numbers again, for the next call."""
    return np.resize(x, 12) % 7


def divided(x: np.ndarray, size: int) -> np.ndarray:
    """As many equal parts as there are ranks."""
    return np.concatenate([x + k for k in range(size)])


def oracle(number: int, size: int) -> list[np.ndarray]:
    """What each rank holds in the end."""
    held = [begun_with(number, rank) for rank in range(size)]
    groups, calls = drawn(number, size)
    for g, name, op, root, _ in calls:
        ranks = groups[g]
        n, xs = len(ranks), [held[r] for r in ranks]
        parts = [divided(x, n).reshape(n, 12) for x in xs]
        total, whole = FOLD[op].reduce(xs), np.concatenate(xs)
        for k, rank in enumerate(ranks):
            held[rank] = shortened(
                {
                    "all_reduce": total,
                    "reduce": total if k == root else xs[k],
                    "broadcast": xs[root],
                    "all_gather": whole,
                    "gather": whole if k == root else xs[k],
                    "reduce_scatter": FOLD[op].reduce([p[k] for p in parts]),
                    "scatter": parts[root][k],
                    "all_to_all": np.concatenate([p[k] for p in parts]),
                    "ring": xs[k - 1],
                    "barrier": xs[k],
                }[name]
            )
    return held


def call(group, name: str, op: str, root: int, x: np.ndarray, wait: bool):
    """One call; the result, or with `wait=False` what waits for it."""
    if name == "ring":
        group.send(x, (group.rank + 1) % group.size)
        return group.recv(np.empty_like(x), (group.rank - 1) % group.size, wait=wait)
    if name in ("all_reduce", "reduce_scatter"):
        return getattr(group, name)(x, op, wait=wait)
    if name == "reduce":
        return group.reduce(x, root, op, wait=wait)
    if name in ("broadcast", "gather"):
        return getattr(group, name)(x, root, wait=wait)
    if name == "scatter":
        return group.scatter(np.empty(12), x, root, wait=wait)
    return getattr(group, name)(x, wait=wait)


def replay(number: int, groups: list, calls: list, rank: int) -> np.ndarray:
    """What this rank holds in the end, by the groups."""
    x = begun_with(number, rank)
    for g, name, op, root, begun in calls:
        group = groups[g]
        if group.rank < 0:
            continue
        if name == "barrier":
            group.barrier()
            x = shortened(x)
            continue
        split = name in ("reduce_scatter", "scatter", "all_to_all")
        given = divided(x, group.size) if split else x.copy()
        found = call(group, name, op, root, given, not begun)
        found = found.wait() if begun else found
        x = shortened(x if found is None else found)
    return x


def check(numbers) -> int:
    """Play sequences and compare; how many there were."""
    world, made, count = dist.get_group(), {}, 0
    for number in numbers:
        chosen, calls = drawn(number, world.size)
        for ranks in chosen:
            if tuple(ranks) not in made:
                made[tuple(ranks)] = dist.new_group(ranks)
        groups = [made[tuple(ranks)] for ranks in chosen]
        found = replay(number, groups, calls, world.rank)
        np.testing.assert_array_equal(found, oracle(number, world.size)[world.rank], str(number))
        count += 1
    return count


if __name__ == "__main__":
    dist.init_parallel_env()
    count = check(range(int(sys.argv[1])))
    if dist.get_rank() == 0:
        print(f"{count} sequences on {dist.get_world_size()} ranks")
