"""How large is the result of a convolution?

Write `output_size(size, kernel, stride, padding, dilation)`. Every argument holds one entry for
each axis of the image (one, two or three axes):

- `size`: the pixels of the image;
- `kernel`: the taps of the kernel;
- `stride`: how many pixels the kernel moves from one place to the next;
- `padding`: a pair (zeros before the image, zeros after it), not always equal;
- `dilation`: how many pixels lie from one tap to the next.

Return a tuple: in how many places the kernel fits along each axis. All its taps must be
inside the padded image.

If it fits nowhere along some axis, raise a ValueError that teaches. Its text names the kernel's
taps, the dilation and the image's pixels of that axis, as numbers.

    output_size((8, 8), (3, 3), (1, 1), ((0, 0), (1, 1)), (1, 1))  ->  (6, 8)
    output_size((8,), (3,), (2,), ((0, 0),), (1,))                 ->  (3,)
    output_size((2,), (3,), (1,), ((0, 0),), (1,))                 ->  ValueError

Every convolution of the engine asks this function, and so does `unfold`.
Source: Dumoulin and Visin, "A guide to convolution arithmetic for deep learning" (2016).
"""


def output_size(size, kernel, stride, padding, dilation):
    """In how many places the kernel fits along each axis of the padded image."""
    raise NotImplementedError
