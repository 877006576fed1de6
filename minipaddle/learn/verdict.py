"""A verdict: how a reader's solution stands. All of it is text: it leaves its process as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field

import numpy as np

from ..engine.eager.tensor import Tensor

STATES = ("not started", "error", "wrong", "passed")
LONGEST = 600
"""Characters of one value that are shown."""


@dataclass
class Verdict:
    """How a solution of the exercise `name` stands; `state` is one of STATES."""

    name: str
    state: str
    why: str = ""
    check: str = ""  # the check that said so
    explains: str = ""  # and what that check is about
    line: str = ""  # the reader's line: `accumulate.py:12: return g`
    given: dict[str, str] = field(default_factory=dict)
    expected: str = ""
    got: str = ""
    looks_like: str = ""
    picture: str = ""  # a graph, as DOT
    sketch: str = ""  # the same graph, as text
    seed: int | None = None  # of the random inputs that showed it
    printed: str = ""
    seconds: float = 0.0
    busy: str = ""  # how long it waited for a processor, if that was long

    @property
    def passed(self) -> bool:
        return self.state == "passed"

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Verdict:
        return cls(**json.loads(text))

    def __str__(self) -> str:
        from .show import as_text

        return as_text(self)

    def __rich__(self):
        from .show import as_rich

        return as_rich(self)

    def _repr_mimebundle_(self, include=None, exclude=None):
        from .show import as_bundle

        return as_bundle(self)


def shown(value) -> str:
    """A value as the reader should see it: arrays with dtype and shape, numbers to six digits."""
    if isinstance(value, str):
        text = value
    elif isinstance(value, Tensor):
        text = array_text(value.numpy(), str(value.spec))
    elif isinstance(value, np.ndarray):
        text = array_text(value, f"{value.dtype}{list(value.shape)}")
    elif isinstance(value, float | np.floating):
        text = f"{float(value):.6g}"
    elif isinstance(value, dict):
        text = ", ".join(f"{k}: {shown(v)}" for k, v in value.items())
    elif isinstance(value, list | tuple):
        inside = ", ".join(map(shown, value))
        comma = "," if len(value) == 1 else ""
        text = f"[{inside}]" if isinstance(value, list) else f"({inside}{comma})"
    else:
        text = repr(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def array_text(array: np.ndarray, spec: str) -> str:
    """The values, with what kind of array they are; a number alone for an array of no axes."""
    if array.dtype.kind == "V":  # bfloat16
        array = array.astype(np.float32)
    if array.ndim == 0:
        return f"{array.item():.6g}" if array.dtype.kind == "f" else str(array.item())
    values = np.array2string(array, precision=6, suppress_small=False, threshold=40, separator=", ")
    return f"{values}  ({spec})" if "\n" not in values else f"{spec}\n{values}"
