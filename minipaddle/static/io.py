"""Programs and their states in files, in the formats of `jit.save` and `paddle.save`."""

import warnings
from pathlib import Path

from ..core.prelude import Parameter, Tensor, value_error
from ..eager.curvature import as_list
from ..engine.jit.tree import flatten
from ..io import load as load_tensors
from ..io import save as save_tensors
from ..jit import loading, saving
from ..jit.saved import Method, SavedModel, SavedState
from ..tensor.generator import GeneratorStorage
from .executor import compile_
from .mode import Mode, outside
from .program import Program

__all__ = [
    "load", "load_inference_model", "load_program_state", "save", "save_inference_model",
    "set_program_state",
]  # fmt: skip


def save(program: Program, model_path: str, protocol=4, **configs) -> None:
    """Write the states of a program to `model_path`.pdparams and .pdopt."""
    with outside():
        save_tensors(program.state_dict("param"), f"{model_path}.pdparams")
        save_tensors(program.state_dict("opt"), f"{model_path}.pdopt")


def load(program: Program, model_path: str, executor=None, var_list=None) -> None:
    """Load the files of `static.save` into a program's states; ValueError if one is missing."""
    with outside():
        for mode, ending in (("param", "pdparams"), ("opt", "pdopt")):
            tensors = load_tensors(f"{model_path}.{ending}")
            for name, x in program.state_dict(mode).items():
                if name not in tensors:
                    raise value_error(f"{model_path}.{ending} has no {name!r}")
                x.set_value(tensors[name])


def load_program_state(model_path: str, var_list=None) -> dict:
    """The arrays in the files of `static.save`, by name; of `var_list` alone, if given."""
    states = {}
    with outside():
        for ending in ("pdparams", "pdopt"):
            path = Path(f"{model_path.removesuffix('.pdparams')}.{ending}")
            if ending == "pdparams" or path.exists():
                states |= load_tensors(str(path), return_numpy=True)
    if var_list is None:
        return states
    return {x.name: states[x.name] for x in var_list if x.name in states}


def set_program_state(program: Program, state_dict: dict) -> None:
    """Give the states of a program the arrays of their names; the others keep theirs.

    Warns of arrays that no state has the name of.
    """
    with outside():
        own = program.state_dict()
        for name in own.keys() & state_dict.keys():
            own[name].set_value(state_dict[name])
    unused = sorted(state_dict.keys() - own.keys())
    if unused:
        warnings.warn(f"the program has no states {', '.join(unused)}", stacklevel=2)


def save_inference_model(path_prefix: str, feed_vars, fetch_vars, executor, **kwargs) -> None:
    """Write the part of a program that computes `fetch_vars` from `feed_vars`, in test mode.

    `jit.load` reads it too.
    """
    program = (kwargs.get("program") or Mode.main).clone(for_test=True)
    view = program.view()
    names = [x if isinstance(x, str) else x.name for x in as_list(feed_vars)]
    fetched = [program.record_of(x, view) for x in as_list(fetch_vars)]
    part = compile_(view.program, names, fetched)
    part.inputs = [next(r for r in part.inputs if r.attrs["name"] == name) for name in names]
    part.name = "forward"
    states = {}
    for k, state in enumerate(part.states):
        state.name = state.name or f"constant_{k}"
        state.record.attrs["name"] = state.name
        random = isinstance(state.storage, GeneratorStorage)
        tensor = None if random else state.storage.tensor
        parameter = isinstance(tensor, Parameter)
        kind = "random" if random else "parameter" if parameter else "constant"
        states[state.name] = SavedState(
            kind, tensor, [state.name.replace(".", "_")] if parameter else []
        )
    leaves, structure = flatten(list(range(len(fetched))))
    method = Method(part, structure, [None] * len(leaves), [*range(len(leaves))])
    with outside():
        saving.write(SavedModel({"forward": method}, states, {}), path_prefix)


def load_inference_model(path_prefix: str, executor, **kwargs) -> list:
    """[program, names of its data, its results]: `Executor.run` runs it."""
    with outside():
        program = LoadedProgram(loading.load(path_prefix))
    return [program, program.names, program.results]


class LoadedProgram:
    """A program that was saved."""

    first: tuple = ()

    def __init__(self, layer):
        self.layer = layer
        self.ir = layer.program()
        self.names = [r.attrs["name"] for r in self.ir.inputs]
        self.results = list(range(len(self.ir.outputs)))

    def fetch(self, feed: dict, fetch_list) -> list:
        missing = [name for name in self.names if name not in feed]
        if missing:
            raise value_error(f"the program needs {missing[0]!r}; fed were {sorted(feed)}")
        results = as_list(self.layer(*(Tensor(feed[name]) for name in self.names)))
        return [results[k].array for k in (self.results if fetch_list is None else fetch_list)]

    def __str__(self) -> str:
        return str(self.ir)
