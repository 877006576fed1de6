"""Checks of 16_data_parallel/buckets."""

from itertools import accumulate

from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.distributed as dist
from minipaddle.engine.passes.async_collectives import async_collectives
from minipaddle.ir.parser import parse
from minipaddle.learn import Exercise, expect, expect_that

exercise = Exercise(
    title="Buckets: which gradients travel together",
    level="medium",
    minutes=30,
    slots={"async_collectives.assign_buckets": "assign_buckets"},
    hints=(
        "What must you remember of the bucket you are filling? And of which gradient can you tell, "
        "before you begin, that it opens a bucket of its own?",
        "First walk from the end to find where the last bucket begins; then from the start. An "
        "empty list has no last element: the first gradient always opens a bucket.",
        "fresh = the last place; total = 0\n"
        "for k from the end: total += sizes[k]; stop if it is over `last` or limits[k]; fresh = k\n"
        "for k, size: join if there is a bucket, k is not fresh, kinds agree, and it fits;\n"
        "    otherwise open one",
    ),
    wrong={
        "one bucket for all": (
            "k > 0 and k != fresh and (kinds[k - 1] == kinds[k]) and (filled + size <= "
            "limits[k]) → k > 0 and k != fresh and (kinds[k - 1] == kinds[k])"
        ),
        "each alone": "if joins: → if joins and False:",
        "a bucket may be over its limit by one gradient": "filled + size → filled",
        "a full bucket is over its limit": "filled + size <= limits[k] → filled + size < limits[k]",
        "kinds mixed": (
            "k > 0 and k != fresh and (kinds[k - 1] == kinds[k]) and (filled + size <= "
            "limits[k]) → k > 0 and k != fresh and (filled + size <= limits[k])"
        ),
        "no bucket of its own for the last ones": (
            "k > 0 and k != fresh and (kinds[k - 1] == kinds[k]) and (filled + size <= "
            "limits[k]) → k > 0 and kinds[k - 1] == kinds[k] and (filled + size <= limits[k])"
        ),
        "the size of the bucket before is kept": "filled = size → filled += size",
        "the limit of the last bucket forgotten": (
            "total > last or total > limits[k] → total > last"
        ),
        "going back past a large one": "break → continue",
        "the last one alone, however small": "fresh = k → pass",
    },
    unkillable={
        f"buckets, filled = ([], 0) → buckets, filled = ([], {k})": (
            "the first gradient opens a bucket, and says how full it is"
        )
        for k in (-1, 1)
    }
    | {
        "for k in range(len(sizes) - 1, -1, -1): → for k in range(len(sizes) - 1, -2, -1):": (
            "a walk that has reached the first gradient may go on: it opens a bucket anyway"
        )
    },
)


def check(found, sizes):
    flat = [k for bucket in found for k in bucket]
    expect(flat, list(range(len(sizes))), given={"sizes": sizes}, why="each once, in their order")


@exercise.example
def in_the_task(yours):
    """[4, 4, 4, 1, 1] with 9 in a bucket and 2 in the last one."""
    got = yours.assign_buckets([4, 4, 4, 1, 1], ["a"] * 5, [9] * 5, 2)
    expect(got, [[0, 1], [2], [3, 4]])


@exercise.example
def small_cases(yours):
    """Limits that are just reached, kinds, large ones, and what is made last."""
    for sizes, kinds, limit, last, expected in (
        ([7], "a", 9, 2, [[0]]),
        ([1], "a", 9, 2, [[0]]),
        ([3, 3, 3, 3, 5], "aaaaa", 6, 4, [[0, 1], [2, 3], [4]]),
        ([3, 3, 9, 3, 2], "aaaaa", 6, 2, [[0, 1], [2], [3], [4]]),
        ([1, 1, 1, 1], "aabb", 9, 1, [[0, 1], [2], [3]]),
        ([1, 1, 1, 1], "abab", 9, 1, [[0], [1], [2], [3]]),
        ([1, 1, 1], "aaa", 9, 3, [[0, 1, 2]]),
        ([1, 1, 1], "aaa", 0, 3, [[0], [1], [2]]),
        ([5, 1, 1, 1], "aaaa", 9, 2, [[0, 1], [2, 3]]),
        ([2, 2, 2, 2], "aaaa", 3, 9, [[0], [1], [2], [3]]),
        ([1, 4, 1, 1], "aaaa", 9, 2, [[0, 1], [2, 3]]),
        ([1, 1, 5, 1], "aaaa", 9, 3, [[0, 1, 2], [3]]),
        ([2, 2, 1, 1], "aabb", 9, 4, [[0], [1], [2, 3]]),
        ([1, 2, 2], "aaa", 4, 4, [[0], [1, 2]]),
    ):
        got = yours.assign_buckets(sizes, list(kinds), [limit] * len(sizes), last)
        expect(got, expected, given={"sizes": sizes, "kinds": kinds, "limit": limit, "last": last})
    got = yours.assign_buckets([1, 1, 1, 1], list("aaaa"), [9, 1, 9, 9], 1)
    expect(got, [[0], [1, 2], [3]], given="the second one has a limit of 1, the others of 9")
    got = yours.assign_buckets([1, 1, 1], list("aaa"), [9, 1, 9], 9)
    expect(got, [[0], [1], [2]], given="the second one has a limit of 1, the others of 9")
    got = yours.assign_buckets([2, 2, 2, 2], list("aaaa"), [9, 9, 9, 3], 6)
    expect(got, [[0], [1, 2], [3]], given="the last one has a limit of 3, the others of 9")


@exercise.property(
    sizes=st.lists(st.integers(0, 6), min_size=1, max_size=8),
    letters=st.lists(st.sampled_from("ab"), min_size=8, max_size=8),
    limits=st.lists(st.integers(0, 12), min_size=8, max_size=8),
    last=st.integers(0, 8),
)
def as_the_rules_say(yours, sizes, letters, limits, last):
    """Every place where two buckets meet has a reason, and every place inside has none."""
    n = len(sizes)
    kinds, limits = letters[:n], limits[:n]
    given = {"sizes": sizes, "kinds": kinds, "limits": limits, "last": last}
    found = yours.assign_buckets(sizes, kinds, limits, last)
    check(found, sizes)
    ends = [*accumulate(sizes[::-1])]
    within = [t <= last and t <= limits[n - 1 - k] for k, t in enumerate(ends)]
    many = next((k for k, fits in enumerate(within) if not fits), n)
    fresh = n - max(many, 1)
    start = 0
    for k in range(1, n):
        full = sum(sizes[start : k + 1]) > limits[k]
        apart = k == fresh or kinds[k] != kinds[k - 1] or full
        expect(any(bucket[0] == k for bucket in found), apart, given=given | {"gradient": k})
        start = k if apart else start


@exercise.example
def in_a_program(yours):
    """Three gradients of 1 MB and a small one: with 2 MB in a bucket two travel together."""
    lines = []
    for k, n in enumerate((1 << 18, 1 << 18, 1 << 18, 16)):
        lines += [
            f"v{2 * k + 1} = full(shape=({n},), value=1.0, dtype=float32) : float32[{n}]",
            f"v{2 * k + 2} = all_reduce(v{2 * k + 1}, op='avg', group=0, "
            f"early=(({k},), {4 * n}, 2.0,)) : float32[{n}]",
        ]
    program = parse("program p() {\n" + "\n".join(lines) + "\nreturn v2, v4, v6, v8\n}")
    with exercise.plugged(yours):
        found = async_collectives(program)
    sent = [len(r.inputs) for r in found.records if r.op.name == "start_all_reduce"]
    expect(sent, [2, 1, 1], given=str(program))


@exercise.example
def ranks_train_with_them(yours):
    """A step on two ranks, its gradients in your buckets: both have the same weights."""

    def rank():
        paddle.seed(1)
        net = paddle.DataParallel(paddle.nn.Linear(4, 3))
        opt = paddle.optimizer.SGD(0.1, parameters=net.parameters())

        def step(x):
            (net(x) ** 2).mean().backward()
            opt.step()
            opt.clear_grad()

        paddle.jit.to_static(step)(paddle.ones([2, 4]) * (1 + dist.get_rank()))
        return [p.numpy().tolist() for p in net.parameters()]

    with exercise.plugged(yours):
        a, b = dist.spawn(rank, nprocs=2, timeout=20.0).results
    expect_that(a == b, "the same weights on both ranks", got=(a, b))
