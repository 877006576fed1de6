"""The files of `jit.save` and `jit.load`: three, beside each other, no pickle.

`<path>.pdmodel` is text in UTF-8. Its first line is `# minipaddle 2 <sum> <sum> <sum>`: the version
of the format, and the SHA-256 of all that follows, of the description and of the weights: the model
says by content which files belong to it. Then comes a program for each method of the model, the
method's name being that of the program:

    program forward(x: float32[batch, 4]) {
      state linear_0.w_0: float32[4, 2]
      state linear_0.b_0: float32[2]
      v1 = affine(x, linear_0.w_0, linear_0.b_0) : float32[batch, 2]  @ 'net.py:12, in forward'
      return v1
    }

A line is an operator by name, its inputs, its attributes as literals, the dtype and shape of its
result, and where the user wrote it. `assume` and `deny` say what the program assumes of
sizes that are names, `state` what outlives a run, `update` what a run leaves in it. Branches and
bodies of loops stand in braces and know only their own inputs. `~x`: no gradient flows back to x
here; `x~: …`: never. (`ir/parser.py` has the grammar.)

`<path>.pdiparams` is a safetensors file, as `paddle.save` writes it: the states by name.

`<path>.pdiparams.info` is JSON:

| key          | value                                                                            |
|--------------|----------------------------------------------------------------------------------|
| `format`     | `"minipaddle 2"`                                                                 |
| `methods`    | for each method `by_key` (whether inputs that a dict holds come by key),         |
|              | `inputs` (name, dtype and shape), `outputs`, `sizes` (the open ones), `guards`   |
|              | (as text)                                                                        |
| `states`     | for each state `kind` (`parameter`, `buffer`, `transient`: a buffer that         |
|              | `state_dict` leaves out, `constant`: a tensor of no layer, `random`: the         |
|              | generator, which is not saved), `spec`, `trainable`, and `paths`: where it       |
|              | stands in the layer, as in `state_dict`                                          |
| `properties` | numbers and strings by name (`to_static(property=True)`)                         |

`outputs` is how a method nests its results: `{"tensor": k}` (output k of the program),
`{"size": "2*batch"}`, `{"value": 3}`, `{"list": […]}`, `{"tuple": […]}`, `{"dict": [[key, …], …]}`.
In a list `{"items": [{"tensor": k}]}` stands for the rows of a tensor, `"numbers"` for those of a
vector as numbers.

A file is material, never an instruction: lengths are looked at before anything is read, names
before they are used, and what stands in two places must agree, or there is a ValueError.
"""

from __future__ import annotations

import hashlib
import json
import re
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from types import NoneType

from ..engine.core import dim as dims
from ..engine.core.dispatch import describe
from ..engine.core.dtype import int64
from ..engine.core.errors import type_error
from ..engine.core.record import Spec
from ..engine.core.slots import slot
from ..engine.eager.convert import as_array
from ..engine.eager.device import NUMPY
from ..engine.eager.tensor import Parameter, Tensor
from ..engine.ir.printer import text
from ..engine.ir.program import NUMBER, Program, everywhere, new_sizes, regions
from ..engine.jit.tree import LEAF, Container, parts
from ..ir.parser import ParseError, Reader
from ..nn import Layer
from ..tensor.growing_lists import Rest, RestOfNumbers

VERSION = 2
FORMAT = f"minipaddle {VERSION}"
FIRST_LINE = re.compile(r"# minipaddle (\d{1,9})\b(.*)\n")
KINDS = ("parameter", "buffer", "transient", "constant", "random")
PLAIN = (str, int, float, bool, type(None))
COUNTER = Spec((2,), int64.numpy)
DEEPEST = 50
"""The most levels of a structure or a path."""


@dataclass
class Method:
    """A program, and how its outputs are nested: `structure` as in `tree.py`, and for each leaf
    its output (`places`) or, where that is None, its value (`leaves`). Inputs that a dict holds
    come `by_key`; in files of before they come in the order of the dict.
    """

    program: Program
    structure: object
    leaves: list
    places: list
    by_key: bool = True

    @cached_property
    def inputs(self) -> list[str]:
        """The names of the inputs."""
        return [r.attrs["name"] for r in self.program.inputs]

    def __deepcopy__(self, memo) -> Method:
        return self


@dataclass
class SavedState:
    """A state of the model: its tensor (None for the generator), and the tensor's paths."""

    kind: str
    tensor: Tensor | None
    paths: list


@dataclass
class SavedModel:
    """A model as files hold it."""

    methods: dict[str, Method]
    states: dict[str, SavedState]
    properties: dict


# ---- to files --------------------------------------------------------------------------------


def texts(saved: SavedModel) -> tuple[bytes, bytes]:
    """The programs, and the description: `.pdiparams.info`. Raises TypeError for an attribute that
    only this process has, such as the mesh of a `reshard`.
    """
    for r in chain.from_iterable(everywhere(each.program) for each in saved.methods.values()):
        if lost := [f"{k}={x}" for k, x in r.attrs.items() if not is_written(x)]:
            raise type_error(f"jit.save: {r.op.name} with {', '.join(lost)}", "numbers, texts")
    programs = [text(method.program, lines=True) for method in saved.methods.values()]
    return "\n".join([*programs, ""]).encode(), json.dumps(info(saved), indent=1).encode()


def is_written(value) -> bool:
    """Whether the text of an attribute can be read back."""
    several = isinstance(value, tuple | list)
    return all(map(is_written, value)) if several else isinstance(value, WRITTEN)


WRITTEN = bool, int, float, str, NoneType, NUMPY.generic, NUMPY.dtype, dims.Dim, Program


def sign_programs(programs: bytes, description: bytes, weights: bytes) -> bytes:
    """The bytes of `.pdmodel`: the sums of all three, then the programs."""
    sums = sum_of(programs), sum_of(description), sum_of_weights(weights)
    return f"# {FORMAT} {' '.join(sums)}\n".encode() + programs


def info(saved: SavedModel) -> dict:
    """The content of `.pdiparams.info`."""
    return {
        "format": FORMAT,
        "methods": {name: describe_method(method) for name, method in saved.methods.items()},
        "states": {name: describe_state(kept) for name, kept in saved.states.items()},
        "properties": saved.properties,
    }


def describe_method(method: Method) -> dict:
    program = method.program
    leaves = iter(zip(method.leaves, method.places, strict=True))
    known: set[str] = set()
    open_ = [name for r in program.given for _, name in new_sizes(r.spec, known)]
    order = {"by_key": True} if method.by_key else {}
    return order | {
        "inputs": [[r.attrs["name"], str(r.spec)] for r in program.inputs],
        "outputs": structure_as_json(method.structure, leaves),
        "sizes": open_,
        "guards": [f"{a} {sign} {b} is {answer}" for a, sign, b, answer in program.guards],
    }


def describe_state(kept: SavedState) -> dict:
    x = kept.tensor
    return {
        "kind": kept.kind,
        "spec": str(COUNTER if x is None else x.spec),
        "trainable": x is not None and not x.stop_gradient,
        "paths": list(kept.paths),
    }


def order_leaves(structure, numbers) -> list[int]:
    """The numbers of the leaves in the order of a saved program's inputs: those in a dict
    by key, as in real Paddle.
    """
    if structure is LEAF:
        return [next(numbers)]
    inside = [order_leaves(child, numbers) for child in structure.children]
    if issubclass(structure.kind, dict) and {*map(type, structure.keys)} <= {str}:
        inside = [part for _, part in sorted(zip(structure.keys, inside, strict=True))]
    return [*chain.from_iterable(inside)]


CONTAINERS = {"list": list, "tuple": tuple, "numbers": RestOfNumbers, "items": Rest}
"""Containers by their name in a file, each after those that are more special."""


def structure_as_json(structure, found):
    """A structure as JSON; `found` gives (leaf, place) for each leaf."""
    if structure is LEAF:
        leaf, place = next(found)
        if place is not None:
            return {"tensor": place}
        if isinstance(leaf, dims.Dim):
            return {"size": str(leaf)}
        if type(leaf) in PLAIN:
            return {"value": leaf}
        if parts(leaf) is not None:
            kind = type(leaf).__name__
            raise type_error(
                f"the function changes a {kind} that outlives it, and returns it: a saved program "
                f"has no such {kind}",
                hint="return a copy of it",
            )
        raise type_error(
            f"the function returns {describe(leaf):.80}, which cannot be saved",
            expected="tensors, numbers, strings, None, and lists, tuples and dicts of them",
        )
    inside = [structure_as_json(child, found) for child in structure.children]
    for name, kind in CONTAINERS.items():
        if issubclass(structure.kind, kind):
            return {name: inside}
    return {"dict": [list(pair) for pair in zip(structure.keys, inside, strict=True)]}


def sum_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def sum_of_weights(data: bytes) -> str:
    """The sum of a safetensors file, whatever the order of the names in what stands before the
    numbers: the same weights need not give the same file.
    """
    start = 8 + int.from_bytes(data[:8], "little")
    head = bytes(data[8:start])
    with suppress(ValueError, RecursionError):  # a damaged file has another sum
        head = json.dumps(json.loads(head), sort_keys=True).encode()
    digest = hashlib.sha256(head)
    digest.update(memoryview(data)[start:])
    return digest.hexdigest()


# ---- from files ------------------------------------------------------------------------------


class DamagedModel(ValueError):
    """A file holds no model; the message says why."""


def check_model(data: dict, programs: list[Program], arrays: dict) -> SavedModel:
    """The model that `.pdiparams.info`, the programs and the weights say together."""
    names = [program.name for program in programs]
    if len(set(names)) < len(names):
        raise DamagedModel("two programs have one name")
    try:
        if data["format"] != FORMAT or data["methods"].keys() != set(names):
            raise DamagedModel(f"the methods are {[*data['methods']]}, the programs {names}")
        states = {name: state_of(name, x, arrays) for name, x in data["states"].items()}
        saved = SavedModel(
            {p.name: method_of(p, data["methods"][p.name]) for p in programs},
            states,
            {name: plain(value) for name, value in data["properties"].items()},
        )
    except (DamagedModel, ParseError):
        raise
    except (KeyError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise DamagedModel(f"the description makes no sense: {error!r:.80}") from None
    if arrays.keys() != {name for name, kept in states.items() if kept.kind != "random"}:
        raise DamagedModel("the weights have other names than the states")
    for program in programs:
        check_states(program, states)
        check_sizes(program, set())
    check_names([*saved.methods, *saved.properties])
    check_paths(states.values())
    if info(saved) != data:
        raise DamagedModel("the programs and the description of them do not agree")
    return saved


def state_of(name: str, described: dict, arrays: dict) -> SavedState:
    """A state, on the current device."""
    kind, paths = described["kind"], described["paths"]
    if kind not in KINDS or type(paths) is not list or not all(type(p) is str for p in paths):
        raise DamagedModel(f"{name} is of no kind")
    if kind == "random":
        return SavedState(kind, None, paths)
    array = arrays.get(name)
    if array is None or str(Spec(array.shape, array.dtype)) != described["spec"]:
        raise DamagedModel(f"the weights have no {name} that is {described['spec']!s:.80}")
    tensor = Parameter(()) if kind == "parameter" else Tensor(())
    tensor.array = as_array(array)
    tensor.name, tensor.stop_gradient = name, described["trainable"] is not True
    return SavedState(kind, tensor, paths)


def method_of(program: Program, described: dict) -> Method:
    leaves, places = [], []
    structure = read_structure(described["outputs"], leaves, places, 0)
    count = len(program.outputs)
    if any(type(k) is not int or not 0 <= k < count for k in places if k is not None):
        raise DamagedModel(f"{program.name} has {count} outputs: the file names another one")
    return Method(program, structure, leaves, places, "by_key" in described)


def read_structure(node, leaves: list, places: list, depth: int):
    """The structure that JSON says; leaves and places are filled."""
    ((kind, value),) = node.items()
    if depth > DEEPEST:
        raise DamagedModel(f"results nested more than {DEEPEST} deep")
    if kind in ("tensor", "size", "value"):
        leaf = plain(value) if kind == "value" else None
        leaves.append(Reader().size(value) if kind == "size" else leaf)
        places.append(value if kind == "tensor" else None)
        return LEAF
    if kind in ("items", "numbers"):
        ((inner, _),) = [pair for child in value for pair in child.items()]
        if inner != "tensor":
            raise DamagedModel(f"{kind} of a {inner}")
        keys, inside, like = ["stack"], value, CONTAINERS[kind](None)
    elif kind == "dict":
        keys, inside, like = [plain(k) for k, _ in value], [v for _, v in value], {}
    else:
        like = {"list": [], "tuple": ()}[kind]
        keys, inside = range(len(value)), value
    children = [read_structure(child, leaves, places, depth + 1) for child in inside]
    return Container(type(like), tuple(keys), tuple(children), like)


def plain(value):
    if type(value) not in PLAIN:
        raise DamagedModel(f"{value!r:.80} is no plain value")
    return value


def check_states(program: Program, states: dict) -> None:
    """Raise Damaged unless a program and the weights have the same states."""
    for state in program.states:
        kept = states.get(state.name)
        if kept is None:
            raise DamagedModel(f"the state {state.name} is not described")
        spec = COUNTER if kept.tensor is None else kept.tensor.spec
        if state.record.spec != spec:
            raise DamagedModel(f"the state {state.name} is {state.record.spec}, its weights {spec}")


def check_sizes(program: Program, known: set) -> None:
    """Raise Damaged if a program uses a size that no shape gives."""
    for record in program.given:
        new_sizes(record.spec, known)
    for record in program.records:
        require(record.attrs.values(), known)
        require([r.attrs["value"] for r in record.inputs if r.op is NUMBER], known)
        for region in regions(record).values():
            check_sizes(region, known)
        if record.dtype is not None:
            new_sizes(record.spec, known)
    require([n for left, _, right, _ in program.guards for n in (left, right)], known)


def require(values, known: set) -> None:
    for value in values:
        if type(value) is tuple:
            require(value, known)
        elif missing := dims.symbols(value) - known:
            raise DamagedModel(f"the size {missing.pop()} is used before it is known")


@slot("jit.check_names")
def check_names(names: list) -> None:
    """Raise ValueError unless methods and properties can be attributes of a loaded model."""
    taken = {*dir(Layer), "program"} - {"forward"}
    for name in names:
        if not name.isidentifier() or name.startswith("_") or name in taken:
            raise DamagedModel(f"{name[:80]!r} cannot be the name of a method: a Layer has its own")
    if len(set(names)) < len(names):
        raise DamagedModel("a method and a property have one name")


@slot("jit.check_paths")
def check_paths(states) -> None:
    """Raise Damaged unless every path leads to a place of its own, in a tree."""
    ends, inner = set(), set()
    for kept in states:
        if kept.kind in ("constant", "random"):
            if kept.paths:
                raise DamagedModel(f"{kept.paths[0][:80]!r} is the path of a {kept.kind}")
            continue
        for path in kept.paths:
            parts = path.split(".")
            if path in ends or not all(parts) or len(parts) > DEEPEST:
                raise DamagedModel(f"{path[:80]!r} is no path, or one that two states have")
            ends.add(path)
            inner |= {".".join(parts[:k]) for k in range(1, len(parts))}
    if ends & inner:
        raise DamagedModel(f"{(ends & inner).pop()[:80]!r} is a tensor and a layer")
