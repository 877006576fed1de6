"""`jit.load`: a layer that runs saved programs, without the Python code they came from."""

from __future__ import annotations

import json
import os
from contextlib import contextmanager, nullcontext
from copy import deepcopy
from itertools import count
from types import MethodType

from ..core.casting import casting
from ..engine.core.dim import Dim, apply_equalities, note_decision, prove, rename
from ..engine.core.dispatch import Recording, current, describe
from ..engine.core.errors import teach, type_error, value_error
from ..engine.eager.device import QUIET, current_place
from ..engine.eager.replay import replay
from ..engine.eager.storage import TensorStorage
from ..engine.eager.tensor import Tensor, wrap
from ..engine.executors.executable_cache import ExecutableCache
from ..engine.ir.interpreter import check_guards
from ..engine.ir.program import Program, State
from ..engine.jit.tree import create_restore, flatten
from ..engine.ops import creation
from ..io.serialization import parse
from ..ir.input_spec import fitting_shape
from ..ir.parser import parse_all
from ..nn import Layer
from ..tensor.generator import GENERATOR, GeneratorStorage
from .saved import (
    DamagedModel,
    SavedModel,
    SavedState,
    check_model,
    order_leaves,
)
from .saved_files import together

RANDOM = GeneratorStorage(GENERATOR)


def load(path, **configs) -> TranslatedLayer:
    """The model that `jit.save` wrote under this prefix, as a layer that runs and can be trained.

    Nothing in the files is executed but operators of this package. A call that keeps no tape is
    compiled in the background, as `to_static` does it, unless MINIPADDLE_BACKEND says otherwise.
    Raises ValueError that says what is wrong with a file that is damaged, FileNotFoundError if
    there is none.

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "double")
    >>> paddle.jit.save(lambda x: x * 2, path, input_spec=[paddle.static.InputSpec([None])])
    >>> paddle.jit.load(path)(paddle.ones([3])).tolist()
    [2.0, 2.0, 2.0]
    """
    if configs:
        raise value_error(f"jit.load takes no option {min(configs)!r}")
    prefix = os.fspath(path)
    if not os.path.exists(f"{prefix}.pdmodel"):
        raise FileNotFoundError(
            teach(f"there is no {prefix}.pdmodel", hint="give the path that jit.save was given")
        )
    try:
        saved = read(prefix)
    except DamagedModel as error:
        raise value_error(f"{prefix} holds no model, or a damaged one: {error!s:.1000}") from None
    loaded = TranslatedLayer(saved.methods, saved.states)
    loaded._properties = saved.properties
    loaded.__dict__.update(saved.properties)
    return loaded


def read(prefix: str) -> SavedModel:
    """The model in the files of a prefix."""
    *files, problem = together(prefix)
    try:
        saved = model_of(prefix, files)
    except ValueError as error:  # it says more than that something was changed
        raise DamagedModel(f"{error}\n  {problem}" if problem else str(error)) from None
    if problem:
        raise DamagedModel(problem)
    return saved


def model_of(prefix: str, files: list) -> SavedModel:
    """The model that three files hold; the bytes of the weights are gone when tensors are made."""
    programs, description = files[:2]
    try:
        described = json.loads(description)
    except (ValueError, RecursionError) as error:
        raise DamagedModel(f"{prefix}.pdiparams.info: {error!r:.80}") from None
    parsed = parse_all(programs)
    return check_model(described, parsed, parse(f"{prefix}.pdiparams", files.pop())[0])


class TranslatedLayer(Layer):
    """A saved model: call it, train it, save it again. Its parts keep their paths.

    Modes are frozen: dropout and batch norm do what they did when it was saved. A method that was
    saved beside `forward` is a method here, a property an attribute.
    """

    def __init__(self, programs: dict, persistable_vars: dict):
        super().__init__("translated_layer")
        self._methods, self._properties = programs, {}
        self._constants: dict[str, Tensor] = {}
        self._places = {name: self._house(name, kept) for name, kept in persistable_vars.items()}
        self._kept_of = {  # the path of each state of a method
            name: [self._places[state.name][2:] for state in method.program.states]
            for name, method in programs.items()
        }
        self._at_once, self._around = AtOnce(self._places), None
        self._checked: set[tuple] = set()  # sizes with which a method was called
        self.training = False
        for name in programs.keys() - {"forward"}:
            self.__dict__[name] = MethodType(LoadedMethod(name), self)

    def forward(self, *inputs, **named):
        """The results for tensors in the order of the program's inputs, or by their names."""
        return self._run("forward", inputs, named)

    def program(self, method_name: str = "forward") -> Program:
        """The program of a method."""
        if method_name not in self._methods:
            raise value_error(
                f"there is no program {method_name!r}", expected=f"one of {[*self._methods]}"
            )
        return self._methods[method_name].program

    def to_saved_model(self) -> SavedModel:
        """The model for `jit.save` to write again."""
        states = {
            name: SavedState(kind, self._state(name), list(paths))
            for name, (kind, paths, *_) in self._places.items()
        }
        return SavedModel(self._methods, states, self._properties)

    # ---- states ------------------------------------------------------------------------------

    def _house(self, name: str, kept: SavedState) -> tuple:
        """(kind, paths, dict, key): where a tensor is put, and found from now on."""
        if kept.kind == "random":
            return kept.kind, kept.paths, {}, name
        store, key = self._constants, name
        for path in kept.paths:
            *outer, key = path.split(".")
            layer = self
            for part in outer:
                layer = layer._sub_layers.setdefault(part, Layer(part))
            store = layer._parameters if kept.kind == "parameter" else layer._buffers
            if kept.kind == "transient":
                layer._non_persistable_buffer_names_set.add(key)
            store[key] = kept.tensor
        store[key] = kept.tensor
        return kept.kind, kept.paths, store, key

    def _state(self, name: str) -> Tensor | None:
        """The tensor of a state as it is now; None for the generator."""
        _, _, store, key = self._places[name]
        return store.get(key)

    # ---- running -----------------------------------------------------------------------------

    def _run(self, name: str, inputs: tuple, named: dict):
        program = self.program(name)
        method, sizes = self._methods[name], {}
        operands = arguments(method, inputs, named)
        for record, x in zip(program.inputs, operands, strict=True):
            fitting_shape(record.spec, x, record.attrs["name"], sizes)
        call = name, *sizes.items()
        if current.top.tracing or call not in self._checked:
            rely_on(program, sizes)
            self._checked.update(() if current.top.tracing else [call])
        states = [store.get(key) for store, key in self._kept_of[name]]
        top = current.top
        wanted = top.recording and any(map(wants_gradient, [*operands, *states]))
        if self._around is not None or top.tracing or wanted:
            outputs = on_tape(program, operands, states, sizes, self._around)
        else:
            outputs = self._at_once(program, operands, states, sizes)
        results = [None if k is None else outputs[k] for k in method.places]
        return create_restore(method.structure, method.leaves)(results, sizes)

    @contextmanager
    def apply_within(self, block):
        """A block in which operators are applied one by one, within another block."""
        before, self._around = self._around, block
        try:
            yield
        finally:
            self._around = before


class LoadedMethod:
    """A method of a loaded model."""

    def __init__(self, name: str):
        self.__name__ = name

    def __call__(self, layer: TranslatedLayer, *inputs, **named):
        return layer._run(self.__name__, inputs, named)


def arguments(method, inputs: tuple, named: dict) -> list[Tensor]:
    """The inputs of a program from the arguments of a call."""
    leaves, structure = flatten(inputs)
    leaves = [leaves[k] for k in order_leaves(structure, count())] if method.by_key else leaves
    by_name = dict(zip(method.inputs, leaves, strict=False))
    if len(leaves) > len(method.inputs) or named.keys() - method.inputs:
        raise type_error("arguments of another number or name", expected=describe_inputs(method))
    by_name |= {name: x for name, x in named.items() if name not in by_name}
    values = [by_name.get(name) for name in method.inputs]
    for name, x in zip(method.inputs, values, strict=True):
        if not hasattr(x, "shape") or not hasattr(x, "dtype"):
            raise type_error(f"{name} is {describe(x):.60}", expected=describe_inputs(method))
    return [x if isinstance(x, Tensor) else Tensor(x) for x in values]


def describe_inputs(method) -> str:
    specs = zip(method.inputs, method.program.inputs, strict=True)
    return f"tensors: {', '.join(f'{name}: {r.spec}' for name, r in specs)}"


def wants_gradient(x: Tensor | None) -> bool:
    return x is not None and not x.stop_gradient


class Housed(TensorStorage):
    """The tensor at a place of a loaded model; another one may be put there."""

    def __init__(self, store: dict, key: str):
        self.store, self.key = store, key

    @property
    def tensor(self) -> Tensor:
        return self.store[self.key]

    def read(self):
        return self.store[self.key].array


class AtOnce:
    """Runs programs without a tape. States that they do not update are weights, which change
    seldom: what is computed of these alone is computed ahead.
    """

    def __init__(self, places: dict, executables: ExecutableCache | None = None):
        self.places, self.executables = places, executables or ExecutableCache()
        self.executables.frozen = True
        self.programs: dict[Program, Program] = {}  # by the loaded one: with storage for its states

    def __deepcopy__(self, memo) -> AtOnce:
        return AtOnce(deepcopy(self.places, memo))

    def __call__(self, program: Program, inputs, states, sizes: dict) -> list[Tensor]:
        """The outputs; the states are updated."""
        arrays = [x.array for x in inputs]
        arrays += [RANDOM.read() if x is None else x.array for x in states]
        if program not in self.programs:
            self.programs[program] = self.house(program)
        results, more = QUIET.copy().run(self.executables.run, self.programs[program], arrays)
        sizes |= more
        return settle(program, [*map(wrap, results)], states)

    def house(self, program: Program) -> Program:
        """The program, which knows where its states are kept."""
        own = Program(**vars(program))
        own.states = [State(s.name, s.record, s.update, self.cell(s.name)) for s in own.states]
        return own

    def cell(self, name: str) -> TensorStorage | GeneratorStorage:
        kind, _, store, key = self.places[name]
        return RANDOM if kind == "random" else Housed(store, key)


def rely_on(program: Program, sizes: dict) -> None:
    """Check the guards of a program. A trace in which these sizes are open relies on them, too."""
    known = []
    for guard in program.guards:
        left, sign, right, answer = guard
        a, b = rename(left, sizes), rename(right, sizes)
        held = prove(apply_equalities(a - b), sign) if isinstance(a - b, Dim) else not answer
        if held is None:
            note_decision(a, sign, b, answer)
        elif held is not answer:  # for all sizes, or these are known
            known.append(guard)
    check_guards(known, sizes, program)


def on_tape(program: Program, inputs, states, sizes: dict, around=None) -> list[Tensor]:
    """The same, operator by operator, with a tape; or into the program that is being traced."""
    held = [counter() if x is None else x for x in states]
    with casting(None), around or nullcontext():
        results = replay(program, [*inputs, *held], sizes)
    return settle(program, results, states)


def counter() -> Tensor:
    """The position of the random generator, as a tensor."""
    return wrap(GENERATOR.trace_state() if current.top.tracing else RANDOM.read())


def settle(program: Program, results: list, states: list) -> list[Tensor]:
    """The outputs, after the states have got their updates."""
    count = len(program.outputs)
    outputs, updates = results[:count], results[count:]
    if not updates:
        return outputs
    written = [x for s, x in zip(program.states, states, strict=True) if s.update is not None]
    outputs = [separate(y, written) for y in outputs]
    with Recording(False):
        for x, now in zip(written, updates, strict=True):
            if x is not None:
                x.set_value(now)
            elif current.top.tracing:
                current.top.builder.write(GENERATOR.trace_state(), now.array)
            else:
                RANDOM.write(now.array)
    return outputs


def separate(y: Tensor, written: list) -> Tensor:
    """y, or a copy of it if it shares memory that is about to be written."""
    for x in written:
        if x is not None and (y.array is x.array or shares(y.array, x.array)):
            return creation.assign(y)
    return y


def shares(a, b) -> bool:
    return not current.top.tracing and current_place().module.may_share_memory(a, b)


__all__ = ["TranslatedLayer", "load"]
