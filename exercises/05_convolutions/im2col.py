"""A convolution as one product of matrices.

Write two functions. `m` is the array module, NumPy or CuPy: take its names and the methods of
arrays. All images have two axes; `kernel`, `stride` and `dilation` are pairs (down, right).

`patches(m, x, kernel, stride, dilation)`: every patch of x [N, C, H, W] that a kernel meets, as an
array [N, H', W', C, KH, KW]:

    patches[n, p, q, c, i, j] = x[n, c, p·stride₀ + i·dilation₀, q·stride₁ + j·dilation₁]

H' and W' are the number of places. It is a *view*: no number is copied, whatever the strides of x
are. `m.lib.stride_tricks.as_strided(x, shape, strides)` makes one; its strides count bytes, as
`x.strides` does.

`conv(m, x, w, *, stride, padding, dilation, groups)`: the convolution of x [N, C, H, W] with w
[O, C / groups, KH, KW], an array [N, O, H', W']. `padding` is a pair of pairs: ((zeros above,
zeros below), (zeros left, zeros right)). With `groups`, the channels of x and the filters fall into
that many equal parts, in order, and the filters of a part see only the channels of that part. Every
row of the matrix is a patch: multiply matrices, and let no Python loop run over pixels.

    x = [[[[1, 2, 3], [4, 5, 6], [7, 8, 9]]]]           # one image, one channel, 3 x 3
    patches(numpy, x, (2, 2), (1, 1), (1, 1))[0, 1, 0]  ->  [[[4, 5], [7, 8]]]

`conv` is the body of the engine's operator: the networks below convolve with it.
Source: Chellapilla, Puri, Simard, "High performance convolutional neural networks for document
processing" (2006).
"""


def patches(m, x, kernel, stride, dilation):
    """Every patch that the kernel meets, as a view [N, H', W', C, KH, KW]."""
    raise NotImplementedError


def conv(m, x, w, *, stride, padding, dilation, groups):
    """The convolution of x with w: rows of patches times columns of weights, group by group."""
    raise NotImplementedError
