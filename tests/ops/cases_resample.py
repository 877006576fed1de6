"""Resampling and windows as columns, against torch's."""

import torch
import torch.nn.functional as F

from tests.ops.cases import Case, normal, together, whole


def along_last(x, axis, mode, size, corners):
    """torch's interpolation of one axis of x."""
    moved = x.movedim(axis, -1)
    flat = moved.reshape(1, -1, 1, moved.shape[-1]) if mode == "bicubic" else moved.reshape(
        1, -1, moved.shape[-1]
    )  # fmt: skip
    if mode == "bicubic":
        y = F.interpolate(flat, (1, size), mode=mode, align_corners=corners)
    elif mode == "area":
        y = F.adaptive_avg_pool1d(flat, size)
    else:
        y = F.interpolate(flat, size, mode=mode, align_corners=corners)
    return y.reshape(*moved.shape[:-1], size).movedim(-1, axis)


MODES = {"linear": "linear", "cubic": "bicubic", "area": "area"}
CASES = {"resample": [], "remap": [], "remap_grad": [], "unfold": [], "fold": []}
for method, mode in MODES.items():
    for corners in (False, True) if method != "area" else (False,):
        for axis, size, out in ((2, 5, 8), (3, 4, 3), (2, 5, 1)):
            how = {"axis": axis, "size": size, "to": out, "method": method, "corners": corners}
            how |= {"centers": True, "step": size / out}

            def forward(x, axis=axis, mode=mode, out=out, corners=corners):
                corners = corners if mode != "area" else None
                return along_last(x, axis, mode, out, corners)

            def back(g, forward=forward):
                return torch.func.vjp(forward, g.new_zeros(2, 3, 5, 4))[1](g)[0]

            small = [2, 3, 5, 4]
            small[axis] = out
            CASES["resample"] += [
                Case(normal(2, 3, 5, 4), forward, how | {"adjoint": False}),
                Case(normal(*small), back, how | {"adjoint": True}),
            ]

INDEX = (1, 0, 0, 2, 2, 2, 4)
CASES["remap"] = [
    Case(normal(2, 5, 3), lambda x: x[:, INDEX], {"axis": 1, "index": INDEX}),
    Case(normal(5), lambda x: x[list(INDEX)], {"axis": 0, "index": INDEX}),
]
CASES["remap_grad"] = Case(
    normal(2, 7, 3),
    lambda g: torch.zeros(2, 5, 3, dtype=g.dtype).index_add(1, torch.tensor(INDEX), g),
    {"axis": 1, "index": INDEX, "size": 5},
)
for size, kernel, stride, padding, dilation in (
    ((5, 6), (2, 3), (1, 1), (0, 0), (1, 1)),
    ((6, 7), (3, 2), (2, 1), (1, 2), (1, 2)),
):
    how = {"kernel": kernel, "stride": stride, "dilation": dilation}
    how["padding"] = tuple((p, p) for p in padding)
    at = {"kernel_size": kernel, "stride": stride, "padding": padding, "dilation": dilation}
    columns = F.unfold(torch.zeros(2, 3, *size), **at).shape
    CASES["unfold"].append(Case(normal(2, 3, *size), lambda x, at=at: F.unfold(x, **at), how))
    CASES["fold"].append(
        Case(normal(*columns), lambda g, at=at, size=size: F.fold(g, size, **at),
             how | {"size": size})
    )  # fmt: skip


def pixels(x, place):
    """torch's gathered pixels [N, C, K, P]."""
    taps = place.unsqueeze(1).expand(-1, x.shape[1], -1, -1)
    return x.unsqueeze(2).expand(-1, -1, place.shape[1], -1).gather(3, taps)


def blended(x, place, weight):
    """torch's sum of gathered pixels."""
    return (pixels(x, place) * weight.unsqueeze(1)).sum(2)


def scattered(g, place, weight, size):
    """torch's sum of cotangents at the pixels."""
    at = place.unsqueeze(1).expand(-1, g.shape[1], -1, -1).flatten(2)
    parts = (g.unsqueeze(2) * weight.unsqueeze(1)).flatten(2)
    return parts.new_zeros(*g.shape[:2], size).scatter_add(2, at, parts)


CASES |= {"blend": [], "blend_input_grad": [], "blend_weight_grad": []}
for n, c, k, count, size in ((2, 3, 4, 7, 5), (1, 2, 1, 3, 6)):
    x, place, weight, g = (n, c, size), whole(0, size, n, k, count), (n, k, count), (n, c, count)
    CASES["blend"].append(Case(together(normal(*x), place, normal(*weight)), blended))
    CASES["blend_input_grad"].append(
        Case(together(normal(*g), place, normal(*weight)),
             lambda g, place, weight, size=size: scattered(g, place, weight, size), {"size": size})
    )  # fmt: skip
    CASES["blend_weight_grad"].append(
        Case(together(normal(*x), place, normal(*g)),
             lambda x, place, g: (pixels(x, place) * g.unsqueeze(2)).sum(1))
    )  # fmt: skip
