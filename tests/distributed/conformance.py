"""What every process group must do, whatever carries the bytes: run by each rank of one.

What is expected follows from the ranks' numbers alone: closed forms, no second engine.
"""

import ml_dtypes
import numpy as np
import pytest

import minipaddle as paddle

SHAPES = [(1,), (3, 2), (5, 7, 2), (4099,), (70_000,)]
DTYPES = ["float32", "float64", "int32", "int64", "uint8", "int8", "bool"]
HALVES = [np.dtype("float16"), np.dtype(ml_dtypes.bfloat16)]


def own(rank: int, shape, dtype="float32"):
    """What a rank gives: small whole numbers, exact in every dtype, different in every place."""
    size = int(np.prod(shape))
    return ((np.arange(size) + rank) % 5 + 1).reshape(shape).astype(dtype)


def every(group, shape, dtype="float32"):
    return [own(rank, shape, dtype) for rank in range(group.size)]


def same(found, expected):
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


def reductions(group):
    fold = {"sum": np.add, "max": np.maximum, "min": np.minimum, "prod": np.multiply}
    for shape in SHAPES:
        for name, combine in fold.items():
            expected = combine.reduce(every(group, shape))
            array = own(group.rank, shape)
            found = group.all_reduce(array, name)
            assert found is array
            same(found, expected)
            kept = own(group.rank, shape)
            root = group.size - 1
            same(group.reduce(kept, root, name), expected if group.rank == root else kept)
            same(kept, expected if group.rank == root else own(group.rank, shape))
    for dtype in [*DTYPES, *HALVES]:
        expected = np.maximum.reduce(every(group, (6,), dtype))
        same(group.all_reduce(own(group.rank, (6,), dtype), "max"), expected)
        if dtype != "bool":
            expected = sum(every(group, (6,), dtype)).astype(dtype)
            same(group.all_reduce(own(group.rank, (6,), dtype)), expected)
    mean = sum(every(group, (6,), "float64")) / group.size
    for dtype in ["float32", "float64", *HALVES]:
        found = group.all_reduce(own(group.rank, (6,), dtype), "avg")
        same(found, mean.astype("float32").astype(dtype) if dtype != "float64" else mean)


def halves_are_added_wide(group):
    """256 + 1 is 256 in bfloat16: a sum that is rounded at every rank loses the ones."""
    array = np.full(3, 256 if group.rank == 0 else 1, HALVES[1])
    found = group.all_reduce(array)
    same(found, np.full(3, 256 + group.size - 1, "float32").astype(HALVES[1]))


def copies(group):
    for dtype in [*DTYPES, "int16", *HALVES]:
        for shape in SHAPES:
            root = (group.size - 1) // 2
            array = own(group.rank, shape, dtype)
            same(group.broadcast(array, root), own(root, shape, dtype))
            whole = np.concatenate(every(group, shape, dtype))
            same(group.all_gather(own(group.rank, shape, dtype)), whole)
            found = group.gather(own(group.rank, shape, dtype), root)
            if group.rank == root:
                same(found, whole)
            else:
                assert found is None


def parts(group):
    n, r = group.size, group.rank
    for shape in SHAPES:
        whole = [own(k, (n * shape[0], *shape[1:])) for k in range(n)]
        rows = slice(r * shape[0], (r + 1) * shape[0])
        same(group.reduce_scatter(whole[r].copy()), sum(whole)[rows])
        out = np.empty(shape, "float32")
        assert group.scatter(out, whole[r] if r == n - 1 else None, n - 1) is out
        same(out, whole[n - 1][rows])
        same(group.all_to_all(whole[r]), np.concatenate([w[rows] for w in whole]))
    sent = [(r + k) % 3 for k in range(n)]  # to rank k; some send nothing
    given = np.concatenate([np.full((m, 2), 10 * r + k) for k, m in enumerate(sent)])
    received = [(k + r) % 3 for k in range(n)]
    expected = np.concatenate([np.full((m, 2), 10 * k + r) for k, m in enumerate(received)])
    same(group.all_to_all(given, sent, received), expected)
    sent = [n * [1], n * [0]][r > 0]  # rank 0 gives all, and the others have nothing to give
    found = group.all_to_all(np.full((sum(sent), 3), 7.0), sent, [1] + (n - 1) * [0])
    same(found, np.full((1, 3), 7.0))


def messages(group):
    """A ring both ways, messages of two tags, and all that send before they receive."""
    n, r = group.size, group.rank
    for shape in [(3,), (100_000,)]:
        for step in (1, n - 1):
            group.send(own(r, shape), (r + step) % n)
            got = np.empty(shape, "float32")
            assert group.recv(got, (r - step) % n) is got
            same(got, own((r - step) % n, shape))
    works = [group.recv(np.empty(2), (r + 1) % n, tag, wait=False) for tag in (1, 2)]
    for tag in (2, 1):
        group.send(np.full(2, 10.0 * r + tag), (r - 1) % n, tag)
    for tag, work in zip((1, 2), works):
        same(work.wait(), np.full(2, 10.0 * ((r + 1) % n) + tag))


def run_in_background(group):
    """Several at once, waited for in another order, while the rank computes."""
    r = group.rank
    arrays = [own(r, (m,)) for m in (10, 100_000, 1000)]
    works = [group.all_reduce(array, wait=False) for array in arrays]
    gathered = group.all_gather(own(r, (4,)), wait=False)
    for work in reversed(works):
        work.wait()
        assert work.is_completed()
    for array in arrays:
        same(array, sum(every(group, array.shape)))
    same(gathered.wait(), np.concatenate(every(group, (4,))))
    same(gathered.wait(), np.concatenate(every(group, (4,))))


def subgroups(group, new_group):
    """Evens, odds, all but the first, backwards-named; members talk while the others do not."""
    chosen = [list(range(start, group.size, 2)) for start in (0, 1)] + [list(range(1, group.size))]
    for ranks in filter(None, chosen):
        sub = new_group(ranks)
        if group.rank not in ranks:
            assert sub.rank == -1
            continue
        assert (sub.size, sub.ranks, sub.rank) == (len(ranks), ranks, ranks.index(group.rank))
        total = sub.all_reduce(np.array([group.rank], "int64"))
        same(total, np.array([sum(ranks)]))
        same(sub.broadcast(np.array([group.rank]), sub.size - 1), np.array([ranks[-1]]))


def mistakes(group):
    """What is refused in every rank alike, before anything is sent."""
    x = np.ones(group.size * 2 + 1, "float32")
    for call, error in [
        (lambda: group.all_reduce(x, "mean"), ValueError),
        (lambda: group.all_reduce(np.ones(2, "int32"), "avg"), TypeError),
        (lambda: group.all_reduce(np.ones(2, "bool")), TypeError),
        (lambda: group.broadcast(x, group.size), ValueError),
        (lambda: group.recv(x, -1), ValueError),
        (lambda: group.all_to_all(x, [1] * group.size), ValueError),
        (lambda: group.all_to_all(x, [1] * (group.size + 1)), ValueError),
        *([(lambda: group.reduce_scatter(x), ValueError)] if group.size > 1 else []),
    ]:
        try:
            call()
        except error:
            continue
        raise AssertionError(f"no {error.__name__}")


def conformance(group, new_group) -> int:
    """All of it; the number of collectives this rank came to is the same in all."""
    group.barrier()
    reductions(group)
    halves_are_added_wide(group)
    copies(group)
    parts(group)
    messages(group)
    run_in_background(group)
    subgroups(group, new_group)
    mistakes(group)
    group.barrier()
    return group.size


# ---- ranks that disagree ---------------------------------------------------------------------

ASKED = {  # what the last rank asks for, and what all others do
    "shape": (lambda g: g.all_reduce(np.ones(4, "float32")), "all_reduce(float32[4], op=sum)"),
    "dtype": (lambda g: g.all_reduce(np.ones(3, "int32")), "all_reduce(int32[3], op=sum)"),
    "op": (lambda g: g.all_reduce(np.ones(3, "float32"), "max"), "all_reduce(float32[3], op=max)"),
    "name": (lambda g: g.broadcast(np.ones(3, "float32")), "broadcast(float32[3], root=0)"),
    "large": (lambda g: g.all_reduce(np.ones(10**6, "float32")), "float32[1000000], op=sum"),
    "barrier": (lambda g: g.barrier(), "barrier()"),
}


def disagreements(new_group) -> int:
    """All ranks are told what each asked for; what is under way at that time hinders nobody."""
    for ask, message in ASKED.values():
        group = new_group()
        last = group.rank == group.size - 1
        works = [group.all_reduce(np.ones(2), wait=False)]
        with pytest.raises(ValueError, match="do not ask for the same") as error:
            ask(group) if last else group.all_reduce(np.ones(3, "float32"))
        lines = str(error.value).splitlines()[1:]
        assert lines[0] == "  rank 0: all_reduce(float32[3], op=sum)"
        assert f"rank {group.size - 1}: " in lines[-1]
        assert message in lines[-1]
        assert works[0].wait().tolist() == [group.size] * 2
    group = new_group()
    with pytest.raises(ValueError, match="do not ask for the same") as error:
        group.all_to_all(np.ones(group.size + 1), [2] + [1] * (group.size - 1))
    assert "sent=" in str(error.value)
    return len(ASKED)


def named_nan(group) -> str:
    """With the option, the rank that brings NaN is named to all; a number is no reason."""
    group.check_nan = True
    array = np.full(3, 1.0 + group.rank, "float32")
    if group.rank == 1:
        array[2] = np.nan
    with pytest.raises(ValueError, match=r"all_reduce of float32\[3\]: NaN comes from rank 1\n"):
        group.all_reduce(array, "avg")
    assert group.all_reduce(np.ones(2, "float32")).tolist() == [group.size] * 2
    return "named"


def models_that_differ(rank: int) -> str:
    """The parameter is named, whatever carries the bytes."""
    net = paddle.nn.Sequential(paddle.nn.Linear(3, 4), paddle.nn.Linear(4, 2 + rank))
    expected = r"1\.weight: float32\[4, 2\] in rank 0, float32\[4, 3\] in rank 1\n  1\.bias"
    with pytest.raises(ValueError, match=expected):
        paddle.DataParallel(net)
    return "named"
