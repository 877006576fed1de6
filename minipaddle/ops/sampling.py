"""Images read at any places: each new pixel blends a few old ones."""

from ..engine.core.op import opaque
from ..engine.core.record import Spec
from ..engine.ops.gather import add_rows, wrap_negative


@opaque(promote=("x", "weight"))
def blend(m, x, place, weight):
    """Σₖ weight[n, k, p] · x[n, c, place[n, k, p]], for images x [N, C, pixels]: [N, C, P]."""
    total = 0
    for k in range(place.shape[1]):
        total = total + m.take_along_axis(x, place[:, k, None], 2) * weight[:, k, None]
    return total


@blend.shape
def _(x, place, weight):
    if place.dtype.kind not in "iu":
        raise TypeError(f"places are whole numbers, not {place}")
    if x.ndim != 3 or place.ndim != 3 or place.shape != weight.shape or not place.shape[1]:
        raise ValueError(
            f"images {x} [N, C, pixels], places {place} and weights {weight} [N, K, P]"
        )
    return Spec((*x.shape[:2], place.shape[2]), x.dtype)


@opaque(promote=("g", "weight"))
def blend_input_grad(m, g, place, weight, *, size):
    """The adjoint of `blend` in x, images of `size` pixels: each number of g [N, C, P] is added to
    the pixels it was read from, by their weights.
    """
    (n, taps, count), channels = place.shape, g.shape[1]
    at = wrap_negative(m, place, size) + size * m.arange(n)[:, None, None]
    parts = (g[:, None] * weight[:, :, None]).transpose(0, 1, 3, 2)
    y = add_rows(m, parts.reshape(n * taps * count, channels), at.reshape(-1), n * size)
    return m.ascontiguousarray(y.reshape(n, size, channels).transpose(0, 2, 1))


@blend_input_grad.shape
def _(g, place, weight, *, size):
    x = Spec((*g.shape[:2], size), g.dtype)
    check_cotangent(blend.infer(x, place, weight), g)
    return x


@opaque(promote=("x", "g"))
def blend_weight_grad(m, x, place, g):
    """The adjoint of `blend` in the weights: Σ_c x[n, c, place[n, k, p]] · g[n, c, p]."""
    read = lambda k: m.take_along_axis(x, place[:, k, None], 2)
    return m.stack([m.sum(read(k) * g, 1) for k in range(place.shape[1])], axis=1)


@blend_weight_grad.shape
def _(x, place, g):
    weight = place.astype(x.dtype)
    check_cotangent(blend.infer(x, place, weight), g)
    return weight


def check_cotangent(y, g) -> None:
    """Raise ValueError unless g has the shape of the blended pixels."""
    if y.shape != g.shape:
        raise ValueError(f"a cotangent {g} for blended pixels {y}")


blend.vjp(
    x=lambda g, x_spec, place, weight: blend_input_grad(g, place, weight, size=x_spec.shape[2]),
    weight=lambda g, x, place: blend_weight_grad(x, place, g),
)
blend_input_grad.vjp(
    g=lambda x, place, weight: blend(x, place, weight),
    weight=lambda x, place, g: blend_weight_grad(x, place, g),
)
blend_weight_grad.vjp(
    x=lambda weight, x_spec, place, g: blend_input_grad(g, place, weight, size=x_spec.shape[2]),
    g=lambda weight, x, place: blend(x, place, weight),
)
blend.shards(lambda *xs: "bc.,bkp,bkp->bcp", multilinear="x,weight")
blend_input_grad.shards(lambda *xs, size: "bcp,bkp,bkp->bc.", multilinear="g,weight")
blend_weight_grad.shards(lambda *xs: "bc.,bkp,bcp->bkp", multilinear="x,g")
