"""`Config`: which model a predictor runs, and how.

What works has a method below. All other members of Paddle's Config are rows of
`config_members.csv`: a member agrees with what is so anyway, answers, or is refused with the
reason.
"""

from __future__ import annotations

import ast
import csv
import enum
from collections.abc import Callable, Sequence
from copy import deepcopy
from pathlib import Path

from ..engine.core.errors import not_supported, value_error
from ..engine.executors.executable_cache import backend_named
from ..engine.executors.native import threads
from ..passes import PASSES

ENDINGS = (".pdmodel", ".pdiparams", ".json")


class PrecisionType(enum.Enum):
    """The precision of a computation."""

    Float32, Int8, Half, Bfloat16 = range(4)


class Config:
    """The files of a model that `jit.save` wrote, and how to run it.

    Config(prefix), Config(folder) with one model in it, or Config(file, file of weights). Members
    of Paddle's Config that have no meaning here raise NotImplementedError with the reason.

    >>> config = paddle.inference.Config("net.pdmodel", "net.pdiparams")
    >>> config.set_cpu_math_library_num_threads(2)
    >>> config.prog_file(), config.cpu_math_library_num_threads()
    ('net.pdmodel', 2)
    """

    Precision = PrecisionType
    Float32, Int8, Half, Bfloat16 = PrecisionType

    def __init__(self, model: str | Config = "", params: str | None = None):
        self._folder = self._prog = self._params = ""
        self._threads: int | None = None
        self._gpu: int | None = None
        self._pool = 0
        self._optimize, self._native = True, False
        self._debug, self._silent = False, False
        self._strategy: dict = {}
        self._buckets: tuple[int, ...] = ()
        if isinstance(model, Config):
            self.__dict__.update(deepcopy(model.__dict__))
        elif model:
            self.set_model(*filter(None, (model, params)))

    # ---- the model ---------------------------------------------------------------------------

    def set_model(self, model: str, params: str | None = None) -> None:
        """The files of the model: a prefix or a folder, or the file of its programs and that of its
        weights."""
        if params is None:
            self._folder, self._prog, self._params = str(model), "", ""
        else:
            self._folder, self._prog, self._params = "", str(model), str(params)

    def set_prog_file(self, file: str) -> None:
        """The file of the programs, `.pdmodel`."""
        self._prog = str(file)

    def set_params_file(self, file: str) -> None:
        """The file of the weights, `.pdiparams`."""
        self._params = str(file)

    def prog_file(self) -> str:
        """The file of the programs."""
        return self._prog

    def params_file(self) -> str:
        """The file of the weights."""
        return self._params

    def model_dir(self) -> str:
        """The folder or prefix of the model."""
        return self._folder

    def prefix(self) -> str:
        """The prefix that `jit.save` was given; ValueError unless the files tell one."""
        if self._prog:
            prefix = drop_ending(self._prog)
            if self._params and drop_ending(self._params) != prefix:
                raise value_error(
                    f"the programs are {self._prog}, the weights {self._params}",
                    expected="two files of one jit.save, which have one prefix",
                )
            return prefix
        folder = Path(self._folder)
        if not self._folder or not folder.is_dir():
            return drop_ending(self._folder)
        models = sorted(folder.glob("*.pdmodel"))
        if len(models) != 1:
            names = ", ".join(path.name for path in models) or "none"
            raise value_error(
                f"the folder {folder} has these models: {names}",
                expected="one",
                hint="name it: Config(f'{folder}/net.pdmodel', f'{folder}/net.pdiparams')",
            )
        return drop_ending(str(models[0]))

    # ---- how it is computed ------------------------------------------------------------------

    def set_cpu_math_library_num_threads(self, count: int) -> None:
        """The number of threads that share a run."""
        if type(count) is not int or count < 1:
            raise value_error(f"{count!r} threads", expected="a whole number, at least 1")
        self._threads = count

    def cpu_math_library_num_threads(self) -> int:
        """The number of threads that share a run."""
        return self._threads or threads()

    def switch_ir_optim(self, x: bool = True) -> None:
        """Whether passes rewrite the program and it is compiled; otherwise it is interpreted."""
        self._optimize = bool(x)

    def ir_optim(self) -> bool:
        """Whether passes rewrite the program and it is compiled."""
        return self._optimize

    def set_optimization_level(self, opt_level: int = 2) -> None:
        """0: the program is interpreted; 1, 2 and 3: it is compiled, with all passes."""
        if opt_level not in (0, 1, 2, 3):
            raise value_error(f"the optimization level {opt_level!r}", expected="0, 1, 2 or 3")
        self._optimize = opt_level > 0

    def enable_cinn(self) -> None:
        """Compile whatever the environment variable MINIPADDLE_BACKEND says."""
        self._native = True

    def switch_ir_debug(self, x: bool = True, passes: Sequence[str] = ()) -> None:
        """Print what each pass did when the program is compiled."""
        if passes:
            raise not_supported(
                "switch_ir_debug for some passes", hint="leave `passes` away, and read their lines"
            )
        self._debug = bool(x)

    def enable_memory_optim(self, x: bool = True) -> None:
        """Whether values that live at different times share memory (they do, unless x is False)."""
        self._strategy["memory_optimize"] = bool(x)

    def delete_pass(self, name: str) -> None:
        """Leave out a pass."""
        if name not in PASSES:
            raise value_error(f"no pass {name!r}", expected=f"one of {', '.join(PASSES)}")
        self._strategy[name] = False

    def pass_builder(self) -> PassBuilder:
        """The passes: `all_passes()`, `delete_pass(name)`."""
        return PassBuilder(self)

    def set_buckets(self, batches: Sequence[int]) -> None:
        """Compile for these batches alone (MiniPaddle's own): a smaller one is padded to the next.

        The predictor raises ValueError if it cannot prove that rows do not depend on each other.
        """
        wanted = [*batches]
        if not wanted or any(type(n) is not int or n < 1 for n in wanted):
            raise value_error(f"the buckets {wanted!r}", expected="whole numbers, at least 1")
        self._buckets = tuple(sorted({*wanted}))

    # ---- where -------------------------------------------------------------------------------

    def enable_use_gpu(
        self, memory_pool_init_size_mb: int, device_id: int = 0,
        precision_mode: PrecisionType = PrecisionType.Float32,
    ) -> None:  # fmt: skip
        """Compute on a GPU. The pool of memory grows by itself."""
        if precision_mode is not PrecisionType.Float32:
            raise not_supported(
                f"enable_use_gpu with {precision_mode}",
                hint="save the model in that precision: paddle.amp.decorate before jit.save",
            )
        self._gpu, self._pool = device_id, memory_pool_init_size_mb

    def disable_gpu(self) -> None:
        """Compute on the CPU."""
        self._gpu = None

    def use_gpu(self) -> bool:
        """Whether it computes on a GPU."""
        return self._gpu is not None

    def gpu_device_id(self) -> int:
        """The number of the GPU."""
        return self._gpu or 0

    def memory_pool_init_size_mb(self) -> int:
        """The size that `enable_use_gpu` was given."""
        return self._pool

    # ---- what is said ------------------------------------------------------------------------

    def disable_glog_info(self) -> None:
        """Say nothing; a predictor says nothing anyway, unless `switch_ir_debug` is on."""
        self._silent = True

    def glog_info_disabled(self) -> bool:
        """Whether `disable_glog_info` was called."""
        return self._silent

    def summary(self) -> str:
        """The settings, a line for each."""
        rows = {
            "model": self._prog or self._folder or "not set",
            "place": self.place(),
            "threads": self.cpu_math_library_num_threads(),
            "backend": self.backend(),
            "switches": self._strategy or "as they are",
            "buckets": self._buckets or "each size is compiled",
        }
        return "\n".join(f"{name:<10}{value}" for name, value in rows.items())

    def place(self) -> str:
        """The device, as `set_device` takes it."""
        return "cpu" if self._gpu is None else f"gpu:{self._gpu}"

    def backend(self) -> str:
        """ "native", or "interpreter" if that was asked for here or by MINIPADDLE_BACKEND."""
        if not self._optimize:
            return "interpreter"
        asked = "native" if self._native else backend_named(None)
        return "native" if asked == "auto" else asked


class PassBuilder:
    """The passes of a configuration."""

    def __init__(self, config: Config):
        self.config = config

    def all_passes(self) -> list[str]:
        """The names of the passes, in their order."""
        return [name for name in PASSES if self.config._strategy.get(name) is not False]

    def delete_pass(self, name: str) -> None:
        """Leave out a pass."""
        self.config.delete_pass(name)

    def __getattr__(self, name: str):
        raise AttributeError(f"PassBuilder.{name}: it has all_passes and delete_pass")


def drop_ending(path: str) -> str:
    """A prefix from the name of one of its files."""
    return next((path.removesuffix(e) for e in ENDINGS if path.endswith(e)), path)


def other_member(name: str, kind: str, value, why: str) -> Callable:
    """The method for a row of `config_members.csv`."""

    def member(self, *args, **kwargs):
        if kind == "refused" or (kind == "always" and (*args, *kwargs.values(), value)[0] != value):
            arguments = ", ".join(map(repr, [*args, *kwargs.values()]))
            raise not_supported(f"Config.{name}({arguments})", hint=why)
        return value

    member.__name__ = name
    member.__doc__ = {
        "refused": f"Refused: {why}.",
        "answers": f"{value!r}, always.",
        "agrees": "It is so anyway.",
        "always": f"{value!r} alone: {why}.",
    }[kind]
    return member


with Path(__file__).with_name("config_members.csv").open(encoding="utf-8", newline="") as _file:
    OTHERS = {row.pop("member"): row for row in csv.DictReader(_file)}
"""The members of Paddle's Config that change nothing here."""

for _name, _row in OTHERS.items():
    _value = ast.literal_eval(_row["value"] or "None")
    setattr(Config, _name, other_member(_name, _row["kind"], _value, _row["why"]))

__all__ = ["Config", "PrecisionType"]
