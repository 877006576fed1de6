"""A state dict as a flat one: {path: tensor or value}, where a path is the tuple of keys."""

from ...core.prelude import NUMPY, Tensor, type_error, value_error
from ...io.serialization import PLAIN, refusal

Path = tuple[str, ...]


def flatten_state(state: dict, path: Path = ()) -> dict:
    """Flatten a state dict to {path: tensor or value}; TypeError for what cannot be saved."""
    flat = {}
    for key, value in state.items():
        if type(key) is not str:
            raise type_error(f"the key {key!r} of {format_path(path)}", expected="a string")
        inner = (*path, key)
        if isinstance(value, dict):
            flat |= flatten_state(value, inner)
        else:
            flat[inner] = value if isinstance(value, Tensor) else require_plain(value, inner)
    if not path:
        name_paths(flat)
    return flat


def require_plain(value, path: Path):
    """Return a number, string or list of them for JSON; TypeError for another value."""
    if isinstance(value, NUMPY.generic):
        value = value.item()
    if type(value) in PLAIN:
        return value
    if type(value) in (list, tuple):
        return [require_plain(v, (*path, str(k))) for k, v in enumerate(value)]
    if isinstance(value, Tensor):
        raise type_error(f"{format_path(path)} is a tensor in a list", expected="tensors in dicts")
    raise TypeError(refusal(value, format_path(path)))


def format_path(path: Path) -> str:
    """A path in errors: `state_dict['a']['b']`."""
    return "".join(["state_dict", *(f"[{key!r}]" for key in path)])


def name_paths(paths) -> dict[str, Path]:
    """{the name of a tensor in files: its path}; ValueError where two have the same name."""
    by_name: dict[str, Path] = {}
    for path in paths:
        name = ".".join(path)
        if name in by_name or name == "__metadata__":
            other = format_path(by_name.get(name, ("__metadata__",)))
            raise value_error(f"{format_path(path)} has the name of {other} in a file: {name!r}")
        by_name[name] = path
    return by_name


def find_hollow(state: dict, path: Path = ()) -> list[Path]:
    """The paths of the outermost dicts with no tensor in them or below."""
    if not any(isinstance(value, Tensor) for value in flatten_state(state).values()):
        return [path]
    inner = [(k, v) for k, v in state.items() if isinstance(v, dict)]
    return [below for key, value in inner for below in find_hollow(value, (*path, key))]


def put(state: dict, path: Path, value) -> None:
    """Put a value at a path of a state dict; make missing dicts."""
    *above, last = path
    for key in above:
        state = state.setdefault(key, {})
        if not isinstance(state, dict):
            raise value_error(f"{format_path(path)}: {key!r} is a {type(state).__name__}", "a dict")
    state[last] = tuple(value) if type(state.get(last)) is tuple else value
