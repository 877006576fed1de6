"""The environment files for conda ask for what pyproject.toml asks for: names and bounds."""

import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from rattler import MatchSpec

ROOT = Path(__file__).resolve().parents[2]
# Where conda-forge's name is another than PyPI's.
CONDA_NAME = {"graphviz": "python-graphviz", "tensorboardX": "tensorboardx", "cupy-cuda12x": "cupy",
              "prometheus-client": "prometheus_client"}  # fmt: skip
# What only conda is asked for, and the package itself.
CONDA_ONLY = {"python", "pip"}
BOTH = ["environment.yml", "environment-cpu.yml"]


def bounds(version):
    """A set of bounds in one spelling: '>=2.0,<3' and '<3,>=2.0' are the same."""
    return frozenset(filter(None, str(version or "").replace(" ", "").split(",")))


def wanted_by_pip():
    """{name for conda: bounds} of the package, its extra `book`, with `serve` in it, and cupy."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    lines = [*project["dependencies"], *extras["book"], *extras["serve"], *extras["cuda12"]]
    requirements = [Requirement(line) for line in lines if line != "minipaddle[serve]"]
    return {CONDA_NAME.get(r.name, r.name): bounds(r.specifier) for r in requirements}


def wanted_by_conda(file):
    """{name: bounds} of an environment file, its pip part included; `-e .` must be there."""
    entries = yaml.safe_load((ROOT / file).read_text(encoding="utf-8"))["dependencies"]
    (from_pip,) = [entry["pip"] for entry in entries if isinstance(entry, dict)]
    assert from_pip[-1] == "-e .", f"{file} should end by installing MiniPaddle itself: - -e ."
    specs = [MatchSpec(entry) for entry in entries if isinstance(entry, str)]
    found = {spec.name.normalized: bounds(spec.version) for spec in specs}
    pinned = [Requirement(line) for line in from_pip[:-1]]
    return found | {r.name: bounds(r.specifier) for r in pinned}


@pytest.mark.parametrize("file", BOTH)
def test_the_same_packages_with_the_same_bounds(file):
    pip, conda = wanted_by_pip(), wanted_by_conda(file)
    if file == "environment-cpu.yml":
        del pip["cupy"]
    for name in pip.keys() | conda.keys() - CONDA_ONLY:
        assert name in conda, f"pyproject.toml asks for {name}, {file} does not: add it there."
        assert name in pip, f"{file} asks for {name}, pyproject.toml does not: add it there."
        assert conda[name] == pip[name], (
            f"{name}: {file} says {set(conda[name])}, pyproject.toml says {set(pip[name])}."
        )


@pytest.mark.parametrize("file", BOTH)
def test_the_same_python(file):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert wanted_by_conda(file)["python"] == bounds(project["requires-python"])


def test_the_two_files_differ_in_cupy_only():
    gpu, cpu = (wanted_by_conda(file) for file in BOTH)
    assert gpu.keys() - cpu.keys() == {"cupy"}
    assert {name: gpu[name] for name in cpu} == cpu


def test_both_cuda_extras_take_the_same_cupy():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    assert extras["cuda13"] == [line.replace("12x", "13x") for line in extras["cuda12"]]


def test_a_different_bound_is_a_difference():
    assert bounds(MatchSpec("numpy >=2.0,<3").version) == bounds(Requirement("n<3,>=2.0").specifier)
    assert bounds(MatchSpec("numpy >=2.1").version) != bounds(Requirement("n>=2.0").specifier)
    with pytest.raises(Exception, match=r"(?i)version|parse|operator"):
        MatchSpec("numpy =>2")
