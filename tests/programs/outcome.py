"""What a program returned, as plain data that a file can keep and a test can compare."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np

DATA = Path(__file__).parent.parent / "data" / "programs"
DIGITS = 7


def plain(value):
    """Tensors and arrays as `{"float32[2]": [1.0, 2.0]}`, containers as lists and dicts."""
    if hasattr(value, "numpy") and hasattr(value, "stop_gradient"):
        return {spec("tensor ", value.numpy()): numbers(value.numpy())}
    if isinstance(value, np.ndarray | np.generic):
        return {spec("array ", value): numbers(value)}
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return rounded(value)
    if value is None or isinstance(value, bool | int | str):
        return value
    raise TypeError(f"a program returned {value!r}, which no file can keep")


def spec(kind: str, array) -> str:
    return f"{kind}{array.dtype.name}{list(array.shape)}"


def numbers(array) -> list:
    flat = np.asarray(array).ravel().tolist()
    return [rounded(x) if isinstance(x, float) else x for x in flat]


def rounded(x: float) -> float:
    return float(f"{x:.{DIGITS}g}") if math.isfinite(x) else x


def differences(got, want, where="", rtol=2e-4, atol=1e-5) -> list[str]:
    """Where two results differ; numbers may differ a little, everything else may not."""
    if isinstance(want, float) and isinstance(got, float):
        return [] if near(got, want, rtol, atol) else [f"{where}: {got}, Paddle gives {want}"]
    if type(got) is not type(want):
        return [f"{where}: {got!r:.60}, Paddle gives {want!r:.60}"]
    if isinstance(want, dict):
        if list(got) != list(want):
            return [f"{where}: {[*got]}, Paddle gives {[*want]}"]
        pairs = [(f"{where}.{key}", got[key], want[key]) for key in want]
    elif isinstance(want, list):
        if len(got) != len(want):
            return [f"{where}: {len(got)} results, Paddle gives {len(want)}"]
        pairs = [(f"{where}[{k}]", *both) for k, both in enumerate(zip(got, want))]
    else:
        return [] if got == want else [f"{where}: {got!r}, Paddle gives {want!r}"]
    return [line for name, a, b in pairs for line in differences(a, b, name, rtol, atol)]


def near(a: float, b: float, rtol: float, atol: float) -> bool:
    if math.isnan(a) or math.isnan(b):
        return math.isnan(a) and math.isnan(b)
    return a == b or abs(a - b) <= atol + rtol * abs(b)


def load(subject: str) -> dict:
    return json.loads((DATA / f"{subject}.json").read_text())


def store(subject: str, results: dict) -> None:
    DATA.mkdir(parents=True, exist_ok=True)
    lines = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in results.items()]
    (DATA / f"{subject}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
