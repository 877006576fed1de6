"""`jit.save`: the programs of a layer or a function, and the tensors they use, in three files."""

import inspect
import json
import os
import warnings
from itertools import count

from ..core.files import replace
from ..eager.hosting import HostCall
from ..engine.core.dim import HINT, apply_equalities, assuming, symbol
from ..engine.core.dispatch import describe
from ..engine.core.dtype import FLOATS
from ..engine.core.errors import runtime_error, type_error, value_error
from ..engine.eager.side_effects import Trace
from ..engine.eager.storage import Gradient, TensorStorage
from ..engine.eager.tensor import Parameter
from ..engine.eager.tracer import trace
from ..engine.ir.printer import plain
from ..engine.ir.program import Program
from ..engine.jit.to_static import StaticFunction, Switch, argument_names, tensor_function
from ..engine.jit.tree import LEAF, flatten
from ..engine.ops import creation
from ..io.serialization import encode
from ..ir.input_spec import BATCH, InputSpec, separate_batch
from ..ir.parser import parse_all
from ..nn import Layer
from ..tensor.generator import GENERATOR, GeneratorStorage
from .dropping import drop_saved_iterations, select_outputs
from .either import Either
from .formats import export
from .loading import TranslatedLayer
from .objects import iterator
from .outside import update_states
from .rebuilding import leaving_tensors
from .saved import (
    Method,
    SavedModel,
    SavedState,
    check_model,
    check_names,
    order_leaves,
    sign_programs,
    texts,
)

CONFIGS = {"with_hook", "skip_forward", "combine_params", "clip_extra", "output_spec"}


def save(layer, path, input_spec=None, **configs) -> None:
    """Write `path`.pdmodel, `path`.pdiparams and `path`.pdiparams.info; `jit.load` reads them.

    `layer` is a Layer, whose `forward` and methods under `to_static` are saved, or a
    function. `input_spec` lists InputSpecs (None: a size that varies) or example tensors; what was
    converted and called needs none. Training or evaluation mode stay as they are now; a program
    leaves its inputs as they are. The layer's own hooks are saved with `forward`; `skip_forward`
    leaves it out. `output_spec` selects outputs of `forward`: their places, or some of its
    `outputs`; the saved program gives one result, or a list. `format="c"`, or another row of
    `jit/formats.py`, writes a form that runs without Python instead; options of the format are
    keywords here. The files change together or not at all, even if another process saves or loads
    them meanwhile. Raises ValueError if there is nothing to trace, TypeError for what is no layer.
    Source: the format is described in `jit/saved.py`.

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "net")
    >>> net = paddle.nn.Linear(4, 2)
    >>> paddle.jit.save(net, path, input_spec=[paddle.static.InputSpec([None, 4])])
    >>> x = paddle.ones([3, 4])
    >>> bool((paddle.jit.load(path)(x) == net(x)).all())
    True
    """
    format = configs.pop("format", None)
    more = {key: configs.pop(key) for key in configs.keys() - CONFIGS}
    if format is None and more:
        raise value_error(f"jit.save takes no option {min(more)!r}")
    prefix = os.fspath(path)
    if not os.path.basename(prefix):
        raise value_error(f"jit.save to {prefix!r}", expected="folder/name, the name is missing")
    if not Switch.on:
        raise runtime_error("jit.save while enable_to_static(False) holds")
    saved = model_of(layer, input_spec, configs)
    if format is not None:
        export(saved, prefix, format, **more)
    else:
        write(saved, prefix)


def write(saved: SavedModel, prefix: str) -> None:
    """Put a model in its files; what could not be read back is not written."""
    tensors = {name: kept.tensor for name, kept in saved.states.items() if kept.tensor is not None}
    weights = encode(tensors)
    programs, description = texts(saved)
    arrays = {name: x.array for name, x in tensors.items()}
    check_model(json.loads(description), parse_all(programs.decode()), arrays)
    replace(
        {
            f"{prefix}.pdiparams": weights,
            f"{prefix}.pdiparams.info": description,
            f"{prefix}.pdmodel": sign_programs(programs, description, weights),
        }
    )


# ---- the parts of a model --------------------------------------------------------------------


def model_of(target, input_spec, configs: dict) -> SavedModel:
    """The programs of a layer or a function, and their states."""
    if isinstance(target, TranslatedLayer) and input_spec is None:
        return target.to_saved_model()
    owner, functions, properties = parts_of(target, configs)
    if input_spec is not None and functions.keys() - {"forward"}:
        raise value_error(
            f"jit.save with an input_spec, but {min(functions.keys() - {'forward'})} is "
            "converted too",
            hint="give each method its own: @paddle.jit.to_static(input_spec=[...])",
        )
    check_names([*functions, *properties])
    methods = {
        name: method_of(name, include_hooks(target, name, f), arguments_of(f, input_spec))
        for name, f in functions.items()
    }
    if "forward" in methods and configs.get("output_spec") is not None:
        methods["forward"] = select_outputs(methods["forward"], configs["output_spec"])
    states = states_of(owner, [method.program for method in methods.values()])
    return SavedModel(methods, states, properties)


def parts_of(target, configs: dict) -> tuple:
    """(the layer or None, its methods by name, its properties) of the object to save."""
    if not isinstance(target, Layer):
        if not callable(target) or inspect.isclass(target):
            raise type_error(
                f"jit.save was given {describe(target):.60}", expected="a Layer or a function"
            )
        owner = getattr(getattr(target, "function", target), "__self__", None)
        return owner if isinstance(owner, Layer) else None, {"forward": target}, {}
    functions, properties = {}, {}
    if not configs.get("skip_forward"):
        functions["forward"] = target.forward
    for name in sorted(vars_of(target) - {"forward"}):
        attribute = inspect.getattr_static(target, name)
        if isinstance(attribute, StaticFunction):
            method = getattr(target, name)
            if method.is_property:
                properties[name] = method.function()
            else:
                functions[name] = method
    if not functions:
        raise value_error("jit.save with skip_forward, of a layer without other programs")
    return target, functions, properties


def vars_of(target) -> set:
    """The names of all attributes of a layer and its classes."""
    return {name for space in (target, *type(target).__mro__) for name in vars(space)}


def include_hooks(target, name: str, function):
    """The `forward` of a layer that is saved, with its hooks; any other function itself."""
    if name != "forward" or not isinstance(target, Layer):
        return function
    hooked = target._forward_pre_hooks or target._forward_post_hooks
    return target.__call__ if hooked else function


# ---- programs --------------------------------------------------------------------------------


def arguments_of(function, input_spec) -> tuple:
    """(leaves, structure, places of the tensors, their names, their specs): what to trace with."""
    own = function.input_spec if isinstance(function, StaticFunction) else None
    if own is not None and input_spec is not None:
        if not agree(flatten(own)[0], flatten(input_spec)[0]):
            raise value_error(
                f"jit.save was given the input_spec {input_spec}",
                expected=f"that of to_static, {own}, or none",
            )
        warnings.warn("jit.save uses the input_spec that to_static was given", stacklevel=5)
    input_spec = input_spec if own is None else own
    if input_spec is None:
        return last_call(function)
    if not isinstance(input_spec, list | tuple):
        raise type_error(
            f"input_spec is {describe(input_spec):.80}", expected="a list of InputSpecs"
        )
    leaves, structure = flatten((tuple(input_spec), {}))
    names = argument_names(getattr(function, "function", function), structure)
    places = [k for k, x in enumerate(leaves) if has_spec(x)]
    specs = [as_input_spec(leaves[k]) for k in places]
    names = [spec.name or names[k] for k, spec in zip(places, specs, strict=True)]
    return leaves, structure, places, names, [spec.spec(k) for k, spec in enumerate(specs)]


def has_spec(x) -> bool:
    """Is it an InputSpec, a tensor or an array?"""
    return hasattr(x, "shape") and hasattr(x, "dtype")


def as_input_spec(x) -> InputSpec:
    return x if isinstance(x, InputSpec) else InputSpec(list(x.shape), x.dtype)


def agree(own: list, given: list) -> bool:
    """Could two lists of InputSpecs be meant for the same inputs?"""
    a, b = ([as_input_spec(x) for x in xs if has_spec(x)] for xs in (own, given))
    return len(a) == len(b) and all(map(alike, a, b))


def alike(a: InputSpec, b: InputSpec) -> bool:
    pairs = zip(a.shape, b.shape, strict=False)
    sizes = all(n == k or not (isinstance(n, int) and isinstance(k, int) and min(n, k) >= 0)
                for n, k in pairs)  # fmt: skip
    return a.dtype == b.dtype and len(a.shape) == len(b.shape) and sizes


def last_call(function) -> tuple:
    """The arguments that a converted function was traced with last."""
    if not isinstance(function, StaticFunction) or not len(function.cache):
        raise value_error(
            f"jit.save has no program of {getattr(function, '__name__', function)}",
            hint="give input_spec=[InputSpec(...)], or convert it with to_static and call it",
        )
    if len(function.cache) > 1:
        warnings.warn(
            f"{function.__name__} has {len(function.cache)} programs; that of the last new kind of "
            "call is saved. An input_spec says which inputs are meant",
            stacklevel=6,
        )
    return function.concrete_program.arguments


def method_of(name: str, function, arguments: tuple) -> Method:
    """A function as a program of that name."""
    leaves, structure, places, names, specs = arguments
    order = [k for k in order_leaves(structure.children[0], count()) if k in places]
    order += [k for k in places if k not in order]
    names, specs = ([each[places.index(k)] for k in order] for each in (names, specs))
    if any(map(iterator, leaves)):
        raise value_error(f"jit.save of {name} with an iterator as argument: its items come once")
    function = getattr(function, "function", function)
    run, notes = tensor_function(function, leaves, structure, order, apart=True)

    def differentiable(*inputs):
        for x in inputs:  # whether a gradient is wanted is for the caller of the program to say
            x.stop_gradient = x.spec.dtype not in FLOATS
        results = run(*map(creation.assign, inputs))  # what is written is no leaf, and ours
        update_states(notes["left"], name, notes["given"])
        return results[: len(notes["leaves"])]

    with leaving_tensors():
        joint = trace_apart(differentiable, specs, name=name, names=unique(names))
    check_kinds(notes["structure"], name)
    check_side_effects(joint.after, joint.program)
    program = joint.program
    program.outputs = program.outputs[: sum(k is not None for k in joint.places)]
    drop_copies(program)
    return Method(drop_saved_iterations(program), notes["structure"], notes["leaves"], joint.places)


def check_kinds(structure, name: str) -> None:
    """Raise ValueError if a result is of one kind or of another."""
    if structure is not LEAF:
        if structure.kind is Either:
            raise value_error(
                f"{name} returns tensors of two kinds, which a saved program cannot:\n"
                f"{structure.like.reason}"
            )
        for child in structure.children:
            check_kinds(child, name)


def trace_apart(function, specs, **names) -> Trace:
    """The program of a function of inputs of which each has a first size of its own; those that it
    takes to be equal are one, the batch.
    """
    batch, first = symbol(BATCH, HINT), [spec.shape[:1] == (symbol(BATCH, HINT),) for spec in specs]
    if sum(first) < 2:
        return trace(function, specs, **names)
    later = [k for k in range(first.index(True) + 1, len(specs)) if first[k]]
    own = {k: separate_batch(specs[k], k) for k in later}
    traced = trace(function, [own.get(k, spec) for k, spec in enumerate(specs)], **names)
    with assuming(traced.program.guards):
        own = {k: spec for k, spec in own.items() if apply_equalities(spec.shape[0] - batch) != 0}
    if len(own) == len(later):
        return traced
    return trace(function, [own.get(k, spec) for k, spec in enumerate(specs)], **names)


def drop_copies(program: Program) -> None:
    """The first records copy the inputs: others use the inputs themselves."""
    n = len(program.inputs)
    own = dict(zip(program.records[:n], program.inputs, strict=True))
    del program.records[:n]
    for record in program.records:
        record.inputs = [own.get(r, r) for r in record.inputs]
    program.outputs = [own.get(r, r) for r in program.outputs]
    for state in program.states:
        state.update = own.get(state.update, state.update)


def unique(names: list[str]) -> list[str]:
    """Names for a text, each its own."""
    taken: list[str] = []
    for name in names:
        taken.append(free(name, taken))
    return taken


def free(name: str, taken) -> str:
    base = name = plain(name)
    n = 1
    while name in taken:
        n += 1
        name = f"{base}_{n}"
    return name


def check_side_effects(after: list, program: Program) -> None:
    """Raise ValueError for side effects that a saved program cannot have.

    A gradient of an input is there because `method_of` asked for all of them: it may go.
    """
    for each in after:
        if isinstance(each, HostCall) or (isinstance(each, Gradient) and each.outputs):
            what = "a call of Python code" if isinstance(each, HostCall) else "gradients"
            raise value_error(
                f"{program.name} leaves {what} behind, which a saved program cannot",
                hint="save the forward alone; a training step should end with clear_grad()",
            )


# ---- states ----------------------------------------------------------------------------------


def states_of(owner, programs: list[Program]) -> dict[str, SavedState]:
    """The tensors of a layer and of its programs, each under a name of its own."""
    by_memory: dict[int, SavedState] = collect_states(owner) if owner is not None else {}
    used = {}
    for state in (s for program in programs for s in program.states):
        key, kept = storage_of_saved(state.storage)
        used[state] = by_memory.setdefault(key, kept)
    taken = {name for program in programs for name in (r.attrs["name"] for r in program.inputs)}
    meant = set(map(id, used.values()))
    named: dict[str, SavedState] = {}
    names: dict[int, str] = {}
    for kept in by_memory.values():
        if kept.kind == "transient" and id(kept) not in meant:
            continue
        own = kept.tensor._name if kept.tensor is not None else "generator"
        name = free(own or (kept.paths or ["constant"])[0], {*taken, *named})
        named[name], names[id(kept)] = kept, name
        if kept.kind == "parameter" and not kept.paths:
            kept.paths.append(name.replace(".", "_"))
    for state, kept in used.items():
        state.name = names[id(kept)]
    return named


def collect_states(owner) -> dict[int, SavedState]:
    """The tensors of a layer, by their memory: a tensor in two places is one state."""
    states: dict[int, SavedState] = {}
    persistent = owner.state_dict(use_hook=False)
    for path, x in owner.to_static_state_dict(use_hook=False).items():
        kind = "buffer" if path in persistent else "transient"
        kind = "parameter" if isinstance(x, Parameter) else kind
        states.setdefault(id(x.array), SavedState(kind, x, [])).paths.append(path)
    return states


def storage_of_saved(cell) -> tuple[int, SavedState]:
    """The memory that a state of a program is, and the state as it is saved."""
    if isinstance(cell, TensorStorage):
        x = cell.tensor
        return id(x.array), SavedState(
            "parameter" if isinstance(x, Parameter) else "constant", x, []
        )
    if isinstance(cell, GeneratorStorage) and cell.generator is GENERATOR:
        return id(GENERATOR), SavedState("random", None, [])
    own = isinstance(cell, GeneratorStorage)
    what = "a generator of its own" if own else "a gradient that waits: clear it first"
    raise value_error(f"the program uses {what}")


__all__ = ["save"]
