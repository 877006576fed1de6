"""DataLoader: batches, worker processes, and what happens when they fail."""

import functools
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle import io
from minipaddle.engine.executors import native


class Sampled(io.Dataset):
    """Sample i is fn(i)."""

    def __init__(self, fn, n=10):
        self.fn, self.n = fn, n

    def __getitem__(self, idx):
        return self.fn(idx)

    def __len__(self):
        return self.n


class Stream(io.IterableDataset):
    """0 … n-1, a worker's share each."""

    def __init__(self, n):
        self.n = n

    def __iter__(self):
        info = io.get_worker_info()
        first, step = (info.id, info.num_workers) if info else (0, 1)
        return iter(range(first, self.n, step))


def first(fn, **options):
    return next(iter(io.DataLoader(Sampled(fn), batch_size=2, **options)))


def shown(x):
    """A batch as text: `[float32[2, 3], 'x']`."""
    if isinstance(x, list | tuple):
        return [shown(v) for v in x]
    if isinstance(x, dict):
        return {k: shown(v) for k, v in x.items()}
    return str(x.spec) if isinstance(x, paddle.Tensor) else x


@pytest.mark.parametrize(
    ("fn", "batch"),
    [  # as Paddle 3.3
        (lambda i: i, "int64[2]"),
        (lambda i: 1.5 * i, "float64[2]"),
        (lambda i: i > 0, "bool[2]"),
        (lambda i: np.float32(i), "float32[2]"),
        (lambda i: np.ones(3), "float64[2, 3]"),
        (lambda i: paddle.ones([3]), "float32[2, 3]"),
        (lambda i: (np.ones(3, "float32"), i), ["float32[2, 3]", "int64[2]"]),
        (lambda i: {"x": np.ones(2), "y": i}, {"x": "float64[2, 2]", "y": "int64[2]"}),
        (
            lambda i: (i, [i, {"a": 1.0}], f"s{i}"),
            ["int64[2]", ["int64[2]", {"a": "float64[2]"}], ["s0", "s1"]],
        ),
    ],
)
def test_default_batches(fn, batch):
    assert shown(first(fn)) == batch


@pytest.mark.parametrize(
    ("collate", "batch"),
    [
        (np.array, "int64[2]"),
        (sum, 1),
        (lambda b: (np.array(b), "x", paddle.ones([1])), ["int64[2]", "x", "float32[1]"]),
        (lambda b: {"a": np.array(b), "b": b}, {"a": "int64[2]", "b": [0, 1]}),
    ],
)
def test_collate_fn(collate, batch):
    assert shown(first(lambda i: i, collate_fn=collate)) == batch


def test_orders_and_lengths():
    data = Sampled(lambda i: i)
    loader = io.DataLoader(data, batch_size=4)
    assert [b.tolist() for b in loader] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert [b.tolist() for b in loader()] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert len(loader) == 3
    assert len(io.DataLoader(data, batch_size=4, drop_last=True)) == 2
    assert len(io.DataLoader(data, batch_size=None)) == 10
    single = io.DataLoader(Sampled(lambda i: (np.ones(2), i)), batch_size=None)
    assert shown(next(iter(single))) == ["float64[2]", 0]
    listed = io.DataLoader(data, batch_sampler=[[1, 2], [3]])
    assert [b.tolist() for b in listed] == [[1, 2], [3]]
    shuffled = [i for b in io.DataLoader(data, batch_size=3, shuffle=True) for i in b.tolist()]
    assert sorted(shuffled) == list(range(10)) != shuffled


def test_streams():
    assert [b.tolist() for b in io.DataLoader(Stream(5), batch_size=2)] == [[0, 1], [2, 3], [4]]
    assert len(list(io.DataLoader(Stream(5), batch_size=2, drop_last=True))) == 2
    assert list(io.DataLoader(Stream(3), batch_size=None)) == [0, 1, 2]
    with pytest.raises(TypeError, match="no length"):
        len(io.DataLoader(Stream(3)))


@pytest.mark.parametrize(
    ("fn", "error", "says"),
    [
        (lambda i: None, TypeError, "the sample is NoneType"),
        (lambda i: (1, {"a": object()}), TypeError, r"the sample\[1\]\['a'\] is object"),
        (
            lambda i: (1, np.ones(i + 1)),
            ValueError,
            r"the sample\[1\] has different shapes.*\(1,\)",
        ),
        (lambda i: (1,) * (i + 1), ValueError, r"\[1, 2\] fields"),
        (lambda i: {str(i): 1}, ValueError, "the keys of the sample differ"),
    ],
)
def test_samples_that_make_no_batch(fn, error, says):
    with pytest.raises(error, match=says):
        first(fn)


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"num_workers": -1}, ValueError, "num_workers"),
        ({"prefetch_factor": 0}, ValueError, "prefetch_factor"),
        ({"timeout": -1}, ValueError, "timeout"),
        ({"batch_size": 0}, ValueError, "batch_size"),
        ({"return_list": False}, NotImplementedError, "static"),
        ({"batch_sampler": [[0]], "shuffle": True}, ValueError, "batch_sampler"),
        ({"dataset": Stream(3), "shuffle": True}, ValueError, "own order"),
    ],
)
def test_what_is_refused_is_explained(options, error, says):
    with pytest.raises(error, match=says):
        io.DataLoader(**{"dataset": [1, 2]} | options)


linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="forks, looks into /proc")


# ---- worker processes ----------------------------------------------------------------------------


def test_workers_give_the_same_batches_in_the_same_order():
    data = io.TensorDataset([paddle.arange(23), paddle.ones([23, 2])])  # tensors travel too
    here = list(io.DataLoader(data, batch_size=4))
    there = list(io.DataLoader(data, batch_size=4, num_workers=2, prefetch_factor=3))
    assert [[x.tolist() for x in b] for b in there] == [[x.tolist() for x in b] for b in here]


def test_streams_are_shared_and_begin_again():
    loader = io.DataLoader(Stream(11), batch_size=2, num_workers=2, persistent_workers=True)
    expected = [[0, 2], [1, 3], [4, 6], [5, 7], [8, 10], [9]]
    pids = []
    for _ in range(2):
        assert [b.tolist() for b in loader] == expected
        pids.append([p.pid for p in loader._pool.processes])
    assert pids[0] == pids[1]
    loader._pool.dismiss()
    assert not any(alive(pid) for pid in pids[0])


@pytest.mark.parametrize("persistent", [False, True])
def test_how_long_workers_stay(persistent):
    """Persistent ones keep the data set that they got, and stay where an epoch is left early."""

    class Telling(io.Dataset):
        scale = 1

        def __getitem__(self, idx):
            return os.getpid(), self.scale * idx

        def __len__(self):
            return 40

    data = Telling()
    loader = io.DataLoader(data, batch_size=2, num_workers=1, persistent_workers=persistent)
    found = []
    for _ in range(2):
        batches = list(loader)
        assert len(batches) == 20
        found.append((int(batches[-1][0][-1]), int(batches[-1][1][-1])))
        data.scale = 2
    (before, last), (after, scaled) = found
    assert os.getpid() not in (before, after)
    assert (last, scaled) == (39, 39 if persistent else 78)
    assert (before == after) == persistent
    if persistent:
        first = iter(loader)
        next(first)
        first.close()
        assert [x.tolist() for x in next(iter(loader))] == [[before] * 2, [0, 1]]


def test_the_next_batch_does_not_change_this_one():
    """A worker is ahead: its batches are copied before the next one is made."""
    memory = np.zeros((2, 100_000))

    def collate(batch):
        memory[:] = np.array(batch)[:, None]
        return memory

    data = Sampled(lambda i: i, 20)
    options = {"num_workers": 1, "prefetch_factor": 5, "collate_fn": collate}
    batches = list(io.DataLoader(data, batch_size=2, **options))
    assert [b.numpy()[:, -1].tolist() for b in batches] == [[2 * k, 2 * k + 1] for k in range(10)]


def test_large_requests_and_large_batches_do_not_wait_for_each_other():
    order = [list(range(200_000))] * 5
    loader = io.DataLoader(range(200_000), batch_sampler=order, num_workers=1, timeout=60)
    assert [int(b.numpy().sum()) for b in loader] == [sum(order[0])] * 5


@linux
def test_workers_where_a_fork_is_no_choice(monkeypatch):
    """Beside a GPU they are fresh processes: all they need travels, tensors and lambdas too."""
    monkeypatch.setitem(sys.modules, "cupy", None)
    data = Sampled(lambda i: (paddle.ones([2]) * i, i, os.getppid()), 5)
    loader = io.DataLoader(data, batch_size=2, num_workers=1, persistent_workers=True)
    for _ in range(2):
        assert [x[0].tolist() for x in loader][1:] == [[[2.0, 2.0], [3.0, 3.0]], [[4.0, 4.0]]]
    assert "fork" not in type(loader._pool.processes[0]).__name__.lower()
    loader._pool.dismiss()


@linux
def test_a_worker_runs_programs_compiled_before_the_fork(monkeypatch):
    """Threads of the parent are gone in a fork: to wait for them would last for ever."""
    monkeypatch.setattr(native, "threads", functools.cache(lambda: 2))
    total = paddle.jit.to_static(lambda x: (x * 2 + 1).sum(), backend="native")
    x = paddle.ones([1 << 20])
    expected = float(total(x))
    monkeypatch.undo()
    loader = io.DataLoader(Sampled(lambda i: total(x), 2), num_workers=1, timeout=60)
    assert [float(y) for y in loader] == [expected] * 2


def test_workers_know_themselves_and_are_seeded():
    class Telling(io.Dataset):
        def __getitem__(self, idx):
            info = io.get_worker_info()
            return info.id, info.num_workers, started[0], np.random.rand(), info.seed

        def __len__(self):
            return 4

    started = []
    seen = []
    for _ in range(2):
        paddle.seed(3)
        loader = io.DataLoader(
            Telling(), batch_size=2, num_workers=2, worker_init_fn=lambda k: started.append(k * 10)
        )
        seen.append([[x.tolist() for x in b] for b in loader])
    assert seen[0] == seen[1]
    assert [b[:3] for b in seen[0]] == [[[0, 0], [2, 2], [0, 0]], [[1, 1], [2, 2], [10, 10]]]
    assert seen[0][0][3] != seen[0][1][3]
    assert io.get_worker_info() is None


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def failing(i):
    if i == 5:
        raise KeyError("no such picture")
    return i


def sleeping(i):
    time.sleep(60 if i else 0)
    return i


def dying(i):
    if i == 5:
        time.sleep(0.3)  # the answer to [2, 3] is on its way
        os.kill(os.getpid(), signal.SIGKILL)
    return i


def leaving(i):
    if i == 5:
        sys.exit(3)
    return i


@pytest.mark.parametrize(
    ("fn", "options", "says"),
    [
        (leaving, {}, r"worker 0 failed at sample 5(.|\n)*in leaving(.|\n)*SystemExit: 3"),
        (failing, {}, r"worker 0 failed at sample 5(.|\n)*in failing(.|\n)*no such picture"),
        (dying, {}, r"worker 0 died while it worked on the samples \[4, 5\]"),
        (sleeping, {"timeout": 0.5}, r"worker 0 took more than 0.5 s for the samples \[0, 1\]"),
        (lambda i: threading.Lock(), {"collate_fn": list}, "cannot travel between processes"),
        (int, {"worker_init_fn": failing, "collate_fn": 5}, r"worker 0 failed"),
    ],
)
def test_a_worker_that_fails_is_an_error_with_its_name(fn, options, says):
    loader = io.DataLoader(Sampled(fn), batch_size=2, num_workers=1, **options)
    start = time.monotonic()
    with pytest.raises(RuntimeError, match=says):
        list(loader)
    assert time.monotonic() - start < 30


def test_a_stream_that_can_not_begin():
    class Broken(io.IterableDataset):
        def __iter__(self):
            raise OSError("no such file")

    with pytest.raises(RuntimeError, match=r"worker 0 failed at (.|\n)*no such file"):
        list(io.DataLoader(Broken(), num_workers=1))


@linux
def test_leaving_early_ends_the_workers():
    before = set(children(os.getpid()))
    batches = iter(io.DataLoader(Sampled(int, 100), num_workers=1))
    next(batches)
    new = set(children(os.getpid())) - before
    assert new
    batches.close()
    assert [command(p) for p in new if alive(p) and "tracker" not in command(p)] == []


# ---- Ctrl-C, and programs without a file ---------------------------------------------------------


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(p) for p in file.read().split()]


def command(pid):
    with open(f"/proc/{pid}/cmdline") as file:
        return file.read().replace("\0", " ")


PROGRAM = """
    import signal
    import time
    import minipaddle as paddle

    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's `&` takes it away

    class Slow(paddle.io.Dataset):
        def __getitem__(self, idx):
            time.sleep(0.05)
            return idx

        def __len__(self):
            return 100_000

    for k, batch in enumerate(paddle.io.DataLoader(Slow(), num_workers=1)):
        if not k:
            print("batch", flush=True)
"""  # a second one could meet a closed pipe before the signal


@linux
@pytest.mark.parametrize(
    ("signal_", "to_group"),
    [(signal.SIGINT, True), (signal.SIGINT, False), (signal.SIGKILL, False)],
)
def test_no_orphan_is_left(signal_, to_group):
    """Ctrl-C reaches the whole group; `kill` one process; SIGKILL gives no time to clean up."""
    program = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(PROGRAM)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        text=True,
    )
    assert program.stdout.readline() == "batch\n"
    family = children(program.pid)
    assert family
    (os.killpg if to_group else os.kill)(program.pid, signal_)
    program.stdout.close()
    program.wait(timeout=20)
    deadline = time.monotonic() + 20
    while any(alive(p) for p in family) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert [command(p) for p in family if alive(p)] == []
    errors = program.stderr.read()
    program.stderr.close()
    if signal_ == signal.SIGINT:
        assert "KeyboardInterrupt" in errors
        assert program.returncode in (1, 130, -signal.SIGINT)
