"""Parameter servers: one conformance suite on each carrier; training beside a single process."""

import asyncio
import json
import os
import subprocess
import sys
import threading
from argparse import Namespace
from concurrent.futures import Future
from contextlib import contextmanager, nullcontext
from pathlib import Path

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle import nn
from minipaddle.distributed import fleet, launch
from minipaddle.distributed.ps import client as client_file
from minipaddle.distributed.ps import journal, on_ray
from minipaddle.distributed.ps.client import Client, GeoClient
from minipaddle.distributed.ps.entries import admits
from minipaddle.distributed.ps.joining import stragglers
from minipaddle.distributed.ps.placement import drawer, place, recipe_of
from minipaddle.distributed.ps.server import RowServer, ServerLost
from minipaddle.distributed.ps.session import session
from minipaddle.distributed.ps.table import Table, describe
from minipaddle.distributed.ps.threads import Threads
from tests.benchmarks import clicks
from tests.distributed.ps_conformance import CHECKS, WORKERS, config, on_threads, ones

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def alone():
    """After a test this process is no worker of anything."""
    yield
    session.now = None


# ---- one suite on each carrier ---------------------------------------------------------------


def in_job(servers: int, workers: int, *arguments) -> subprocess.CompletedProcess:
    """The conformance module as servers and workers that are ranks of MPI."""
    module = [sys.executable, "-m", "mpi4py", "-m", "tests.distributed.ps_conformance"]
    roles = launch.assign_roles(servers, workers, [*module, *map(str, arguments)])
    return started([launch.find_mpiexec(), *roles])


def started(command) -> subprocess.CompletedProcess:
    around = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        command, env=around, cwd=ROOT, timeout=200, text=True, capture_output=True
    )


def results_of(done) -> list[dict]:
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert len(found) == WORKERS, done.stdout + done.stderr
    return found


def by_mpi(folder) -> list[dict]:
    pytest.importorskip("mpi4py", reason="the extra mpi is not installed")
    return results_of(in_job(1, WORKERS, "mpi", folder))


CARRIERS = {"threads": on_threads, "mpi": by_mpi}
"""`test_ray.py` has the third."""


@pytest.fixture(scope="module", params=CARRIERS)
def results(request, tmp_path_factory):
    """What each worker says of each check, on one carrier."""
    return CARRIERS[request.param](tmp_path_factory.mktemp(request.param))


@pytest.mark.timeout(240)
@pytest.mark.parametrize("name", CHECKS)
def test_conformance(results, name):
    for found in results:
        assert name in found, f"it was not reached: {found}"
        assert not found[name], found[name]


def test_a_job_whose_server_is_killed_is_started_again(tmp_path):
    """`kill -9` of the server ends the job of MPI; the next job has all that was acknowledged."""
    pytest.importorskip("mpi4py", reason="the extra mpi is not installed")
    first = in_job(1, 1, "dying", tmp_path)
    assert "pushes 0, [[0.0, 0.0]]" in first.stdout
    assert first.returncode != 0
    again = in_job(1, 1, "dying", tmp_path)
    assert again.returncode == 0, again.stderr
    assert "pushes 5, [[-5.0, -5.0]]" in again.stdout


# ---- training beside a single process --------------------------------------------------------

ROWS, WIDTH, BATCH, STEPS = 200, 4, 8, 5


def data(seed: int):
    rng = np.random.default_rng(seed)
    return rng.integers(0, ROWS, (BATCH, 3)), rng.random((BATCH, 1)).astype("float32")


def joined(step: int):
    return map(np.concatenate, zip(data(2 * step), data(2 * step + 1), strict=True))


def by_itself(make) -> tuple[list, np.ndarray]:
    """Losses and table of one process with an ordinary Embedding, on both workers' batches."""
    paddle.seed(1)
    table = nn.Embedding(ROWS, WIDTH)
    paddle.seed(3)
    net = nn.Linear(3 * WIDTH, 1)
    optimizer, losses = make(table.parameters() + net.parameters()), []
    for step in range(STEPS):
        x, y = map(paddle.to_tensor, joined(step))
        loss = ((net(table(x).flatten(1)) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        losses.append(loss.item())
    return losses, table.weight.numpy()


def strategy_of(**options) -> fleet.DistributedStrategy:
    strategy = fleet.DistributedStrategy()
    for name, value in options.items():
        setattr(strategy, name, value)
    return strategy


def as_worker(make, options: dict, worker=0, workers: int = 2, after=lambda step: None):
    """Losses of a worker, and what it sees after the last step of all: table and reports."""
    paddle.seed(3)
    net = nn.Linear(3 * WIDTH, 1)
    optimizer = fleet.distributed_optimizer(make(net.parameters()), strategy_of(**options))
    fleet.init_worker()
    paddle.seed(1)
    losses, name = [], paddle.ParamAttr(name="table")
    for step in range(STEPS):
        x, y = data(2 * step + worker) if workers == 2 else joined(step)
        rows = paddle.static.nn.sparse_embedding(
            paddle.to_tensor(x), [ROWS, WIDTH], param_attr=name
        )
        loss = ((net(rows.flatten(1)) - paddle.to_tensor(y)) ** 2).mean()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        losses.append(loss.item())
        after(step)
    fleet.barrier_worker()
    seen = session.now.client.rows("table"), fleet.report()
    fleet.barrier_worker()
    fleet.stop_worker()
    return losses, *seen


def on_four_ranks(make, **options) -> list:
    """What two workers return, with two servers: four threads that run one script."""

    def script():
        rank = paddle.distributed.get_rank()
        role = fleet.Role.SERVER if rank < 2 else fleet.Role.WORKER
        given = {"worker_num": 2, "server_endpoints": ["a", "b"]}
        fleet.init(fleet.UserDefinedRoleMaker(current_id=rank % 2, role=role, **given))
        assert fleet.is_server() == (rank < 2) != fleet.is_worker()
        if fleet.is_server():
            assert (fleet.server_index(), fleet.server_num()) == (rank, 2)
            fleet.init_server()
            return fleet.run_server()
        assert (fleet.worker_index(), fleet.worker_num()) == (rank - 2, 2)
        assert fleet.is_first_worker() == (rank == 2)
        return as_worker(make, options, rank - 2)

    return paddle.distributed.spawn(script, nprocs=4, timeout=60).results[2:]


def sgd(parameters):
    return paddle.optimizer.SGD(0.1, parameters=parameters)


def adagrad(parameters):
    return paddle.optimizer.Adagrad(0.1, parameters=parameters)


@pytest.mark.parametrize(("make", "error"), [(sgd, 1e-7), (adagrad, 5e-6)])
def test_in_sync_two_workers_are_one_process_on_both_batches(make, error):
    """Losses and the rows of the table, with a plain Embedding and the same seed. (Adagrad's first
    step has the size of the learning rate, whatever that of the gradient: it shows its rounding.)
    """
    losses, table = by_itself(make)
    found = on_four_ranks(make)
    np.testing.assert_allclose(np.mean([f[0] for f in found], 0), losses, rtol=1e-6)
    for _, (ids, rows), _ in found:
        assert {*ids} == {*np.concatenate([data(s)[0].reshape(-1) for s in range(2 * STEPS)])}
        np.testing.assert_allclose(rows, table[ids], rtol=1e-5, atol=error)


def test_in_async_every_push_is_a_step():
    (_, _, reports), _ = on_four_ranks(sgd, a_sync=True)
    assert [r["steps"]["table"] for r in reports] == [2 * STEPS] * 2
    assert all(0 <= worst <= 2 * STEPS for r in reports for _, worst in r["staleness"].values())


def lone(make, **options):
    fleet.init(fleet.UserDefinedRoleMaker(server_endpoints=["a", "b", "c"]))
    return as_worker(make, options, workers=1)


def test_alone_all_modes_are_the_same_steps():
    """One worker, its servers in its own process. Geo with k_steps=1 sends what each step did."""
    losses, table = by_itself(adagrad)
    for options in ({}, {"a_sync": True}, {"a_sync": True, "a_sync_configs": {"k_steps": 1}}):
        found, (ids, rows), _ = lone(adagrad, **options)
        np.testing.assert_allclose(found, losses, rtol=1e-5)
        np.testing.assert_allclose(rows, table[ids], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("kind", ["Adam", "AdamW", "Momentum", "RMSProp", "Adamax", "Adadelta"])
def test_a_row_has_the_steps_in_which_it_was_pushed(kind):
    """Each row is what a parameter becomes that is updated in the same steps, and in no other."""
    make, rng = getattr(paddle.optimizer, kind), np.random.default_rng(0)
    like = make(0.1, parameters=[paddle.create_parameter([1], "float32")])
    table = Table(config(optimizer=describe(like, "")))
    own = [paddle.create_parameter([2], "float32", is_bias=True) for _ in range(4)]
    steppers = [make(0.1, parameters=[p]) for p in own]
    for step in range(6):
        ids = np.flatnonzero([True, step % 2, step < 3, step == 4])
        gradients = rng.standard_normal((len(ids), 2)).astype("float32")
        table.update(ids, np.ones(len(ids)), gradients, 0.1)
        for k, g in zip(ids, gradients, strict=True):
            own[k].grad = paddle.to_tensor(g)
            steppers[k].step()
    expected = [p.numpy() for p in own]
    np.testing.assert_allclose(table.read(np.arange(4)), expected, rtol=1e-5, atol=1e-7)


def test_adam_agrees_with_torch():
    torch = pytest.importorskip("torch")
    weight = torch.zeros(5, 2, requires_grad=True)
    adam, rng = torch.optim.SparseAdam([weight], lr=0.1), np.random.default_rng(1)
    like = paddle.optimizer.Adam(0.1, parameters=[paddle.create_parameter([1], "float32")])
    client = Client(Threads(2))
    client.create("t", config("async", optimizer=describe(like, "")))
    for _ in range(4):
        ids, g = np.array([4, 0, 4]), rng.standard_normal((3, 2)).astype("float32")
        weight.grad = torch.sparse_coo_tensor(
            [ids.tolist()], torch.tensor(g), (5, 2), check_invariants=True
        )
        adam.step()
        client.push("t", ids, g, 0.1)
    found = client.pull("t", np.arange(5))
    np.testing.assert_allclose(found, weight.detach().numpy(), rtol=1e-5, atol=1e-7)


def test_decay_and_factor():
    like = paddle.optimizer.SGD(0.1, [paddle.create_parameter([1], "float32")], weight_decay=0.5)
    table = Table(config(optimizer=describe(like, ""), recipe=["constant", 8.0], factor=2.0))
    table.update(np.array([1]), np.ones(1), ones(1), 0.1)
    np.testing.assert_allclose(table.read(np.array([1])), ones(1, 8 - 0.2 * (1 + 0.5 * 8)))


def test_a_recommender_learns_from_clicks_on_a_million_features():
    """Held-out clicks are predicted better, and servers hold the features that came."""
    fleet.init(fleet.UserDefinedRoleMaker(server_endpoints=["a", "b"]))
    step, scores = clicks.with_servers(0, 1)
    ids, labels = clicks.clicks(4096, 99)
    before = clicks.auc(scores(ids), labels)
    batches = [clicks.clicks(512, k) for k in range(40)]
    losses = [step(*batch) for batch in batches]
    assert np.mean(losses[-10:]) < np.mean(losses[:3]) - 0.05
    assert clicks.auc(scores(ids), labels) > max(before, 0.5) + 0.1
    came = len(np.unique(np.concatenate([b[0] for b in batches])))
    assert sum(r["rows"]["deep"] for r in fleet.report()) == came < 10**6 // 10


# ---- programs by hand ------------------------------------------------------------------------


@contextmanager
def static():
    """A block that writes a program: it, and its startup."""
    paddle.enable_static()
    main, startup = paddle.static.Program(), paddle.static.Program()
    with paddle.static.program_guard(main, startup):
        yield main, startup
    paddle.disable_static()


def test_a_program_by_hand_is_the_same_training():
    """Two inputs look into one table; a clone for tests learns nothing."""
    losses, _ = by_itself(adagrad)
    with static() as (main, startup):
        train_by_hand(main, startup, losses)


def train_by_hand(main, startup, losses) -> None:
    fleet.init()
    paddle.seed(1)
    name = paddle.ParamAttr(name="table")
    inputs = [paddle.static.data(n, [None, k], "int64") for n, k in (("one", 1), ("two", 2))]
    y = paddle.static.data("y", [None, 1])
    look_up = paddle.static.nn.sparse_embedding
    rows = [look_up(x, [ROWS, WIDTH], param_attr=name) for x in inputs]
    paddle.seed(3)
    out = paddle.static.nn.fc(paddle.concat(rows, axis=1).flatten(1), 1)
    loss = ((out - y) ** 2).mean()
    test = main.clone(for_test=True)
    optimizer = fleet.distributed_optimizer(paddle.optimizer.Adagrad(0.1))
    _, pairs = optimizer.minimize(loss)
    assert [p.shape for p, _ in pairs] == [[3 * WIDTH, 1], [1]]
    run = paddle.static.Executor().run
    run(startup)
    fleet.init_worker()
    for step, expected in enumerate(losses):
        x, target = joined(step)
        feed = {"one": x[:, :1], "two": x[:, 1:], "y": target}
        for program in (test, main):
            (found,) = run(program, feed=feed, fetch_list=[loss])
            np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert fleet.report()[0]["steps"] == {"table": STEPS, "dense.0": STEPS}
    with pytest.raises(NotImplementedError, match="no data of the program"):
        look_up(inputs[0] + 1, [ROWS, WIDTH], param_attr=name)


@pytest.mark.parametrize("by_hand", [False, True])
def test_padding_is_zero_and_learns_nothing(by_hand):
    with static() if by_hand else nullcontext() as programs:
        train_with_padding(by_hand, programs)


def train_with_padding(by_hand: bool, programs) -> None:
    fleet.init()
    w, name = None, paddle.ParamAttr(name="t", initializer=nn.initializer.Constant(1.0))
    if by_hand:
        main, _ = programs
        ids = paddle.static.data("ids", [None], "int64")
    else:
        ids = paddle.to_tensor([3, 9, 3])
        w = [paddle.create_parameter([1], "float32")]
    optimizer = paddle.optimizer.Adam(0.5, parameters=w)
    optimizer = fleet.distributed_optimizer(optimizer)
    if not by_hand:
        fleet.init_worker()
    rows = paddle.static.nn.sparse_embedding(ids, [10, 2], padding_idx=-1, param_attr=name)
    if by_hand:
        optimizer.minimize(rows.sum())
        fleet.init_worker()
        feed = {"ids": np.array([3, 9, 3])}
        (found,) = paddle.static.Executor().run(main, feed=feed, fetch_list=[rows])
    else:
        found = rows.numpy()
        (rows.sum() + w[0].sum()).backward()
        optimizer.step()
    np.testing.assert_array_equal(found, [[1, 1], [0, 0], [1, 1]])
    ids, rows = session.now.client.rows("t")
    assert ids.tolist() == [3]
    np.testing.assert_allclose(rows, [[0.5, 0.5]], rtol=1e-5)


# ---- files -----------------------------------------------------------------------------------


def pushed(folder, count: int, **options) -> Client:
    """A client that has pushed to one server with files."""
    client = Client(Threads(1, 1, folder))
    client.create("t", config("async", recipe=["normal", 0.0, 1.0], **options))
    for k in range(count):
        client.push("t", [k, k + 1], ones(2), 0.1)
    return client


def test_a_record_that_was_cut_off_is_dropped(tmp_path):
    """What a process wrote when it was killed was not acknowledged."""
    client = pushed(tmp_path, 3)
    expected = client.rows("t")
    log = tmp_path / "server_0.log.0"
    whole = log.read_bytes()
    log.write_bytes(whole + whole[len(whole) // 2 : len(whole) // 2 + 7])
    for _ in range(2):
        client.carrier.kill(0)
        for found, wanted in zip(client.rows("t"), expected, strict=True):
            np.testing.assert_array_equal(found, wanted)
        client.push("t", [9], ones(1), 0.1)
        expected = client.rows("t")


def test_a_long_log_becomes_a_snapshot(tmp_path, monkeypatch):
    monkeypatch.setattr(journal, "LEAST", 4000)
    client = pushed(tmp_path, 30)
    files = sorted(p.name for p in tmp_path.iterdir())
    assert files[0].startswith("server_0.log.")
    assert files[0] != "server_0.log.0"
    assert files[1:] == ["server_0.snapshot"]
    expected = client.rows("t")
    client.carrier.kill(0)
    for found, wanted in zip(client.rows("t"), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_rows_that_wait_to_be_let_in_are_in_a_snapshot(tmp_path):
    client = pushed(tmp_path, 1, entry=["count", 2])
    client.snapshot()
    client.carrier.kill(0)
    client.push("t", [0], ones(1), 0.1)
    assert client.rows("t")[0].tolist() == [0]


def test_tables_are_saved_to_a_folder_that_init_server_reads(tmp_path, monkeypatch):
    losses, _ = by_itself(adagrad)

    def half(first: bool, folder) -> list:
        fleet.init(fleet.UserDefinedRoleMaker(server_endpoints=["a", "b"]))
        fleet.init_server(folder)
        paddle.seed(3)
        net = nn.Linear(3 * WIDTH, 1)
        optimizer, found = fleet.distributed_optimizer(adagrad(net.parameters())), []
        fleet.init_worker()
        paddle.seed(1)
        for step in range(3) if first else range(3, STEPS):
            x, y = map(paddle.to_tensor, joined(step))
            name = paddle.ParamAttr(name="table")
            rows = paddle.static.nn.sparse_embedding(x, [ROWS, WIDTH], param_attr=name)
            loss = ((net(rows.flatten(1)) - y) ** 2).mean()
            loss.backward()
            optimizer.minimize(loss)
            optimizer.clear_grad()
            found.append(loss.item())
        for _ in range(2 * first):  # the second time over the files of the first
            fleet.save_persistables(None, tmp_path / "saved")
        return found

    found = half(True, None) + half(False, tmp_path / "saved")
    np.testing.assert_allclose(found, losses, rtol=1e-5)
    monkeypatch.setenv("MINIPADDLE_PS_FOLDER", str(tmp_path / "saved"))
    fleet.init(fleet.UserDefinedRoleMaker(server_endpoints=["a", "b", "c"]))
    fleet.distributed_optimizer(adagrad([paddle.create_parameter([1], "float32")]))
    with pytest.raises(ValueError, match=r"server 0 of 2(?s:.*)server 0 of 3(?s:.*)hashed over"):
        fleet.init_worker()


def test_a_barrier_is_passed_by_all_if_it_was_by_one(tmp_path):
    """The server dies between its answers to two workers; in the next job nobody has come yet."""
    come = lambda server, worker: server.handle({"do": "barrier", "worker": worker, "number": 1})
    first = RowServer(0, 1, 2, tmp_path)
    assert [(come(first, 0), come(first, 1))[k].done() for k in (0, 1)] == [True, True]
    for snapshot in (False, True):
        again = RowServer(0, 1, 2, tmp_path, anew=False)
        assert come(again, 1).done()
        if snapshot:
            again.snapshot()
    other = RowServer(0, 1, 2, tmp_path)
    assert not come(other, 1).done()
    assert come(RowServer(0, 1, 2, tmp_path, anew=False), 0).done()


def test_a_server_without_files_is_lost():
    client = pushed(None, 1)
    client.carrier.kill(0)
    with pytest.raises(ServerLost, match="it had no files"):
        client.pull("t", [1])
    with pytest.raises(ValueError, match="snapshot of a server without a folder"):
        pushed(None, 1).snapshot()


# ---- who does not come -----------------------------------------------------------------------


def test_a_worker_that_keeps_the_others_waiting_is_named():
    """Not the server that waits for it, nor the worker that waits."""
    carrier = Threads(1, 3)
    clients = [Client(carrier, k, 3, timeout=0.2) for k in range(3)]
    for client in clients:
        client.create("t", config())
    for client in clients[:2]:
        client.push("t", [1], ones(1), 1.0)
    waits = {
        "pull": (lambda: clients[0].pull("t", [1]), "worker 2 did not come"),
        "barrier": (clients[0].barrier, "worker 1 did not come and worker 2 did not come"),
    }
    for do, (wait, who) in waits.items():
        with pytest.raises(TimeoutError) as error:
            wait()
        said = str(error.value).splitlines()[0]
        assert said == f"worker 0 waited 0.2 s for server 0 ({do}): {who}"
    clients[2].stop()
    np.testing.assert_allclose(clients[0].pull("t", [1]), ones(1, -1.0))


def test_a_server_that_does_not_answer_is_named(monkeypatch):
    monkeypatch.setattr(client_file, "ANSWER", 0.1)
    silent = Namespace(servers=1, ask=lambda server, request: Future())
    with pytest.raises(TimeoutError, match=r"for server 0 \(report\): it does not answer"):
        Client(silent, 1, 2, timeout=0.1).report()


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_worker_that_asks_for_nothing_is_named(mode, monkeypatch):
    """Though nobody waits for it: others ask, wait, or have stopped. Not if all are as silent, for
    they may all compute.
    """
    now = [0.0]
    monkeypatch.setattr("minipaddle.distributed.ps.server.monotonic", lambda: now[0])
    server = RowServer(0, 1, 3)
    carrier = Namespace(servers=1, ask=lambda _, request: server.handle(request))
    clients = [Client(carrier, k, 3) for k in range(3)]

    def named(seconds, *asking) -> str:
        """Who is named after some seconds, and requests of some workers."""
        now[0] += seconds
        for client in asking:
            client.push("t", [1], ones(1), 0.1)
        try:
            server.check_workers(10.0)
        except TimeoutError as error:
            said = str(error).splitlines()[0]
            return said.removesuffix(" asked server 0 for nothing for 10 s")
        return ""

    for client in clients:
        client.create("t", config(mode))
    assert named(11) == ""
    assert named(11, *clients) == ""
    assert named(9, clients[0]) == ""
    assert named(2) == "worker 1 and worker 2"
    assert named(2, clients[1]) == "worker 2"
    assert named(11) == ""
    met = server.handle({"do": "barrier", "worker": 0, "number": 1})
    assert named(11) == "worker 1 and worker 2"
    clients[2].stop()
    assert named(1) == "worker 1"
    server.handle({"do": "barrier", "worker": 1, "number": 1})
    assert met.done()
    assert named(9) == ""
    assert named(2) == "worker 0 and worker 1"
    clients[0].stop()
    clients[1].stop()
    assert named(20) == ""


def test_servers_look_for_workers_that_hang(monkeypatch):
    """Those of threads, and actors of Ray."""
    role = Namespace(is_server=True, current_id=0, servers=1, workers=2)
    server = RowServer(0, 1, 2)
    server.heard = {0: 0.0, 1: np.inf}
    monkeypatch.setattr("minipaddle.distributed.fleet.servers.RowServer", lambda *_: server)
    carrier, group = Threads(1, 2, None, absent=[0]), Namespace(check=lambda: None, timeout=0.2)
    session.now = Namespace(role=role, carrier=carrier, folder=None, group=group)
    with pytest.raises(TimeoutError, match=r"worker 0 asked server 0 for nothing for 0\.2 s"):
        fleet.run_server()
    server.looked, actor = 0.0, object.__new__(on_ray.Actor)
    actor.server = server
    with pytest.raises(TimeoutError, match="worker 0 asked server 0 for nothing for 3 s"):
        asyncio.run(actor.until_all_stopped(3.0))
    server.ended.set()
    asyncio.run(actor.until_all_stopped(3.0))


# ---- small functions -------------------------------------------------------------------------


@pytest.mark.parametrize("servers", [1, 2, 3, 8])
def test_rows_are_spread_evenly(servers):
    for step in (1, 2, 3, 8, 1 << 20):
        counts = np.bincount(place(np.arange(4000) * step, servers), minlength=servers)
        assert counts.min() > 0.85 * 4000 / servers


@pytest.mark.parametrize(
    "draw",
    [
        nn.initializer.Constant(2.0), nn.initializer.Uniform(-2.0, 3.0),
        nn.initializer.Normal(1.0, 3.0), nn.initializer.TruncatedNormal(1.0, 2.0, 0.0, 2.0),
        nn.initializer.XavierUniform(), nn.initializer.KaimingNormal(),
    ],
)  # fmt: skip
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_row_is_that_of_a_table_that_is_drawn_at_once(draw, dtype):
    paddle.seed(11)
    whole = draw.draw((50, 3), dtype).numpy()
    paddle.seed(11)
    base = paddle.tensor.generator.GENERATOR.draw()
    table = Table(config(recipe=recipe_of(draw, (50, 3)), base=base, width=3, dtype=dtype))
    ids = np.array([49, 0, 7])
    assert table.read(ids).dtype == dtype
    np.testing.assert_allclose(table.read(ids), whole[ids], rtol=1e-6, atol=1e-7)
    assert len(table) == 0


def test_what_cannot_be_drawn_row_by_row():
    with pytest.raises(NotImplementedError, match="Orthogonal: its rows cannot be drawn"):
        recipe_of(nn.initializer.Orthogonal(), (3, 3))
    assert (drawer(["constant", 0.0], 0, "float64")(np.zeros((2, 2), int)) == 0).all()


def test_stragglers():
    steady = {0: [1.0, 1.1, 0.9], 1: [1.0, 9.0, 1.0], 2: [1.2]}
    assert stragglers(steady) == []
    assert stragglers(steady | {3: [2.5, 2.6]}) == [3]
    assert stragglers(steady | {3: [2.5, 2.6]}, factor=3.0) == []
    assert stragglers({0: [5.0]}) == stragglers({}) == stragglers({0: [5.0], 1: []}) == []


def test_a_step_that_goes_on_may_be_slow_already(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("minipaddle.distributed.ps.server.monotonic", lambda: now[0])
    carrier = Threads(1, 2)
    clients = [Client(carrier, k, 2) for k in range(2)]
    for client in clients:
        client.create("t", config("async"))
    for _ in range(3):
        for client in clients:
            client.pull("t", [1])
            now[0] += 1.0
            client.push("t", [1], ones(1), 0.1)
    clients[1].pull("t", [1])
    now[0] += 1.5
    assert clients[0].report()[0]["stragglers"] == []
    now[0] += 1.5
    assert clients[0].report()[0]["stragglers"] == [1]


def test_who_waits_at_a_barrier_is_not_slow(monkeypatch):
    """On no server, also where rows were pulled last."""
    now = [0.0]
    monkeypatch.setattr("minipaddle.distributed.ps.server.monotonic", lambda: now[0])
    carrier = Threads(3, 2)
    clients = [Client(carrier, k, 2) for k in range(2)]
    for client in clients:
        client.create("t", config("async"))
        for _ in range(3):
            client.pull("t", [1])
            now[0] += 1.0
            client.push("t", [1], ones(1), 0.1)
    clients[0].pull("t", [1])
    waits = threading.Thread(target=clients[0].barrier, daemon=True)
    waits.start()
    waits.join(0.2)  # it asks the servers in this time, and waits
    now[0] += 9.0
    assert [r["stragglers"] for r in clients[1].report()] == [[]] * 3
    clients[1].barrier()
    waits.join()


def test_entries():
    seen = [admits(config(entry=["count", 3]), 1, before, before + 1) for before in range(4)]
    assert seen == [False, False, True, True]
    given = config(entry=["probability", 0.25])
    alone = np.array([admits(given, row, 0, 1) for row in range(2000)])
    again = np.array([admits(given, row, 1, 2) for row in range(2000)])
    both = np.array([admits(given, row, 0, 2) for row in range(2000)])
    assert abs(alone.mean() - 0.25) < 0.03  # 3 standard deviations
    np.testing.assert_array_equal(both, alone | again)
    assert paddle.distributed.ProbabilityEntry(0.25).config == given["entry"]
    for wrong in (lambda: paddle.distributed.CountFilterEntry(1.5),
                  lambda: paddle.distributed.ProbabilityEntry(1.0)):  # fmt: skip
        with pytest.raises(ValueError, match="Entry"):
            wrong()


def test_geo_sends_the_rest_at_the_end():
    carrier = Threads(2, 1)
    geo = GeoClient(Client(carrier), 3)
    geo.create("t", config("geo"))
    for _ in range(4):
        geo.push("t", [1], ones(1), 1.0)
    other = Client(carrier)
    other.create("t", config("geo"))
    np.testing.assert_allclose(other.pull("t", [1]), ones(1, -3.0))
    geo.stop()
    np.testing.assert_allclose(other.pull("t", [1]), ones(1, -4.0))


# ---- roles -----------------------------------------------------------------------------------

JOB = {"PADDLE_PSERVERS_IP_PORT_LIST": "10.0.0.1:6170,10.0.0.2:6170", "PADDLE_TRAINERS_NUM": "3"}


@pytest.mark.parametrize(
    ("own", "said"),
    [
        ({"TRAINING_ROLE": "TRAINER", "PADDLE_TRAINER_ID": "2"}, "worker 2 of 3, with 2 servers"),
        ({"TRAINING_ROLE": "PSERVER", "POD_IP": "10.0.0.2", "PADDLE_PORT": "6170"},
         "server 1 of 2"),
    ],
)  # fmt: skip
def test_a_role_from_the_environment(own, said, monkeypatch):
    for name, value in (JOB | own).items():
        monkeypatch.setenv(name, value)
    assert repr(fleet.PaddleCloudRoleMaker()) == said


@pytest.mark.parametrize(
    ("own", "error", "message"),
    [
        ({"TRAINING_ROLE": "HETER_TRAINER"}, NotImplementedError, "TRAINER or PSERVER"),
        ({"TRAINING_ROLE": "TRAINER"}, ValueError, "without PADDLE_TRAINER_ID"),
        ({"TRAINING_ROLE": "TRAINER", "PADDLE_TRAINER_ID": "3"}, ValueError, "0 to 2"),
        ({"TRAINING_ROLE": "PSERVER", "POD_IP": "x", "PADDLE_PORT": "1"}, ValueError, "x:1"),
    ],
)
def test_an_environment_without_a_role(own, error, message, monkeypatch):
    for name, value in (JOB | own).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(error, match=message):
        fleet.PaddleCloudRoleMaker()


def test_a_second_job_in_one_spawn():
    """Its servers are others, and empty."""

    def script():
        rank, found = paddle.distributed.get_rank(), []
        for _ in range(2):
            role = fleet.Role.SERVER if rank == 0 else fleet.Role.WORKER
            fleet.init(fleet.UserDefinedRoleMaker(role=role, server_endpoints=["a"]))
            if fleet.is_server():
                fleet.run_server()
            else:
                w = paddle.create_parameter([1], "float32", is_bias=True)
                optimizer = fleet.distributed_optimizer(sgd([w]))
                fleet.init_worker()
                w.sum().backward()
                optimizer.step()
                found.append(w.item())
                fleet.stop_worker()
        return found

    found = paddle.distributed.spawn(script, nprocs=2, timeout=30).results[1]
    np.testing.assert_allclose(found, [-0.1, -0.1], rtol=1e-6)


def test_what_roles_refuse():
    with pytest.raises(NotImplementedError, match="the role 5"):
        fleet.UserDefinedRoleMaker(role=5)
    with pytest.raises(ValueError, match="a role with rank"):
        fleet.UserDefinedRoleMaker(rank=1)

    def script():
        fleet.init(fleet.UserDefinedRoleMaker(worker_num=2, server_endpoints=["a"]))

    with pytest.raises(ValueError, match=r"2 ranks, of which 1 are different(?s:.*)workers 0 to 1"):
        paddle.distributed.spawn(script, nprocs=2, timeout=30)


def test_launch_gives_roles(monkeypatch):
    options = launch.parse(["--servers", "1", "--workers", "2", "train.py", "--lr", "3"])
    ranks = " ".join(launch.build_server_call(options, "mpiexec")).split(" : ")
    assert len(ranks) == 3
    assert [r.count("TRAINING_ROLE PSERVER") for r in ranks] == [1, 0, 0]
    assert "PADDLE_TRAINER_ID 1" in ranks[2]
    assert all("PADDLE_TRAINERS_NUM 2" in r and r.endswith("train.py --lr 3") for r in ranks)
    monkeypatch.setenv("MINIPADDLE_PS_CARRIER", "ray")
    ranks = " ".join(launch.build_server_call(options, "mpiexec")).split(" : ")
    assert ["TRAINING_ROLE TRAINER" in r for r in ranks] == [True, True]


# ---- what is refused -------------------------------------------------------------------------


def test_what_cannot_be_on_a_server():
    w = [paddle.create_parameter([1], "float32")]
    opt = paddle.optimizer
    for make, message in [
        (lambda: opt.Lamb(0.1, parameters=w), "Lamb on a parameter server"),
        (lambda: opt.SGD(0.1, w, grad_clip=nn.ClipGradByGlobalNorm(1.0)), "no server sees all"),
        (lambda: opt.SGD(0.1, [{"params": w}, {"params": []}]), "groups of parameters"),
        (lambda: opt.Momentum(0.1, parameters=w, rescale_grad=0.5), "rescale_grad"),
    ]:
        with pytest.raises(NotImplementedError, match=message):
            describe(make(), "w")
    with pytest.raises(ValueError, match="with the optimizer 'eval'"):
        Table(config(optimizer={"kind": "eval", "options": {}, "decay": None}))


def test_what_sparse_embedding_refuses():
    look_up, ids = paddle.static.nn.sparse_embedding, paddle.to_tensor([1])
    name = paddle.ParamAttr(name="t")
    with pytest.raises(RuntimeError, match=r"sparse_embedding before fleet\.init"):
        look_up(ids, [3, 2])
    fleet.init()
    for options, error, message in [
        ({}, ValueError, "without the name of a table"),
        ({"table_class": "SSDSparseTable"}, NotImplementedError, "SSDSparseTable"),
        ({"param_attr": name, "entry": 3}, TypeError, "entry=3"),
        ({"param_attr": name}, RuntimeError, r"before fleet\.init_worker"),
    ]:
        with pytest.raises(error, match=message):
            look_up(ids, [3, 2], **options)
    with pytest.raises(TypeError, match="whole numbers"):
        look_up(ids * 0.5, [3, 2], param_attr=name)
    with pytest.raises(ValueError, match=r"the table 't' with (?s:.*)'width': 2"):
        look_up(ids, [3, 4], param_attr=name)
    with pytest.raises(NotImplementedError, match="sparse_embedding in to_static"):
        paddle.jit.to_static(lambda x: look_up(x, [3, 2], param_attr=name))(ids)
    with pytest.raises(RuntimeError, match="without an optimizer"):
        fleet.init_worker()
    with pytest.raises(RuntimeError, match="run_server in worker 0 of 1"):
        fleet.run_server()
    with pytest.raises(NotImplementedError, match="more than a folder"):
        fleet.init_server("a", "b")


def test_what_a_session_refuses():
    strategy = strategy_of(a_sync=True, a_sync_configs={"k_steps": 2})
    fleet.init(strategy=strategy)
    used, idle = (paddle.create_parameter([1], "float32") for _ in range(2))
    optimizer = fleet.distributed_optimizer(sgd([used, idle]))
    fleet.init_worker()
    with pytest.raises(NotImplementedError, match="an entry with k_steps > 0"):
        paddle.static.nn.sparse_embedding(
            paddle.to_tensor([1]), [3, 2], param_attr=paddle.ParamAttr(name="t"),
            entry=paddle.distributed.CountFilterEntry(2),
        )  # fmt: skip
    (used * 2).sum().backward()
    with pytest.raises(RuntimeError, match="that has no gradient"):
        optimizer.step()
    with pytest.raises(NotImplementedError, match="a second optimizer"):
        fleet.distributed_optimizer(sgd([used]))
    half = paddle.create_parameter([1], "float16")
    fleet.init()
    with pytest.raises(NotImplementedError, match="a parameter of float16"):
        fleet.distributed_optimizer(sgd([half]))


def test_what_a_strategy_refuses():
    with pytest.raises(NotImplementedError, match="use_ps_gpu"):
        strategy_of(a_sync_configs={"use_ps_gpu": True})
    with pytest.raises(ValueError, match="k_steps='many'"):
        strategy_of(a_sync_configs={"k_steps": "many"})
    with pytest.raises(NotImplementedError, match="a_sync in a collective job"):
        fleet.init(is_collective=True, strategy=strategy_of(a_sync=True))


def test_a_server_that_does_not_come():
    with pytest.raises(RuntimeError, match=r"no server \[1\] after 0.1 s"):
        Threads(2, 1, None, absent=[1]).wait_for_all(0.1)


def test_without_ray(monkeypatch):
    monkeypatch.setattr(on_ray.importlib, "import_module", lambda name: __import__("no_ray"))
    with pytest.raises(RuntimeError, match=r"no Ray(?s:.*)minipaddle\[ray\]"):
        on_ray.ray()


def test_several_workers_need_a_cluster(monkeypatch):
    """Ray is there, but finds no cluster; one worker alone would start one."""

    def init(address=None, **options):
        if address == "auto":
            raise ConnectionError("Could not find any running Ray instance.")
        raise KeyError("started")

    ray = Namespace(init=init, is_initialized=lambda: False)
    monkeypatch.setattr(on_ray, "ray", lambda: ray)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with pytest.raises(RuntimeError, match=r"2 workers, and no cluster of Ray(?s:.*)ray start"):
        on_ray.Ray(1, 2)
    with pytest.raises(KeyError, match="started"):
        on_ray.Ray(1, 1)
