"""`BuildStrategy`: every switch of the passes, under Paddle's name where Paddle has one.

What there is to switch the passes declare themselves (`engine.passes.registry`): each pass by its
name, and its switches. So the table cannot say what the code does not do.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from difflib import get_close_matches
from typing import ClassVar, NamedTuple

from ..engine.core.errors import teach, type_error
from ..engine.core.slots import find
from ..engine.passes.manager import DEFAULTS
from ..engine.passes.registry import SWITCHES
from ..passes import PASSES

ELSEWHERE = {
    "build_cinn_pass": (None, "to_static", "on: backend='native'; off: backend='interpreter'"),
    "tuned": (True, "executors.native", "kernels are written as `paddle.tune` found best"),
    "allow_cuda_graph_capture": (True, "executors.cuda", "a step becomes one CUDA graph"),
}
"""Toggles of what is no pass: (default, where, what it does)."""

ELSE = "several processes: paddle.distributed sets them up"
LEFT_OUT = {
    "debug_graphviz_path": "paddle.viz.passes(function) draws programs",
    "fuse_relu_depthwise_conv": "no convolution computes its input itself",
    "fuse_all_optimizer_ops": "the update of each weight is one group already",
    "fuse_adamw": "the update of each weight is one group already",
    "fuse_dot_product_attention": "fused_attention switches it",
    "cache_runtime_context": "memory is always kept from call to call",
    "enable_backward_optimizer_op_deps": "the schedule decides when a weight is updated",
    "mkldnn_enabled_op_types": "there is no oneDNN",
    "onednn_enabled_op_types": "there is no oneDNN",
    "fuse_broadcast_ops": "weights are sent once, before the first step",
    "sync_batch_norm": "paddle.nn.SyncBatchNorm.convert_sync_batchnorm(net)",
    "reduce_strategy": ELSE,
    "async_mode": ELSE,
    "num_trainers": ELSE,
    "trainer_id": ELSE,
    "trainers_endpoints": ELSE,
    "nccl_comm_num": ELSE,
    "bkcl_comm_num": ELSE,
    "use_hierarchical_allreduce": ELSE,
    "hierarchical_allreduce_inter_nranks": ELSE,
}
"""Paddle's switches that have nothing to switch here, and why: they are refused by name."""


class Toggle(NamedTuple):
    """A switch: its name, what it is unless it is set, what it belongs to, what it does."""

    name: str
    default: object
    where: str
    doc: str


def toggles_of(where: str) -> Iterator[Toggle]:
    """The switches of a slot: a pass itself, which can be left out, and what it declares."""
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


class Strategy:
    """Switches by name. `chosen` are those that were set; the others are left to the passes."""

    switches: ClassVar[dict[str, object]]

    def __init__(self):
        self.__dict__.update(self.switches, chosen={})

    def __setattr__(self, name: str, value) -> None:
        if name not in self.switches:
            near = get_close_matches(name, self.switches, 1)
            raise AttributeError(
                teach(
                    f"{type(self).__name__} has no {name!r}",
                    expected=", ".join(self.switches),
                    hint=f"strategy.{near[0]}" if near else "",
                )
            )
        super().__setattr__(name, value)
        self.chosen[name] = value


class BuildStrategy(Strategy):
    """What passes shall do with a program: `to_static(function, build_strategy=strategy)`.

    What is not set is as the passes have it: mostly on. Beside Paddle's switches each pass has one
    of its own name. Printed, a strategy is the table of them all, with what each does (`*`: set);
    `passes.manager.optimized(program, strategy).report()` shows what comes of it. Raises
    AttributeError for a name that nobody knows, and with the reason for a switch of Paddle that has
    nothing to switch here; TypeError for a value that is no switch.
    Source: Paddle API `static.BuildStrategy`.

    >>> import minipaddle as paddle
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
            raise type_error(f"{name} = {value!r}", expected="True, False, or None: unsaid")
        super().__setattr__(name, value)

    def __repr__(self) -> str:
        lines, last = [], None
        for name, _, where, doc in TOGGLES.values():
            whole = where == f"passes.{name}"
            if where != last and not whole:
                lines.append(f"  {where}")
            value, mark = getattr(self, name), "*" if name in self.chosen else " "
            lines.append(f"{mark} {name if whole else f'  {name}':<26} {value!s:<7} {doc}")
            last = where
        return "\n".join(lines)


class ExecutionStrategy(Strategy):
    """How a program is run. Source: Paddle API `static.ExecutionStrategy`.

    >>> import minipaddle as paddle
    >>> paddle.static.ExecutionStrategy().num_threads
    0
    """

    switches: ClassVar = {
        "num_threads": 0, "num_iteration_per_drop_scope": 100, "num_iteration_per_run": 1,
        "use_thread_barrier": False,
    }  # fmt: skip
