"""`Program`: the object users hold of a program that is written in static mode."""

from typing import NamedTuple

from ..core.prelude import Parameter, Record, Tensor, runtime_error, value_error
from ..engine.ir import program as ir
from ..engine.ir.builder import SymbolicArray
from ..engine.ir.edit import map_regions, substitute, with_records
from ..engine.ir.program import State
from .tracer import StaticTracer, by_mode


class StaticView(NamedTuple):
    """A snapshot of a program: its records, and the record of each of its tensors."""

    program: ir.Program
    values: dict  # symbolic array -> record
    tensors: dict  # name -> tensor


class Program:
    """A program that is defined by calls in static mode.

    >>> paddle.enable_static()
    >>> main = paddle.static.Program()
    >>> with paddle.static.program_guard(main):
    ...     x = paddle.static.data("x", [None, 2])
    ...     y = x + 1.0
    >>> paddle.disable_static()
    >>> [op.type for op in main.global_block().ops]
    ['add']
    """

    def __init__(self, name: str = "main", startup: "Program | None" = None):
        self.tracer = StaticTracer(name, startup)
        self.first: list[tuple] = []  # (parameter, what draws its first values)
        self.random_seed = 0
        self.copied: StaticView | None = None
        self.compiled: dict = {}

    def writable(self) -> StaticTracer:
        """Its tracer; raises RuntimeError for a clone."""
        if self.copied is not None:
            raise runtime_error(
                "a clone of a program cannot be changed", hint="change the original"
            )
        return self.tracer

    def view(self) -> StaticView:
        """A snapshot of the program."""
        if self.copied is not None:
            return self.copied
        root = self.tracer.root
        source = root.program
        states = [State(s.name, s.record, update_of(root, s), s.storage) for s in source.states]
        now = ir.Program(
            source.name, [*source.inputs], states, [*source.records], [], [*source.guards]
        )
        tensors = dict(self.tracer.tensors)
        tensors |= {x._name: x for x in self.tracer.results if x._name is not None}
        values = dict(root.values)
        for x in tensors.values():
            lent = self.tracer.lent.get(id(x))
            if lent is not None and type(x.array) is not SymbolicArray:
                values[id(x)] = root.values[lent[0]]
        return StaticView(now, values, tensors)

    def clone(self, for_test: bool = False) -> "Program":
        """A copy as the program is now; for a test one that learns nothing: dropout lets all pass,
        batch norm takes its running statistics, no state changes.
        """
        copy, view = Program(self.tracer.root.program.name), self.view()
        remote = self.tracer.remote
        copy.tracer.remote = remote.for_test() if for_test and remote is not None else remote
        if for_test:
            table: dict[Record, Record] = {}
            program = select_mode(view.program, False, table)
            for state in program.states:
                state.update = None
            values = {k: table.get(r, r) for k, r in view.values.items()}
            view = StaticView(program, values, view.tensors)
        copy.copied = view
        return copy

    def record_of(self, x, view: StaticView) -> Record:
        """The record of a tensor of the program, which may be given by its name."""
        if isinstance(x, str):
            if x not in view.tensors:
                expected = f"one of {sorted(view.tensors)}"
                raise value_error(f"the program has no {x!r}", expected=expected)
            x = view.tensors[x]
        key = x.array if isinstance(x, Tensor) and type(x.array) is SymbolicArray else id(x)
        if key not in view.values:
            raise value_error(f"{getattr(x, 'spec', x)} is no tensor of this program")
        return view.values[key]

    # ---- looking -----------------------------------------------------------------------------

    def global_block(self) -> "Block":
        """Its operators and variables."""
        return Block(self)

    def list_vars(self) -> list[Tensor]:
        """The data, the parameters, and the results that were given names."""
        return [*self.view().tensors.values()]

    def all_parameters(self) -> list[Parameter]:
        """Its parameters."""
        return [x for x in self.list_vars() if isinstance(x, Parameter)]

    def state_dict(self, mode: str = "all", scope=None) -> dict[str, Tensor]:
        """Its states by name: parameters ("param"), optimizer states and the rest ("opt"), all."""
        cells = [(s.name, getattr(s.storage, "tensor", None)) for s in self.view().program.states]
        tensors = {name: x for name, x in cells if x is not None and name}
        kinds = {"all": (True, False), "param": (True,), "opt": (False,)}
        if mode not in kinds:
            raise value_error(f"state_dict(mode={mode!r})", expected="all, param or opt")
        return {n: x for n, x in tensors.items() if isinstance(x, Parameter) in kinds[mode]}

    def __str__(self) -> str:
        return str(self.view().program)


class Block:
    """A program as Paddle's code looks at it: `ops`, `vars`."""

    def __init__(self, program: Program):
        self.program = program

    @property
    def ops(self) -> "list[Operator]":
        return [Operator(r) for r in self.program.view().program.records]

    @property
    def vars(self) -> dict[str, Tensor]:
        return self.program.view().tensors

    def var(self, name: str) -> Tensor:
        """A variable by name; raises ValueError if there is none."""
        if name not in self.vars:
            raise value_error(f"the program has no {name!r}")
        return self.vars[name]

    def all_parameters(self) -> list[Parameter]:
        return self.program.all_parameters()


class Operator:
    """One operator of a program."""

    def __init__(self, record: Record):
        self.record, self.type = record, record.op.name

    def attr(self, name: str):
        """An attribute by name."""
        return self.record.attrs[name]

    def __repr__(self) -> str:
        return repr(self.record)


def update_of(root, state: State) -> Record | None:
    now = root.values[root.state_arrays[state.record]]
    return None if now is state.record else now


def select_mode(program: ir.Program, training: bool, table: dict) -> ir.Program:
    """The program with one side of each `by_mode`; `table` receives the replaced records."""
    records = []
    for r in program.records:
        if r.op is by_mode:
            chosen = r.inputs[not training]
            table[r] = table.get(chosen, chosen)
            continue
        inside = map_regions(r, lambda region: select_mode(region, training, {}))
        records.append(substitute(r, table, inside))
    return with_records(program, records, table)
