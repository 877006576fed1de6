"""MiniPaddle under Paddle's name: after `import minipaddle.as_paddle`, `import paddle` finds it.

`paddle.nn` and `minipaddle.nn` are one module, made once, when either is first imported;
`sys.modules["paddle"] = minipaddle` would make every module below a second time, with second
classes. `python -m minipaddle run SCRIPT.py` does the same for a script that stays as it is.

>>> import minipaddle.as_paddle
>>> import paddle.nn.functional as F
>>> F is minipaddle.nn.functional
True
"""

import sys
from importlib import import_module
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from importlib.util import find_spec

OURS, THEIRS = __name__.partition(".")[0], "paddle"


def name_here(name: str) -> str | None:
    """`minipaddle.nn` for `paddle.nn`; None for the modules of others."""
    first, dot, rest = name.partition(".")
    return f"{OURS}{dot}{rest}" if first == THEIRS else None


class SameModule:
    """Finds a module of `paddle` by the name it has in MiniPaddle, without importing it yet."""

    @classmethod
    def find_spec(cls, name: str, path=None, target=None) -> ModuleSpec | None:
        here = name_here(name)
        spec = here and find_spec(here)
        if not spec:
            return None
        package = spec.submodule_search_locations is not None
        return ModuleSpec(name, SameLoader(spec), origin=spec.origin, is_package=package)


class SameLoader(Loader):
    """Hands over the module that MiniPaddle has, instead of making another one."""

    def __init__(self, found: ModuleSpec):
        self.found = found

    def create_module(self, spec):
        module = import_module(self.found.name)
        self.own = module.__spec__
        return module

    def exec_module(self, module) -> None:
        """It has run already; the import system has given it the spec of its second name."""
        module.__spec__ = self.own

    def get_code(self, name: str):
        """The function of `python -m paddle.distributed.launch`."""
        return self.found.loader.get_code(self.found.name)


def install() -> None:
    """Let `import paddle` find MiniPaddle, also where Paddle is installed.

    Raises ImportError where another paddle was imported before, whose tensors would be others.
    """
    taken = [name for name, module in sys.modules.items() if is_other(name, module)]
    if taken:
        where = getattr(sys.modules[taken[0]], "__file__", None) or "no file"
        raise ImportError(
            f"{taken[0]} was imported before as another module, from {where}\n"
            "  expected: no other paddle, because tensors of two frameworks do not mix\n"
            "  try: import minipaddle.as_paddle before anything imports paddle, or run the script "
            "with `python -m minipaddle run SCRIPT.py`",
            name=taken[0],
        )
    if SameModule not in sys.meta_path:
        sys.meta_path.insert(0, SameModule)
    sys.modules[THEIRS] = sys.modules[OURS]


def is_other(name: str, module) -> bool:
    """Whether a module has one of Paddle's names, and is none of MiniPaddle's."""
    here = name_here(name)
    return here is not None and module is not sys.modules.get(here)


install()
