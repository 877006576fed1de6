"""`InputSpec`: the shape and dtype of an input, sizes that vary left open."""

from __future__ import annotations

from functools import lru_cache

from ..engine.core import dtype as dt
from ..engine.core.dim import HINT, Dim, rename, symbol
from ..engine.core.errors import value_error
from ..engine.core.record import Spec

BATCH = "batch"


def separate_batch(spec: Spec, place: int) -> Spec:
    """The spec of input number `place`, its first size apart from the batch of other inputs."""
    first, name = spec.shape[:1], f"x{place}_0"
    return spec._replace(shape=(*(rename(n, {BATCH: name}) for n in first), *spec.shape[1:]))


def fits(spec: Spec, array, sizes: dict) -> bool:
    """Whether an array has this shape and dtype. `sizes` holds the open sizes of the arrays before
    it by name; new ones are added.
    """
    return (
        array.dtype == spec.dtype
        and len(array.shape) == len(spec.shape)
        and all(
            sizes.setdefault(n.text, k) == k if isinstance(n, Dim) else n == k
            for n, k in zip(spec.shape, array.shape, strict=True)
        )
    )


def format_expected(spec: Spec, sizes: dict) -> str:
    """A spec in words, with the values of its open sizes in earlier arrays."""
    known = [f"{k} = {v}" for k, v in sizes.items() if any(k == str(n) for n in spec.shape)]
    return f"{spec}, where {', '.join(known)}" if known else f"{spec}"


def fitting_shape(spec: Spec, x, name: str, sizes: dict) -> tuple:
    """The shape of a spec that the tensor x fits; raises ValueError if it does not."""
    if not fits(spec, x.array, sizes):
        expected = f"{format_expected(spec, sizes)}, as input_spec says"
        raise value_error(f"{name} is {x.spec}", expected=expected)
    # a size of 0 has its own program: open sizes are at least 1
    return tuple(n if size else 0 for n, size in zip(spec.shape, x.array.shape, strict=True))


@lru_cache(maxsize=1024)  # a call asks for it
def spec_of(shape: tuple, dtype, name: str) -> Spec:
    """The spec of an input of this name: open sizes become symbols."""
    names = [BATCH, *(f"{name}_{axis}" for axis in range(1, len(shape)))]
    sizes = [x if n == -1 else n for n, x in zip(shape, names)]
    return Spec(
        tuple(symbol(n, HINT) if isinstance(n, str) else n for n in sizes), dt.resolve(dtype)
    )


class InputSpec:
    """Shape and dtype of an input; None or -1 in `shape` is a size that varies from call to call.

    Open first sizes are called batch, and are one where they are equal in a call, or where a saved
    program needs it. Other open sizes are each their own; a name ("length") instead of None says
    which are equal. Compiled code takes open sizes as arguments: a further size seldom needs the C
    compiler.

    >>> paddle.static.InputSpec([None, 784], "float32", "x")
    InputSpec(shape=(-1, 784), dtype=paddle.float32, name=x, stop_gradient=False)
    """

    def __init__(self, shape, dtype="float32", name=None, stop_gradient=False):
        sizes = [-1 if n is None else n for n in ([shape] if isinstance(shape, int) else shape)]
        for n in sizes:
            if not isinstance(n, int | str | Dim) or (isinstance(n, int) and n < -1):
                raise value_error(
                    f"InputSpec was given the size {n!r}",
                    expected="a number, None, or a name for a size that varies",
                )
        self.shape, self.dtype = tuple(sizes), dt.public(dt.resolve(dtype))
        self.name, self.stop_gradient = name, stop_gradient

    def spec(self, place: int) -> Spec:
        """The spec of input number `place` in a program: open sizes become symbols."""
        return spec_of(self.shape, self.dtype, self.name or f"x{place}")

    def open_shape(self, x, place: int, sizes: dict) -> tuple:
        """(shape, dtype) with which a program takes the tensor `x` as input number `place`, open
        sizes being symbols; `sizes` receives their values. Raises ValueError if x does not fit.
        """
        spec, own = self.spec(place), x.array.shape
        if self.shape[:1] == (-1,) and sizes.get(BATCH) not in (None, *own[:1]):
            spec = separate_batch(spec, place)
        return fitting_shape(spec, x, self.name or f"x{place}", sizes), spec.dtype

    @classmethod
    def from_tensor(cls, tensor, name=None) -> InputSpec:
        """The spec of a tensor."""
        return cls(tensor.shape, tensor.dtype, name or tensor.name, tensor.stop_gradient)

    @classmethod
    def from_numpy(cls, ndarray, name=None) -> InputSpec:
        """The spec of an array."""
        return cls(ndarray.shape, ndarray.dtype, name)

    def batch(self, batch_size) -> InputSpec:
        """With another size in front."""
        self.shape = (-1 if batch_size is None else batch_size, *self.shape)
        return self

    def unbatch(self) -> InputSpec:
        """Without the first size."""
        if not self.shape:
            raise value_error("unbatch of an InputSpec without sizes")
        self.shape = self.shape[1:]
        return self

    def key(self) -> tuple:
        return self.shape, self.dtype, self.name, self.stop_gradient

    def __eq__(self, other) -> bool:
        return isinstance(other, InputSpec) and self.key() == other.key()

    def __hash__(self) -> int:
        return hash(self.key())

    def __repr__(self) -> str:
        return (
            f"InputSpec(shape={self.shape}, dtype={self.dtype}, name={self.name}, "
            f"stop_gradient={self.stop_gradient})"
        )
