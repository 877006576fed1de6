"""`python -m minipaddle run SCRIPT.py …`: a program written for Paddle, unchanged, on MiniPaddle.

examples:
  python -m minipaddle run train.py --epochs 3       (as `python train.py --epochs 3`)
  python -m minipaddle run -m tools.train -c a.yml   (as `python -m tools.train -c a.yml`)
"""

import runpy
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from . import install

USAGE = f"usage: python -m minipaddle run [-h] (SCRIPT.py | -m MODULE) …\n\n{__doc__}"
MAIN = str(Path(__file__).parents[1] / "__main__.py")
OWN = {__file__, MAIN, runpy.run_module.__code__.co_filename}
"""The files whose calls are above the script's in a traceback."""


def main(arguments: list[str]) -> int:
    """Run a script or a module as `python` would: arguments, `__main__`, errors, exit status."""
    install()
    match arguments:
        case ["-h" | "--help", *_]:
            print(USAGE)
            return 0
        case [] | ["-m"]:
            print(USAGE, file=sys.stderr)
            return 2
        case ["-m", name, *rest]:
            return run(run_module, name, rest)
        case [path, *rest]:
            return run(run_path if Path(path).is_dir() else run_script, path, rest)


def run(how, target: str, rest: list[str]) -> int:
    """Run the target with its arguments. What it raises is shown without the calls of this file."""
    sys.argv = [target, *rest]
    show = sys.excepthook
    sys.excepthook = lambda kind, error, trace: show(kind, *cut_traceback(error, trace))
    return how(target)


def cut_traceback(error: BaseException, trace):
    """An error, and its traceback from the first line of the script on."""
    while trace is not None and trace.tb_frame.f_code.co_filename in OWN:
        trace = trace.tb_next
    return error.with_traceback(trace), trace


def run_script(path: str) -> int:
    """`python SCRIPT.py`: its folder is the first of `sys.path`, its names are `__main__`'s."""
    place = Path(path).absolute()
    loader = SourceFileLoader("__main__", str(place))
    try:
        source = loader.get_data(str(place))
    except OSError as error:
        print(
            f"{sys.executable}: can't open file {str(place)!r}: [Errno {error.errno}] "
            f"{error.strerror}",
            file=sys.stderr,
        )
        return 2
    if not sys.flags.safe_path:
        sys.path[0] = str(place.resolve().parent)
    module = sys.modules["__main__"] = ModuleType("__main__")
    vars(module).update(__file__=str(place), __loader__=loader, __builtins__=__builtins__)
    exec(compile(source, str(place), "exec", dont_inherit=True), vars(module))
    return 0


def run_module(name: str) -> int:
    """`python -m MODULE`."""
    if find_spec(name) is None:
        print(f"{sys.executable}: No module named {name}", file=sys.stderr)
        return 1
    runpy.run_module(name, run_name="__main__", alter_sys=True)
    return 0


def run_path(path: str) -> int:
    """`python FOLDER`, which has a `__main__.py`."""
    sys.path[0] = path
    runpy.run_path(path, run_name="__main__")
    return 0
