"""The way back through max pooling: the winner takes all.

Max pooling lays windows over an image and keeps the largest pixel of each. Write
`max_pool_grad(m, g, x, y, *, windows)`, how much the loss changes with x:

- x [N, C, H, W] is the image, y [N, C, H', W'] what pooling made of it;
- g [N, C, H', W'] is how much the loss changes with y;
- `windows` says of each image axis (kernel, stride, before, positions): the windows have `kernel`
  pixels, begin `stride` pixels apart, the first one `before` pixels before the image, and
  there are `positions` of them. They may overlap, and the last may reach beyond the image;
- `m` is the array module, NumPy or CuPy: use its names and the methods of arrays. A loop over the
  places in a window is fine, one over pixels is slow.

Return an array of the shape of x and the dtype of g. Each element of g goes to the pixel that won
its window, and only there. A pixel that won several windows receives the sum. If several pixels
of a window are equally large, the first in reading order (row by row) wins, as in Paddle. What
lies outside the image never wins.

    x = [1, 7, 7, 2, 9] in one row, windows of 3 pixels, stride 2: y = [7, 9]
    g = [10, 20]  ->  [0, 10, 0, 0, 20]

This is the body of an operator of the engine.
Source: Paddle API `paddle.nn.functional.max_pool2d`.
"""


def max_pool_grad(m, g, x, y, *, windows):
    """Every element of g at the pixel that won its window, zero elsewhere."""
    (tall, down, above, high), (broad, right, left, wide) = windows
    rows, columns = x.shape[2:]
    inside = ..., slice(above, above + rows), slice(left, left + columns)
    frame = max(above + rows, high * down + tall), max(left + columns, wide * right + broad)
    framed = m.full((*x.shape[:2], *frame), m.nan, x.dtype)  # nothing equals nan, so it never wins
    framed[inside] = x
    back = m.zeros(framed.shape, g.dtype)
    waiting = m.ones(y.shape, bool)  # windows that have not met their winner yet
    for i in range(tall):
        for j in range(broad):
            last = i + (high - 1) * down, j + (wide - 1) * right
            at = (..., slice(i, last[0] + 1, down), slice(j, last[1] + 1, right))
            wins = waiting & (framed[at] == y)
            back[at] += g * wins  # windows overlap: a pixel may have won before
            waiting = waiting & ~wins
    return back[inside]
