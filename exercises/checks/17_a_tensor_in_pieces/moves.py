"""Checks of 17_a_tensor_in_pieces/moves."""

from fractions import Fraction
from itertools import chain, product
from types import SimpleNamespace

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.distributed as dist
from minipaddle.distributed import Partial, Replicate, Shard
from minipaddle.engine.sharding import moves as engine
from minipaddle.learn import Exercise, expect, expect_that

exercise = Exercise(
    title="Moves: which collective brings a tensor where",
    level="hard",
    minutes=40,
    before=("17_a_tensor_in_pieces/pieces", "16_data_parallel/ring"),
    slots={"sharding.cost_of_move": "cost_of_move", "sharding.move": "move"},
    hints=(
        "What does a rank lack of what it is to have: of the whole, if it has a piece; of its new "
        "piece, if it has a piece along another axis? And why does a slice receive nothing?",
        "Write the table as conditions on the old placement, then on the new one. All cuts are of "
        "one shape: the tensor as the ranks along our axis have it together. Two axes of the "
        "mesh may cut the same axis of the tensor, so this is not the shape of the whole.",
        "cost: nothing from a whole; n (p-1)/p; of that 1/p between pieces, twice that for an "
        "all_reduce\n"
        "move: whole = local_shape(shape, now with REPLICATE on axis, view.shape, view.place)\n"
        "    pieces(p) = cut(whole[p.dim], parts, j, p.unit) for each position j\n"
        "    whole → keep_term | part(x, new.dim, *pieces(new)[k])\n"
        "    terms → reduce_all | reduce_scatter; pieces → all_gather | all_to_all",
    ),
    wrong={
        "a gather is free": "Fraction(nbytes * (parts - 1), parts) → Fraction(0)",
        "all of it, from everybody": "Fraction(nbytes * (parts - 1), parts) → nbytes * (parts - 1)",
        "rounded": "Fraction(nbytes * (parts - 1), parts) → nbytes * (parts - 1) // parts",
        "a slice that costs": "if before.is_replicated(): → if False:",
        "pieces of pieces as dear as a gather": "return lacking / parts → return lacking",
        "an all-reduce as cheap as a reduce-scatter": "2 * lacking → lacking",
        "a reduce-scatter as dear as an all-reduce": (
            "2 * lacking if before.is_partial() and after.is_replicated() else lacking → "
            "2 * lacking if before.is_partial() else lacking"
        ),
        "the cuts of the whole tensor": (
            "whole = local_shape(shape, joined, view.shape, view.place) → whole = shape"
        ),
        "the cuts of the piece": (
            "whole = local_shape(shape, joined, view.shape, view.place) → "
            "whole = local_shape(shape, now, view.shape, view.place)"
        ),
        "the first axis of the mesh": (
            "old, parts, k = (now[axis], view.shape[axis], view.place[axis]) → "
            "old, parts, k = (now[axis], view.shape[0], view.place[0])"
        ),
        "the group of the first axis": (
            "along(view, axis, x, shape, time) → along(view, 0, x, shape, time)"
        ),
        "always a sum": "reduce_all(x, old.op, group) → reduce_all(x, 'sum', group)",
        "a sum scattered, whatever is meant": (
            "reduce_scatter(x, old.op, new.dim, _pieces(new), k, group) → "
            "reduce_scatter(x, 'sum', new.dim, _pieces(new), k, group)"
        ),
        "a whole in each rank as its term": "keep_term(x, k) → x",
        "blocks forgotten": "cut(whole[p.dim], parts, j, p.unit) → cut(whole[p.dim], parts, j)",
        "an all-reduce and a slice": (
            "return reduce_scatter(x, old.op, new.dim, _pieces(new), k, group) → "
            "return part(reduce_all(x, old.op, group), new.dim, *_pieces(new)[k])"
        ),
        "a gather and a slice": (
            "return all_to_all(x, old.dim, rows, new.dim, _pieces(new), k, group) → "
            "return part(all_gather(x, old.dim, rows, group), new.dim, *_pieces(new)[k])"
        ),
        "at no time": (
            "along(view, axis, x, shape, time) → along(view, axis, x, shape, None)"
        ),
        "the bytes of the piece": (
            "along(view, axis, x, shape, time) → along(view, axis, x, x.spec.shape, time)"
        ),
    },
    unkillable={"move: right only for positive axes": "axes of a mesh are 0 and more"},
)  # fmt: skip

R, P = Replicate(), Partial()


def received(n: int, parts: int, before, after) -> Fraction:
    """What a rank receives of an n by n tensor of single bytes, by counting elements; sums travel
    round a ring: a part of the tensor comes to a rank for each other rank, and comes once more if
    all get all of it.
    """
    rows, columns = ({r for r in range(n * n) if a(r) * parts // n == 0} for a in
                     (lambda r: r // n, lambda r: r % n))  # fmt: skip
    held = {0: rows, 1: columns}
    if before.is_replicated():
        return Fraction(0)
    if before.is_partial():
        ring = sum(len(rows) for _ in range(parts - 1))
        return Fraction(ring * (2 if after.is_replicated() else 1))
    wanted = {*range(n * n)} if after.is_replicated() else held[after.dim]
    return Fraction(len(wanted - held[before.dim]))


@exercise.example
def bytes_by_counting(yours):
    """Of a square tensor on 1 to 6 ranks: what a rank lacks, and what a ring brings."""
    pairs = [(R, P), (R, Shard(0)), (Shard(0), R), (Shard(1), R), (Shard(0), Shard(1)),
             (Shard(1), Shard(0)), (P, R), (P, Shard(1)), (Partial("max"), R)]  # fmt: skip
    for parts, (before, after) in product(range(1, 7), pairs):
        found = yours.cost_of_move(3600, parts, before, after)
        given = {"parts": parts, "before": before, "after": after}
        expect_that(isinstance(found, int | Fraction), "an exact number", given=given, got=found)
        expected = received(60, parts, before, after)
        expect_that(found == expected, f"{expected} bytes", given=given, got=found)
    found = yours.cost_of_move(Fraction(10, 3), 4, Shard(0), R)
    expect_that(found == Fraction(5, 2), "5/2 of a byte", given="10/3 bytes, 4 ranks", got=found)


def pieces(rows: list, parts: int, unit: int) -> list[list]:
    """Rows dealt to ranks block by block."""
    blocks = [rows[a : a + unit] for a in range(0, len(rows), unit)]
    each = -(-len(blocks) // parts)
    return [[*chain(*blocks[each * k : each * (k + 1)])] for k in range(parts)]


def held(whole, ways, mesh, place):
    """The array of a rank, really cut; of terms, a share that depends on the rank."""
    index = [[*range(n)] for n in whole.shape]
    share = 1.0
    for way, parts, k in zip(ways, mesh, place):
        if way.is_shard():
            index[way.dim] = pieces(index[way.dim], parts, way.unit)[k]
        elif way.is_partial() and way.op == "sum":  # 1, 2, … of what they are together
            share *= (k + 1) / (parts * (parts + 1) / 2)
        elif way.is_partial() and way.op == "avg":
            share *= (k + 1) / ((parts + 1) / 2)
        elif way.is_partial():  # the largest in the last rank
            share *= (k + 1) / parts
    return share * whole[np.ix_(*index)]


def view_of_rank(mesh):
    """The view of a rank of a mesh, and its coordinates."""
    from minipaddle.distributed.tensors.dist_tensor import view_of

    view = view_of(dist.ProcessMesh(np.arange(np.prod(mesh)).reshape(mesh).tolist()))
    return view, view.place


def on_rank(yours, whole, mesh, chains):
    """What a rank has after each move: (now, axis, new, its array)."""
    view, place = view_of_rank(mesh)
    found = []
    for now, axis, new in chains:
        x = paddle.to_tensor(held(whole, now, mesh, place))
        found.append(yours.move(x, whole.shape, now, axis, new, view).numpy())
    return found


def check(yours, shape, mesh, chains, dtype="float64", largest=None):
    """Moves on ranks that are threads, against arrays really cut; the numbers are small."""
    whole = 1e-9 * np.arange(1, np.prod(shape) + 1, dtype=dtype).reshape(shape)
    whole.flat[-1] = largest or whole.flat[-1]
    results = dist.spawn(on_rank, args=(yours, whole, mesh, chains), nprocs=int(np.prod(mesh)),
                         timeout=20.0).results  # fmt: skip
    for rank, place in enumerate(product(*map(range, mesh))):
        for (now, axis, new), got in zip(chains, results[rank]):
            after = (*now[:axis], new, *now[axis + 1 :])
            expected = held(whole, after, mesh, place)
            if new.is_partial():  # a whole becomes a term: all of it in the first rank
                before = held(whole, now, mesh, place)
                expected = before if place[axis] == 0 else np.zeros_like(before)
            given = {"shape": shape, "mesh": mesh, "now": now, "axis": axis, "new": new}
            given["rank"] = rank
            expect(str(got.dtype), dtype, given=given, why="dtype")
            expect(got, expected, given=given, rtol=1e-12 if dtype == "float64" else 1e-6, atol=0)


AVG, MAX = Partial("avg"), Partial("max")
ONE = [(R, P), (R, Shard(0)), (R, Shard(1)), (R, Shard(1, 2)), (Shard(0), R), (Shard(1), R),
       (Shard(1, 2), R), (Shard(0), Shard(1)), (Shard(1, 2), Shard(0)), (Shard(0), Shard(1, 2)),
       (P, R), (P, Shard(0)), (P, Shard(1)), (P, Shard(1, 2)), (AVG, R), (AVG, Shard(1)), (MAX, R),
       (MAX, Shard(0))]  # fmt: skip


@exercise.example
def along_one_axis(yours):
    """Every line of the table, on two and three ranks, of 5 rows and 6 columns."""
    for n in (2, 3):
        check(yours, (5, 6), (n,), [((now,), 0, new) for now, new in ONE])
    check(yours, (2, 3), (4,), [((now,), 0, new) for now, new in ONE])  # pieces without rows
    check(yours, (4,), (2,), [((Shard(0),), 0, R), ((P,), 0, Shard(0)), ((R,), 0, Shard(0))])


@exercise.example
def other_arrays(yours):
    """float32, an infinity, many elements, many axes."""
    some = [(R, Shard(0)), (Shard(0), R), (Shard(0), Shard(1)), (P, R), (P, Shard(1))]
    chains = [((now,), 0, new) for now, new in some]
    check(yours, (13, 11), (2,), chains, dtype="float32")
    check(yours, (3, 4), (2,), chains, largest=np.inf)
    ones, mesh = (R,) * 7, (1,) * 7 + (2,)
    check(yours, (1,) * 7 + (3, 2), mesh, [((*ones, Shard(7)), 7, R), ((*ones, R), 7, Shard(8))])


@exercise.example
def along_one_of_two(yours):
    """A mesh of 2 by 3: pieces along the other axis of the mesh stay, and are what is cut."""
    others = [P, Shard(0), Shard(1)]
    chains = []
    for other, (now, new) in product(others, ONE):
        dims = {p.dim for p in (now, new) if p.is_shard()}
        chains.append(((other, now), 1, new))
        if not other.is_shard() or other.dim not in dims:
            chains.append(((now, other), 0, new))
    check(yours, (7, 6), (2, 3), chains)


def names_of(before, after, mesh=(2, 2), shape=(4, 4)):
    """The collectives of a program that moves a tensor, and what they say."""
    m = dist.ProcessMesh(np.arange(np.prod(mesh)).reshape(mesh).tolist())
    step = paddle.jit.to_static(lambda x: dist.reshard(x, m, list(after)))
    with paddle.no_grad():
        step(dist.shard_tensor(paddle.ones(list(shape)), m, list(before)))
    (key, (part, _)) = next(iter(step.concrete_program.executables.parts.items()))
    return [(r.op.name, key[1].groups.index(r.attrs["group"]), r.attrs["early"][1])
            for r in part.records if "group" in r.attrs]  # fmt: skip


@exercise.example
def the_collectives_of_a_program(yours):
    """One for each move, in the group of its axis, with the bytes of the whole."""
    for before, after, expected in (
        ([R, P], [R, R], [("all_reduce", 1)]),
        ([P, R], [Shard(1), R], [("reduce_scatter", 0)]),
        ([Shard(0), R], [R, R], [("all_gather", 0)]),
        ([R, Shard(0)], [R, Shard(1)], [("all_to_all", 1)]),
        ([R, R], [Shard(0), Shard(1)], []),
        ([MAX, R], [R, R], [("all_fold", 0)]),
        ([P, Shard(0)], [R, Shard(0)], [("all_reduce", 0)]),
    ):
        with exercise.plugged(yours):
            found = dist.spawn(names_of, args=(before, after), nprocs=4, timeout=20.0).results[0]
        given = {"before": before, "after": after}
        expect([f[:2] for f in found], expected, given=given, why="collectives, axes of the mesh")
        expect([f[2] for f in found], [64] * len(expected), given=given, why="bytes of the whole")


@exercise.example
def when_it_starts(yours):
    """`time` goes into "early"."""
    seen, before = [], engine.OPS["all_reduce"]
    engine.OPS["all_reduce"] = lambda x, **attrs: seen.append(attrs) or x
    try:
        x = SimpleNamespace(spec=SimpleNamespace(shape=(2,), dtype=np.dtype("float64"), ndim=1))
        view = SimpleNamespace(shape=(1, 2), place=(0, 1), groups=(7, 9))
        yours.move(x, (2,), (R, P), 1, R, view, (5, 1, 0))
        yours.move(x, (2,), (R, P), 1, R, view)
    finally:
        engine.OPS["all_reduce"] = before
    found = [(attrs["group"], *attrs["early"][:2], attrs["op"]) for attrs in seen]
    expected = [(9, time, 16, "sum") for time in ((5, 1, 0), (0, 0, 0))]
    expect(found, expected, given="an all_reduce of float64[2], time (5, 1, 0) and none")


@exercise.property(
    seed=st.integers(0, 9999), ranks=st.integers(1, 4), rows=st.integers(1, 9), examples=6
)
def chains_of_moves(yours, seed, ranks, rows):
    """From one placement to another through others: the engine's chains, on your moves."""
    draw = np.random.default_rng(seed)
    shape = (rows, int(draw.integers(1, 9)))
    ways = [ONE[draw.integers(len(ONE))][1] for _ in range(4)]
    ways = [R, *(w for w in ways if not w.is_partial()), R]
    whole = draw.normal(size=shape)

    def rank():
        mesh = dist.ProcessMesh([*range(ranks)])
        x = dist.shard_tensor(paddle.to_tensor(whole), mesh, [R])
        for way in ways:
            x = dist.reshard(x, mesh, [way])
        return x._local_value().numpy()

    with exercise.plugged(yours):
        for got in dist.spawn(rank, nprocs=ranks, timeout=20.0).results:
            expect(got, whole, given={"shape": shape, "ranks": ranks, "through": ways})
