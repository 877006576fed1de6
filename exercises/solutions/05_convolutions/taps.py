"""A convolution without patches: a sum over taps.

One tap of a kernel, sliding over an image, meets the whole image, only shifted; and in an
image laid out flat, row after row, a shifted image is a slice. The engine has cut these slices
already. Write `correlate(m, slices, w)`, which makes the convolution out of them:

- `slices` is a list with an array for each tap, [batch, group, channel, pixel]: what this tap
  meets at each place of the kernel. They are views, and they overlap in memory;
- `w` is an array [tap, group, filter, channel]: the weights of each tap;
- `m` is the array module, NumPy or CuPy.

Return an array [batch, group, filter, pixel]: for each place the sum over all taps and all
channels of weight times pixel. Groups do not mix: filters of a group see the channels of this
group alone.

Make no copies of the slices, neither of all of them (as im2col would) nor of one: a product of
matrices takes a view. The slices must not change.

    slices = [[[[[1, 2, 3]]]], [[[[2, 3, 4]]]]]          # two taps, one channel, three places
    w      = [[[[10]]], [[[1]]]]
    correlate(numpy, slices, w) -> [[[[10·1 + 2, 10·2 + 3, 10·3 + 4]]]]

The engine calls it for every convolution, and once more on the way back, with the taps in reverse
order. Source: Vasudevan, Anderson, Gregg, "Parallel multi channel convolution using general
matrix multiplication" (2017), which calls it kn2row.
"""


def correlate(m, slices, w):
    """For each place, the sum over taps and channels of weight times pixel."""
    total = m.matmul(w[0], slices[0])
    for tap in range(1, len(slices)):
        # [group, filter, channel] @ [batch, group, channel, pixel]: the batch is broadcast.
        total += m.matmul(w[tap], slices[tap])
    return total
