"""The size of a gradient: its norm as colour, width and words, on a logarithmic scale."""

import math

from ..engine.core.dispatch import Recording
from ..engine.core.dtype import float64
from ..engine.ops.elementwise import cast, square
from ..engine.ops.reduction import sum as total
from .style import GREY

VANISHING, EXPLODING = 1e-6, 1e3
"""Norms below and above these are marked; between them training usually moves."""

LOW, MIDDLE, HIGH, RED = "#0072b2", "#009e73", "#d55e00", "#e00000"
"""Blue, green and vermillion of Okabe and Ito; red for nan and inf."""

MEANINGS = [
    ("▼ vanishing (below 1e-06)", LOW),
    ("— flowing", MIDDLE),
    ("▲ exploding (above 1e+03)", HIGH),
    ("✖ nan or inf", RED),
]


def norm(g) -> float:
    """The Euclidean norm of a gradient, computed in float64; of the pieces together for a dict."""
    if isinstance(g, dict):
        return math.hypot(*map(norm, g.values()))
    with Recording(False):
        wide = square(cast(g, dtype=float64.numpy))
        axes = tuple(range(g.spec.ndim))
        return math.sqrt(float(total(wide, axis=axes, keepdim=False)))


def colour(value: float) -> str:
    """From blue (vanishing) over green to vermillion (exploding); red for nan and inf."""
    if not math.isfinite(value):
        return RED
    t = place(value)
    return blend(LOW, MIDDLE, 2 * t) if t < 0.5 else blend(MIDDLE, HIGH, 2 * t - 1)


def place(value: float) -> float:
    """The position of a norm between VANISHING (0) and EXPLODING (1), by its logarithm."""
    if value <= VANISHING:
        return 0.0
    low, high = math.log10(VANISHING), math.log10(EXPLODING)
    return min(1.0, (math.log10(value) - low) / (high - low))


def blend(a: str, b: str, t: float) -> str:
    """The colour at `t` between two."""
    pairs = zip(bytes.fromhex(a[1:]), bytes.fromhex(b[1:]))
    return "#" + "".join(f"{round(x + t * (y - x)):02x}" for x, y in pairs)


def width(value: float) -> str:
    """The width of a line for a norm, in points."""
    return f"{0.6 + 4.4 * place(value):.2f}" if math.isfinite(value) else "5.00"


def words(value: float | None) -> str:
    """`‖g‖ 1.2e-03`, with a mark when it is worth a look."""
    if value is None:
        return "no gradient"
    if not math.isfinite(value):
        return f"‖g‖ {value} ✖"
    mark = " ▼" if value < VANISHING else " ▲" if value > EXPLODING else ""
    return f"‖g‖ {value:.1e}{mark}"


def line(value: float | None) -> dict:
    """Attributes of an edge along which a gradient of this norm flows."""
    if value is None:
        return {"color": GREY, "style": "dotted"}
    return {"color": colour(value), "penwidth": width(value)}
