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
    raise NotImplementedError


def weight_grad(m, x, g, *, kernel, stride, padding, dilation, groups):
    """How much the loss changes with w: for every tap its pixels, weighted by g."""
    raise NotImplementedError


def input_grad(m, g, w, *, size, stride, padding, dilation, groups):
    """How much the loss changes with x: every tap sends g back to the pixels it has met."""
    raise NotImplementedError
