"""`static.auc`, variables that keep their values, states in files, printing of variables."""

import numpy as np
import pytest

import minipaddle as paddle

static = paddle.static


@pytest.fixture(autouse=True)
def program():
    paddle.enable_static()
    try:
        with static.program_guard(static.Program(), static.Program()):
            yield
    finally:
        paddle.disable_static()


def area(scores, labels):
    """The share of pairs of a positive and a negative in the right order; ties count half."""
    positive, negative = scores[labels == 1][:, None], scores[labels == 0]
    return ((positive > negative) + (positive == negative) / 2).mean()


def batches(count, rng):
    for _ in range(count):
        scores, labels = rng.integers(0, 16, 40) / 15, rng.integers(0, 2, 40)
        yield scores, labels


@pytest.mark.parametrize("steps", [0, 1, 2])
def test_the_area_of_all_runs_and_of_the_last(steps):
    """With as many steps as there are scores, the histogram loses nothing."""
    x, y = static.data("x", [None, 2]), static.data("y", [None, 1], "int64")
    whole, recent, states = static.auc(x, y, num_thresholds=15, slide_steps=steps)
    exe, seen = static.Executor(), []
    for scores, labels in batches(4, np.random.default_rng(0)):
        seen.append((scores, labels))
        feed = {"x": np.stack([1 - scores, scores], 1).astype("float32"), "y": labels[:, None]}
        found = exe.run(feed=feed, fetch_list=[whole, recent, states[2]])
        for value, part in zip(found, (seen, seen[-steps:])):
            wanted = area(*(np.concatenate(each) for each in zip(*part)))
            np.testing.assert_allclose(value, wanted, rtol=1e-9)
        assert found[2].sum() == sum(labels.sum() for _, labels in seen)


def test_one_class_has_no_area():
    x, y = static.data("x", [None, 2]), static.data("y", [None, 1], "int64")
    whole, *_ = static.auc(x, y)
    feed = {"x": np.ones([3, 2], "float32"), "y": np.ones([3, 1], "int64")}
    assert static.Executor().run(feed=feed, fetch_list=[whole])[0] == 0
    with pytest.raises(ValueError, match="curve='PR'"):
        static.auc(x, y, curve="PR")


def test_a_variable_keeps_its_value():
    count = static.create_global_var([1], 5, "int64", persistable=True, name="count")
    paddle.assign(count + 1, count)
    exe = static.Executor()
    assert [exe.run(fetch_list=[count])[0].item() for _ in range(3)] == [6, 7, 8]
    assert static.default_main_program().global_block().var("count") is count


def test_states_as_arrays(tmp_path):
    x = static.data("x", [None, 3])
    y = static.nn.fc(x, 2, weight_attr=paddle.ParamAttr(name="w"))
    main, exe = static.default_main_program(), static.Executor()
    exe.run(static.default_startup_program())
    static.save(main, str(tmp_path / "model"))
    found = static.load_program_state(str(tmp_path / "model"))
    assert sorted(found) == sorted(main.state_dict())
    assert isinstance(found["w"], np.ndarray)
    assert [*static.load_program_state(str(tmp_path / "model"), [main.state_dict()["w"]])] == ["w"]
    static.set_program_state(main, {"w": np.full([3, 2], 2.0, "float32")})
    feed = {"x": np.ones([1, 3], "float32")}
    np.testing.assert_allclose(exe.run(feed=feed, fetch_list=[y])[0], [[6.0, 6.0]])
    with pytest.warns(UserWarning, match="has no states nothing"):
        static.set_program_state(main, {"nothing": found["w"]})


def test_a_variable_is_printed_by_what_is_known(capsys):
    x = static.data("x", [None, 3])
    y = (x * 2).mean()
    print("input:", x, [y])
    assert f"{y} {y:>3}" == f"{y!r} {y!r}"
    wanted = "Variable(name=x, shape=[batch, 3], dtype=float32, stop_gradient=True)"
    rest = "Variable(shape=[], dtype=float32, stop_gradient=True)"
    assert capsys.readouterr().out == f"input: {wanted} [{rest}]\n"
