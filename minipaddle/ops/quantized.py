"""Products of quantized arrays: whole numbers inside, floats at the end.

    matmul(dequantize(q), dequantize(w))   →   dequantize(matmul_integer(q, w))

    (q - zero) · scale / high  @  w · w_scale / w_high   =   (q @ w - zero · Σw) · unit / high
    unit = scale · w_scale / w_high                          one number for each column

The sum runs over rows, so `scale` and `zero` of the left side are one number each, and the scale
of a weight is one number, or one for each column (output channel).

Code says quantize, dequantize, product. `PRODUCTS` has the rules by which that is computed: the
pass `quantized_products` applies them to the records of a program, and a layer, in a block with
`whole_numbers`, to its values, which stay `Quantized` until another operator needs the floats.
"""

from contextlib import contextmanager
from math import prod

from ..core.casting import find_interpreter
from ..engine.core.slots import slot
from ..engine.ops.conv import conv
from ..engine.ops.creation import full
from ..engine.ops.gather import take
from ..engine.ops.linalg import matmul
from ..engine.ops.movement import reshape, transpose
from ..engine.ops.var import Var
from .affine import affine, linear
from .quantization import MOST_TERMS, conv_integer, dequantize, int8, matmul_integer
from .resample import remap


class Quantized(Var):
    """The floats that whole numbers represent: see `dequantize`, which waits until they are needed.

    A product in `PRODUCTS` takes the whole numbers, and a padding or a transpose moves them.
    """

    def __init__(self, q: Var, scale: Var | float, zero: Var | float, high: int):
        self.q, self.scale, self.zero, self.high = q, scale, zero, high

    spec = property(lambda self: self.q.spec.astype(self.scale.spec.dtype))
    floats = property(lambda self: dequantize(self.q, self.scale, self.zero, high=self.high))
    symmetric = property(lambda self: not isinstance(self.zero, Var) and self.zero == 0)
    """Whether 0 represents 0.0, as is known without a run."""


@contextmanager
def whole_numbers():
    """A block of code in which operators take values that are `Quantized`."""
    top = find_interpreter()
    apply, own = top.apply, vars(top)
    before = {"apply": own["apply"]} if "apply" in own else {}

    def apply_whole(op, inputs, attrs):
        if Quantized not in map(type, inputs):
            return apply(op, inputs, attrs)
        x = inputs[0]
        if op in MOVES and size_of(x.scale) == size_of(x.zero) == 1:
            return Quantized(op(x.q, *inputs[1:], **attrs), x.scale, x.zero, x.high)
        y = multiply_whole(op, inputs, attrs)
        if y is None:
            y = apply(op, [x.floats if type(x) is Quantized else x for x in inputs], attrs)
        return y

    own["apply"] = apply_whole
    try:
        yield
    finally:
        del own["apply"]
        own.update(before)


MOVES = {transpose, remap, take}
"""The operators on an image before a convolution."""


def size_of(scale) -> int:
    return scale.spec.size if isinstance(scale, Var) else 1


@slot("quantization.can_multiply")
def can_multiply(x: Quantized, w: Quantized, axis: int) -> bool:
    """Whether x and a weight w with its outputs along `axis` are multiplied as whole numbers."""
    sizes = w.q.spec.shape
    terms = prod([n for d, n in enumerate(sizes) if d != axis])
    if {x.q.spec.dtype, w.q.spec.dtype} != {int8.numpy} or not w.symmetric or terms > MOST_TERMS:
        return False
    one_each = [n if d == axis else 1 for d, n in enumerate(sizes)]
    shape = w.scale.spec.shape if isinstance(w.scale, Var) else ()
    by_column = shape == tuple(one_each[len(sizes) - len(shape) :])
    return size_of(x.scale) == size_of(x.zero) == 1 and (size_of(w.scale) == 1 or by_column)


POWER = 128
"""By what sums are divided: a power of two, by which a division is an exact multiplication."""


@slot("quantization.unit")
def unit(scale, w_scale, w_high: int):
    """The scale of a product's sums: what `high` of the left side times 1 of the weight is."""
    return w_scale * scale / w_high


@slot("quantization.zero_correction")
def zero_correction(zero, sums):
    """The excess of a product's sums because `zero` represents 0.0: an int32 for each
    sum Σw of weights.
    """
    return zero.astype("int32") * sums


def rescale(x: Quantized, w: Quantized, multiply, ones, shape):
    """The floats for the sums of a product. `multiply(q)` gives the sums for whole numbers q on the
    left side, and with `ones`, whose shape is given, the sums of the weight itself. Scales of the
    outputs have the other shape.
    """
    total = multiply(x.q)
    if not x.symmetric:
        sums = multiply(full(shape=ones, value=1, dtype=int8.numpy))
        total = total - zero_correction(one_number(x.zero), sums)
    w_scale = reshape(w.scale, shape=shape) if size_of(w.scale) > 1 else one_number(w.scale)
    step = unit(one_number(x.scale), w_scale, w.high) * (POWER / x.high)
    return dequantize(total, step, 0.0, high=POWER)


def one_number(scale):
    return reshape(scale, shape=()) if isinstance(scale, Var) else scale


def multiply_matrices(x: Quantized, w: Quantized, bias=None, *, transpose=False):
    """x @ w for a weight w [in, out], maybe with a bias."""
    if w.q.spec.ndim != 2 or transpose or not can_multiply(x, w, 1):
        return None
    y = rescale(x, w, lambda q: matmul_integer(q, w.q), w.q.spec.shape[:1], (-1,))
    return y if bias is None else y + bias


def convolve_images(x: Quantized, w: Quantized, **at):
    """The convolution of x [N, C, *size] with a weight w [O, C / groups, *kernel]. At the border
    fewer weights meet the image, so their sums depend on the place.
    """
    if not can_multiply(x, w, 0):
        return None
    ones, shape = (1, *x.q.spec.shape[1:]), (1, -1, *(1,) * (x.q.spec.ndim - 2))
    return rescale(x, w, lambda q: conv_integer(q, w.q, **at), ones, shape)


PRODUCTS = {
    matmul: multiply_matrices, linear: multiply_matrices, affine: multiply_matrices,
    conv: convolve_images,
}  # fmt: skip
"""For an operator the rule that multiplies whole numbers: of its inputs, of which the first two are
`Quantized`, and its attributes. It returns None for what must be a product of floats."""


def multiply_whole(op, inputs, attrs):
    """The result of an operator by its rule in `PRODUCTS`; None if its inputs have none."""
    rule = PRODUCTS.get(op)
    if rule is None or not {Quantized}.issuperset(map(type, inputs[:2])):
        return None
    return rule(*inputs, **attrs)
