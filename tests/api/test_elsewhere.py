"""Names that Paddle has elsewhere: one table; what can be imported and not used says why."""

import importlib
import json
from pathlib import Path

import pytest

import minipaddle as paddle
from minipaddle.core.elsewhere import HOMES, MODULES, STAND_INS, find
from minipaddle.core.left_out import reason

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", sorted(HOMES))
def test_every_row_leads_somewhere(name):
    """By import and by attributes; a module has the names of its home."""
    if not name.endswith(".*"):
        assert callable(find(name))
        return
    module = importlib.import_module("mini" + name.removesuffix(".*"))
    home = importlib.import_module("mini" + HOMES[name])
    assert find(name.removesuffix(".*")) is module
    for part in [x for x in vars(home) if not x.startswith("_")][:20]:
        assert getattr(module, part) is getattr(home, part)
    with pytest.raises(AttributeError, match=r"nothing_of_this_name|a module inside Paddle"):
        module.nothing_of_this_name  # noqa: B018


@pytest.mark.parametrize("name", sorted(STAND_INS))
def test_what_stands_in_says_why(name):
    space, _, last = name.rpartition(".")
    module = importlib.import_module("mini" + space)
    stand_in = getattr(module, last)
    inherited = type("Mine", (stand_in,), {"x": 3})
    assert reason(name)
    assert inherited.x == 3
    assert not isinstance(3, stand_in)
    for each in (stand_in, inherited):
        with pytest.raises(NotImplementedError) as caught:
            each(1, y=2)
        assert str(caught.value).startswith(f"{name}: {reason(name)}")
        with pytest.raises(AttributeError, match=f"{name}.CPU: "):
            each.CPU  # noqa: B018


def test_the_table_hides_nothing():
    """No row names what has a file of its own: then the row would never be read."""
    package = ROOT / "minipaddle"
    rows = [name.removesuffix(".*") for name in [*HOMES, *STAND_INS]]
    for name in rows:
        path = package.joinpath(*name.split(".")[1:])
        assert not path.with_suffix(".py").exists(), name
        assert not path.is_dir(), name
    assert MODULES.isdisjoint(STAND_INS)


@pytest.mark.parametrize(
    "line",
    [
        "from minipaddle.nn.initializer.kaiming import KaimingNormal as found",
        "import minipaddle.nn.initializer.kaiming as k; found = k.KaimingNormal",
        "found = paddle.nn.initializer.kaiming.KaimingNormal",
        "found = paddle.paddle.nn.initializer.KaimingNormal",
    ],
)
def test_ways_to_import(line):
    space = {"paddle": paddle}
    exec(line, space)
    assert space["found"] is paddle.nn.initializer.KaimingNormal


def test_modules_of_one_file_stay_what_they_are():
    assert paddle.nn.initializer.__package__ == "minipaddle.nn"
    assert paddle.framework.random.seed is paddle.seed
    assert importlib.util.find_spec("minipaddle.nn.initializer.nowhere") is None


def test_the_helper_of_cpps_operators():
    from minipaddle.common_ops_import import LayerHelper

    helper = LayerHelper("prior_box", input=paddle.ones([1], "float64"), x=[paddle.ones([1])])
    assert (helper.input_dtype(), helper.input_dtype("x")) == (paddle.float64, paddle.float32)
    with pytest.raises(NotImplementedError, match="'prior_box' was asked for by its name in C"):
        helper.append_op(type="prior_box", inputs={}, outputs={})


def test_names_of_section_4():
    """What whole libraries stop at; `used` is Paddle's count of who uses them."""
    used = json.loads((ROOT / "tests/data/used_names.json").read_text())["names"]
    assert used
    assert paddle.is_compiled_with_custom_device("npu") is False
    assert paddle.distributed.fleet.base.role_maker.PaddleCloudRoleMaker
    assert paddle.base.framework.in_dygraph_mode() is True
    layer = paddle.nn.LSTM(2, 3)
    assert layer.flatten_parameters() is None


def test_a_version_is_required():
    paddle.utils.require_version("2.0.0")
    paddle.utils.require_version("3.3.1", "3.3.1")
    for wrong in (("3.4",), ("2.0", "2.6.1"), ("99.0.0.0",)):
        with pytest.raises(RuntimeError, match=f"requires Paddle from {wrong[0]}"):
            paddle.utils.require_version(*wrong)
    for wrong in ("2.x", "", 2.0):
        with pytest.raises(ValueError, match="one to four numbers"):
            paddle.utils.require_version(wrong)


def test_tensor_arrays():
    x, y = paddle.ones([1]), paddle.zeros([1])
    array = paddle.tensor.array_write(x, paddle.to_tensor([0]))
    paddle.tensor.array_write(y, paddle.to_tensor([1]), array)
    paddle.tensor.array_write(y, paddle.to_tensor([0]), array)
    assert array == [y, y] or all(each is y for each in array)
    assert paddle.tensor.array_read(array, paddle.to_tensor([1])) is y
    assert paddle.tensor.array_length(array) == 2
    with pytest.raises(ValueError, match="array_write at 3 of a list of 2"):
        paddle.tensor.array_write(x, paddle.to_tensor([3]), array)
    with pytest.raises(TypeError, match="create_array of 1"):
        paddle.tensor.create_array("float32", [1])


# ---- paddle.reader ---------------------------------------------------------------------------


def numbers(n):
    return lambda: iter(range(n))


def test_readers():
    from minipaddle.reader.decorator import shuffle

    reader = paddle.reader
    assert shuffle is reader.shuffle
    assert [len(b) for b in paddle.batch(numbers(7), 3)()] == [3, 3, 1]
    assert [*paddle.batch(numbers(7), 3, drop_last=True)()] == [[0, 1, 2], [3, 4, 5]]
    mixed = [*shuffle(numbers(100), 10)()]
    assert mixed != sorted(mixed)
    assert [sorted(mixed[k : k + 10]) for k in range(0, 100, 10)] == [
        [*range(k, k + 10)] for k in range(0, 100, 10)
    ]
    assert [*reader.map_readers(lambda a, b: a + b, numbers(3), numbers(3))()] == [0, 2, 4]
    assert [*reader.firstn(numbers(9), 2)()] == [0, 1]
    assert [*reader.buffered(numbers(9), 2)()] == [*range(9)]
    once = iter(range(3))
    kept = reader.cache(lambda: once)
    assert [*kept(), *kept()] == [0, 1, 2, 0, 1, 2]
    assert [*reader.xmap_readers(lambda x: x * x, numbers(20), 3, 4)()] == [
        k * k for k in range(20)
    ]
    uneven = reader.compose(numbers(2), numbers(3))
    with pytest.raises(reader.ComposeNotAligned):
        [*uneven()]
    assert [*reader.compose(numbers(2), numbers(3), check_alignment=False)()] == [(0, 0), (1, 1)]
    with pytest.raises(ValueError, match="batch_size=0"):
        paddle.batch(numbers(3), 0)
