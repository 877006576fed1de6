"""What `import minipaddle` costs: libraries that few programs need are imported where they are."""

import subprocess
import sys

SLOW = {
    "IPython",
    "cloudpickle",
    "loky",
    "matplotlib",
    "multiprocessing",
    "rich",
    "scipy",
    "sklearn",
    "torch",
}


def imported_by(code: str) -> set[str]:
    """The packages that a fresh interpreter has imported after `code`."""
    code += "; import sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in done.stdout.split()}


def test_importing_minipaddle_imports_nothing_slow():
    anyway = imported_by("pass")  # a coverage measurement brings packages of its own
    assert not (imported_by("import minipaddle") - anyway) & SLOW


def test_a_special_function_imports_scipy():
    assert "scipy" in imported_by("import minipaddle as paddle; paddle.erf(paddle.ones([1]))")
