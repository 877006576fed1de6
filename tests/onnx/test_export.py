"""`paddle.onnx.export`: control flow, open sizes, names, and what is refused by name."""

import builtins
import warnings

import numpy as np
import onnx
import pytest

import minipaddle as paddle
from minipaddle import nn
from minipaddle.engine.core.op import OPS
from minipaddle.engine.ops.contraction import contraction
from minipaddle.nn.quant.format import LinearQuanterDequanter
from minipaddle.onnx import exporting
from minipaddle.static import InputSpec
from tests.onnx.running import by_reference, by_runtime, error

ANY = [InputSpec([None, 4])]


class Branches(nn.Layer):
    """A condition and a loop on values; the loop has a condition inside."""

    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(4, 4), nn.Linear(4, 4)

    @paddle.jit.to_static
    def forward(self, x):
        if x.sum() > 0:
            y = self.up(x)
        else:
            y = self.down(x) - x
        count = paddle.to_tensor(0)
        while count < 4 and y.abs().sum() < 100:
            if count > 1:
                y = y * 3
            else:
                y = y * 2 + count.astype("float32")
            count = count + 1
        return y, count


def export(net, folder, spec, **how) -> str:
    path = str(folder / "net.onnx")
    paddle.onnx.export(net, path, input_spec=spec, **how)
    return path


def agree(net, path, *arrays) -> None:
    """A file gives in both runtimes, and read back, what the network gives."""
    loaded = paddle.onnx.load(path)
    ours, again = (f(*map(paddle.to_tensor, arrays)) for f in (net, loaded))
    ours, again = (y if isinstance(y, tuple | list) else [y] for y in (ours, again))
    for others in (by_runtime(path, arrays), by_reference(path, arrays), again):
        for a, b in zip(ours, others, strict=True):
            assert a.shape == list(b.shape)
            assert error(a.numpy(), np.asarray(b)) < 1e-5


def kinds(graph) -> list[str]:
    """The operators of a graph and its subgraphs."""
    found = []
    for node in graph.node:
        found.append(node.op_type)
        for a in node.attribute:
            found += kinds(a.g) if a.HasField("g") else []
    return found


@pytest.mark.parametrize("sign", [1, -1])
def test_conditions_and_loops(sign, tmp_path):
    paddle.seed(0)
    net = Branches().eval()
    path = export(net, tmp_path, ANY)
    graph = onnx.load(path).graph
    assert {"If", "Loop"} <= {n.op_type for n in graph.node}
    assert kinds(graph).count("If") >= 2
    for rows in (1, 3):
        agree(net, path, sign * np.abs(np.random.default_rng(rows).normal(size=(rows, 4))).astype(
            "float32"))  # fmt: skip


@paddle.jit.to_static
def count_up(x):
    total, k = paddle.zeros([3]), paddle.to_tensor(0)
    while k < x.sum().astype("int64"):
        total = total + k.astype("float32")
        k = k + 1
    return total


def test_a_loop_whose_number_of_iterations_is_in_the_data(tmp_path):
    path = export(count_up, tmp_path, [InputSpec([2])])
    for x in ([0.0, 0.0], [2.0, 3.0]):
        agree(count_up, path, np.array(x, "float32"))


def places(x):
    return x[x > 0], paddle.nonzero(x), x.reshape([-1, 2, x.shape[1] // 2]) + x.shape[0]


def test_sizes_that_a_run_decides(tmp_path):
    """Of masks, and computed from the sizes of the input."""
    path = export(places, tmp_path, ANY)
    for rows in (1, 5):
        agree(places, path, np.random.default_rng(rows).normal(size=(rows, 4)).astype("float32"))
    inputs = onnx.load(path).graph.input[0].type.tensor_type.shape.dim
    assert [d.dim_param or d.dim_value for d in inputs] == ["batch", 4]


def windows(x):
    n = x.shape[0]
    grid = paddle.arange(n).astype("float32") - paddle.full([n], 0.5)
    y = paddle.concat([x[1:], x[:1]]) * 2 + paddle.roll(x, 1, 0)
    y = paddle.tile(y, [2, 1])[: n // 2 + 1]
    x = x.clone()
    x[1:, 2] = 7.0
    return y, grid, paddle.tril(x.matmul(x.T)), x.expand([2, n, 4]).sum([0, 2])


def test_movements_of_open_sizes(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = export(windows, tmp_path, ANY)
    for rows in (3, 6):
        agree(windows, path, np.random.default_rng(rows).normal(size=(rows, 4)).astype("float32"))


def test_nodes_say_where_they_come_from(tmp_path):
    net = nn.Sequential(nn.Linear(4, 3), nn.Sequential(nn.ReLU(), nn.Linear(3, 2))).eval()
    graph = onnx.load(export(net, tmp_path, ANY)).graph
    names = [n.name for n in graph.node]
    assert [n.rpartition("/")[0] for n in names[:3]] == ["Linear", "Sequential/ReLU",
                                                        "Sequential/Linear"]  # fmt: skip
    assert len(set(names)) == len(names)
    assert all("test_export.py:" in n.doc_string for n in graph.node[:3])
    assert not any("/" in n.doc_string for n in graph.node)  # no folders of this machine
    assert {t.name for t in graph.initializer} == {p.name for p in net.parameters()}


def test_results_may_be_nested_inputs_may_be_results(tmp_path):
    def both(x, y):
        return {"sum": x + y, "x": x}, [y, None]

    path = export(both, tmp_path, [InputSpec([2]), InputSpec([2])])
    x, y = np.ones(2, "float32"), np.zeros(2, "float32")
    for found in (by_runtime(path, [x, y]), by_reference(path, [x, y])):
        assert [f.tolist() for f in found] == [[1, 1], [1, 1], [0, 0]]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_other_floats(dtype, tmp_path):
    """Halves are computed in float32 and rounded once, as here."""
    f = lambda x: paddle.nn.functional.silu(x) * 3
    path = export(f, tmp_path, [InputSpec([None], dtype)])
    x = np.linspace(-3, 3, 7).astype("float32")
    loaded = paddle.onnx.load(path)(paddle.to_tensor(x).astype(dtype))
    ours = f(paddle.to_tensor(x).astype(dtype))
    assert (loaded.dtype, loaded.tolist()) == (ours.dtype, ours.tolist())
    if dtype != "bfloat16":  # NumPy has none to hand over
        assert by_runtime(path, [x.astype(dtype)])[0].tolist() == pytest.approx(ours.tolist())


# ---- options -----------------------------------------------------------------------------------


def test_the_opset_is_raised_and_printed(tmp_path, capsys):
    net = nn.Sequential(nn.Linear(4, 2), nn.GELU()).eval()
    for asked, given in ((9, 20), (21, 21), (23, 23)):
        path = export(net, tmp_path, ANY, opset_version=asked)
        assert onnx.load(path).opset_import[0].version == given
        assert f"net.onnx: opset {given}, 3 nodes, 40 bytes" in capsys.readouterr().out
    for wrong in (0, 99, "9"):
        with pytest.raises(ValueError, match="opset_version"):
            export(net, tmp_path, ANY, opset_version=wrong)


def test_large_weights_stand_in_a_file_beside(tmp_path, monkeypatch):
    monkeypatch.setattr(exporting, "LARGEST", 1000)
    net = nn.Sequential(nn.Linear(40, 30), nn.Linear(30, 2)).eval()
    for _ in range(2):  # the second time the files are there
        path = export(net, tmp_path, [InputSpec([None, 40])])
    assert sorted(p.name for p in tmp_path.iterdir()) == ["net.onnx", "net.onnx.data"]
    assert 4 * 1200 <= (tmp_path / "net.onnx.data").stat().st_size < 8000
    agree(net, path, np.ones((2, 40), "float32"))


def test_the_ending_is_added_and_options_are_known(tmp_path):
    net = nn.Linear(4, 2).eval()
    paddle.onnx.export(net, str(tmp_path / "a" / "net"), input_spec=ANY, enable_onnx_checker=True)
    assert (tmp_path / "a" / "net.onnx").exists()
    with pytest.raises(ValueError, match="no option 'output_spec'"):
        export(net, tmp_path, ANY, output_spec=[])
    with pytest.raises(ValueError, match="the name is missing"):
        paddle.onnx.export(net, f"{tmp_path}/", input_spec=ANY)
    with pytest.raises(ValueError, match=r"paddle\.onnx\.export has no program"):
        export(net, tmp_path, None)


def test_without_the_package(tmp_path, monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name == "onnx":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"pip install 'minipaddle\[onnx\]'"):
        export(nn.Linear(4, 2).eval(), tmp_path, ANY)


# ---- what is refused -----------------------------------------------------------------------------


def spectral(x):
    y = x * 2
    return paddle.linalg.svd(y)[1]


def test_an_operator_without_a_form_is_named_with_its_line(tmp_path):
    with pytest.raises(NotImplementedError) as refused:
        export(spectral, tmp_path, ANY)
    line = spectral.__code__.co_firstlineno + 2
    assert "svd(float32[batch, 4]) has no ONNX form" in str(refused.value)
    assert f"test_export.py:{line}, in spectral" in str(refused.value)
    assert not (tmp_path / "net.onnx").exists()


def test_a_contraction_that_somebody_adds_is_an_einsum(tmp_path):
    @contraction
    def a_contraction(x, y):
        """The products of all rows."""
        return "bmk,bnk->bnm"

    try:
        x = np.random.default_rng(0).standard_normal((2, 3, 4)).astype("float32")
        net = lambda x: a_contraction(x, paddle.exp(x))
        path = export(net, tmp_path, [InputSpec(["batch", 3, 4])])
        agree(net, path, x)
        assert "Einsum" in kinds(onnx.load(path).graph)
    finally:
        del OPS["a_contraction"]


def resized(x):
    return nn.functional.interpolate(x, scale_factor=2, mode="bilinear")


def test_a_size_that_must_be_known_is_named(tmp_path):
    with pytest.raises((NotImplementedError, TypeError, ValueError), match=r"(?s)in resized"):
        export(resized, tmp_path, [InputSpec([1, 1, None, None])])


@pytest.mark.parametrize("layer", [nn.Dropout(0.5), nn.BatchNorm1D(4)])
def test_a_layer_in_training_mode_is_refused(layer, tmp_path):
    with pytest.raises(ValueError, match=r"(?s)evaluation mode.*layer\.eval\(\)"):
        export(nn.Sequential(nn.Linear(4, 4), layer).train(), tmp_path, ANY)
    layer.eval()


def chatty(x):
    print(x)
    if x.shape[0] > 2:
        return x + 1
    return x * 2


def test_what_the_file_cannot_check_is_said(tmp_path):
    with pytest.warns(UserWarning, match="ONNX") as said:
        export(paddle.jit.to_static(chatty), tmp_path, ANY)
    assert {w.filename for w in said if "ONNX" in str(w.message)} == {__file__}
    texts = [str(w.message) for w in said]
    assert any("show: ONNX has no prints" in t and "in chatty" in t for t in texts)
    assert any("the model is right where (batch > 2) is True" in t for t in texts)


def test_a_number_among_results_is_refused(tmp_path):
    with pytest.raises(ValueError, match="numbers beside tensors"):
        export(lambda x: (x, 3), tmp_path, ANY)


def test_names_of_inputs_and_weights_do_not_meet_those_of_nodes(tmp_path):
    def f(relu, output, add_1):
        return nn.functional.relu(relu) + output + add_1

    path = export(f, tmp_path, [InputSpec([2])] * 3)
    arrays = [np.array(x, "float32") for x in ([-1, 2], [3, 4], [5, 6])]
    assert by_runtime(path, arrays)[0].tolist() == [8, 12]


def test_a_deep_network_with_one_quantized_layer_at_its_end(tmp_path):
    rounded = LinearQuanterDequanter.from_quanter(Quanter())

    def f(x):
        for _ in range(1500):
            x = x + 1.0
        return rounded(x)

    path = export(f, tmp_path, [InputSpec([2])])
    assert kinds(onnx.load(path).graph)[-3:] == ["QuantizeLinear", "DequantizeLinear", "Identity"]


class Quanter:
    """What an observer has found: a scale of 2000."""

    scales = staticmethod(lambda: paddle.to_tensor([2000.0]))
    zero_points = staticmethod(lambda: None)
    quant_axis = staticmethod(lambda: -1)
    bit_length = staticmethod(lambda: 8)


def test_a_saved_model_is_written(tmp_path, capsys):
    """As `python -m minipaddle export MODEL --to onnx` does it."""
    net = nn.Sequential(nn.Linear(4, 3), nn.Tanh()).eval()
    paddle.jit.save(net, str(tmp_path / "net"), input_spec=ANY)
    saved = paddle.jit.load(str(tmp_path / "net")).to_saved_model()
    assert exporting.OPTIONS["opset_version"]["type"] is int
    (path,) = exporting.write(saved, tmp_path / "out.onnx", opset_version=19)
    assert capsys.readouterr().out == "out.onnx: opset 19, 3 nodes, 60 bytes of weights\n"
    agree(net, str(path), np.ones((2, 4), "float32"))
