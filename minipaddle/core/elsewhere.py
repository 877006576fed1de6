"""Names that Paddle has in one place and MiniPaddle in another: `elsewhere.toml` lists them."""

import tomllib
from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name

from ..engine.core.errors import not_supported
from .left_out import reason

PACKAGE = __name__.partition(".")[0]


def read_table(text: str) -> tuple[dict[str, str], set[str], set[str], list[str]]:
    """From the table: (name -> home), the names that replace missing ones, the modules that are
    elsewhere, those that are here.
    """
    table = tomllib.loads(text)
    homes = {
        f"paddle.{name}": home for home, names in table["homes"].items() for name in names.split()
    }
    stand_ins = {f"paddle.{name}" for name in table["stand_ins"].split()}
    modules = set()
    for name in [*homes, *stand_ins]:
        while (name := name.rpartition(".")[0]) != "paddle":
            modules.add(name)
    return homes, stand_ins, modules, table["faces"].split()


HOMES, STAND_INS, MODULES, FACES = read_table(
    Path(__file__).with_name("elsewhere.toml").read_text("utf-8")
)
PARENTS = {name.rpartition(".")[0] for name in MODULES}
"""The modules that have such modules below them."""


def find(name: str):
    """The module for `paddle.nn.initializer.kaiming` and its like; None if the table lacks it.

    >>> from minipaddle.core.elsewhere import find
    >>> find("paddle.base.framework.in_dygraph_mode")()
    True
    """
    if name in STAND_INS:
        return StandIn(name.rpartition(".")[2], (), {"paddle_name": name})
    if name in MODULES:
        return import_module(PACKAGE + name.removeprefix("paddle"))
    space, _, last = name.rpartition(".")
    home = HOMES.get(name)
    if home is not None:
        return resolve_name(PACKAGE + home.removeprefix("paddle"))
    home = HOMES.get(f"{space}.*")
    if home is None or last.startswith("_"):
        return None
    return getattr(resolve_name(PACKAGE + home.removeprefix("paddle")), last, None)


class StandIn(type):
    """A class that can be imported, inherited from and asked about, and says why it is not used.

    >>> class Reader(paddle.distributed.fleet.MultiSlotDataGenerator):
    ...     pass
    >>> Reader()  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    NotImplementedError: paddle.distributed.fleet.MultiSlotDataGenerator: ...
    """

    def __call__(cls, *args, **kwargs):
        raise not_supported(f"{cls.paddle_name}: {reason(cls.paddle_name)}")

    def __getattr__(cls, name: str):
        raise AttributeError(f"{cls.paddle_name}.{name}: {reason(cls.paddle_name)}")
