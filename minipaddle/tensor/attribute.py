"""Questions about a tensor: its shape, its dtype, whether it is a tensor."""

from ..core.prelude import Var, axis_of, current, dt, transpose, type_error, value_error
from ..engine.ops.nn import softmax


def constant(value, dtype):
    """A tensor off the tape."""
    return current.top.constant(value, dtype)


def shape(input):
    """The shape as a 1-D int64 tensor; `x.shape` is the same as a list.

    >>> paddle.shape(paddle.ones([2, 3])).tolist()
    [2, 3]
    """
    return constant(list(input.spec.shape), dt.int64)


def rank(input):
    """The number of dimensions as a 0-D int32 tensor.

    >>> paddle.rank(paddle.ones([2, 3])).item()
    2
    """
    return constant(input.spec.ndim, dt.int32)


def numel(x, name=None):
    """The number of elements as a 0-D int64 tensor.

    >>> paddle.numel(paddle.ones([2, 3])).item()
    6
    """
    return constant(x.spec.size, dt.int64)


def is_tensor(x):
    """Is `x` a tensor?

    >>> paddle.is_tensor(paddle.ones([1])), paddle.is_tensor([1])
    (True, False)
    """
    return isinstance(x, Var)


def is_floating_point(x):
    """Is its dtype float16, bfloat16, float32 or float64?

    >>> paddle.is_floating_point(paddle.ones([1]))
    True
    """
    return x.spec.dtype in dt.FLOATS


def is_integer(x):
    """Is its dtype uint8, int8, int16, int32 or int64?

    >>> paddle.is_integer(paddle.arange(3))
    True
    """
    return x.spec.dtype.kind in "iu"


def is_complex(x):
    """False: MiniPaddle has no complex tensors.

    >>> paddle.is_complex(paddle.ones([2]))
    False
    """
    if not isinstance(x, Var):
        raise type_error(f"is_complex of {type(x).__name__}", "a tensor")
    return False


def is_empty(x, name=None):
    """Has it no elements? A 0-D bool tensor.

    >>> paddle.is_empty(paddle.ones([2, 0])).item()
    True
    """
    return constant(x.spec.size, dt.int64) == 0


def real(x, name=None):
    """The real part: of a real tensor, itself.

    >>> paddle.real(paddle.ones([2])).tolist()
    [1.0, 1.0]
    """
    return x


def imag(x, name=None):
    """The imaginary part: of a real tensor, zeros.

    >>> paddle.imag(paddle.ones([2])).tolist()
    [0.0, 0.0]
    """
    return x * 0


def conj(x, name=None):
    """The complex conjugate: of a real tensor, itself.

    >>> paddle.conj(paddle.ones([2])).tolist()
    [1.0, 1.0]
    """
    return x


def tolist(x):
    """The values as nested lists of Python numbers.

    >>> paddle.tolist(paddle.ones([2, 1]))
    [[1.0], [1.0]]
    """
    return x.tolist()


class Attributes:
    """Attributes that follow from shape and dtype alone, so that symbolic tensors have them too."""

    def dim(self) -> int:
        """The number of dimensions."""
        return self.spec.ndim

    ndimension = dim

    @property
    def itemsize(self) -> int:
        """Bytes per element."""
        return self.spec.dtype.itemsize

    def element_size(self) -> int:
        """Bytes per element."""
        return self.spec.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.spec.nbytes

    @property
    def T(self):
        """The axes in reverse order."""
        return transpose(self, perm=tuple(reversed(range(self.spec.ndim))))

    @property
    def mT(self):
        """The last two axes exchanged."""
        n = self.spec.ndim
        if n < 2:
            raise value_error(f".mT of {self.spec}", "at least two dimensions")
        return transpose(self, perm=(*range(n - 2), n - 1, n - 2))

    def softmax(self, axis=-1, dtype=None, name=None, *, dim=None):
        """`nn.functional.softmax` as a method; `dim` is another name of `axis`."""
        x = self if dtype is None else self.astype(dtype)
        return softmax(x, axis=axis_of(axis if dim is None else dim, x.spec.ndim))

    def type_as(self, other):
        """In the dtype of `other`."""
        return self.astype(other.spec.dtype)


def shorthand(name: str):
    """The method `x.float()` and its like."""

    def convert(self):
        return self.astype(name)

    convert.__name__ = name
    convert.__doc__ = f'The same values as {name}; `x.astype("{name}")`.'
    return convert


SHORTHANDS = {
    "bool": "bool", "byte": "uint8", "char": "int8", "short": "int16", "int": "int32",
    "long": "int64", "half": "float16", "bfloat16": "bfloat16", "float": "float32",
    "double": "float64",
}  # fmt: skip
for method, target in (SHORTHANDS | {name: name for name in dt.NAMES}).items():
    setattr(Attributes, method, shorthand(target))


__all__ = [
    "conj", "imag", "is_complex", "is_empty", "is_floating_point", "is_integer", "is_tensor",
    "numel", "rank", "real", "shape", "tolist",
]  # fmt: skip
