"""Packing nibbles: two whole numbers of four bits in a byte.

No array has elements of four bits, so two numbers from -8 to 7 share a byte. Four bits are a
*nibble*: a number is stored as its last four bits, as processors store negative numbers (-1 is
1111). Write two functions.

`pack(low, high)`: both are tensors of int8 of one shape, with numbers from -8 to 7. Return a tensor
of int8 of this shape: of each byte the lower nibble is that of `low`, the upper one that of `high`.

`unpack(x)`: the pair (low, high) for a tensor of int8, with their signs.

Tensors have Python's operators on bits: `&`, `|`, `~`, `<<`, `>>`. On int8 a shift to the left
drops bits at the top, and a shift to the right fills in copies of the sign.

    pack([3, -1], [-2, 0])  ->  [-29, 15]        bits 1110 0011, 0000 1111
    unpack([-29, 15])       ->  [3, -1], [-2, 0]

Source: Paddle API `paddle.nn.quant.weight_quantize` with "weight_only_int4".
"""


def pack(low, high):
    """Pairs of whole numbers from -8 to 7, as bytes."""
    return low & 15 | high << 4


def unpack(x):
    """The pairs (low, high) that were packed."""
    return x << 4 >> 4, x >> 4
