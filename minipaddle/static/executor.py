"""`Executor`: compiles a program once for each set of feeds and fetches, and runs it many times."""

from functools import partial

from ..engine.core.errors import value_error
from ..engine.core.record import Record
from ..engine.eager.convert import as_array
from ..engine.eager.device import CPU, QUIET, current_place
from ..engine.eager.tensor import Tensor, wrap
from ..engine.executors.executable_cache import ExecutableCache
from ..engine.ir import program as ir
from ..engine.ir.cut import pruned
from ..engine.jit.tree import flatten
from ..ir.input_spec import fits, format_expected
from .mode import default_main_program, outside
from .program import Program, select_mode


class Executor:
    """Runs programs.

    >>> paddle.enable_static()
    >>> main = paddle.static.Program()
    >>> with paddle.static.program_guard(main):
    ...     x = paddle.static.data("x", [None])
    ...     y = x * x
    >>> paddle.disable_static()
    >>> paddle.static.Executor().run(main, feed={"x": [1.0, 3.0]}, fetch_list=[y])[0].tolist()
    [1.0, 9.0]
    """

    def __init__(self, place=None):
        self.place = place

    def run(
        self, program=None, feed=None, fetch_list=None, feed_var_name="feed",
        fetch_var_name="fetch", scope=None, return_numpy=True, use_program_cache=True,
        use_prune=False,
    ):  # fmt: skip
        """The tensors of `fetch_list` (tensors or names, also in lists), for the data in `feed`.

        Running a startup program initializes the parameters. Data that no fetched tensor and no
        update needs may be left out. Raises ValueError that names data that is missing or does not
        fit. A program that runs again is compiled in the background, as `to_static` does it, unless
        a CompiledProgram's strategy or the environment variable MINIPADDLE_BACKEND says otherwise.
        """
        strategy = getattr(program, "build_strategy", None)
        program = getattr(program, "program", program)
        program = default_main_program() if program is None else program
        fetch_list = None if fetch_list is None else flatten(fetch_list)[0]
        with outside():
            if hasattr(program, "fetch"):
                arrays = program.fetch(feed or {}, fetch_list)
            elif program.first and not fetch_list and not program.view().program.records:
                arrays = self.initialize(program)
            else:
                compute = partial(self.compute, program, strategy=strategy)
                remote = program.tracer.remote
                run = compute if remote is None else partial(remote.run, compute)
                arrays = run(feed or {}, fetch_list or [])
            return [CPU.move(a) if return_numpy else wrap(a) for a in arrays]

    @staticmethod
    def initialize(program: Program) -> list:
        """Draw parameters again in a second run of the startup: they have values from the start."""
        for k, (parameter, draw) in enumerate(program.first):
            if draw is not None and parameter in program.compiled:
                parameter.set_value(draw())
            program.compiled[parameter] = k
        return []

    @staticmethod
    def compute(program: Program, feed: dict, fetch_list, strategy=None) -> list:
        view = program.view()
        fetched = [program.record_of(x, view) for x in fetch_list]
        updates = tuple(s.update for s in view.program.states)
        key = tuple(fetched), tuple(sorted(feed)), updates, len(view.program.records), strategy
        if key not in program.compiled:
            part = compile_(view.program, [*feed], fetched)
            executables = ExecutableCache(strategy=strategy)
            executables.frozen = all(s.update is None for s in part.states)  # it trains nothing
            program.compiled[key] = part, executables
        compiled, executables = program.compiled[key]
        sizes: dict[str, int] = {}
        arrays = [input_array(r, feed[r.attrs["name"]], sizes) for r in compiled.inputs]
        arrays += [s.storage.read() for s in compiled.states]
        results, _ = QUIET.copy().run(executables.run, compiled, arrays)
        cells = [s.storage for s in compiled.states if s.update is not None]
        for storage, array in zip(cells, results[len(fetched) :], strict=True):
            storage.write(array)
        return results[: len(fetched)]

    def close(self) -> None:
        """Nothing is held."""


def compile_(program: ir.Program, feed: list, fetched: list[Record]) -> ir.Program:
    """The part of a program that computes the fetched records and the updates of states."""
    part = pruned(select_mode(ir.Program(**vars(program) | {"outputs": fetched}), True, {}))
    used = {e for r in part.records for e in r.inputs} | set(part.results)
    inputs = {r.attrs["name"]: r for r in program.inputs}
    missing = [name for name, r in inputs.items() if r in used and name not in feed]
    if missing or set(feed) - inputs.keys():
        unknown = sorted(set(feed) - inputs.keys())
        what = f"needs {missing[0]!r}" if missing else f"has no data {unknown[0]!r}"
        what = f"the program {what}; fed were {sorted(feed)}"
        raise value_error(what, expected=f"{sorted(inputs)}")
    part.inputs = [r for name, r in inputs.items() if name in feed]
    part.states = [s for s in part.states if s.record in used or s.update is not None]
    return part


def input_array(record: Record, data, sizes: dict):
    """Data for an input, as an array; raises ValueError if it does not fit the input, or the sizes
    of the data before it.
    """
    array = data.array if isinstance(data, Tensor) else as_array(data, None, current_place())
    if array.dtype != record.dtype and not hasattr(data, "dtype"):
        array = array.astype(record.dtype)  # lists have no dtype of their own
    if not fits(record.spec, array, sizes):
        name, alone = record.attrs["name"], fits(record.spec, array, {})
        hint = f'give a size of its own a name: static.data({name!r}, ["rows"])' if alone else ""
        what = f"{name!r} was fed {array.dtype}{list(array.shape)}"
        raise value_error(what, expected=format_expected(record.spec, sizes), hint=hint)
    return array


class CompiledProgram:
    """A program with a strategy for running it.

    >>> main = paddle.static.Program()
    >>> paddle.static.CompiledProgram(main).program is main
    True
    """

    def __init__(self, program_or_graph, build_strategy=None):
        self.program, self.build_strategy = program_or_graph, build_strategy
