"""Names that programs read of Paddle's insides: `paddle.tensor.math`, `paddle.base`, `layer._x`."""

import collections
import inspect

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle.base.framework import EagerParamBase
from minipaddle.common_ops_import import check_variable_and_dtype as check
from minipaddle.tensor.linalg import inverse, matmul, norm
from minipaddle.tensor.manipulation import gather, reshape
from minipaddle.tensor.math import cumsum, sum

nn = paddle.nn

# ---- paddle.tensor -----------------------------------------------------------------------------


def test_every_module_of_paddle_tensor_finds_the_functions_of_all():
    assert (sum, cumsum, norm, matmul) == (paddle.sum, paddle.cumsum, paddle.norm, paddle.matmul)
    assert (inverse, gather, reshape) == (paddle.inverse, paddle.gather, paddle.reshape)
    modules = "attribute creation linalg logic manipulation math random search stat"
    for name in modules.split():
        module = getattr(paddle.tensor, name)
        assert inspect.ismodule(module)
        assert module.argsort is paddle.argsort
    assert paddle.tensor.einsum is paddle.einsum
    with pytest.raises(AttributeError, match=r"the nearest name is paddle.tensor.cumsum$"):
        getattr(paddle.tensor, "cumsumm")  # noqa: B009


def test_fill_constant():
    x = paddle.tensor.fill_constant(shape=[2], dtype="int64", value=3)
    assert (x.dtype, x.tolist()) == (paddle.int64, [3, 3])
    y = paddle.zeros([2])
    assert paddle.tensor.fill_constant([2], "float32", 1.5, out=y, place=paddle.CPUPlace()) is y
    assert y.tolist() == [1.5, 1.5]


# ---- paddle.base, paddle.framework -------------------------------------------------------------


def test_dtypes_by_their_old_names():
    kinds = paddle.framework.core.VarDesc.VarType
    assert kinds.FP32 is paddle.float32
    assert kinds.BOOL is paddle.bool
    assert paddle.ones([1]).dtype == kinds.FP32 != kinds.FP64
    assert paddle.base.data_feeder.convert_dtype(kinds.BF16) == "bfloat16"
    assert paddle.framework.convert_np_dtype_to_dtype_(np.int32) is paddle.int32


def test_classes_to_ask_for():
    weight = nn.Linear(2, 3).weight
    assert isinstance(weight, EagerParamBase)
    assert isinstance(weight, paddle.framework.core.eager.Tensor)
    assert paddle.framework.ParamAttr is paddle.ParamAttr is paddle.base.ParamAttr
    assert isinstance(weight, paddle.static.Variable)
    assert not isinstance(weight.numpy(), paddle.static.Variable)


def test_a_tensor_of_a_program_is_a_variable():
    seen = []

    @paddle.jit.to_static
    def f(x):
        seen.append(isinstance(x, paddle.static.Variable))
        return x + 1

    f(paddle.ones([2]))
    assert seen == [True]
    paddle.enable_static()
    try:
        with paddle.static.program_guard(paddle.static.Program()):
            x = paddle.static.data("x", [None, 2])
            assert isinstance(x, paddle.base.framework.Variable)
            assert not paddle.base.framework.in_dynamic_or_pir_mode()
    finally:
        paddle.disable_static()


def test_checks_of_arguments():
    check(paddle.ones([1]), "x", ["float32"], "f")
    with pytest.raises(TypeError, match="f was given x of dtype int64"):
        check(paddle.ones([1], "int64"), "x", ["float32"], "f")
    with pytest.raises(TypeError, match="f was given x of type list"):
        check([1.0], "x", ["float32"], "f")


# ---- paddle.utils ------------------------------------------------------------------------------

Pair = collections.namedtuple("Pair", "left right")


def test_nested_structures():
    nest = {"b": [1, (2,)], "a": Pair(3, {"c": 4})}
    assert paddle.utils.flatten(nest) == [3, 4, 1, 2]
    assert paddle.utils.flatten("ab") == ["ab"]
    doubled = paddle.utils.map_structure(lambda x, y: x + y, nest, nest)
    assert doubled == {"b": [2, (4,)], "a": Pair(6, {"c": 8})}
    assert list(doubled) == ["b", "a"]
    assert type(doubled["a"]) is Pair
    assert paddle.utils.map_structure(str, 1) == "1"
    with pytest.raises(ValueError, match="3 items for a structure of 4"):
        paddle.utils.pack_sequence_as(nest, [1, 2, 3])
    with pytest.raises(TypeError, match="expected: a list"):
        paddle.utils.pack_sequence_as(nest, 1)


def test_unique_names():
    names = paddle.utils.unique_name
    with names.guard("A"), names.guard():
        assert [names.generate("fc"), names.generate("fc")] == ["fc_0", "fc_1"]
        before, checker = names.switch()
        assert nn.Linear(1, 1).full_name() == "linear_0"
        names.switch(before, checker)
        assert names.generate("fc") == "fc_2"
        with names.guard(b"B"):
            assert nn.Linear(1, 1).weight.name == "BBlinear_0.w_0"  # as in Paddle


def test_try_import():
    assert paddle.utils.try_import("json").dumps([1]) == "[1]"
    with pytest.raises(ImportError, match="pip install no_such_thing"):
        paddle.utils.try_import("no_such_thing.inside")
    with pytest.raises(ImportError, match=r"^ask Ada$"):
        paddle.utils.try_import("no_such_thing", "ask Ada")


def test_one_address_of_each_machine():
    unique = paddle.utils.download._get_unique_endpoints  # PaddleDetection imports it
    assert unique(["b:2", "a:9", "b:1", "a:8"]) == {"a:8", "b:1"}
    assert unique([]) == set()


def test_what_would_be_downloaded_is_found_where_it_lies(tmp_path):
    get = paddle.utils.download.get_path_from_url
    with pytest.raises(FileNotFoundError, match=r"downloads nothing: https://x/w\.pdparams"):
        get("https://x/w.pdparams", str(tmp_path))
    (tmp_path / "w.pdparams").write_bytes(b"abc")
    digest = "900150983cd24fb0d6963f7d28e17f72"  # RFC 1321's MD5 of "abc"
    assert get("https://x/w.pdparams", str(tmp_path), digest) == str(tmp_path / "w.pdparams")
    with pytest.raises(ValueError, match="another MD5 sum"):
        get("https://x/w.pdparams", str(tmp_path), "0" * 32)
    with pytest.raises(FileNotFoundError, match=r"unpack it to .*vocabulary"):
        get("https://x/vocabulary.tar.gz", str(tmp_path))
    (tmp_path / "vocabulary").mkdir()
    assert get("https://x/vocabulary.tar.gz", str(tmp_path)) == str(tmp_path / "vocabulary")
    with pytest.raises(FileNotFoundError):
        paddle.utils.download.get_weights_path_from_url("https://x/w.no_such_thing")


# ---- what layers keep --------------------------------------------------------------------------

PRIVATE = [
    (nn.AdaptiveAvgPool2D(2), {"_output_size": 2, "_data_format": "NCHW", "_name": None}),
    (nn.AdaptiveMaxPool3D(2), {"_output_size": 2, "_return_mask": False}),
    (nn.Bilinear(2, 3, 4), {"_in1_features": 2, "_out_features": 4, "_bias_attr": None}),
    (nn.ChannelShuffle(2), {"_groups": 2, "_data_format": "NCHW"}),
    (nn.Conv2D(2, 4, 3, bias_attr=False), {"_in_channels": 2, "_out_channels": 4,
     "_kernel_size": [3, 3], "_stride": [1, 1], "_padding": 0, "_dilation": [1, 1], "_groups": 1,
     "_padding_mode": "zeros", "_param_attr": None, "_bias_attr": False}),
    (nn.ELU(0.5), {"_alpha": 0.5}),
    (nn.Embedding(5, 2, padding_idx=-1), {"_num_embeddings": 5, "_embedding_dim": 2,
     "_size": [5, 2], "_padding_idx": 4, "_sparse": False, "_weight_attr": None}),
    (nn.GroupNorm(1, 2), {"_num_groups": 1, "_num_channels": 2, "_weight_attr": None}),
    (nn.InstanceNorm2D(2), {"_momentum": 0.9, "_weight_attr": None, "_bias_attr": None}),
    (nn.LayerNorm(2), {"_normalized_shape": [2], "_epsilon": 1e-5, "_weight_attr": None}),
    (nn.LeakyReLU(), {"_negative_slope": 0.01}),
    (nn.Linear(2, 3, bias_attr=False), {"_weight_attr": None, "_bias_attr": False}),
    (nn.BatchNorm2D(2), {"_num_features": 2, "_weight_attr": None, "_bias_attr": None,
     "_momentum": 0.9, "_epsilon": 1e-5, "_data_format": "NCHW", "_use_global_stats": None}),
]  # fmt: skip
"""Layers and attributes of theirs, with the values that Paddle 3.3.1 has."""


@pytest.mark.parametrize(("layer", "wanted"), PRIVATE, ids=lambda x: type(x).__name__)
def test_private_attributes_of_layers(layer, wanted):
    assert {name: getattr(layer, name) for name in wanted} == wanted


def test_changing_a_private_attribute_changes_the_layer():
    pool, x = nn.AdaptiveAvgPool2D(2), paddle.ones([1, 1, 6, 6])
    pool._output_size = 3
    assert pool(x).shape == [1, 1, 3, 3]


def test_attributes_of_the_users_layers_are_theirs():
    class Net(nn.Linear):
        def __init__(self, depth):
            super().__init__(2, 3)
            self.depth = depth
            self._depth = 2 * depth

    net = Net(3)
    assert (net.depth, net._depth, net._in_features) == (3, 6, 2)
    net = Net.__new__(Net)
    nn.Linear.__init__(net, 2, 3)
    net.cache = 1
    assert not hasattr(net, "_cache")


def test_a_parameter_has_a_block_to_hand_on():
    weight = nn.Linear(2, 3).weight
    nn.initializer.Constant(2.0)(weight, weight.block)
    assert (weight.numpy() == 2).all()


def test_gradient_by_its_private_name():
    x = paddle.to_tensor([2.0], stop_gradient=False)
    assert x._grad_ivar() is None
    (x * x).backward()
    assert x._grad_ivar().tolist() == [4.0]


def test_isinstance_of_private_base_classes():
    assert isinstance(nn.BatchNorm2D(2), nn.layer.norm._BatchNormBase)
    assert isinstance(nn.Conv1DTranspose(1, 1, 1), nn.layer.conv._ConvNd)
    mask = nn.layer.transformer._convert_attention_mask(paddle.to_tensor([True, False]), "float32")
    assert mask.tolist() == [0.0, -1e9]


def test_layers_by_the_names_of_pytorch():
    net = nn.Sequential(nn.Linear(2, 3))
    assert net.add_module("last", nn.ReLU()) is net[1]
    assert list(net.modules()) == [net, net[0], net[1]]
    assert net.load_state_dict(nn.Sequential(nn.Linear(2, 3)).state_dict()) == ([], [])
    assert paddle.long is paddle.int64


def test_a_scope_finds_variables():
    assert isinstance(paddle.static.global_scope(), paddle.static.Scope)


def test_device_guard_is_in_paddle_too():
    with paddle.device_guard("cpu"):
        assert paddle.ones([1]).place == paddle.CPUPlace()


def test_fused_linear_is_linear():
    x = paddle.randn([4, 2])
    plain, turned = (
        paddle.incubate.nn.FusedLinear(2, 3, transpose_weight=t) for t in (False, True)
    )
    assert isinstance(plain, nn.Linear)
    turned.weight.set_value(plain.weight.T)
    wanted = x.numpy() @ plain.weight.numpy() + plain.bias.numpy()
    for layer in (plain, turned):
        np.testing.assert_allclose(layer(x).numpy(), wanted, rtol=1e-6)
    assert list(turned.state_dict()) == ["weight", "bias"]


def test_a_block_for_mixed_precision_changes_nothing_without_it():
    with paddle.static.amp.fp16_guard():
        assert (paddle.ones([2]) @ paddle.ones([2])).dtype == paddle.float32
