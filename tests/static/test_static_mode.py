"""Static mode beside eager mode: the same numbers, clones for tests, files, errors that teach."""

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle import nn, static
from tests.near import assert_same
from tests.static.classical import digits, drawn


@pytest.fixture(autouse=True)
def written():
    """A program of its own for each test."""
    paddle.enable_static()
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        yield main, startup
    paddle.disable_static()


def run(program=None, fetch=(), **feed):
    return static.Executor().run(program, feed=feed, fetch_list=list(fetch))


def net():
    first = nn.Conv2D(1, 4, 3, bias_attr=False)  # one before a norm follows nothing but rounding
    return nn.Sequential(
        first, nn.BatchNorm2D(4), nn.ReLU(), nn.Flatten(), nn.Dropout(0.3), nn.Linear(144, 4)
    )


def test_lists_in_the_fetch_list(written):
    x = static.data("x", [2])
    x.stop_gradient = False
    y = (x * x).sum()
    found = run(fetch=[y, static.gradients(y, x)], x=np.ones(2, "float32"))
    assert [a.tolist() for a in found] == [2.0, [2.0, 2.0]]
    exe = static.Executor()
    assert exe.run(feed={"x": np.ones(2, "float32")}, fetch_list=y)[0].item() == 2.0


def test_data_is_of_the_default_dtype(written):
    paddle.set_default_dtype("float64")
    try:
        x = static.data("x", [2])
    finally:
        paddle.set_default_dtype("float32")
    assert x.dtype == "float64"
    assert static.data("y", [2]).dtype == "float32"


def test_a_refused_program_guard_changes_nothing(written):
    clone = written[0].clone()
    with pytest.raises(RuntimeError, match="cannot be changed"), static.program_guard(clone):
        pass
    assert static.default_main_program() is written[0]
    x = static.data("x", [2])
    assert run(fetch=[x + x], x=np.ones(2, "float32"))[0].tolist() == [2.0, 2.0]


def test_layers_of_static_nn_take_names_and_dtypes(written):
    x = static.data("x", [2, 3, 4, 4])
    static.nn.batch_norm(x, moving_mean_name="mean", moving_variance_name="variance")
    rows = static.nn.embedding(static.data("i", [2], "int64"), [5, 3], dtype="float64")
    assert {"mean", "variance"} <= written[0].state_dict().keys()
    assert rows.dtype == "float64"


def test_training_equals_eager(written):
    """Dropout, batch norm and Adam, and a clone for testing, bit by bit if it is interpreted."""
    images, labels = digits()

    def loss_of(model, x, y):
        return nn.functional.cross_entropy(model(x), y)

    paddle.seed(3)
    model = net()
    x, y = static.data("x", [None, 1, 8, 8]), static.data("y", [None, 1], "int64")
    loss = loss_of(model, x, y)
    test = written[0].clone(for_test=True)
    paddle.optimizer.Adam(0.01).minimize(loss)
    run(written[1])
    batches = [slice(k, k + 20) for k in range(0, 40, 10)]
    found = [run(fetch=[loss], x=images[b], y=labels[b])[0] for b in batches]
    tested = run(test, [loss], x=images, y=labels)[0]
    assert (run(test, [loss], x=images, y=labels)[0] == tested).all()
    paddle.disable_static()

    paddle.seed(3)
    model = net()
    adam = paddle.optimizer.Adam(0.01, parameters=model.parameters())
    for b, value in zip(batches, found, strict=True):
        loss = loss_of(model, paddle.to_tensor(images[b]), paddle.to_tensor(labels[b]))
        loss.backward()
        adam.step()
        adam.clear_grad()
        assert_same(value, loss)
    model.eval()
    loss = loss_of(model, paddle.to_tensor(images), paddle.to_tensor(labels))
    assert_same(tested, loss, rounding=1e-6)
    paddle.enable_static()


def test_layers_as_functions(written):
    paddle.seed(0)
    x = static.data("x", [None, 2, 6, 6])
    h = static.nn.conv2d(x, 3, 3, act="relu", bias_attr=False)
    h = static.nn.batch_norm(h, act="tanh")
    h = static.nn.layer_norm(h, begin_norm_axis=1)
    y = static.nn.fc(h, 2, num_flatten_dims=1, activation="sigmoid")
    ids = static.data("ids", ["words"], "int64")
    rows = static.nn.embedding(ids, [5, 4])
    w = static.create_parameter([4], "float32")
    out, scaled = run(fetch=[y, rows * w], x=drawn(0, 3, 2, 6, 6), ids=np.array([1, 4]))
    assert out.shape == (3, 2)
    assert scaled.shape == (2, 4)
    assert len(written[0].all_parameters()) == 11  # the running statistics among them


def test_one_program_is_compiled_once(written):
    x = static.data("x", [None, 2])
    y = (x * x).sum()
    y.name = "loss"
    assert [run(fetch=["loss"], x=drawn(0, n, 2))[0].shape for n in (1, 3)] == [(), ()]
    assert len(written[0].compiled) == 1
    assert (run(fetch=[y], x=[[1.0, 2.0]])[0]) == 5.0
    z = y + 1
    assert run(fetch=[z], x=[[1.0, 2.0]])[0] == 6.0


def test_looking(written):
    main, _ = written
    x = static.data("x", [None, 2])
    static.nn.fc(x, 3)
    block = main.global_block()
    assert [op.type for op in block.ops] == ["affine"]
    assert block.var("x") is x
    assert [p.shape for p in block.all_parameters()] == [[2, 3], [3]]
    assert "affine(x, " in str(main)
    assert set(main.state_dict()) == {p.name for p in main.all_parameters()}
    assert repr(block.ops[0]).startswith("affine")
    with pytest.raises(ValueError, match="no 'z'"):
        block.var("z")
    name = main.all_parameters()[0].name
    with static.name_scope("part"):
        assert static.global_scope().find_var(name).get_tensor().shape == [2, 3]


def test_startup_draws_again(written):
    _main, startup = written
    x = static.data("x", [1, 2])
    y = static.nn.fc(x, 2)
    paddle.seed(5)
    run(startup)
    first = run(fetch=[y], x=[[1.0, 2.0]])[0]
    run(startup)
    assert (run(fetch=[y], x=[[1.0, 2.0]])[0] != first).any()


def test_gradients(written):
    x = static.data("x", [3])
    x.stop_gradient = False
    (g,) = static.gradients((x**3).sum(), x)
    (gg,) = static.gradients([g.sum()], [x])
    first, second = run(fetch=[g, gg], x=[1.0, 2.0, 3.0])
    assert first.tolist() == [3.0, 12.0, 27.0]
    assert second.tolist() == [6.0, 12.0, 18.0]
    assert static.gradients([x.detach().sum()], [x]) == [None]


def test_files(written, tmp_path):
    main, _startup = written
    x = static.data("x", [None, 4])
    h = nn.functional.dropout(static.nn.fc(x, 3), 0.5)
    loss = (h * h).mean()
    paddle.optimizer.Adam(0.1).minimize(loss)
    for _ in range(3):
        run(fetch=[loss], x=drawn(1, 5, 4))
    static.save(main, str(tmp_path / "net"))
    test = main.clone(for_test=True)
    before = run(test, [h], x=drawn(2, 2, 4))[0]
    run(fetch=[loss], x=drawn(1, 5, 4))
    assert (run(test, [h], x=drawn(2, 2, 4))[0] != before).any()
    static.load(main, str(tmp_path / "net"))
    assert (run(test, [h], x=drawn(2, 2, 4))[0] == before).all()

    prefix = str(tmp_path / "inference")
    static.save_inference_model(prefix, [x], [h], static.Executor())
    program, names, fetches = static.load_inference_model(prefix, static.Executor())
    assert names == ["x"]
    assert (run(program, fetches, x=drawn(2, 2, 4))[0] == before).all()
    paddle.disable_static()
    np.testing.assert_array_equal(
        paddle.jit.load(prefix)(paddle.to_tensor(drawn(2, 2, 4)))[0].numpy(), before
    )
    paddle.enable_static()


def test_several_programs():
    first, second = static.Program(), static.Program()
    with static.program_guard(first):
        a = static.data("a", [2]) + 1
        shared = static.create_parameter([2], "float32", is_bias=True)
        a = a + shared
    with static.program_guard(second):
        b = static.data("b", [2]) * 2 + shared
    shared.name = "shared"
    exe = static.Executor()
    assert exe.run(first, feed={"a": [1.0, 2.0]}, fetch_list=[a])[0].tolist() == [2.0, 3.0]
    paddle.disable_static()
    shared.set_value(paddle.ones([2]))
    assert exe.run(first, feed={"a": [1.0, 2.0]}, fetch_list=[a])[0].tolist() == [3.0, 4.0]
    found = exe.run(second, feed={"b": paddle.ones([2])}, fetch_list=[b], return_numpy=False)
    assert found[0].tolist() == [3.0, 3.0]
    paddle.enable_static()
    strategy = static.BuildStrategy()
    strategy.enable_inplace = True
    compiled = static.CompiledProgram(first, build_strategy=strategy)
    assert exe.run(compiled, feed={"a": [0.0, 0.0]}, fetch_list=[a])[0].tolist() == [2.0, 2.0]
    exe.close()


def test_modes():
    assert paddle.in_static_mode()
    assert not paddle.in_dynamic_mode()
    paddle.disable_static()
    paddle.disable_static()
    assert paddle.in_dynamic_mode()
    paddle.enable_static()
    paddle.enable_static()
    assert static.ExecutionStrategy().num_threads == 0
    assert len(static.cpu_places(2)) == 2


def test_sizes_a_program_takes_for_granted():
    """A decision about an open size holds for the sizes it was made for, or the run says so."""
    x = static.data("x", [None, None])
    y = x.reshape([-1]) + (1.0 if x.shape[1] > 4 else 0.0)
    assert run(fetch=[y], x=drawn(0, 2, 5))[0].shape == (10,)
    with pytest.raises(ValueError, match="assumes that x_1 > 4 is True"):
        run(fetch=[y], x=drawn(0, 2, 3))


def batches(*sizes):
    """Data whose first size is open, of these sizes."""
    names = "xyz"[: len(sizes)]
    given = [static.data(name, [None]) for name in names]
    return run(fetch=given, **{name: drawn(0, n) for name, n in zip(names, sizes, strict=True)})


def wrong_data(name):
    static.data("x", [2])
    static.data(name, [2])


ERRORS = [
    (lambda: wrong_data("x"), ValueError, "has a 'x' already"),
    (lambda: run(fetch=["nobody"]), ValueError, "no 'nobody'"),
    (lambda: run(fetch=[static.data("y", [2]) + 1]), ValueError, "needs 'y'"),
    (lambda: run(fetch=[static.data("y", [2])], y=[1.0]), ValueError, "expected: float32"),
    (lambda: run(fetch=[static.data("y", [2])], y=np.zeros(2)), ValueError, "float64"),
    (lambda: run(fetch=[], z=[1.0]), ValueError, "has no data 'z'"),
    (lambda: batches(2, 3), ValueError, r"where batch = 2\n.*\n.*data\('y', \[\"rows\"\]\)"),
    (lambda: static.data("y", [2]).numpy(), TypeError, "has no value yet"),
    (lambda: setattr(static.BuildStrategy(), "fast", 1), AttributeError, "has no 'fast'"),
    (lambda: static.Program().state_dict("none"), ValueError, "all, param or opt"),
    (lambda: static.Program().clone().writable(), RuntimeError, "a clone"),
    (lambda: static.nn.case([]), TypeError, "without pairs"),
]


@pytest.mark.parametrize("k", range(len(ERRORS)))
def test_errors_teach(k):
    call, error, words = ERRORS[k]
    with pytest.raises(error, match=words):
        call()


def test_eager_mode_is_told():
    paddle.disable_static()
    with pytest.raises(RuntimeError, match="enable_static"):
        static.data("x", [1])
    with pytest.raises(RuntimeError, match="enable_static"), static.program_guard(static.Program()):
        pass
    assert static.nn.switch_case(paddle.to_tensor(3), [lambda: 1, lambda: 2]) == 2
    paddle.enable_static()
