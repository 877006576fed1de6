"""The data-parallel pass: against training on the joined batch, and what it makes of programs."""

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle.distributed import spawn
from minipaddle.distributed.collectives.operators import start_all_reduce
from minipaddle.engine.core.slots import plugged
from minipaddle.engine.passes import async_collectives as overlap
from minipaddle.engine.passes.manager import optimized
from minipaddle.ir.parser import parse
from tests.distributed import programs

pytestmark = pytest.mark.sweep(one_in=4)


def trained(kind, step_of, *, ranks, bucket_mb=25, backend="interpreter", strategy=None):
    """For each rank its losses, its weights, and the function it ran."""
    given = programs.batches(kind)

    def rank():
        paddle.seed(3)
        net = programs.NETS[kind]()
        net.eval()  # batch norm by its running statistics: the same of any batch
        if ranks > 1:
            paddle.DataParallel(net, comm_buffer_size=bucket_mb)
        step = step_of(net, programs.optimizer(kind, net))
        step = paddle.jit.to_static(step, backend=backend, build_strategy=strategy)
        me, losses = paddle.distributed.get_rank(), []
        for batch in given:
            mine = [paddle.to_tensor(np.array_split(a, ranks)[me]) for a in batch]
            losses.append(step(*mine).item())
        return losses, [p.numpy() for p in net.parameters()], step

    return spawn(rank, nprocs=ranks).results


def executed(step):
    """The program that ran."""
    executables = step.concrete_program.executables
    made = [*executables.compiled.values()]
    return made[-1].program if made else [*executables.interpreted.values()][-1]


def ops(program):
    return [r.op.name for r in program.records]


def count(program, name):
    return ops(program).count(name)


EVERY = [
    ("mlp", programs.plain), ("mlp", programs.accumulating), ("mlp", programs.twice),
    ("gpt", programs.plain), ("resnet", programs.plain),
]  # fmt: skip
CASES = [("interpreter", ranks, *case) for case in EVERY for ranks in (2, 4)]
CASES += [("native", 2, "mlp", programs.twice), ("native", 2, "gpt", programs.plain)]
CASES += [("native", 4, "resnet", programs.plain)]


@pytest.mark.parametrize(
    ("backend", "ranks", "kind", "step_of"), CASES, ids=lambda x: getattr(x, "__name__", x)
)
def test_ranks_train_as_one_process_does_on_the_joined_batch(backend, ranks, kind, step_of):
    ((losses, weights, _),) = trained(kind, step_of, ranks=1, backend="interpreter")
    bucket_mb = 25 if ranks == 2 else 0.01
    found = trained(kind, step_of, ranks=ranks, bucket_mb=bucket_mb, backend=backend)
    mean = np.mean([own for own, _, _ in found], 0)
    np.testing.assert_allclose(mean, losses, rtol=2e-5, atol=1e-6)
    for _, own, step in found:
        for a, b, first in zip(own, weights, found[0][1], strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=2e-6)
            np.testing.assert_array_equal(a, first)  # bit by bit
        assert bool(step.executables) == (backend == "native")
        if step_of is not programs.twice:  # whose first update comes before other collectives
            assert not any(e.states_at_risk for e in step.executables), "a step copies states"
        assert count(executed(step), "start_all_reduce") >= (1 if ranks == 2 else 2)


# ---- what the pass makes of a program ----------------------------------------------------------

LAYERS = """program p(x: float32[512], y: float32[512], w: float32[512]) {
  state a: float32[512]
  state b: float32[512]
  v1 = multiply(x, a) : float32[512]
  v2 = multiply(v1, b) : float32[512]
  v3 = tanh(v2) : float32[512]
  v4 = all_reduce(v3, op='avg', group=0, early=((4,), 2048, 25,)) : float32[512]
  v5 = exp(v2) : float32[512]
  v6 = subtract(b, v4) : float32[512]
  v7 = exp(v5) : float32[512]
  v8 = multiply(v7, x) : float32[512]
  v9 = all_reduce(v8, op='avg', group=0, early=((9,), 2048, 25,)) : float32[512]
  v10 = subtract(a, v9) : float32[512]
  v11 = add(v7, v5) : float32[512]
  update a = v10
  update b = v6
  return v11
}"""


def test_a_bucket_leaves_when_it_is_full_and_states_are_written_when_all_have_come():
    found = overlap.async_collectives(parse(LAYERS), fuse_all_reduce_ops=False)
    assert ops(found) == [
        "multiply", "multiply", "tanh", "start_all_reduce", "exp", "exp", "multiply",
        "start_all_reduce", "add", "finish_all_reduce", "item", "finish_all_reduce", "item",
        "subtract", "subtract",
    ]  # fmt: skip


def test_all_that_is_small_travels_together():
    found = overlap.async_collectives(parse(LAYERS))
    assert ops(found)[-6:] == ["add", "finish_all_reduce", *["item"] * 2, *["subtract"] * 2]
    (start,) = (r for r in found.records if r.op is start_all_reduce)
    assert start.attrs == {"op": "avg", "group": 0}
    assert [r.op.name for r in start.inputs] == ["tanh", "multiply"]


def test_without_overlap_nothing_stands_between_start_and_finish():
    found = ops(overlap.async_collectives(parse(LAYERS), fuse_all_reduce_ops=False, overlap=False))
    places = [k for k, name in enumerate(found) if name == "start_all_reduce"]
    assert [found[k + 1] for k in places] == ["finish_all_reduce"] * 2


def test_a_program_without_collectives_stays():
    program = parse("program p(x: float32[2]) { v1 = exp(x) : float32[2] return v1 }")
    assert overlap.async_collectives(program) is program


def chain(*sizes, bucket_mb=1.0, dtypes=None):
    """A program whose gradients have these sizes in elements, made in this order."""
    dtypes = dtypes or ["float32"] * len(sizes)
    lines, results = [], []
    for k, (n, dtype) in enumerate(zip(sizes, dtypes, strict=True)):
        lines.append(f"v{2 * k + 1} = full(shape=({n},), value=1.0, dtype={dtype}) : {dtype}[{n}]")
        lines.append(
            f"v{2 * k + 2} = all_reduce(v{2 * k + 1}, op='avg', group=0, "
            f"early=(({k},), {np.dtype(dtype).itemsize * n}, {bucket_mb},)) : {dtype}[{n}]"
        )
        results.append(f"v{2 * k + 2}")
    return parse("program p() {\n" + "\n".join(lines) + f"\nreturn {', '.join(results)}\n}}")


def shares(program, bucket_mb=None):
    """The collectives in each bucket, by their numbers, as `assign_buckets` makes them."""
    order = {r: k for k, r in enumerate(filter(overlap.travels, program.records))}
    return [[order[m] for m in b.members] for b in overlap.buckets(program, bucket_mb)]


K = 1 << 18  # the float32 in 1 MB


@pytest.mark.parametrize(
    ("sizes", "bucket_mb", "expected"),
    [
        ((K, K, K, K), 2.0, [[0, 1], [2], [3]]),  # the last MB has a bucket of its own
        ((K, K, K, K // 2, K // 2), 3.0, [[0, 1, 2], [3, 4]]),
        ((K // 2, K // 2, K // 2, K), 1.0, [[0, 1], [2], [3]]),
        ((5 * K, K, K), 1.0, [[0], [1], [2]]),  # too large for any bucket: alone
        ((10, 20, 30), 25.0, [[0, 1, 2]]),
        ((10, 20, 30), 0.0, [[0], [1], [2]]),
        ((7,), 25.0, [[0]]),
        ((K, 9 * K), 25.0, [[0], [1]]),  # what is made last is large: it leaves alone
        ((9 * K, 9 * K, 9 * K, 10, 10), 25.0, [[0, 1], [2], [3, 4]]),
    ],
)
def test_buckets(sizes, bucket_mb, expected):
    assert shares(chain(*sizes, bucket_mb=bucket_mb)) == expected
    assert shares(chain(*sizes, bucket_mb=99.0), bucket_mb) == expected


def test_a_bucket_has_one_dtype():
    found = shares(chain(4, 4, 4, dtypes=["float32", "float64", "float64"], bucket_mb=9.0))
    assert found == [[0], [1, 2]]


def test_a_gradient_made_of_an_average_travels_later():
    program = parse("""program p(x: float32[4]) {
      v1 = all_reduce(x, op='avg', group=0, early=((1,), 16, 25,)) : float32[4]
      v2 = exp(v1) : float32[4]
      v3 = all_reduce(v2, op='avg', group=0, early=((3,), 16, 25,)) : float32[4]
      return v3
    }""")
    assert shares(program) == [[0], [1]]
    assert ops(overlap.async_collectives(program)) == [
        "start_all_reduce", "finish_all_reduce", "item", "exp", "start_all_reduce",
        "finish_all_reduce", "item",
    ]  # fmt: skip


def test_what_leads_to_a_gradient_alone_comes_as_soon_as_it_can():
    program = parse("""program p(x: float32[4]) {
      v1 = exp(x) : float32[4]
      v2 = tanh(v1) : float32[4]
      v3 = tanh(v2) : float32[4]
      v4 = multiply(v1, x) : float32[4]
      v5 = add(v4, x) : float32[4]
      v6 = all_reduce(v5, op='avg', group=0, early=((6,), 16, 25,)) : float32[4]
      return v6, v3
    }""")
    assert [r.op.name for r in overlap.hoist_gradients(program)] == [
        "exp", "multiply", "add", "all_reduce", "tanh", "tanh",
    ]  # fmt: skip


def test_what_leads_to_many_gradients_keeps_its_place():
    """Of a backward that an order for memory has turned about: the walk back goes on, and each
    weight's gradient comes as soon as its layer's cotangent is there."""
    program = parse("""program p(g: float32[4], a: float32[4], b: float32[4], c: float32[4]) {
      v1 = multiply(g, c) : float32[4]
      v2 = multiply(v1, b) : float32[4]
      v3 = multiply(v2, a) : float32[4]
      v4 = exp(v3) : float32[4]
      v5 = tanh(v2) : float32[4]
      v6 = tanh(v1) : float32[4]
      v7 = sin(g) : float32[4]
      v8 = all_reduce(v4, op='avg', group=0, early=((8,), 16, 25,)) : float32[4]
      v9 = all_reduce(v5, op='avg', group=0, early=((9,), 16, 25,)) : float32[4]
      v10 = all_reduce(v6, op='avg', group=0, early=((10,), 16, 25,)) : float32[4]
      v11 = all_reduce(v7, op='avg', group=0, early=((11,), 16, 25,)) : float32[4]
      return v8, v9, v10, v11
    }""")
    order = [r.op.name for r in overlap.hoist_gradients(program) if not overlap.travels(r)]
    # g leads to four gradients, v1 to three; v2 to two, so all behind it comes at once
    assert order == ["multiply", "multiply", "multiply", "exp", "tanh", "tanh", "sin"]
    made = [r.op.name for r in overlap.hoist_gradients(program)]
    assert made.index("all_reduce") == made.index("exp") + 1


def test_effects_keep_their_order():
    program = parse("""program p(x: float32[1]) {
      v1 = all_reduce(x, op='avg', group=0, early=((1,), 4, 25,)) : float32[1]
      v2 = show(v1, parts=(False,), sep=' ', end='') : bool[]
      v3 = show(x, parts=(False,), sep=' ', end='') : bool[]
      return v1
    }""")
    assert ops(overlap.async_collectives(program))[-2:] == ["show", "show"]
    first, second = overlap.async_collectives(program).records[-2:]
    assert first.inputs[0].op.name == "item"
    assert second.inputs == program.inputs


def test_a_strategy_says_how_full_buckets_are():
    program = chain(K, K, K, K, bucket_mb=25.0)
    for strategy, expected in (
        ({}, 2), ({"fuse_grad_size_in_MB": 1}, 4), ({"fuse_all_reduce_ops": False}, 4),
        ({"async_collectives": False}, 0),
    ):  # fmt: skip
        assert count(optimized(program, strategy).program, "start_all_reduce") == expected


def test_the_pass_is_a_slot():
    """Without it ranks wait for each average where it is needed, and train alike."""
    with plugged("passes.async_collectives", lambda program: program):
        found = trained("mlp", programs.plain, ranks=2)
    assert all((a == b).all() for a, b in zip(found[0][1], found[1][1], strict=True))
    assert count(executed(found[0][2]), "all_reduce") == len(found[0][1])


def test_averages_that_a_later_backward_replaces_are_not_computed():
    """Four micro-batches in one program: the sums of all four travel, and no others."""

    def rank():
        net = paddle.DataParallel(programs.mlp())
        adam = programs.optimizer("mlp", net)

        @paddle.jit.to_static(backend="interpreter")
        def step(x):
            for _ in range(4):
                net(x).mean().backward()
            adam.step()
            adam.clear_grad()

        step(paddle.rand([4, 16]))
        (start,) = (r for r in executed(step).records if r.op is start_all_reduce)
        return len(start.inputs) == len(net.parameters())

    assert spawn(rank, nprocs=2).results == [True, True]


# ---- ranks -------------------------------------------------------------------------------------


def test_gradients_stay_local_where_nothing_is_averaged():
    """The same step outside and inside of `no_sync`: two programs."""

    def rank():
        net = paddle.DataParallel(paddle.nn.Linear(1, 1, bias_attr=False))
        (w,) = net.parameters()

        @paddle.jit.to_static
        def step(x):
            net(x).sum().backward()
            g = w.grad.clone()
            w.clear_gradient()
            return g

        x = paddle.to_tensor([[1.0 + paddle.distributed.get_rank()]])
        found = [step(x).item()]
        with net.no_sync():
            found.append(step(x).item())
        return [*found, step(x).item()]

    assert spawn(rank, nprocs=2).results == [[1.5, 1.0, 1.5], [1.5, 2.0, 1.5]]


def test_captured_micro_batches_are_averaged_once():
    """Four of them, the first three in `no_sync`: one collective, in the last; and the weights of
    one process that takes them whole.
    """
    given = programs.batches("mlp", 4, 6)

    def rank():
        paddle.seed(3)
        net = paddle.DataParallel(programs.mlp())
        adam = programs.optimizer("mlp", net)
        me, ranks = paddle.distributed.get_rank(), paddle.distributed.get_world_size()

        def part(x, y):
            (paddle.nn.functional.cross_entropy(net(x), y) / 4).backward()

        def last(x, y):
            part(x, y)
            adam.step()
            adam.clear_grad()

        part, step = (paddle.jit.to_static(f, backend="interpreter") for f in (part, last))
        for _ in range(3):
            for k, batch in enumerate(given):
                mine = [paddle.to_tensor(np.array_split(a, ranks)[me]) for a in batch]
                with net.no_sync() if k < 3 else paddle.enable_grad():
                    (part if k < 3 else step)(*mine)
        sent = [count(executed(f), "start_all_reduce") for f in (part, step)]
        return sent, [p.numpy() for p in net.parameters()]

    ((_, alone),) = spawn(rank, nprocs=1).results
    for sent, weights in spawn(rank, nprocs=2).results:
        assert sent == [0, 1]
        for a, b in zip(weights, alone, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def test_a_rank_that_fails_is_named_to_the_others():
    def rank():
        w = paddle.to_tensor([2.0], stop_gradient=False)
        w.averaged = {"group": 0, "bucket_mb": 25}

        @paddle.jit.to_static
        def step(x):
            (w * x).sum().backward()
            return w.grad

        if paddle.distributed.get_rank() == 1:
            raise KeyError("lost")
        try:
            step(paddle.ones([1]))
        except paddle.distributed.PeerFailed as error:
            messages.append(str(error))
            raise

    messages: list = []
    with pytest.raises(KeyError, match="lost"):
        spawn(rank, nprocs=2)
    assert "rank 1 failed: KeyError: 'lost'" in messages[0]
