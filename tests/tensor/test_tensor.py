"""The Tensor class's everyday face: attributes, conversions, devices, DLPack, in-place values; and
the small namespaces beside it. What is expected was measured on Paddle 3.3.1.
"""

import copy
import pickle
import re
import tomllib
from pathlib import Path

import numpy as np
import pytest
import torch

import minipaddle as paddle


@pytest.fixture
def x():
    return paddle.to_tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


# ---- what it is ------------------------------------------------------------------------------


def test_attributes(x):
    assert (x.shape, x.ndim, x.dim(), x.ndimension(), x.size) == ([2, 3], 2, 2, 2, 6)
    assert isinstance(x.shape, list)
    assert (x.itemsize, x.element_size(), x.nbytes) == (4, 4, 24)
    assert x.dtype == paddle.float32 == "float32"
    assert (x.strides, x.stride(), x.stride(0), x.get_strides()) == ([3, 1], [3, 1], 3, [3, 1])
    assert x.is_leaf
    assert not x.persistable
    assert x.grad is None
    assert x.type == "DENSE_TENSOR"
    assert x.value() is x.data is x.get_tensor() is x
    assert {x: 1}[x] == 1
    assert len(x) == 2
    assert x.rank().item() == 2
    assert x.numel().item() == 6
    with pytest.raises(TypeError, match="len"):
        len(paddle.to_tensor(1.0))


def test_transposes(x):
    assert x.T.tolist() == [[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]]
    assert paddle.ones([2, 3, 4]).T.shape == [4, 3, 2]
    assert paddle.ones([2, 3, 4]).mT.shape == [2, 4, 3]
    with pytest.raises(ValueError, match="at least two dimensions"):
        paddle.ones([3]).mT  # noqa: B018


def test_names():
    a, b = paddle.ones([1]), paddle.ones([1])
    assert a.name == a.name
    assert a.name != b.name
    assert a.name.startswith("generated_tensor_")
    a.name = "weight"
    assert a.name == "weight"


def test_functions_about_tensors(x):
    assert paddle.shape(x).tolist() == [2, 3]
    assert paddle.shape(x).dtype == "int64"
    assert paddle.rank(x).dtype == "int32"
    assert paddle.numel(x).dtype == "int64"
    assert paddle.is_tensor(x)
    assert not paddle.is_tensor([1])
    assert paddle.is_floating_point(x)
    assert x.is_floating_point()
    assert not paddle.is_integer(x)
    assert paddle.is_integer(paddle.ones([1], "uint8"))
    assert not paddle.is_integer(paddle.ones([1], "bool"))
    assert not paddle.is_complex(x)
    with pytest.raises(TypeError, match="a tensor"):
        paddle.is_complex(1)
    assert not paddle.is_empty(x).item()
    assert paddle.is_empty(paddle.ones([0])).item()
    assert paddle.real(x) is x
    assert paddle.conj(x) is x
    assert paddle.imag(x).tolist() == [[0.0] * 3] * 2
    assert paddle.tolist(x) == x.tolist()


def test_unknown_attributes(x):
    with pytest.raises(AttributeError, match="nearest name is Tensor\\.reshape"):
        x.reshapee  # noqa: B018
    x.note = 1
    assert x.note == 1


# ---- Python's protocols ----------------------------------------------------------------------


def test_numbers():
    assert paddle.to_tensor([[3.5]]).item() == 3.5
    assert isinstance(paddle.to_tensor(True).item(), bool)
    assert isinstance(paddle.to_tensor(3).item(), int)
    assert paddle.ones([2, 3]).item(1, 2) == 1.0
    assert paddle.ones([3]).item(1) == 1.0
    assert (int(paddle.to_tensor(2.7)), float(paddle.to_tensor(2))) == (2, 2.0)
    assert complex(paddle.to_tensor(2.0)) == 2 + 0j
    assert [1, 2, 3][paddle.to_tensor(1)] == 2
    assert list(range(paddle.to_tensor(2))) == [0, 1]
    assert bool(paddle.ones([1]))
    assert not bool(paddle.to_tensor(0.0))
    with pytest.raises(ValueError, match="6 elements, not one"):
        paddle.ones([2, 3]).item()
    for many in (paddle.ones([2]), paddle.zeros([0])):
        with pytest.raises(ValueError, match="truth value"):
            bool(many)
    with pytest.raises(TypeError, match="it is no whole number"):
        [1, 2][paddle.to_tensor(1.0)]


def test_formats():
    assert f"{paddle.to_tensor(3.14159):.2f}" == "3.14"
    assert f"{paddle.to_tensor(3):d}" == "3"
    assert f"{paddle.to_tensor(0.5)}" == "0.5"
    assert "%.3f" % paddle.to_tensor(3.14159) == "3.142"  # noqa: UP031
    assert format(paddle.ones([2]), "") == str(paddle.ones([2]))
    with pytest.raises(ValueError, match="format"):
        format(paddle.ones([2]), ".2f")


def test_numpy_gets_copies(x):
    a, b = x.numpy(), np.asarray(x)
    a[:] = 0
    b[:] = 0
    assert x.sum().item() == 21
    assert np.array(x, dtype="float64").dtype == "float64"
    assert (np.asarray(paddle.to_tensor(1.0)).shape, a.dtype) == ((), np.float32)
    assert paddle.to_tensor([1.5], dtype="bfloat16").numpy().dtype.name == "bfloat16"


def test_copies_by_the_copy_module(x):
    x.stop_gradient = False
    (x * 2).sum().backward()
    twin = copy.deepcopy(x)
    assert not twin.stop_gradient
    assert twin.grad is None
    assert twin.name != x.name
    x.set_value(np.zeros((2, 3), "float32"))
    assert twin.tolist()[0] == [1.0, 2.0, 3.0]
    assert copy.deepcopy(x * 2).is_leaf
    both = copy.deepcopy([x, x])
    assert both[0] is both[1]


def test_pickle_is_refused(x):
    with pytest.raises(TypeError, match=re.escape("paddle.save(x, path)")):
        pickle.dumps(x)


# ---- dtypes and devices ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "dtype"),
    [
        ("bool", "bool"), ("byte", "uint8"), ("char", "int8"), ("short", "int16"),
        ("int", "int32"), ("long", "int64"), ("half", "float16"), ("bfloat16", "bfloat16"),
        ("float", "float32"), ("double", "float64"),
    ],
)  # fmt: skip
def test_dtype_shorthands(x, method, dtype):
    assert getattr(x, method)().dtype == dtype


def test_astype(x):
    for dtype in ("int64", paddle.int64, np.int64, np.dtype("int64")):
        assert x.astype(dtype).dtype == "int64"
        assert x.cast(dtype).dtype == "int64"
    assert paddle.to_tensor([1.9, -1.9]).astype("int64").tolist() == [1, -1]
    assert x.type_as(paddle.ones([1], "int8")).dtype == "int8"
    with pytest.raises(TypeError, match="is no data type"):
        x.astype("foo")


@pytest.mark.parametrize(
    ("args", "kwargs", "dtype"),
    [
        (("float64",), {}, "float64"),
        ((paddle.int32,), {}, "int32"),
        (("cpu",), {}, "float32"),
        ((None, "int8"), {}, "int8"),
        (("cpu", "float64"), {}, "float64"),
        ((paddle.CPUPlace(),), {}, "float32"),
        ((paddle.ones([1], "int64"),), {}, "int64"),
        ((), {"device": "cpu", "dtype": "int32"}, "int32"),
        ((), {"other": paddle.ones([1], "bool")}, "bool"),
        (("cpu", "float16", True), {}, "float16"),
        ((), {}, "float32"),
    ],
)
def test_to(x, args, kwargs, dtype):
    y = x.to(*args, **kwargs)
    assert y.dtype == dtype
    assert y.place == paddle.CPUPlace()
    assert (y is x) == (dtype == "float32")


def test_to_refuses(x):
    with pytest.raises(ValueError, match="unknown device 'foo'"):
        x.to("foo")
    with pytest.raises(TypeError, match="takes no argument 'where'"):
        x.to(where="cpu")


def test_to_lets_gradients_back(x):
    x.stop_gradient = False
    x.to("float64").sum().backward()
    assert x.grad.dtype == "float32"


def test_moving_is_on_the_tape(x):
    """With the CPU as both ends: the GPU tests move to another device."""
    from minipaddle.eager.placed import move_to

    x.stop_gradient = False
    y = move_to(x, paddle.CPUPlace())
    (y * 2).sum().backward()
    assert x.grad.sum().item() == 12.0
    assert move_to(x.detach(), paddle.CPUPlace()).stop_gradient


def test_places(x):
    assert repr(x.place) == "Place(cpu)"

    assert x.device == x.place == paddle.CPUPlace()
    assert not x.is_cuda
    assert x.cpu() is x
    assert x.pin_memory() is x
    assert paddle.get_device() == paddle.get_device(x) == "cpu"
    assert paddle.set_device("cpu") == paddle.CPUPlace()
    assert repr(paddle.CUDAPlace(1)) == "Place(gpu:1)"
    assert paddle.CUDAPlace(1).is_gpu_place()
    assert paddle.CUDAPlace(1).get_device_id() == paddle.CUDAPlace(1).gpu_device_id() == 1


def test_places_are_classes():
    x = paddle.ones([1])
    assert isinstance(x.place, paddle.CPUPlace)
    assert isinstance(paddle.set_device("cpu"), paddle.CPUPlace)
    assert not isinstance(x.place, paddle.CUDAPlace)
    assert paddle.CPUPlace() in [paddle.CPUPlace()] != [paddle.CUDAPlace(0)]
    assert paddle.CUDAPlace(0) == paddle.CUDAPlace() != paddle.CUDAPlace(1)
    assert paddle.device.CPUPlace is paddle.base.core.CPUPlace is paddle.CPUPlace
    assert not x.place.is_cuda_pinned_place()
    with pytest.raises(RuntimeError, match="pins no memory"):
        paddle.CUDAPinnedPlace()


def test_numpy_takes_blocking():
    x = paddle.ones([2])
    a = x.numpy(False)
    a += 1
    assert (x.numpy(blocking=True) == 1).all()
    with pytest.raises(ValueError, match="unknown device 'tpu'"):
        paddle.set_device("tpu")


@pytest.mark.skipif(paddle.is_compiled_with_cuda(), reason="there is a GPU")
def test_without_a_gpu_the_reason_is_given(x):
    for call in (lambda: paddle.set_device("gpu"), x.cuda, lambda: x.to("gpu:0")):
        with pytest.raises(RuntimeError, match="no usable GPU"):
            call()
    assert paddle.device.get_available_device() == ["cpu"]
    assert paddle.device.get_all_device_type() == ["cpu"]
    assert paddle.device.device_count() == paddle.device.cuda.device_count() == 0
    assert paddle.version.cuda() is False
    paddle.device.synchronize()
    paddle.device.cuda.empty_cache()
    with pytest.raises(RuntimeError, match="no usable GPU"):
        paddle.device.cuda.synchronize()


# ---- memory ----------------------------------------------------------------------------------


def test_contiguous(x):
    assert x.is_contiguous()
    assert x.contiguous() is x
    y = x.T
    assert not y.is_contiguous()
    assert y.contiguous().is_contiguous()
    assert y.contiguous().tolist() == y.tolist()


def test_data_ptr(x):
    assert x.data_ptr() == x.detach().data_ptr() == x[0].data_ptr()
    assert x.data_ptr() != x.clone().data_ptr()


def test_set_value(x):
    for value in (np.zeros((2, 3)), paddle.zeros([2, 3], "int64"), [[0, 0, 0]] * 2):
        x.set_value(value)
        assert x.dtype == "float32"
        assert x.sum().item() == 0
    with pytest.raises(ValueError, match=r"expected: shape \[2, 3\]"):
        x.set_value(np.zeros((3, 2)))
    assert x.copy_(paddle.ones([2, 3]), True) is x
    assert x.sum().item() == 6


def test_set_value_keeps_the_past_and_the_leaf(x):
    x.stop_gradient = False
    x.set_value(np.ones((2, 3)))
    assert x.is_leaf
    assert x.inplace_version == 1
    (x * x).sum().backward()
    assert x.grad.tolist() == [[2.0] * 3] * 2


def test_data_can_be_replaced(x):
    x.data = paddle.zeros([2, 3])
    assert x.sum().item() == 0


def test_apply(x):
    assert x.apply(lambda t: t * 2).sum().item() == 42
    assert x.apply_(lambda t: t * 2) is x
    assert x.sum().item() == 42
    x.stop_gradient = False
    for call in (x.apply, x.apply_):
        with pytest.raises(RuntimeError, match="wants a gradient"):
            call(lambda t: t)


def test_the_gradient_attribute(x):
    x.stop_gradient = False
    assert x.gradient() is None
    (x * 2).sum().backward()
    assert x.gradient().tolist() == [[2.0] * 3] * 2
    x.grad = paddle.zeros([2, 3])
    assert x.grad.sum().item() == 0
    x.grad = None
    assert x.grad is None
    with pytest.raises(ValueError, match=r"expected: shape \[2, 3\]"):
        x.grad = paddle.zeros([3])


def test_requires_grad(x):
    assert not x.requires_grad
    x.requires_grad = True
    assert not x.stop_gradient
    assert x.requires_grad_(False) is x
    assert x.stop_gradient


def test_parameters():
    p = paddle.nn.Linear(2, 2).weight
    assert isinstance(p, paddle.Tensor)
    assert p.trainable
    assert p.persistable
    assert p.is_parameter
    assert not p.is_distributed
    p.trainable = False
    assert p.stop_gradient


def test_softmax(x):
    ours = x.softmax(0)
    np.testing.assert_allclose(ours.numpy(), torch.tensor(x.numpy()).softmax(0).numpy(), rtol=1e-6)
    assert x.softmax(dim=0).tolist() == ours.tolist()
    assert x.softmax(-1, "float64").dtype == "float64"


# ---- DLPack ----------------------------------------------------------------------------------


def test_dlpack_from_torch_and_to_torch():
    t = torch.ones(2)
    x = paddle.from_dlpack(t)
    t[0] = 5.0
    assert x.tolist() == [5.0, 1.0]
    assert paddle.from_dlpack(t, copy=True).tolist() == [5.0, 1.0]
    y = torch.from_dlpack(paddle.arange(3))
    assert y.tolist() == [0, 1, 2]


def test_dlpack_capsules():
    capsule = paddle.utils.dlpack.to_dlpack(paddle.arange(3))
    assert paddle.utils.dlpack.from_dlpack(capsule).tolist() == [0, 1, 2]
    capsule = torch.utils.dlpack.to_dlpack(torch.ones(2))
    assert paddle.from_dlpack(capsule).tolist() == [1.0, 1.0]


# ---- the small namespaces --------------------------------------------------------------------


def test_limits_of_dtypes():
    assert repr(paddle.iinfo("int8")) == "paddle.iinfo(min=-128, max=127, bits=8, dtype=int8)"
    assert paddle.iinfo(paddle.uint8).min == 0
    assert repr(paddle.finfo("float32")) == (
        "paddle.finfo(min=-3.40282e+38, max=3.40282e+38, eps=1.19209e-07, resolution=1e-06, "
        "smallest_normal=1.17549e-38, tiny=1.17549e-38, bits=32, dtype=float32)"
    )
    assert paddle.finfo("bfloat16").eps == 0.0078125
    assert paddle.finfo("float16").max == 65504
    with pytest.raises(ValueError, match="a whole dtype"):
        paddle.iinfo("float32")
    with pytest.raises(ValueError, match="a floating dtype"):
        paddle.finfo("int32")


def test_flags():
    before = paddle.get_flags("FLAGS_cudnn_exhaustive_search")
    paddle.set_flags({"FLAGS_cudnn_exhaustive_search": True})
    assert paddle.get_flags(["FLAGS_cudnn_exhaustive_search"]) == {
        "FLAGS_cudnn_exhaustive_search": True
    }
    paddle.set_flags(before)
    paddle.base.set_flags({"FLAGS_max_inplace_grad_add": 8})
    assert paddle.get_flags(["FLAGS_max_inplace_grad_add"]) == {"FLAGS_max_inplace_grad_add": 8}
    paddle.set_flags({"FLAGS_max_inplace_grad_add": 0})
    with pytest.raises(ValueError, match="MiniPaddle has no FLAGS_foo"):
        paddle.set_flags({"FLAGS_foo": 1})


def test_the_version_is_that_of_the_api(capsys):
    assert paddle.__version__ == paddle.version.full_version == "3.3.1"
    parts = paddle.version.major, paddle.version.minor, paddle.version.patch
    assert ".".join(parts) == paddle.__version__
    assert paddle.version.cudnn() is False
    paddle.version.show()
    printed = capsys.readouterr().out
    assert paddle.__version__ in printed
    assert f"minipaddle: {paddle.version.minipaddle}" in printed


def test_pyproject_reads_the_packages_own_version():
    root = Path(__file__).parents[2]
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["dynamic"] == ["version"]
    rule = project["tool"]["hatch"]["version"]
    text = (root / rule["path"]).read_text(encoding="utf-8")
    found = re.search(rule["pattern"], text, re.MULTILINE)
    assert found["version"] == paddle.version.minipaddle


def test_constants():
    assert paddle.inf == float("inf")
    assert paddle.nan != paddle.nan
    assert (paddle.pi, paddle.e) == (np.pi, np.e)


def test_dtypes_of_the_namespace():
    names = ["bool", "uint8", "int8", "int16", "int32", "int64"]
    names += ["float16", "bfloat16", "float32", "float64"]
    for name in names:
        dtype = getattr(paddle, name)
        assert isinstance(dtype, paddle.dtype)
        assert repr(dtype) == f"paddle.{name}"


@pytest.mark.parametrize("operand", [list, tuple])
def test_a_list_of_tensors_is_no_operand(operand):
    """As in Paddle; as numbers they would lose their gradients."""
    x = paddle.ones([3])
    for call in (lambda x: x + operand([x]), lambda x: operand([x, x]) * x):
        for function in (call, paddle.jit.to_static(call)):
            with pytest.raises(TypeError, match=r"of tensors(.|\n)*paddle.stack"):
                function(x)
    assert (x + operand([1.0, 2.0, 3.0])).tolist() == [2.0, 3.0, 4.0]


def test_inplace_assign_takes_another_shape_and_its_gradient():
    x = paddle.to_tensor([1.0], stop_gradient=False)
    a, b = x * 1, paddle.concat([x * 2, x * 3])
    assert a._inplace_assign(b) is a
    assert a.tolist() == [2.0, 3.0]
    a.sum().backward()
    assert x.grad.tolist() == [5.0]
