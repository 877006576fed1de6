"""The predictor: the numbers of the layer, compiled and interpreted, in memory it is given."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle import nn
from minipaddle.inference import Config, PredictorPool, create_predictor
from minipaddle.inference.model import MemoryBinding, Unbound
from minipaddle.static import InputSpec

MEMBERS = json.loads((Path(__file__).parents[1] / "data/paddle_inference_members.json").read_text())


class Net(nn.Layer):
    """Two inputs, two outputs with names."""

    def __init__(self):
        super().__init__()
        self.words, self.head = nn.Embedding(10, 4), nn.Linear(4, 3)

    def forward(self, tokens, scale):
        x = self.words(tokens) * scale.unsqueeze(-1)
        return {"scores": self.head(x.mean(1)), "hidden": x}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """(prefix, net)"""
    paddle.seed(3)
    net, prefix = Net(), str(tmp_path_factory.mktemp("net") / "net")
    net.eval()
    specs = [InputSpec([None, 5], "int64", "tokens"), InputSpec([None, 5], "float32", "scale")]
    paddle.jit.save(net, prefix, input_spec=specs)
    return prefix, net


def inputs(rows, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 10, (rows, 5)), rng.normal(size=(rows, 5)).astype("float32")


def expected(net, arrays):
    with paddle.no_grad():
        return {k: y.numpy() for k, y in net(*map(paddle.to_tensor, arrays)).items()}


def configured(prefix, native=True):
    config = Config(f"{prefix}.pdmodel", f"{prefix}.pdiparams")
    config.enable_cinn() if native else config.switch_ir_optim(False)
    return config


@pytest.fixture(scope="module", params=["native", "interpreter"])
def first(request, saved):
    return create_predictor(configured(saved[0], request.param == "native"))


@pytest.fixture
def predictor(first):
    return first.clone()


def predicted(predictor, arrays):
    for name, array in zip(predictor.get_input_names(), arrays, strict=True):
        predictor.get_input_handle(name).copy_from_cpu(array)
    predictor.run()
    names = predictor.get_output_names()
    return {name: predictor.get_output_handle(name).copy_to_cpu() for name in names}


def same(found, wanted):
    assert found.keys() == wanted.keys()
    for name, array in wanted.items():
        np.testing.assert_allclose(found[name], array, rtol=1e-5, atol=1e-6)


# ---- results -----------------------------------------------------------------------------------


def test_handles_give_what_the_layer_gives_for_one_shape_after_another(saved, predictor):
    assert predictor.get_input_names() == ["tokens", "scale"]
    assert predictor.get_output_names() == ["scores", "hidden"]
    for rows in (1, 3, 1):
        same(predicted(predictor, inputs(rows, rows)), expected(saved[1], inputs(rows, rows)))
    assert predictor.get_output_handle("hidden").shape() == [1, 5, 4]


def test_a_list_of_tensors_gives_new_tensors(saved, predictor):
    first = predictor.run([*map(paddle.to_tensor, inputs(2, 1))])
    predictor.run([*map(paddle.to_tensor, inputs(2, 2))])
    wanted = expected(saved[1], inputs(2, 1))
    same(dict(zip(wanted, (x.numpy() for x in first), strict=True)), wanted)


def test_handles_keep_their_values_beside_a_list(saved, predictor):
    found = predicted(predictor, inputs(2, 1))
    predictor.run([*map(paddle.to_tensor, inputs(2, 2))])
    predictor.run()
    np.testing.assert_array_equal(
        predictor.get_output_handle("scores").copy_to_cpu(), found["scores"]
    )


def test_it_is_compiled_unless_it_is_to_be_interpreted(saved):
    native, other = (create_predictor(configured(saved[0], native)) for native in (True, False))
    for predictor, kind in ((native, MemoryBinding), (other, Unbound)):
        predicted(predictor, inputs(1))
        assert type(predictor.bound) is kind
    assert len(native.model.cache.compiled) == 1
    assert not other.model.cache.compiled


def test_shared_memory_is_read_and_written_where_it_is(saved, predictor):
    tokens, scale = inputs(2)
    predicted(predictor, (tokens, scale))
    mine, out = scale.copy(), np.zeros((2, 3), "float32")
    predictor.get_input_handle("scale").share_external_data(mine)
    predictor.get_output_handle("scores").share_external_data(out)
    for factor in (1, 2):
        mine[...] = scale * factor
        predictor.run()
        wanted = expected(saved[1], (tokens, scale * factor))["scores"]
        np.testing.assert_allclose(out, wanted, rtol=1e-5, atol=1e-6)
    before = mine.copy()
    same(predicted(predictor, inputs(2, 5)), expected(saved[1], inputs(2, 5)))
    np.testing.assert_array_equal(mine, before)  # what is copied later does not get there


def test_a_run_that_fails_leaves_the_predictor_as_it_was(saved, predictor):
    tokens, scale = inputs(2)
    with pytest.raises(IndexError):
        predicted(predictor, (tokens + 10, scale))
    same(predicted(predictor, (tokens, scale)), expected(saved[1], (tokens, scale)))


def test_a_model_that_updates_its_states_does_so(tmp_path):
    paddle.seed(0)
    net = nn.BatchNorm1D(3)
    paddle.jit.save(net, str(tmp_path / "norm"), input_spec=[InputSpec([None, 3], name="x")])
    predictor = create_predictor(configured(str(tmp_path / "norm")))
    x = np.random.default_rng(0).normal(size=(4, 3)).astype("float32")
    for _ in range(2):
        wanted = net(paddle.to_tensor(x)).numpy()
        found = predicted(predictor, (x,))["output_0"]
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
    mean = predictor.model.layer.state_dict()["_mean"].numpy()
    np.testing.assert_allclose(mean, net._mean.numpy(), rtol=1e-5)


# ---- buckets -----------------------------------------------------------------------------------


def test_buckets_compile_few_shapes_for_many(saved):
    config = configured(saved[0])
    config.set_buckets([4, 2])
    predictor = create_predictor(config)
    for rows in (3, 1, 4, 2):
        same(predicted(predictor, inputs(rows, rows)), expected(saved[1], inputs(rows, rows)))
        found = predictor.run([*map(paddle.to_tensor, inputs(rows, rows))])
        np.testing.assert_allclose(
            found[0].numpy(), expected(saved[1], inputs(rows, rows))["scores"], 1e-5, 1e-6
        )
    assert len(predictor.model.cache.compiled) == 2
    mine = inputs(3)[1]
    predicted(predictor, inputs(3))
    predictor.get_input_handle("scale").share_external_data(mine)
    mine *= 2
    predictor.run()
    wanted = expected(saved[1], (inputs(3)[0], mine))["scores"]
    found = predictor.get_output_handle("scores").copy_to_cpu()
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_buckets_are_refused_where_rows_depend_on_each_other(tmp_path):
    prefix = str(tmp_path / "mean")
    paddle.jit.save(lambda x: x - x.mean(0), prefix, input_spec=[InputSpec([None, 3])])
    config = Config(prefix)
    config.set_buckets([4])
    with pytest.raises(ValueError, match="rows may depend on each other"):
        create_predictor(config)


# ---- threads and memory ------------------------------------------------------------------------


def test_a_pool_serves_threads(saved):
    pool = PredictorPool(configured(saved[0]), 4)
    assert len({id(pool.retrieve(k).model) for k in range(4)}) == 1

    def work(k):
        wrong = 0
        for seed in range(40):
            arrays = inputs(2, 100 * k + seed)
            found = predicted(pool.retrieve(k), arrays)["scores"]
            hidden = pool.retrieve(k).get_output_handle("hidden").copy_to_cpu()
            table = pool.retrieve(k).model.layer.state_dict()["words.weight"].numpy()
            wrong += not np.allclose(hidden, table[arrays[0]] * arrays[1][..., None], atol=1e-6)
            wrong += not np.isfinite(found).all()
        return wrong

    with ThreadPoolExecutor(4) as threads:
        assert sum(threads.map(work, range(4))) == 0


def test_memory_is_freed_and_comes_back(saved, predictor):
    found = predicted(predictor, inputs(3))
    assert predictor.try_shrink_memory() > 0
    assert not predictor.bindings
    predictor.run()
    np.testing.assert_array_equal(
        predictor.get_output_handle("scores").copy_to_cpu(), found["scores"]
    )


def test_threads_and_memory_are_options(saved):
    config = configured(saved[0])
    config.set_cpu_math_library_num_threads(2)
    config.enable_memory_optim(False)
    predictor = create_predictor(config)
    same(predicted(predictor, inputs(2)), expected(saved[1], inputs(2)))
    (executable,) = predictor.model.cache.compiled.values()
    assert executable.optimized.chosen["memory_optimize"] is False
    assert predictor.model.threads == 2
    assert "threads   2" in config.summary()


def test_a_pass_can_be_left_out(saved):
    config = configured(saved[0])
    config.pass_builder().delete_pass("fusion")
    assert "fusion" not in config.pass_builder().all_passes()
    predictor = create_predictor(config)
    same(predicted(predictor, inputs(2)), expected(saved[1], inputs(2)))
    (executable,) = predictor.model.cache.compiled.values()
    assert "fusion" not in [s.name for s in executable.snapshots]


def test_debugging_prints_what_passes_did(saved, capsys):
    config = configured(saved[0])
    config.switch_ir_debug()
    predicted(create_predictor(config), inputs(2))
    assert "memory plan" in capsys.readouterr().out


# ---- what is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", MEMBERS["Config"])
def test_every_member_of_config_works_or_is_refused_by_name(name):
    """What answers or agrees is called; what is refused names itself and gives a reason."""
    from minipaddle.inference.config import OTHERS, PrecisionType

    if name in PrecisionType.__members__ or name == "Precision":
        assert hasattr(Config, name)
        return
    row = OTHERS.get(name)
    assert callable(getattr(Config, name))
    if row is None:
        assert getattr(Config, name).__doc__
    elif row["kind"] == "refused":
        with pytest.raises(NotImplementedError, match=rf"Config\.{name}\(") as caught:
            getattr(Config(), name)()
        assert row["why"] in str(caught.value)
    elif row["kind"] == "always":
        getattr(Config(), name)(row["value"] == "True")
        with pytest.raises(NotImplementedError, match=name):
            getattr(Config(), name)(row["value"] != "True")
    else:
        assert repr(getattr(Config(), name)()) == (row["value"] or "None").replace('"', "'")


def test_what_is_set_is_what_is_told():
    config = Config()
    assert "not set" in config.summary()
    config.set_prog_file("a/net.pdmodel")
    config.set_params_file("a/net.pdiparams")
    assert (config.prefix(), config.prog_file()) == ("a/net", "a/net.pdmodel")
    assert (config.params_file(), config.model_dir()) == ("a/net.pdiparams", "")
    config.set_model("b")
    assert (config.model_dir(), config.prefix(), config.prog_file()) == ("b", "b", "")
    config.set_optimization_level(0)
    assert not config.ir_optim()
    config.set_optimization_level(2)
    assert config.ir_optim()
    config.enable_use_gpu(200, 1)
    assert config.use_gpu()
    assert (config.gpu_device_id(), config.memory_pool_init_size_mb()) == (1, 200)
    assert "gpu:1" in config.summary()
    config.disable_gpu()
    assert not config.use_gpu()
    assert not config.glog_info_disabled()
    config.disable_glog_info()
    assert config.glog_info_disabled()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda c: c.set_cpu_math_library_num_threads(0), "0 threads"),
        (lambda c: c.set_optimization_level(9), "level 9"),
        (lambda c: c.delete_pass("conv_bn_fuse_pass"), "no pass 'conv_bn_fuse_pass'"),
        (lambda c: c.set_buckets([]), "the buckets"),
        (lambda c: c.switch_ir_debug(True, ["cse"]), "some passes"),
        (lambda c: c.enable_use_gpu(1, 0, Config.Half), "amp.decorate"),
        (lambda c: c.pass_builder().append_pass("x"), "all_passes and delete_pass"),
    ],
)
def test_settings_that_make_no_sense(wrong, message):
    with pytest.raises((ValueError, NotImplementedError, AttributeError), match=message):
        wrong(Config())


def test_handles_tell_names_shapes_and_dtypes(saved):
    predictor = create_predictor(configured(saved[0], native=False))
    handle, out = predictor.get_input_handle("scale"), predictor.get_output_handle("scores")
    assert (handle.name(), handle.shape()) == ("scale", [-1, 5])
    assert handle.type() is paddle.inference.DataType.FLOAT32
    handle.reshape([2, 5])
    assert handle.copy_to_cpu().tolist() == [[0] * 5] * 2
    predictor.get_input_handle("tokens").copy_from_cpu([[1] * 5] * 2)
    assert handle.lod() == []
    with pytest.raises(NotImplementedError):
        handle.set_lod([[1]])
    with pytest.raises(ValueError, match="no value yet"):
        out.copy_to_cpu()
    with pytest.raises(ValueError, match="of the output scores"):
        out.reshape([2, 3])
    with pytest.raises(TypeError, match="share_external_data"):
        handle.share_external_data([1.0])
    out.share_external_data(np.zeros((3, 3), "float32"))
    with pytest.raises(ValueError, match="shared with memory of the shape"):
        predictor.run()
    for refused in ("register_input_hook", "register_output_hook"):
        with pytest.raises(NotImplementedError, match=refused):
            getattr(predictor, refused)(None)
    with pytest.raises(NotImplementedError, match="stream"):
        predictor.clone(stream=1)
    with pytest.raises(ValueError, match="predictor 5"):
        PredictorPool(configured(saved[0], native=False), 2).retrieve(5)


@pytest.mark.parametrize("kind", ["Predictor", "PredictorPool", "Tensor"])
def test_members_of_other_classes_exist(kind):
    missing = {n for n in MEMBERS[kind] if not hasattr(getattr(paddle.inference, kind), n)}
    assert missing <= {"share_external_data_by_ptr_name"}


def test_mistakes_are_named(saved, predictor, tmp_path):
    tokens, scale = inputs(2)
    handle = predictor.get_input_handle("scale")
    with pytest.raises(ValueError, match="float64"):
        handle.copy_from_cpu(scale.astype("float64"))
    with pytest.raises(ValueError, match="strides"):
        handle.share_external_data(scale[:, ::2])
    with pytest.raises(ValueError, match="no input 'nose'"):
        predictor.get_input_handle("nose")
    with pytest.raises(ValueError, match="shape"):
        predicted(predictor, (tokens[:, :4], scale))
    with pytest.raises(ValueError, match="1 tensors"):
        predictor.run([paddle.to_tensor(tokens)])
    with pytest.raises(ValueError, match="have no value"):
        predictor.clone().run()
    with pytest.raises(FileNotFoundError):
        create_predictor(Config(str(tmp_path / "nothing")))
    with pytest.raises(ValueError, match="two files of one"):
        create_predictor(Config("a.pdmodel", "b.pdiparams"))
    with pytest.raises(ValueError, match="these models: none"):
        create_predictor(Config(str(tmp_path)))


def test_a_folder_with_one_model_is_enough(saved):
    assert Config(str(Path(saved[0]).parent)).prefix() == saved[0]
    assert Config(saved[0]).prefix() == Config(Config(saved[0])).prefix() == saved[0]
