"""The native executor as a user meets it: `to_static(backend="native")`."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle import nn
from minipaddle.engine.executors import compiler as c
from minipaddle.engine.executors.executable_cache import backend_named
from minipaddle.engine.executors.native import Executable
from minipaddle.executors.native import compilers
from minipaddle.ir.parser import parse

pytestmark = pytest.mark.skipif(c.compiler() is None, reason="no C compiler: install gcc or clang")


def native(function):
    return paddle.jit.to_static(function, backend="native")


def executables(static) -> list[Executable]:
    """What was compiled for a function; it must not have stayed on the interpreter."""
    executables = static.concrete_program.executables
    assert not executables.reasons
    return list(executables.compiled.values())


def network(seed: int):
    paddle.seed(seed)
    layers = nn.Linear(8, 16), nn.BatchNorm1D(16), nn.GELU(), nn.Dropout(0.2), nn.Linear(16, 3)
    return nn.Sequential(*layers)


def trained(wrap, make, steps: int = 8) -> list[float]:
    """The losses of a few steps on the same data."""
    net = network(3)
    optimizer = make(net.parameters())

    def step(x, y):
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    step = wrap(step)
    rng = np.random.default_rng(0)
    x = paddle.to_tensor(rng.standard_normal((32, 8)).astype("float32"))
    y = paddle.to_tensor(rng.integers(0, 3, 32))
    paddle.seed(11)
    return [float(step(x, y)) for _ in range(steps)]


@pytest.mark.parametrize(
    "make",
    [
        lambda p: paddle.optimizer.SGD(0.1, parameters=p),
        lambda p: paddle.optimizer.AdamW(0.01, parameters=p),
        lambda p: paddle.optimizer.Momentum(
            0.05, parameters=p, grad_clip=nn.ClipGradByGlobalNorm(0.5)
        ),
    ],
    ids=["sgd", "adamw", "momentum with clipping"],
)
def test_training_is_that_of_eager_mode(make):
    """Dropout draws the same bits, batch norm keeps its averages."""
    np.testing.assert_allclose(
        trained(native, make), trained(lambda f: f, make), rtol=2e-4, atol=1e-5
    )


def test_a_network_and_its_backward_are_two_functions():
    net = network(1)
    net.eval()
    x = paddle.randn([4, 8])
    wanted = net(x)
    (wanted**2).sum().backward()
    trainable = [p for p in net.parameters() if not p.stop_gradient]
    gradients = [p.grad.numpy() for p in trainable]
    net.clear_gradients()
    net.forward = native(net.forward)
    found = net(x)
    (found**2).sum().backward()
    np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-5, atol=1e-6)
    for p, g in zip(trainable, gradients, strict=True):
        np.testing.assert_allclose(p.grad.numpy(), g, rtol=1e-4, atol=1e-5)
    assert len(executables(net.forward)) == 2


def test_branches_and_loops():
    @native
    def collatz(n):
        steps = paddle.zeros([], "int64")
        while n > 1:
            if n % 2 == 0:
                n = n // 2
            else:
                n = 3 * n + 1
            steps = steps + 1
        return steps

    assert [int(collatz(paddle.to_tensor(n))) for n in (1, 6, 7, 27)] == [0, 8, 16, 111]
    text = executables(collatz)[0].source.text
    assert "for (;;)" in text
    assert "if_true" in text


def test_what_a_loop_or_a_branch_computes_is_one_kernel():
    @native
    def root(x, a):
        while (x * x - a).abs().max() > 1e-5 * a.max():
            if x.min() > 0:
                x = x - 0.7 * (x * x - a) / (2 * x)
            else:
                x = (x + 1) * (x + 1) / 2 + 1
        return x

    a = np.linspace(1, 9, 7).astype("float32")
    for start in (3.0, -3.0):
        found = root(paddle.full([7], start), paddle.to_tensor(a)).numpy()
        np.testing.assert_allclose(found, np.sqrt(a), rtol=1e-4)
    (made,) = executables(root)
    body = next(r for r in made.program.records if "body" in r.attrs).attrs["body"]
    choice = next(r for r in body.records if "true" in r.attrs)
    for region in (choice.attrs["true"], choice.attrs["false"]):
        assert [r.op.name for r in region.records if r.op.name != "item"] == ["fused"]
    assert len(made.kernels.texts) <= 6


def test_a_reshape_to_the_size_that_remains_is_read_right():
    program = parse("""program p(x: float32[2, 3, 4]) {
      v1 = add(x, x) : float32[2, 3, 4]
      v2 = reshape(v1, shape=(2, 1, -1,)) : float32[2, 1, 12]
      v3 = broadcast_to(v2, shape=(2, 1, 12,)) : float32[2, 1, 12]
      return v3
    }""")
    x = np.arange(24, dtype="float32").reshape(2, 3, 4)
    for strategy in ({"algebra": False}, {}):
        (found,) = Executable(program, strategy)(program, [x])
        np.testing.assert_array_equal(found, 2 * x.reshape(2, 1, 12))


def test_open_sizes_are_compiled_for_each_size():
    double = paddle.jit.to_static(
        lambda x: (x * 2).sum(0), input_spec=[paddle.static.InputSpec([None, 3])], backend="native"
    )
    for n in (1, 4, 4, 7):
        assert double(paddle.ones([n, 3])).tolist() == [2.0 * n] * 3
    assert len(double.program_cache) == 1
    assert len(executables(double)) == 3


def test_sizes_that_values_say_are_interpreted():
    @native
    def positive(x):
        return x[x > 0] * 2

    assert positive(paddle.to_tensor([1.0, -1.0, 3.0])).tolist() == [2.0, 6.0]
    (reason,) = positive.concrete_program.executables.reasons.values()
    assert "sizes that depend on values" in reason


def test_an_error_leaves_the_states_as_they_were():
    total = paddle.zeros([])

    @native
    def add(x):
        total.add_(x.sum())
        assert x.min() > 0, "not positive"
        return total * 1

    assert float(add(paddle.to_tensor([1.0, 2.0]))) == 3.0
    with pytest.raises(AssertionError, match="not positive"):
        add(paddle.to_tensor([1.0, -2.0]))
    assert float(total) == 3.0
    assert float(add(paddle.to_tensor([1.0]))) == 4.0


def test_an_index_out_of_range_is_refused_before_anything_is_changed():
    table = paddle.create_parameter([5, 2], "float32")
    optimizer = paddle.optimizer.SGD(0.1, parameters=[table])

    @native
    def step(i, y):
        loss = F.cross_entropy(F.embedding(i, table), y)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    y = paddle.to_tensor([0, 1])
    step(paddle.to_tensor([4, 0]), y)
    (made,) = executables(step)
    assert not made.states_at_risk  # the update comes after every new index
    before = table.numpy().copy()
    with pytest.raises(IndexError, match=r"5 is no number from 0 to 4(.|\n)*test_native"):
        step(paddle.to_tensor([5, 0]), y)
    with pytest.raises(IndexError, match="2 is no number from 0 to 1"):
        step(paddle.to_tensor([1, 0]), paddle.to_tensor([0, 2]))
    np.testing.assert_array_equal(table.numpy(), before)
    step(paddle.to_tensor([1, 0]), y)
    assert not np.array_equal(table.numpy(), before)


def test_nan_and_infinity_are_kept():
    @native
    def f(x):
        return F.relu(x), paddle.maximum(x, x * 0), x.max(), x.sum(), F.softmax(x), x.tanh()

    def values(ys):
        return [y.numpy() for y in ys]

    for data in ([1.0, np.nan, -2.0], [np.inf, 1.0, 2.0], [-np.inf, -np.inf, 0.0]):
        x = paddle.to_tensor(np.float32(data))
        for a, b in zip(values(f(x)), values(f.function(x)), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)


@pytest.mark.sweep(one_in=3)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64"])
@pytest.mark.parametrize("shape", [(1, 1), (3, 7), (2, 16), (1, 65), (1, 70_001)])
def test_the_extremes_of_rows_are_numpys(shape, dtype):
    """NaN anywhere in a row is its extreme; threads share a row that is long and alone."""

    @native
    def f(x):
        up, down = x.max(1), x.min(1)
        return up, down, (x * 2 - 1).max(1) + up, (-x).min(1)

    rng, n = np.random.default_rng(0), shape[1]
    plain = (rng.normal(size=shape) * 9).astype(dtype)
    cases = [plain]
    if dtype != "int64":
        for value in (np.nan, np.inf, -np.inf):
            for k in {0, n // 2, n - 1}:
                cases.append(plain.copy())
                cases[-1][-1, k] = value
        cases.append(np.full(shape, -np.inf, dtype))
    for x in cases:
        up, down = x.max(1), x.min(1)
        wanted = up, down, (x * 2 - 1).max(1) + up, (-x).min(1)
        for a, b in zip(f(paddle.to_tensor(x)), wanted, strict=True):
            np.testing.assert_allclose(a.numpy(), b, rtol=1e-3 if dtype == "float16" else 1e-6)
    short = n in (1, 7)
    assert short or "reduction(max_" not in executables(f)[0].source.own


def test_outputs_have_memory_of_their_own():
    state = paddle.ones([3])

    @native
    def f(x):
        before = state * 1
        state.add_(x)
        return before, state, x

    x = paddle.ones([3])
    before, now, same = f(x)
    now.add_(paddle.ones([3]))
    same.add_(paddle.ones([3]))
    assert now is state  # as in eager mode
    assert same is x
    assert (before.tolist(), state.tolist(), x.tolist()) == ([1.0] * 3, [3.0] * 3, [2.0] * 3)


def test_views_as_inputs_are_read_right():
    f = native(lambda x: x * 2 + 1)
    whole = paddle.arange(12, dtype="float32").reshape([3, 4])
    wanted = whole.numpy().T * 2 + 1
    np.testing.assert_array_equal(f(whole.transpose([1, 0])).numpy(), wanted)
    np.testing.assert_array_equal(f(whole.transpose([1, 0])).numpy(), wanted)


def test_nothing_to_compute():
    f = native(lambda x: (x * 2, x.sum(0), x.sum()))
    doubled, columns, total = f(paddle.zeros([0, 3]))
    assert doubled.shape == [0, 3]
    assert (columns.tolist(), float(total)) == ([0.0] * 3, 0.0)


def test_threads_may_call_the_same_function():
    f = native(lambda x: (x @ x).tanh().sum())
    x = [paddle.randn([32, 32]) for _ in range(4)]
    wanted = [float(f(a)) for a in x]
    found: dict[int, set] = {k: set() for k in range(4)}

    def work(k):
        for _ in range(50):
            found[k].add(float(f(x[k])))

    workers = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert all(found[k] == {wanted[k]} for k in range(4))


def test_halves_are_stored_not_computed_with():
    f = native(lambda x: (x * 3 + 1).sum(-1))
    for dtype in ("bfloat16", "float16"):
        x = paddle.randn([4, 33]).astype(dtype)
        a, b = f(x).astype("float32").numpy(), f.function(x).astype("float32").numpy()
        np.testing.assert_allclose(a, b, rtol=2e-2, atol=5e-2)


def test_masks_are_read_as_bytes():
    """A loop that reads a `bool` took 7 times as long, for want of vectors."""
    f = native(lambda mask, x: paddle.where(mask, x, paddle.full([3], 5.0)) * 2)
    x = paddle.to_tensor([0.0, 1.0, 2.0])
    assert f(x > 0.5, x).tolist() == f.function(x > 0.5, x).tolist()
    (made,) = f.executables
    assert "const uint8_t *mask" in made.source.own
    assert "bool" not in made.source.own


def test_a_report_says_what_was_made():
    @native
    def f(x):
        return F.softmax(x.tanh() * 2 + 1)

    f(paddle.ones([3, 4]))
    (made,) = f.executables
    report = made.report()
    assert "1 groups of" in report
    assert "by the host: nothing" in report
    assert "largest live set" in report
    assert "fusion" in report
    assert made.source.own.count("static void") == 1
    assert "tanhf" in made.source.own


# ---- the compiler and its cache ---------------------------------------------------------------


def test_the_cache_has_a_limit(tmp_path, monkeypatch):
    monkeypatch.setenv("MINIPADDLE_CACHE", str(tmp_path))
    monkeypatch.setattr(compilers, "CACHE_LIMIT", 40_000)
    monkeypatch.setattr(compilers, "ONE_IN", 1)
    for k in range(6):
        c.load(f"int number_{k}(void) {{ return {k}; }}\n")
    assert sum(p.stat().st_size for p in c.cache_folder().glob("*.so")) <= 40_000


def test_one_new_library_in_some_looks_at_the_size_of_the_cache(tmp_path, monkeypatch):
    monkeypatch.setattr(compilers, "CACHE_LIMIT", 5)
    kinds = ("00.so", "01.so", "0a.o", "lock")
    for age, name in enumerate(kinds):
        (tmp_path / name).write_text("four")
        os.utime(tmp_path / name, (age, age))
    compilers.evict(tmp_path / "01.so")
    assert len([*tmp_path.iterdir()]) == len(kinds)
    compilers.evict(tmp_path / "00.so")
    assert {p.name for p in tmp_path.iterdir()} == {"0a.o", "lock"}


def test_two_processes_fill_the_cache_at_once(tmp_path):
    code = (
        "import minipaddle as paddle\n"
        "f = paddle.jit.to_static(lambda x: (x * 3).sum(), backend='native')\n"
    )
    path = tmp_path / "both.py"
    path.write_text(
        code.replace("lambda x: (x * 3).sum()", "g").replace(
            "f =", "def g(x):\n    return (x * 3).sum()\nf ="
        )
        + "print(float(f(paddle.ones([5]))))\n"
    )

    env = os.environ | {"MINIPADDLE_CACHE": str(tmp_path / "cache"), "PYTHONPATH": os.getcwd()}
    both = [
        subprocess.Popen([sys.executable, str(path)], env=env, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    assert [p.communicate(timeout=120)[0].strip() for p in both] == ["15.0", "15.0"]


def test_backends_by_name(monkeypatch):
    assert backend_named("CINN") == backend_named("native") == "native"
    monkeypatch.setenv("MINIPADDLE_BACKEND", "native")
    assert backend_named(None) == "native"
    with pytest.raises(ValueError, match="one of native, cuda, interpreter, auto"):
        paddle.jit.to_static(lambda x: x, backend="tvm")


def test_names_reach_c_only_as_identifiers():
    """A name may hold anything; what is written in C is letters, digits and _."""
    x = paddle.static.InputSpec([2], name='x"; system("true"); /*')
    f = paddle.jit.to_static(lambda x: x * 2 + 1, input_spec=[x], backend="native")
    assert f(paddle.ones([2])).tolist() == [3.0, 3.0]
    assert "system(" not in executables(f)[0].source.text.replace("/*", "")


def test_kernels_of_equal_layers_are_written_once():
    layers = [nn.Linear(8, 8) for _ in range(5)]

    @native
    def f(x):
        for layer in layers:
            x = F.gelu(layer(x))
        return x

    x = paddle.to_tensor(np.random.default_rng(0).normal(size=(4, 8)).astype("float32"))
    np.testing.assert_allclose(f(x).numpy(), f.function(x).numpy(), rtol=1e-4, atol=1e-6)
    (made,) = executables(f)
    assert len(made.kernels.texts) == 1


def test_pieces_are_joined_by_copies_even_if_they_are_reshaped():
    @native
    def f(x):
        pieces = [x * k for k in range(12)]
        return paddle.stack([p.tanh() for p in pieces], 1).reshape([4, -1]) @ paddle.ones([36, 2])

    x = paddle.to_tensor(np.random.default_rng(0).normal(size=(4, 3)).astype("float32"))
    np.testing.assert_allclose(f(x).numpy(), f.function(x).numpy(), rtol=1e-5)
    (made,) = executables(f)
    assert "memcpy" in made.source.own


def test_an_index_that_is_looked_up_again_is_known():
    """Its second use, maybe after updates, cannot fail: so no state is copied in a run."""
    table = paddle.create_parameter([50, 256], "float32")
    net = paddle.nn.Linear(256, 50)
    opt = paddle.optimizer.SGD(0.1, [table, *net.parameters()])

    def step(words):
        def part(words):
            return paddle.tanh(paddle.nn.functional.embedding(words, table) * 2)

        hidden = paddle.distributed.fleet.utils.recompute(part, words)
        paddle.nn.functional.cross_entropy(net(hidden), words).backward()
        opt.step()
        opt.clear_grad()

    static = paddle.jit.to_static(step, backend="native")
    words = paddle.to_tensor(np.arange(32) % 50)
    static(words)
    made = Executable(static.concrete_program.program)
    assert sum(r.op.name == "embedding" for r in made.program.records) == 2
    assert not made.states_at_risk


def test_places_are_looked_at_also_where_nothing_is_moved():
    static = paddle.jit.to_static(lambda x, k: paddle.gather(x, k, axis=0), backend="native")
    with pytest.raises(IndexError, match="index 0 is out of range"):
        static(paddle.zeros([0, 1, 0]), paddle.to_tensor([0, 0]))
