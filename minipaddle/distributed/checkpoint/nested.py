"""A state dict as a flat one: {path: tensor or value}, where a path is the keys on the way."""

from __future__ import annotations

from ...core.prelude import Tensor, type_error, value_error
from ...engine.eager.device import NUMPY
from ...io.serialization import PLAIN, refusal

Path = tuple[str, ...]


def flat(state: dict, path: Path = ()) -> dict:
    """{path: what stands there} of a state dict; TypeError where something cannot be saved."""
    found = {}
    for key, value in state.items():
        if type(key) is not str:
            raise type_error(f"the key {key!r} of {where(path)}", expected="a string")
        inner = (*path, key)
        if isinstance(value, dict):
            found |= flat(value, inner)
        else:
            found[inner] = value if isinstance(value, Tensor) else plain(value, inner)
    if not path:
        name_paths(found)
    return found


def plain(value, path: Path):
    """A number, string or list of such as JSON has it."""
    if isinstance(value, NUMPY.generic):
        value = value.item()
    if type(value) in PLAIN:
        return value
    if type(value) in (list, tuple):
        return [plain(v, (*path, str(k))) for k, v in enumerate(value)]
    if isinstance(value, Tensor):
        raise type_error(f"{where(path)} is a tensor in a list", expected="tensors in dicts")
    raise TypeError(refusal(value, where(path)))


def where(path: Path) -> str:
    """How an error calls a place."""
    return "".join(["state_dict", *(f"[{key!r}]" for key in path)])


def name_paths(paths) -> dict[str, Path]:
    """{the name of a tensor in files: its path}; ValueError where two have the same name."""
    found: dict[str, Path] = {}
    for path in paths:
        name = ".".join(path)
        if name in found or name == "__metadata__":
            other = where(found.get(name, ("__metadata__",)))
            raise value_error(f"{where(path)} has the name of {other} in a file: {name!r}")
        found[name] = path
    return found


def hollow(state: dict, path: Path = ()) -> list[Path]:
    """The outermost dicts that have no tensor, nor below."""
    if not any(isinstance(value, Tensor) for value in flat(state).values()):
        return [path]
    inner = [(k, v) for k, v in state.items() if isinstance(v, dict)]
    return [found for key, value in inner for found in hollow(value, (*path, key))]


def put(state: dict, path: Path, value) -> None:
    """Let a value stand at a place of a state dict; dicts on the way are made."""
    *above, last = path
    for key in above:
        state = state.setdefault(key, {})
        if not isinstance(state, dict):
            raise value_error(f"{where(path)}: {key!r} is a {type(state).__name__}", "a dict")
    state[last] = tuple(value) if type(state.get(last)) is tuple else value
