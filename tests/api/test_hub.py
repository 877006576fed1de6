"""`paddle.hub`: folders with `hubconf.py`, repositories that are fetched once, weights by hash."""

import json
import shutil
import sys
import zipfile
from pathlib import Path

import numpy as np
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
    assert sorted(scores) == hub.list(HUB, source="local")
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
