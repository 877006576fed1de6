"""`paddle.hub`: folders with `hubconf.py`, repositories that are fetched once, weights by hash."""

import contextlib
import importlib.util
import json
import shutil
import sys
import zipfile
from pathlib import Path

import numpy as np
import onnx
import pytest

import minipaddle as paddle
from minipaddle import hub

HUB = str(Path(__file__).parents[2] / "hub")
CONF = '''
"""Models."""
import numpy as np
from helper import WIDTH
from json import dumps

dependencies = ["numpy"]

def linear(outputs=1):
    """A linear layer."""
    import minipaddle as paddle
    return paddle.nn.Linear(WIDTH, outputs)

def _hidden():
    pass
'''


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "hubconf.py").write_text(CONF)
    (tmp_path / "helper.py").write_text("WIDTH = 3\n")
    return tmp_path


def test_a_folder(folder):
    """Functions of the file itself are models; imported and hidden ones are none."""
    assert hub.list(str(folder), source="local") == ["linear"]
    assert hub.help(str(folder), "linear", source="local") == "A linear layer."
    net = hub.load(str(folder), "linear", source="local", outputs=2)
    assert net.weight.shape == [3, 2]


def test_errors(folder):
    with pytest.raises(ValueError, match="no model 'lstm'\n  expected: one of linear"):
        hub.load(str(folder), "lstm", source="local")
    with pytest.raises(ValueError, match="source='gitlab'\n  expected: one of local, github"):
        hub.list(str(folder), source="gitlab")
    with pytest.raises(FileNotFoundError, match=r"no hubconf.py in .*missing"):
        hub.list(str(folder / "missing"), source="local")
    (folder / "hubconf.py").write_text('dependencies = ["numpy", "no_such_package"]')
    text = r"needs no_such_package\n  at: .*\n  try: pip install no_such"
    with pytest.raises(RuntimeError, match=text):
        hub.list(str(folder), source="local")
    for name in ("owner", "owner/name:../x", "a/b/c", "/etc/passwd"):
        with pytest.raises(ValueError, match="owner/name or owner/name:branch"):
            hub.list(name)


def test_a_repository_is_fetched_once(folder, tmp_path, monkeypatch):
    """From a zip as GitHub makes it: one folder, named after the repository and the branch."""
    home, packed = tmp_path / "home", tmp_path / "owner-name-v1.zip"
    monkeypatch.setenv("HUB_HOME", str(home))
    monkeypatch.setitem(
        hub.SITES, "github", f"{tmp_path.as_uri()}/{{owner}}-{{name}}-{{branch}}.zip"
    )

    monkeypatch.delitem(sys.modules, "helper", raising=False)
    with pytest.raises(RuntimeError, match="cannot be fetched"):
        hub.list("owner/name:v2")
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("name-v1/hubconf.py", CONF)
        archive.writestr("name-v1/helper.py", "WIDTH = 3\n")
    assert hub.load("owner/name:v1", "linear").weight.shape == [3, 1]
    packed.write_bytes(b"no zip")
    assert hub.list("owner/name:v1") == ["linear"]
    with pytest.raises(RuntimeError, match="cannot be fetched: File is not a zip file"):
        hub.list("owner/name:v1", force_reload=True)
    assert [each.name for each in home.iterdir()] == ["owner_name_v1"]
    assert hub.list("owner/name:v1") == ["linear"]  # what was there is still there


def test_weights_are_what_their_name_says(tmp_path):
    paddle.seed(0)
    net, twin = paddle.nn.Linear(3, 2), paddle.nn.Linear(3, 2)
    path = hub.save_weights(net, tmp_path, "linear")
    hub.load_weights(twin, path)
    np.testing.assert_array_equal(twin.weight.numpy(), net.weight.numpy())
    with pytest.raises(ValueError, match=r"another model\n  expected: .*\['bias', 'weight'\]"):
        hub.load_weights(paddle.nn.Linear(3, 4), path)
    wrong = tmp_path / "linear-00000000.safetensors"
    shutil.copy(path, wrong)
    with pytest.raises(ValueError, match="SHA-256"):
        hub.load_weights(twin, wrong)
    shutil.copy(path, tmp_path / "linear.safetensors")
    with pytest.raises(ValueError, match="weights in linear"):
        hub.load_weights(twin, tmp_path / "linear.safetensors")


def test_the_models_of_this_repository():
    """Their docstrings say what `hub/scores.json` says, and the digits are read so well."""
    scores = json.loads(Path(HUB, "scores.json").read_text(encoding="utf-8"))
    assert {*scores} <= {*hub.list(HUB, source="local")}
    for name, each in scores.items():
        assert each["score"] in hub.help(HUB, name, source="local")
        assert each["recipe"] in hub.help(HUB, name, source="local")
    net = hub.load(HUB, "lenet_digits", source="local", pretrained=True)
    images, labels = (np.stack(x) for x in zip(*paddle.vision.datasets.Digits(mode="test")))
    right = net(paddle.to_tensor(images.reshape(-1, 1, 8, 8))).numpy().argmax(-1) == labels
    assert scores["lenet_digits"]["score"].startswith(f"{100 * right.mean():.1f} %")


def test_the_model_that_writes():
    """Letters that a reader of English expects: it was trained."""
    net = hub.load(HUB, "char_gpt", source="local", pretrained=True)
    letters = net.letters
    prompt = [letters.index(c) for c in "The follow"]
    written = net.generate(paddle.to_tensor([prompt]), 3, temperature=0)[0].tolist()
    assert "".join(letters[k] for k in written[-3:]) == "ing"


# ---- networks in other packages' wheels ----------------------------------------------------------


def write_network(path, inputs, **properties):
    """A file of ONNX that gives its first input back, as a wheel would hold it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    specs = [paddle.static.InputSpec(shape, dtype, name) for name, shape, dtype in inputs]
    with contextlib.redirect_stdout(None):
        paddle.onnx.export(lambda *xs: xs[0] * 1, str(path), input_spec=specs)
    model = onnx.load(path)
    for key, value in properties.items():
        model.metadata_props.add(key=key, value=value)
    onnx.save(model, path)


@pytest.fixture
def wheels(tmp_path, monkeypatch):
    """A folder on sys.path; what is in it must not be imported."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def package(name):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise ImportError('imported')")
        return tmp_path / name

    return package


IMAGE = [("x", [None, 3, None, None], "float32")]


def test_readers_of_text_out_of_a_wheel(wheels):
    """Class 0 is the blank, the last one a space."""
    folder = wheels("rapidocr_onnxruntime") / "models"
    for name in ("ch_PP-OCRv4_det_infer", "ch_PP-OCRv4_rec_infer",
                 "ch_ppocr_mobile_v2.0_cls_infer"):  # fmt: skip
        write_network(folder / f"{name}.onnx", IMAGE, character="a\nb\n'")
    finder, reader, turner, letters, options = hub.load(HUB, "pp_ocr_v4", source="local")
    assert options == {}
    assert letters == ["a", "b", "'", " "]
    picture = paddle.rand([1, 3, 4, 8])
    for net in (finder, reader, turner):
        np.testing.assert_array_equal(net(picture), picture)


def test_a_listener_out_of_a_wheel(wheels):
    inputs = [("input", [None, None], "float32"), ("sr", [], "int64")]
    write_network(wheels("silero_vad") / "data" / "silero_vad.onnx", inputs)
    for rate, window in ((16000, 576), (8000, 288)):
        net = hub.load(HUB, "silero_vad", source="local", rate=rate)
        assert net(paddle.ones([2, window]), paddle.to_tensor(rate)).shape == [2, window]
        with pytest.raises(ValueError, match=f"{window}"):
            net(paddle.ones([2, 100]), paddle.to_tensor(rate))
    with pytest.raises(ValueError, match="rate=44100"):
        hub.load(HUB, "silero_vad", source="local", rate=44100)


def test_types_of_files_and_notes_out_of_wheels(wheels):
    folder = wheels("magika") / "models" / "standard_v3_3"
    write_network(folder / "model.onnx", [("bytes", [None, 2048], "int32")])
    (folder / "config.min.json").write_text('{"target_labels_space": ["c", "python"]}')
    net, labels = hub.load(HUB, "magika", source="local")
    assert labels == ["c", "python"]
    assert net(paddle.zeros([1, 2048], "int32")).shape == [1, 2048]
    folder = wheels("basic_pitch") / "saved_models" / "icassp_2022"
    write_network(folder / "nmp.onnx", [("x", [None, 43844, 1], "float32")])
    net = hub.load(HUB, "basic_pitch", source="local")
    assert net(paddle.ones([1, 43844, 1])).shape == [1, 43844, 1]


def test_wheels_that_are_missing_or_of_another_version(wheels):
    missing = r"package rapidocr is not installed\n(?s:.*)pip install 'rapidocr==3.10.0'"
    if importlib.util.find_spec("rapidocr") is None:
        with pytest.raises(RuntimeError, match=missing):
            hub.load(HUB, "pp_ocr_v6", source="local")
    wheels("magika")
    with pytest.raises(RuntimeError, match=r"magika has no models/standard_v3_3/model\.onnx"):
        hub.load(HUB, "magika", source="local")
