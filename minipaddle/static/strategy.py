"""`BuildStrategy`: every switch of the passes, under Paddle's name where Paddle has one.

The passes declare their switches themselves (`engine.passes.registry`), so the table and the code
cannot disagree.
"""

import csv
import inspect
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import ClassVar, NamedTuple

from ..engine.core.errors import teach, type_error
from ..engine.core.slots import find
from ..engine.passes.registry import DEFAULTS, SWITCHES
from ..passes import PASSES

ELSEWHERE = {
    "build_cinn_pass": (None, "to_static", "on: backend='native'; off: backend='interpreter'"),
    "tuned": (True, "executors.native", "kernels are written as `paddle.tune` found best"),
    "allow_cuda_graph_capture": (True, "executors.cuda", "a step becomes one CUDA graph"),
}
"""Switches that belong to no pass: (default, where, what it does)."""

with Path(__file__).with_name("refused_switches.csv").open(encoding="utf-8", newline="") as _file:
    LEFT_OUT = dict(row.values() for row in csv.DictReader(_file))
"""Paddle's switches that switch nothing here, and why: they are refused with the reason."""


class Toggle(NamedTuple):
    """A switch: its name, its default, the slot it belongs to, what it does."""

    name: str
    default: object
    where: str
    doc: str


def toggles_of(where: str) -> Iterator[Toggle]:
    """The switches of a slot: the pass itself, and the switches it declares."""
    function = find(where).get()
    if where.startswith("passes."):
        doc = inspect.getdoc(function).split(".")[0]
        yield Toggle(where.removeprefix("passes."), True, where, doc.replace("\n", " "))
    for name, (default, doc) in SWITCHES[where].items():
        if doc:
            yield Toggle(name, DEFAULTS.get(name, default), where, doc)


TOGGLES = {
    toggle.name: toggle
    for where in [*(f"passes.{name}" for name in PASSES), "memory.plan"]
    for toggle in toggles_of(where)
} | {name: Toggle(name, *rest) for name, rest in ELSEWHERE.items()}
"""Every switch that does something, by name.

>>> print(*TOGGLES["enable_addto"], sep="; ")
enable_addto; True; passes.add_to; gradients that add up are added where they are computed
"""


class PassStrategy:
    """Switches by name. `chosen` holds those that were set; the passes decide on the others."""

    switches: ClassVar[dict[str, object]]

    def __init__(self):
        self.__dict__.update(self.switches, chosen={})

    def __setattr__(self, name: str, value) -> None:
        if name not in self.switches:
            hint = "".join(f"strategy.{s}" for s in get_close_matches(name, self.switches, 1))
            what, expected = f"{type(self).__name__} has no {name!r}", ", ".join(self.switches)
            raise AttributeError(teach(what, expected=expected, hint=hint))
        super().__setattr__(name, value)
        self.chosen[name] = value


class BuildStrategy(PassStrategy):
    """The switches of the passes: `to_static(function, build_strategy=strategy)`.

    A switch that is not set has the default of its pass: mostly on. Beside Paddle's switches each
    pass has one of its own name. Printed, a strategy is the table of all switches, with what each
    does (`*`: set); `passes.manager.optimized(program, strategy).report()` shows its effect. Raises
    AttributeError for an unknown name, and with the reason for a switch of Paddle that switches
    nothing here; TypeError for a value that is no switch.

    >>> strategy = paddle.static.BuildStrategy()
    >>> strategy.enable_inplace = False
    >>> print(*[line for line in str(strategy).splitlines() if "inplace" in line])
    *   enable_inplace           False   a result is written over an input that is needed no more
    """

    switches: ClassVar = {t.name: t.default for t in TOGGLES.values()}

    def __getattr__(self, name: str):
        if name in LEFT_OUT:
            raise AttributeError(teach(f"{name} switches nothing here: {LEFT_OUT[name]}"))
        raise AttributeError(f"BuildStrategy has no {name!r}")

    def __setattr__(self, name: str, value) -> None:
        if name in LEFT_OUT:
            self.__getattr__(name)
        if isinstance(self.switches.get(name), bool) and not isinstance(value, bool | None):
            raise type_error(f"{name} = {value!r}", expected="True, False, or None, the default")
        super().__setattr__(name, value)

    def __repr__(self) -> str:
        lines, last = [], None
        for name, _, where, doc in TOGGLES.values():
            is_pass = where == f"passes.{name}"
            if where != last and not is_pass:
                lines.append(f"  {where}")
            value, mark = getattr(self, name), "*" if name in self.chosen else " "
            lines.append(f"{mark} {name if is_pass else f'  {name}':<26} {value!s:<7} {doc}")
            last = where
        return "\n".join(lines)


class ExecutionStrategy(PassStrategy):
    """How a program is run.

    >>> paddle.static.ExecutionStrategy().num_threads
    0
    """

    switches: ClassVar = {
        "num_threads": 0, "num_iteration_per_drop_scope": 100, "num_iteration_per_run": 1,
        "use_thread_barrier": False,
    }  # fmt: skip
