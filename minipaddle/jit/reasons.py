"""Why a call of a converted function found no program."""

from itertools import count

from ..engine.core import dispatch
from ..engine.jit.cache import REASONS, Key, ProgramCache
from ..engine.jit.tree import LEAF, describe

SETTINGS = (
    "gradient recording", "the default dtype", "the number of plug-ins", "averaging of gradients",
    "mixed precision",
)  # fmt: skip
"""The names of what `settings` of the engine's cache gives."""


def reason(cache: ProgramCache, key: Key, names) -> str:
    """Why no program is valid: how the nearest one differs."""
    if key in cache.entries:
        return reason_beside_key(cache.entries[key][0])
    return "; ".join(min((differences(key, k, names) for k in cache.entries), key=len))


def reason_beside_key(captured) -> str:
    """The other changes of all that a program depends on."""
    for guards in captured.guards:
        if text := guards.find_broken():
            return text
    x, condition = captured.violation() or (None, "")
    if condition in ("flows", "stops"):
        return f"{x.name}.stop_gradient is {x.stop_gradient}, was {not x.stop_gradient}"
    if condition:
        return "a gradient that waits in .grad differs"
    return "a decision about an open size differs"


def differences(key: Key, other: Key, names) -> list[str]:
    """How a key differs from another, in words; `names` are those of the arguments."""
    if (key.structure, key.places) != (other.structure, other.places):
        text, was = structure_text(key), structure_text(other)
        again = ", of another class of that name" * (text == was)
        return [f"the arguments are {text}{again}, were {was}"]
    reasons, tensors = [], [names[k] for k in key.places]
    for name, a, b in zip(tensors, key.specs, other.specs, strict=False):
        for what, x, y in zip(("shape", "dtype", "stop_gradient"), a, b, strict=True):
            if x != y:
                x, y = (list(v) if what == "shape" else v for v in (x, y))
                reasons.append(f"{name} has {what} {x}, had {y}")
    others = [name for k, name in enumerate(names) if k not in key.places]
    for name, x, y in zip(others, key.values, other.values, strict=False):
        if x != y:
            reasons.append(f"{name} is {dispatch.describe(x[1])}, was {dispatch.describe(y[1])}")
    for what, x, y in zip(SETTINGS, key.settings, other.settings, strict=False):
        if x != y:
            reasons.append(f"{what} is {x}, was {y}")
    return reasons


def structure_text(key: Key) -> str:
    """How the arguments are nested: `*` is a tensor, `_` anything else."""
    signs = (LEAF if k in key.places else "_" for k in count())
    return describe(key.structure, signs)


REASONS.append(reason)
