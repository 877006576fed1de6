"""Paddle's public functions on tensors, over the operators in `minipaddle.ops`.

To find a function, open the file that Paddle has it in; the larger ones of Paddle are several here:

    array         array_write, array_read: lists of tensors
    attribute     shape, dtype, rank, is_tensor, tolist
    creation      to_tensor, full, zeros, eye, arange, linspace
    math          all elementwise functions, scale, clip, kron, trace, diff
      reduce      sum, prod, max, all, argmax; cumsum, cummax
      inplace     add_, clip_, fill_, zero_
    stat          mean, var, median, quantile, histogram
    logic         allclose, equal_all (== and its like are elementwise: math)
    search        sort, topk, where, nonzero, unique
    random        rand, randn, randint, multinomial, uniform_
      generator   seed, get_rng_state
    manipulation  gives all of
      shaping     reshape, flatten, squeeze, transpose, moveaxis
      joining     concat, stack, split, chunk, slice, unbind
      arranging   flip, roll, tile, expand, broadcast_to; diag, tril
      gathering   gather, scatter, index_add, masked_fill
      along       take_along_axis, put_along_axis, take
    linalg        matmul, dot, outer, tensordot, cross
      norms       norm, dist, cdist
      matrices    inverse, det, solve, pinv, lstsq, cov
      decompositions  cholesky, lu, qr, svd, eigh
    einsum        einsum
    composed      what is a line or two of others: isin, frexp, scatter_reduce; second names

Beside them: `indexing` reads `x[key]`, `axes` what users may write for an axis or a shape, `face`
makes an operator a public function, and `methods` makes functions methods of tensors.

Programs import functions from Paddle's files too (`from paddle.tensor.math import sum`). Those are
cut otherwise, so each of the modules here finds the functions of all. Source: Paddle API
`paddle.tensor`.
"""

from ..core.missing import missing
from .array import array_length, array_read, array_write, create_array
from .creation import full
from .einsum import einsum  # the function, as in Paddle, not its file
from .generator import Generator
from .methods import MODULES


def fill_constant(shape, dtype, value, force_cpu=False, out=None, place=None, name=None):
    """`paddle.full`, with the dtype before the value.

    >>> paddle.tensor.fill_constant([2], "int64", 3).tolist()
    [3, 3]
    """
    filled = full(shape, value, dtype)
    filled = filled if out is None else out.set_value(filled) or out
    return filled if place is None else filled.to(place)


def __getattr__(name: str):
    for module in MODULES:
        if name in module.__all__:
            return vars(module)[name]
    raise missing(name, "paddle.tensor", lambda: {n for m in MODULES for n in m.__all__})


for module in MODULES:
    module.__getattr__ = __getattr__
