"""Where numbers overflow: which operators compute in which dtype, and which made the first NaN.

What runs eagerly is watched, forward and backward. A captured program is not: call the function
itself, or `paddle.jit.enable_to_static(False)`, or let the program call `check_numerics`.
Source: Paddle API `paddle.amp.debugging`.
"""

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from functools import wraps
from pathlib import Path

from ..core.casting import governor, watching
from ..core.flags import SETTERS
from ..core.prelude import (
    Recording,
    Tensor,
    current,
    dt,
    movement,
    reduction,
    runtime_error,
    teach,
    type_error,
)
from ..engine.core.errors import caller, line_of
from ..engine.core.rank import among
from ..ops.truth import isfinite, isinf, isnan


class DebugMode(Enum):
    """The reaction of a checker to a value that is not finite."""

    CHECK_NAN_INF_AND_ABORT = 0  # raise an error
    CHECK_NAN_INF = 1  # print a line
    CHECK_ALL_FOR_OVERFLOW = 2  # print a line, also where float32 exceeds the range of float16
    CHECK_ALL = 3  # print a line for every result


# ---- one tensor ------------------------------------------------------------------------------


def check_numerics(
    tensor: Tensor, op_type: str, var_name: str,
    debug_mode: DebugMode = DebugMode.CHECK_NAN_INF_AND_ABORT,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """([how many are NaN, infinite, zero], [largest, smallest, mean]) of a floating tensor.

    NaN or infinity is an error (FloatingPointError), or printed, as `debug_mode` says; in a
    captured program, after each run.

    >>> from minipaddle.amp.debugging import DebugMode, check_numerics
    >>> x = paddle.to_tensor([1.0, 0.0, float("inf")])
    >>> counts, values = check_numerics(x, "divide", "x", DebugMode.CHECK_NAN_INF)
    divide: x, float32[3], has 0 NaN, 1 infinite, 1 zero; largest inf, smallest 0.0, mean inf
    >>> counts.tolist()
    [0, 1, 1]
    """
    if not isinstance(tensor, Tensor) or tensor.spec.dtype not in dt.FLOATS:
        raise type_error(f"check_numerics was given {tensor!r:.60}", "a floating tensor")
    counts, values = numbers_of(tensor)
    what = f"{op_type}: {var_name}, {tensor.spec},"
    if current.top.tracing:
        current.top.host(judge, (what, counts, values, debug_mode), {})
    else:
        judge(what, counts, values, debug_mode)
    return counts, values


def numbers_of(tensor: Tensor) -> tuple[Tensor, Tensor]:
    """([how many are NaN, infinite, zero], [largest, smallest, mean])."""
    with Recording(False), watching(None):
        x = tensor.detach()
        counts = [each.astype("int64").sum() for each in (isnan(x), isinf(x), x == 0)]
        wide, axis = x.astype("float32"), tuple(range(x.spec.ndim))
        extremes = [op(wide, axis=axis, keepdim=False) for op in (reduction.max, reduction.min)]
        values = movement.stack(*extremes, wide.mean(), axis=0)
        return movement.stack(*counts, axis=0), values


def judge(what: str, counts, values, mode: DebugMode, say=print, where=None) -> None:
    """Report a tensor's NaN and infinities, or raise FloatingPointError."""
    (nan, infinite, zero), (largest, smallest, mean) = counts.tolist(), values.tolist()
    large = mode is DebugMode.CHECK_ALL_FOR_OVERFLOW and max(abs(largest), abs(smallest)) > LARGE
    if not (nan or infinite or large or mode is DebugMode.CHECK_ALL):
        return
    text = (
        f"{what} has {nan} NaN, {infinite} infinite, {zero} zero; "
        f"largest {largest}, smallest {smallest}, mean {mean}"
    )
    if mode is DebugMode.CHECK_NAN_INF_AND_ABORT:
        raise FloatingPointError(teach(text, expected="finite numbers", where=where))
    say(text if where is None else f"{text}; at {line_of(where)}")


LARGE = 65504.0
"""The largest number of float16."""


# ---- every operator --------------------------------------------------------------------------


class TensorCheckerConfig:
    """The scope of `enable_tensor_checker`: the results of all operators, or of `checked_op_list`,
    without those of `skipped_op_list`, in the steps from `debug_step[0]` on, before `debug_step[1]`
    (a step is counted by `update_and_check_step_id`). With `output_dir` lines go to a file there.

    `stack_height_limit` is accepted: the line of the user's code is named.

    >>> config = paddle.amp.debugging.TensorCheckerConfig(True, checked_op_list=["divide"])
    >>> config.wants("divide"), config.wants("add")
    (True, False)
    """

    def __init__(
        self, enable: bool, debug_mode: DebugMode = DebugMode.CHECK_NAN_INF_AND_ABORT,
        output_dir: str | None = None, checked_op_list: Sequence[str] | None = None,
        skipped_op_list: Sequence[str] | None = None, debug_step: Sequence[int] | None = None,
        stack_height_limit: int = 1,
    ):  # fmt: skip
        if not isinstance(debug_mode, DebugMode):
            raise type_error(f"TensorCheckerConfig: debug_mode={debug_mode!r}", "a DebugMode")
        self.enable, self.debug_mode, self.output_dir = enable, debug_mode, output_dir
        self.checked = None if checked_op_list is None else {*checked_op_list}
        self.skipped = {*(skipped_op_list or ())}
        self.steps = None if debug_step is None else range(*debug_step)
        self.step = 0

    def update_and_check_step_id(self, step_id: int) -> bool:
        """Note the number of the step; whether it is to be checked."""
        self.step = step_id
        return self.enable and (self.steps is None or step_id in self.steps)

    def wants(self, name: str) -> bool:
        """Whether the results of an operator are to be checked."""
        named = self.checked is None or name in self.checked
        return named and name not in self.skipped and self.update_and_check_step_id(self.step)

    def say(self, text: str) -> None:
        """Print a line, or write it into the file of this rank."""
        if self.output_dir is None:
            print(text)
            return
        folder = Path(self.output_dir)
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / f"worker_{among.now[0]}.log").open("a", encoding="utf-8") as file:
            file.write(f"{text}\n")


class Checker:
    """Looks where a number that is not finite began: `watch` for `watching`."""

    def __init__(self, config: TensorCheckerConfig):
        self.config = config

    def __call__(self, op, inputs, result) -> None:
        config = self.config
        if current.top.tracing or not config.wants(op.name):
            return
        every = config.debug_mode is DebugMode.CHECK_ALL
        for k, y in enumerate(result if isinstance(result, tuple) else [result]):
            if is_floating(y) and (every or all(map(is_finite, inputs))):
                self.report(op, k, y)

    def report(self, op, k: int, y: Tensor) -> None:
        """Judge a result of an operator, with the line of the user's code."""
        record, what = current.top.passing, op.name
        if record is not None:
            what += f" in the backward of {record.op.name}"
        counts, values = numbers_of(y)
        where = caller() if record is None else record.where
        what += f": result {k}, {y.spec}," if k else f": {y.spec}"
        judge(what, counts, values, self.config.debug_mode, self.config.say, where)


def is_floating(x) -> bool:
    return isinstance(x, Tensor) and x.spec.dtype in dt.FLOATS


def is_finite(x) -> bool:
    """Whether all numbers of an input are finite."""
    if not is_floating(x):
        return True
    with watching(None), Recording(False):
        return bool(isfinite(x.detach()).all())


class Entered(threading.local):
    """The blocks that `enable_…` began on this thread, by kind: (block, its watcher)."""

    def __init__(self):
        self.blocks: dict[str, tuple] = {}

    def enter(self, kind: str, watch) -> None:
        """Begin to watch."""
        if kind in self.blocks:
            self.leave(kind)
        block = watching(watch)
        block.__enter__()
        self.blocks[kind] = block, governor()

    def leave(self, kind: str):
        """End it; the function that watched, None if there is none."""
        if kind not in self.blocks:
            return None
        block, governed = self.blocks[kind]
        if governor() is not governed:
            raise runtime_error(
                f"the {kind} is disabled in another block than it was enabled in",
                hint="disable it outside of auto_cast, as you enabled it",
            )
        block.__exit__()
        del self.blocks[kind]
        return governed.watch


entered = Entered()


def enable_tensor_checker(checker_config: TensorCheckerConfig) -> None:
    """From now on check results, forward and backward: where a number that is not finite began is
    an error (FloatingPointError) or a line, with the line of your code.

    >>> from minipaddle.amp.debugging import *
    >>> config = TensorCheckerConfig(True, DebugMode.CHECK_NAN_INF)
    >>> enable_tensor_checker(config)
    >>> y = paddle.log(paddle.zeros([1])) * 2
    log: float32[1] has 0 NaN, 1 infinite, 0 zero; largest -inf, smallest -inf, mean -inf; at ...
    >>> disable_tensor_checker()
    """
    if checker_config.enable:
        entered.enter("tensor checker", Checker(checker_config))
        current.top.lines = True


def disable_tensor_checker() -> None:
    """Check nothing any more."""
    if entered.leave("tensor checker"):
        del current.top.lines


def check_nan_inf(on: bool) -> None:
    """The setter of FLAGS_check_nan_inf."""
    if on:
        enable_tensor_checker(TensorCheckerConfig(True))
    else:
        disable_tensor_checker()


SETTERS["FLAGS_check_nan_inf"] = check_nan_inf


def check_layer_numerics(func):
    """Decorator of a layer's `forward`: its results, those of its layers, and its first input are
    checked; NaN or infinity is an error.

    >>> class Root(paddle.nn.Layer):
    ...     @paddle.amp.debugging.check_layer_numerics
    ...     def forward(self, x):
    ...         return paddle.sqrt(x)
    >>> try:
    ...     Root()(paddle.to_tensor([-1.0]))
    ... except FloatingPointError as error:
    ...     print(str(error).splitlines()[0])
    sqrt: float32[1] has 1 NaN, 0 infinite, 0 zero; largest nan, smallest nan, mean nan
    """

    @wraps(func)
    def forward(self, *args, **kwargs):
        if not args or not isinstance(args[0], Tensor):
            raise type_error(f"{type(self).__name__}.forward was given {args!r:.60}", "a tensor")
        if is_floating(args[0]):
            check_numerics(args[0], type(self).__name__, "its first input")
        with watching(Checker(TensorCheckerConfig(True))):
            return func(self, *args, **kwargs)

    return forward


# ---- operators by dtype ----------------------------------------------------------------------

COLUMNS = {"FP16": "float16", "BF16": "bfloat16", "FP32": "float32"}


class Statistics:
    """Counts calls by operator and dtype of the result: `watch` for `watching`."""

    def __init__(self):
        self.calls: Counter = Counter()

    def __call__(self, op, inputs, result) -> None:
        y = result[0] if isinstance(result, tuple) else result
        self.calls[op.name, dt.public(y.spec.dtype).name] += 1

    def table(self) -> str:
        """A line for each operator."""
        heads = ["Op Name".ljust(26), *(f"{name} Calls".center(12) for name in COLUMNS)]
        lines = [" | ".join([*heads, "Other Calls"])]
        for name in sorted({name for name, _ in self.calls}):
            own = {dtype: n for (op, dtype), n in self.calls.items() if op == name}
            counts = [own.pop(dtype, 0) for dtype in COLUMNS.values()]
            counts.append(sum(own.values()))
            lines.append(" | ".join([name.ljust(26), *(f"{n:^12}" for n in counts)]).rstrip())
        return "\n".join(lines)


def enable_operator_stats_collection() -> None:
    """From now on count operators by dtype, forward and backward."""
    entered.enter("collection of operator statistics", Statistics())


def disable_operator_stats_collection() -> None:
    """End the count, and print a table."""
    collection = entered.leave("collection of operator statistics")
    if collection is not None:
        print(collection.table())


@contextmanager
def collect_operator_stats() -> Iterator[None]:
    """A block whose operators are counted by dtype; at its end a table is printed.

    >>> x = paddle.ones([2, 2])
    >>> with paddle.amp.debugging.collect_operator_stats():
    ...     with paddle.amp.auto_cast(dtype="bfloat16"):
    ...         y = (x @ x).sum()
    Op Name                    |  FP16 Calls  |  BF16 Calls  |  FP32 Calls  | Other Calls
    cast                       |      0       |      2       |      1       |      0
    matmul                     |      0       |      1       |      0       |      0
    sum                        |      0       |      0       |      1       |      0
    """
    enable_operator_stats_collection()
    try:
        yield
    finally:
        disable_operator_stats_collection()
