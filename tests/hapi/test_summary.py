"""`summary` and `flops`: Paddle's text, and numbers counted by hand."""

import pytest

import minipaddle as paddle
from minipaddle.nn.names import guard

nn = paddle.nn
LENET_SUMMARY = """\
---------------------------------------------------------------------------
 Layer (type)       Input Shape          Output Shape         Param #{4}
===========================================================================
   Conv2D-1       [[1, 1, 28, 28]]      [1, 6, 28, 28]          60{7}
    ReLU-1        [[1, 6, 28, 28]]      [1, 6, 28, 28]           0{7}
  MaxPool2D-1     [[1, 6, 28, 28]]      [1, 6, 14, 14]           0{7}
   Conv2D-2       [[1, 6, 14, 14]]     [1, 16, 10, 10]         2,416{5}
    ReLU-2       [[1, 16, 10, 10]]     [1, 16, 10, 10]           0{7}
  MaxPool2D-2    [[1, 16, 10, 10]]      [1, 16, 5, 5]            0{7}
   Linear-1          [[1, 400]]            [1, 120]           48,120{5}
   Linear-2          [[1, 120]]            [1, 84]            10,164{5}
   Linear-3          [[1, 84]]             [1, 10]              850{6}
===========================================================================
Total params: 61,610
Trainable params: 61,610
Non-trainable params: 0
---------------------------------------------------------------------------
Input size (MB): 0.00
Forward/backward pass size (MB): 0.11
Params size (MB): 0.24
Estimated Total Size (MB): 0.35
---------------------------------------------------------------------------

"""
"""What Paddle prints; {n} stands for n spaces at the end of a line."""

LENET_FLOPS = """\
+--------------+-----------------+-----------------+--------+--------+
|  Layer Name  |   Input Shape   |  Output Shape   | Params | Flops  |
+--------------+-----------------+-----------------+--------+--------+
|   conv2d_0   | [1, 1, 28, 28]  | [1, 6, 28, 28]  |   60   | 47040  |
|   re_lu_0    | [1, 6, 28, 28]  | [1, 6, 28, 28]  |   0    |   0    |
| max_pool2d_0 | [1, 6, 28, 28]  | [1, 6, 14, 14]  |   0    |   0    |
|   conv2d_1   | [1, 6, 14, 14]  | [1, 16, 10, 10] |  2416  | 241600 |
|   re_lu_1    | [1, 16, 10, 10] | [1, 16, 10, 10] |   0    |   0    |
| max_pool2d_1 | [1, 16, 10, 10] |  [1, 16, 5, 5]  |   0    |   0    |
|   linear_0   |    [1, 400]     |    [1, 120]     | 48120  | 48000  |
|   linear_1   |    [1, 120]     |     [1, 84]     | 10164  | 10080  |
|   linear_2   |     [1, 84]     |     [1, 10]     |  850   |  840   |
+--------------+-----------------+-----------------+--------+--------+
Total Flops: 347560     Total Params: 61610
"""


def rows(text: str) -> dict[str, list[str]]:
    """The cells of each layer's row by its name."""
    table = text.split("=\n")[1].split("\n=")[0]
    return {line.split()[0]: line.split(maxsplit=1)[1].split() for line in table.splitlines()}


# ---- summary ---------------------------------------------------------------------------------


def test_lenet_as_paddle_prints_it(capsys):
    with guard():
        net = paddle.vision.models.LeNet()
    counts = paddle.summary(net, (1, 1, 28, 28))
    assert capsys.readouterr().out == LENET_SUMMARY.format(*map(" ".__mul__, range(8)))
    assert counts == {"total_params": 61610, "trainable_params": 61610}


def test_statistics_are_no_trainable_parameters(capsys):
    net = nn.Sequential(nn.Conv2D(3, 4, 3), nn.BatchNorm2D(4))
    assert paddle.summary(net, (1, 3, 8, 8)) == {"total_params": 128, "trainable_params": 120}
    assert "Non-trainable params: 8" in capsys.readouterr().out


class Pieces(nn.Layer):
    """Two inputs, a parameter of its own, one layer used twice, and nested results."""

    def __init__(self):
        super().__init__()
        self.scale = self.create_parameter([5])
        self.inner = nn.Linear(4, 5)

    def forward(self, x, y):
        return self.inner(x) * self.scale, {"again": self.inner(y)}


def test_every_parameter_is_counted_once(capsys):
    with guard():
        net = nn.Sequential(Pieces())[0]
    assert paddle.summary(net, [(2, 4), (3, 4)])["total_params"] == 25 + 5
    table = rows(capsys.readouterr().out)
    assert list(table) == ["Linear-1"]  # as it was called last
    assert " ".join(table["Linear-1"]) == "[[3, 4]] [3, 5] 25"


def test_a_network_without_parts_has_its_row(capsys):
    with guard():
        net = nn.Linear(4, 5)
    assert paddle.summary(net, (3, 4)) == {"total_params": 25, "trainable_params": 25}
    assert list(rows(capsys.readouterr().out)) == ["Linear-1"]


def test_recurrent_layers_are_one_row(capsys):
    with guard():
        net = nn.Sequential(nn.LSTM(4, 5, num_layers=2))
    paddle.summary(net, (2, 3, 4))
    out = capsys.readouterr().out
    cells = " ".join(rows(out)["LSTM-1"])
    assert cells == "[[2, 3, 4]] [[2, 3, 5], [[2, 2, 5], [2, 2, 5]]] 460"
    assert max(map(len, out.splitlines())) == 15 + 20 + 35 + 15 + 5  # the third column is wider
    with guard():
        net = nn.GRU(4, 5)
    paddle.summary(net, (2, 3, 4))
    assert list(rows(capsys.readouterr().out)) == ["GRU-1"]


@pytest.mark.parametrize(
    ("size", "shape"),
    [((-1, 4), "1, 4"), ((None, 4), "1, 4"), ([2, 4], "2, 4"), (4, "4"), ([(3, 4)], "3, 4")],
)
def test_how_a_shape_is_said(size, shape, capsys):
    paddle.summary(nn.Sequential(nn.Linear(4, 3)), size)
    assert f"[[{shape}]]" in capsys.readouterr().out


def test_something_with_a_shape_is_a_shape(capsys):
    paddle.summary(nn.Sequential(nn.Linear(4, 3)), paddle.zeros([7, 4]))
    assert "[[7, 4]]" in capsys.readouterr().out


def test_dtypes(capsys):
    net = nn.Sequential(nn.Embedding(1, 4))
    paddle.summary(net, (2, 3), dtypes="int64")
    paddle.summary(net, [(2, 3)], dtypes=["int64"])
    assert capsys.readouterr().out.count("[2, 3, 4]") == 2
    with pytest.raises(ValueError, match="1 dtypes for 2 inputs"):
        paddle.summary(Pieces(), [(2, 4), (3, 4)], dtypes=["float32"])


def test_a_given_input_is_passed_as_it_is(capsys):
    class Sum(nn.Layer):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(4, 5)

        def forward(self, given):
            parts = given.values() if isinstance(given, dict) else given
            return sum(self.inner(x) for x in parts)

    x = paddle.ones([512, 512, 4])
    paddle.summary(Sum(), input=[x])
    out = capsys.readouterr().out
    assert "Input size (MB): 4.00" in out
    assert "Forward/backward pass size (MB): 10.00" in out
    paddle.summary(Sum(), input={"a": x, "b": x})
    assert "Input size (MB): 8.00" in capsys.readouterr().out


@pytest.mark.parametrize("run", [paddle.summary, paddle.flops])
def test_the_network_is_as_before(run):
    net = nn.Sequential(nn.Dropout(0.5), nn.BatchNorm1D(4), nn.Linear(4, 3))
    net[0].eval()
    before = {k: v.numpy() for k, v in net.state_dict().items()}
    run(net, (3, 4))
    assert [layer.training for layer in net.sublayers(True)] == [True, False, True, True]
    assert not any(layer._forward_post_hooks for layer in net.sublayers(True))
    assert not any(hasattr(layer, "total_ops") for layer in net.sublayers(True))
    assert all((before[k] == v.numpy()).all() for k, v in net.state_dict().items())


def test_the_network_is_as_before_even_if_it_fails():
    net = nn.Sequential(nn.Linear(4, 3))
    with pytest.raises(ValueError, match="in_features=4"):
        paddle.summary(net, (3, 5))
    assert net.training
    assert not net[0]._forward_post_hooks


@pytest.mark.parametrize("size", [(None, None, 4), (0, 4), (2.5, 4), (-1, -1), [(3, 4), (-3, 4)]])
def test_shapes_that_make_no_sense(size):
    with pytest.raises(ValueError, match=r"input_size .*\n  expected: positive whole numbers"):
        paddle.summary(nn.Linear(4, 3), size)


def test_neither_shape_nor_input():
    with pytest.raises(ValueError, match="neither input_size nor input"):
        paddle.summary(nn.Linear(4, 3))


# ---- flops -----------------------------------------------------------------------------------


def test_lenet_by_hand(capsys):
    with guard():
        net = paddle.vision.models.LeNet()
    found = paddle.flops(net, [1, 1, 28, 28], print_detail=True)
    conv1, conv2 = 6 * 28 * 28 * (9 + 1), 16 * 10 * 10 * (6 * 25 + 1)
    assert found == conv1 + conv2 + 400 * 120 + 120 * 84 + 84 * 10 == 347560
    assert type(found) is int
    out = capsys.readouterr().out
    assert out.endswith(LENET_FLOPS)
    kinds = [line.split(".")[-1] for line in out.splitlines()[:4]]
    assert kinds == [
        f"{name}'>'s flops has been counted" for name in ("Conv2D", "ReLU", "MaxPool2D", "Linear")
    ]


def test_without_detail_only_the_total(capsys):
    assert paddle.flops(nn.Linear(4, 3), [2, 4]) == 24
    assert capsys.readouterr().out.splitlines()[1:] == ["Total Flops: 24     Total Params: 15"]


@pytest.mark.parametrize(
    ("layer", "shape", "count"),
    [
        (lambda: nn.Conv2D(4, 6, 3, groups=2, bias_attr=False), [2, 4, 5, 5], 2 * 6 * 9 * 2 * 9),
        (lambda: nn.Conv1D(4, 6, 3, data_format="NLC"), [2, 5, 4], 2 * 3 * 6 * (4 * 3 + 1)),
        (lambda: nn.Conv2DTranspose(4, 6, 2), [1, 4, 3, 3], 6 * 16 * (4 * 4 + 1)),
        (lambda: nn.BatchNorm2D(4), [2, 4, 3, 3], 2 * 72),
        (lambda: nn.LayerNorm(4), [3, 4], 2 * 12),
        (lambda: nn.GroupNorm(2, 4), [2, 4, 3, 3], 2 * 72),
        (lambda: nn.InstanceNorm2D(4), [2, 4, 3, 3], 2 * 72),
        (lambda: nn.LeakyReLU(), [3, 4], 12),
        (lambda: nn.ReLU(), [3, 4], 0),
        (lambda: nn.Dropout(), [3, 4], 0),
        (lambda: nn.AvgPool2D(2), [1, 4, 6, 6], 4 * 9),
        (lambda: nn.MaxPool2D(2), [1, 4, 6, 6], 0),
        (lambda: nn.AdaptiveAvgPool2D((3, 2)), [1, 4, 6, 6], 4 * 6 * (2 * 3 + 1)),
        (lambda: nn.AdaptiveAvgPool2D(1), [1, 4, 6, 6], 4 * (36 + 1)),
    ],
)
def test_layers_by_hand(layer, shape, count, capsys):
    assert paddle.flops(layer(), shape) == count
    assert "has been counted" in capsys.readouterr().out


def test_a_layer_without_a_formula_is_named(capsys):
    with guard():
        net = nn.Sequential(nn.Softshrink(), nn.Linear(4, 3))
    assert paddle.flops(net, [1, 4]) == 12
    out = capsys.readouterr().out
    assert "Cannot find suitable count function for <class " in out
    assert "Softshrink'>. Treat it as zero FLOPs." in out


def test_a_layer_used_twice_counts_twice():
    class Twice(nn.Layer):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(4, 4)

        def forward(self, x):
            return self.inner(self.inner(x))

    assert paddle.flops(Twice(), [2, 4]) == 2 * 32


def test_a_derived_layer_counts_as_its_base():
    class Mine(nn.Linear):
        pass

    assert paddle.flops(Mine(4, 3), [2, 4]) == 24


def test_counts_of_the_users(capsys):
    def each_element_thrice(layer, inputs, output):
        layer.total_ops += 3 * inputs[0].numel()

    net = nn.Sequential(nn.ReLU(), nn.Linear(4, 3))
    assert paddle.flops(net, [2, 4], custom_ops={nn.ReLU: each_element_thrice}) == 3 * 8 + 24
    assert "Customize Function has been applied to <class " in capsys.readouterr().out


def test_several_results_show_the_first(capsys):
    class Split(nn.Layer):
        def forward(self, x):
            return x[:, :1], x

    paddle.flops(Split(), [2, 4], print_detail=True)
    assert "| [2, 1] " in capsys.readouterr().out.replace("   ", " ").replace("  ", " ")


def test_only_layers_have_flops():
    with pytest.raises(TypeError, match="flops of a function\n  expected: a Layer"):
        paddle.flops(lambda x: x, [1, 4])
