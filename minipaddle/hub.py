"""Models from a folder, or from a repository on GitHub: its `hubconf.py` lists functions.

`hubconf.py` is a program: `list`, `help` and `load` run it, as they do in Paddle. Weights are data:
`load_weights` reads a safetensors file whose name says what its bytes are.

Source: Paddle API `paddle.hub`.
"""

import hashlib
import os
import re
import shutil
import sys
import urllib.request
import zipfile
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path

import safetensors.numpy

from .core import files
from .core.missing import namespace
from .engine.core.errors import runtime_error, teach, value_error

__all__ = ["help", "list", "load"]

__getattr__ = namespace("paddle.hub", globals())

SITES = {
    "github": "https://github.com/{owner}/{name}/archive/{branch}.zip",
    "gitee": "https://gitee.com/{owner}/{name}/repository/archive/{branch}.zip",
}
CONF = "hubconf.py"


def list(repo_dir: str, source: str = "github", force_reload: bool = False) -> list[str]:
    """The names of the models of a repository: the public functions of its `hubconf.py`.

    source: "local", repo_dir is a folder; "github" or "gitee", repo_dir is `owner/name:branch`
    (`main` if there is no branch), which is kept in `~/.cache/minipaddle/hub`, or `$HUB_HOME`
    force_reload: download it again

    >>> print(*paddle.hub.list("hub", source="local"))
    basic_pitch char_gpt lenet_digits magika pp_ocr_v4 pp_ocr_v6 silero_vad text_finder text_reader
    text_system
    """
    return [*functions(module_of(repo_dir, source, force_reload))]


def help(repo_dir: str, model: str, source: str = "github", force_reload: bool = False) -> str:
    """The description of a model: the docstring of its function.

    >>> print(paddle.hub.help("hub", "lenet_digits", source="local").splitlines()[0])
    LeNet for images of digits, 8 x 8: float32 [n, 1, 8, 8] from 0 to 1, scores [n, 10].
    """
    return function_of(repo_dir, model, source, force_reload).__doc__ or ""


def load(repo_dir: str, model: str, source: str = "github", force_reload: bool = False, **kwargs):
    """The model that a function of `hubconf.py` makes, called with `kwargs`.

    >>> net = paddle.hub.load("hub", "lenet_digits", source="local", pretrained=True)
    >>> image, digit = paddle.vision.datasets.Digits(mode="test")[0]
    >>> int(net(paddle.to_tensor(image).reshape([1, 1, 8, 8])).argmax()) == int(digit)
    True
    """
    return function_of(repo_dir, model, source, force_reload)(**kwargs)


def function_of(repo_dir, model: str, source: str, force_reload: bool):
    """The function that makes a model."""
    models = functions(module_of(repo_dir, source, force_reload))
    if model not in models:
        raise value_error(f"{repo_dir} has no model {model!r}", f"one of {', '.join(models)}")
    return models[model]


def functions(module) -> dict:
    """The public functions of a module, by name."""
    missing = [each for each in getattr(module, "dependencies", []) if find_spec(each) is None]
    if missing:
        text = f"{module.__file__} needs {', '.join(missing)}"
        raise runtime_error(text, hint=f"pip install {' '.join(missing)}")
    own = vars(module).items()
    return {k: f for k, f in sorted(own) if callable(f) and k[0] != "_" and is_of(f, module)}


def is_of(function, module) -> bool:
    """Whether a function was defined in this module."""
    return getattr(function, "__module__", None) == module.__name__


def module_of(repo_dir, source: str, force_reload: bool):
    """The `hubconf.py` of a repository as a module, run anew."""
    if source not in ("local", *SITES):
        raise value_error(f"hub source={source!r}", f"one of local, {', '.join(SITES)}")
    folder = Path(repo_dir) if source == "local" else download(repo_dir, source, force_reload)
    file = folder / CONF
    if not file.is_file():
        expected = "a folder with a file of this name, which defines the models"
        raise FileNotFoundError(teach(f"there is no {CONF} in {folder}", expected))
    name = "minipaddle_hub_" + hashlib.sha256(str(file.resolve()).encode()).hexdigest()[:12]
    spec = spec_from_file_location(name, file)
    module = module_from_spec(spec)
    sys.path.insert(0, str(folder))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(folder))
    return module


def download(repo_dir: str, source: str, force_reload: bool) -> Path:
    """The folder of a repository, which is fetched once."""
    parts = re.fullmatch(r"([\w.-]+)/([\w.-]+)(?::([\w./-]+))?", repo_dir)
    if parts is None or ".." in repo_dir:
        raise value_error(f"hub repository {repo_dir!r}", "owner/name or owner/name:branch")
    owner, name, branch = *parts.groups()[:2], parts[3] or "main"
    home = Path(os.environ.get("HUB_HOME") or Path.home() / ".cache/minipaddle/hub")
    folder = home / f"{owner}_{name}_{branch.replace('/', '_')}"
    if folder.is_dir() and not force_reload:
        return folder
    home.mkdir(parents=True, exist_ok=True)
    fresh = home / f"{folder.name}.{os.getpid()}"
    packed = fresh.with_suffix(".zip")
    url = SITES[source].format(owner=owner, name=name, branch=branch)
    try:
        with urllib.request.urlopen(url) as answer, packed.open("wb") as file:
            shutil.copyfileobj(answer, file)
        with zipfile.ZipFile(packed) as archive:
            archive.extractall(fresh)  # it leaves no file outside
        (root,) = fresh.iterdir()
        shutil.rmtree(folder, ignore_errors=True)
        root.rename(folder)
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        hint = "download it yourself, and name its folder with source='local'"
        raise runtime_error(f"{url} cannot be fetched: {error}", hint=hint) from None
    finally:
        packed.unlink(missing_ok=True)
        shutil.rmtree(fresh, ignore_errors=True)
    return folder


# ---- weights -------------------------------------------------------------------------------------


def save_weights(net, folder, name: str) -> Path:
    """Write the state of a model to `name-<hash>.safetensors`, and return this path. The hash is
    the first eight digits of the SHA-256 of the file.
    """
    data = safetensors.numpy.save({k: v.numpy() for k, v in net.state_dict().items()})
    path = Path(folder) / f"{name}-{hashlib.sha256(data).hexdigest()[:8]}.safetensors"
    files.replace({str(path): data})
    return path


def load_weights(net, path) -> None:
    """Give a model the state in a file that `save_weights` wrote.

    Raises ValueError if the bytes are not those its name promises, or are another model's.
    """
    path = Path(path)
    files.require_file(str(path))
    said, data = re.fullmatch(r".*-([0-9a-f]{8})\.safetensors", path.name), path.read_bytes()
    if said is None:
        raise value_error(f"weights in {path.name}", "name-<8 digits of SHA-256>.safetensors")
    digest = hashlib.sha256(data).hexdigest()[:8]
    if digest != said[1]:
        raise value_error(f"{path} has the SHA-256 {digest}…", f"{said[1]}…, as its name says")
    state, own = safetensors.numpy.load(data), net.state_dict()
    theirs, ours = ({k: tuple(v.shape) for k, v in each.items()} for each in (state, own))
    if theirs != ours:
        wrong = sorted({k for k, _ in theirs.items() ^ ours.items()})
        raise value_error(f"{path} is of another model", f"equal names and shapes: {wrong}")
    net.set_state_dict(state)
