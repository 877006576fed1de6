"""The way back through a convolution.

A convolution adds up, for every place (p, q) of the kernel and every tap (i, j) of it,

    y[n, o, p, q] += w[o, c, i, j] · x[n, c, p·stride₀ + i·dilation₀, q·stride₁ + j·dilation₁]

where x [N, C, H, W] already has its padding around it. Given g [N, O, H', W'], how much the loss
changes with y, write how much it changes with x and with w. `m` is the array module, NumPy or CuPy:
use its names and the methods of arrays. A loop over taps is fine, one over pixels is slow.

`pixels(i, j, out, stride, dilation)`: the index of the pixels of the padded image that tap (i, j)
meets while the kernel lies at its `out` = (H', W') places: `(..., slice, slice)`, such that
x[pixels(...)] has shape [N, C, H', W'].

`weight_grad(m, x, g, *, kernel, stride, padding, dilation, groups)`: x [N, C, H, W] has no padding
around it yet; `padding` is ((zeros above, below), (left, right)). Return [O, C / groups, *kernel].

`input_grad(m, g, w, *, size, stride, padding, dilation, groups)`: w is [O, C / groups, KH, KW],
`size` is (H, W) without padding. Return [N, C, H, W].

With `groups`, channels and filters fall into that many equal parts, in order; each part convolves
its own channels. Results have the dtype of what is given.

    x = [1, 2, 3] in one row, w = [10, 20], g = [1, 100]
    weight_grad -> [1·1 + 2·100, 2·1 + 3·100] = [201, 302]
    input_grad  -> [10·1, 20·1 + 10·100, 20·100] = [10, 1020, 2000]

Both are bodies of operators of the engine: every convolution's backward runs on them.
Source: Dumoulin and Visin, "A guide to convolution arithmetic for deep learning" (2016), chapter 4.
"""


def pixels(i, j, out, stride, dilation):
    """The index of the pixels that tap (i, j) meets at all places."""
    top, left = i * dilation[0], j * dilation[1]
    # A slice ends after the pixel of the last place.
    down = slice(top, top + (out[0] - 1) * stride[0] + 1, stride[0])
    return ..., down, slice(left, left + (out[1] - 1) * stride[1] + 1, stride[1])


def weight_grad(m, x, g, *, kernel, stride, padding, dilation, groups):
    """How much the loss changes with w: for every tap its pixels, weighted by g."""
    x, out = m.pad(x, ((0, 0), (0, 0), *padding)), g.shape[2:]
    w = m.empty((g.shape[1], x.shape[1] // groups, *kernel), x.dtype)
    g = _parts(g, groups)
    for i in range(kernel[0]):
        for j in range(kernel[1]):
            met = _parts(x[pixels(i, j, out, stride, dilation)], groups)
            # A weight is used in every image and at every place: all of them add up.
            w[:, :, i, j] = m.einsum("ngopq,ngcpq->goc", g, met).reshape(w.shape[:2])
    return w


def input_grad(m, g, w, *, size, stride, padding, dilation, groups):
    """How much the loss changes with x: every tap sends g back to the pixels it has met."""
    (above, below), (left, right) = padding
    high, across = above + size[0] + below, left + size[1] + right
    x = m.zeros((g.shape[0], groups * w.shape[1], high, across), g.dtype)
    out, g, w = g.shape[2:], _parts(g, groups), w.reshape(groups, -1, *w.shape[1:])
    for i in range(w.shape[3]):
        for j in range(w.shape[4]):
            back = m.einsum("ngopq,goc->ngcpq", g, w[..., i, j])
            # Taps share pixels: what they send back adds up.
            x[pixels(i, j, out, stride, dilation)] += back.reshape(x.shape[0], x.shape[1], *out)
    return x[:, :, above : above + size[0], left : left + size[1]]


def _parts(x, groups):
    """The channels of x [N, C, ...] in groups: [N, groups, C / groups, ...]."""
    return x.reshape(x.shape[0], groups, x.shape[1] // groups, *x.shape[2:])
