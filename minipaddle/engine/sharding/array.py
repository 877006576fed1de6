"""A sharded array: the data of a tensor on a mesh. Its shape is the shape of the whole tensor.

It is used like NumPy's and CuPy's arrays: in a tensor, on the tape, among the arguments of a
program. As with CuPy's, `get()` brings the whole to the host; here it is a collective.

All ranks have an array from the same operators on the same whole arrays and numbers; its `cause`
stands for these, and collectives carry it: ranks that differ fail at the next one.
"""

from __future__ import annotations

from math import prod
from zlib import crc32

from ..core.rank import NO_CAUSE, Cause, hash_64
from ..core.record import Spec
from ..eager.device import CPU, NUMPY, current_place, module_of
from ..eager.tensor import wrap
from .pieces import MeshView, Piece
from .placements import Placements, piece_of


class ShardedArray:
    """A rank's shard `local` of an array of `shape` with these `placements`."""

    __slots__ = ("__weakref__", "cause", "local", "placements", "shape", "view")

    __array_ufunc__ = None
    used = False  # whether this process has made any

    def __init__(
        self, local, shape, placements: Placements, view: MeshView, cause: Cause = NO_CAUSE
    ):
        self.local, self.shape, self.cause = local, tuple(shape), cause
        self.placements, self.view = placements, view
        ShardedArray.used = True

    dtype = property(lambda self: self.local.dtype)
    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: prod(self.shape))
    nbytes = property(lambda self: self.size * self.itemsize)
    itemsize = property(lambda self: self.local.itemsize)
    base = property(lambda self: self.local)  # writes are noted of the memory that it owns
    strides = property(lambda self: self.local.strides if self.local.size else ())
    flags = property(lambda self: self.local.flags)
    device = property(lambda self: self.local.device)
    module = property(lambda self: ShardedModule(self.view))

    def like(self, local) -> ShardedArray:
        """Another shard with the same placements."""
        return ShardedArray(local, self.shape, self.placements, self.view, self.cause)

    def piece(self) -> Piece:
        """It as operators take it."""
        return Piece(wrap(self.local), Spec(self.shape, self.dtype), self.placements)

    def move_to(self, placements: Placements) -> ShardedArray:
        """The array after moves to other placements."""
        if placements == self.placements:
            return self
        asked = Spec(self.shape, self.dtype), [*self.placements], [*placements]
        number, words = self.cause.number, "the move of {3} from {1} to {2}".format
        with Cause(hash_64(number, *asked), words, *asked, self.cause if number else asked[0]):
            return wrap_piece(self.piece().move_to(placements, self.view), self.view, self.cause)

    def beside(self, array) -> ShardedArray:
        """A whole array (a state of this one), sharded: as this one is if it has its shape."""
        same = tuple(array.shape) == self.shape
        return cut_whole(array, self.placements if same else self.view.replicated, self.view)

    def copy(self) -> ShardedArray:
        """The same in memory of its own."""
        return self.like(self.local.copy())

    def astype(self, dtype, copy: bool = True) -> ShardedArray:
        """The elements in another dtype."""
        return self.like(self.local.astype(dtype, copy=copy))

    def whole(self):
        """The whole in each rank. All ranks of the mesh call it."""
        return self.move_to(self.view.replicated).local

    def get(self):
        """The whole as an array of NumPy. All ranks of the mesh call it."""
        array = self.whole()
        return array.get() if hasattr(array, "get") else array

    def __setitem__(self, key, value) -> None:
        """Overwrite all of it; `value` may have other placements."""
        if key is not Ellipsis:
            raise TypeError("only all of an array in pieces can be overwritten: x[...] = value")
        if not isinstance(value, ShardedArray):
            value = cut_whole(module_of(self.local).asarray(value), self.placements, self.view)
        self.local[...], self.cause = value.move_to(self.placements).local, value.cause

    def __repr__(self) -> str:
        return f"<array in pieces: {Spec(self.shape, self.dtype)}, {list(self.placements)}>"


def sharded(array) -> bool:
    """Whether an array is sharded."""
    return type(array) is ShardedArray


class ShardedModule:
    """The array module of arrays in pieces: what makes them."""

    name = "arrays in pieces"

    def __init__(self, view: MeshView):
        self.view = view

    def __eq__(self, other) -> bool:
        return isinstance(other, ShardedModule) and self.view.mesh == other.view.mesh

    def __hash__(self) -> int:
        return hash(self.view.mesh)

    def asarray(self, array) -> ShardedArray:
        """An array that each rank has whole."""
        return whole_array(array, self.view)

    def full(self, shape, value, dtype=None) -> ShardedArray:
        """An array with `value` in every place, in each rank."""
        return self.asarray(current_place().module.full(shape, value, dtype=dtype))


def whole_array(array, view: MeshView) -> ShardedArray:
    """An array that each rank has whole, as an array in pieces; such a one as it is."""
    if type(array) is ShardedArray:
        return array
    return ShardedArray(array, array.shape, view.replicated, view, cause_of_whole(array))


def cut_whole(array, placements: Placements, view: MeshView) -> ShardedArray:
    """The pieces of an array that each rank has whole. Of terms the first rank has it, the others
    have zeros.
    """
    index = tuple(
        slice(a, a + n) for a, n in piece_of(array.shape, placements, view.shape, view.place)
    )
    local = array[(*index, ...)].copy()
    if any(k and p.is_partial() for k, p in zip(view.place, placements)):
        local[...] = 0
    return ShardedArray(local, array.shape, placements, view, cause_of_whole(array, placements))


def wrap_piece(piece: Piece, view: MeshView, cause: Cause = NO_CAUSE) -> ShardedArray:
    """The array whose local tensor a piece has."""
    return ShardedArray(piece.local.array, piece.spec.shape, piece.placements, view, cause)


def cause_of_whole(array, placements: Placements = (), *, wait: bool = False) -> Cause:
    """The cause of an array in pieces that each rank had whole: its values. Large ones are added up
    in 64 parts, as fast as they can be read; those on a GPU, which has to `wait`, only with that.
    """
    spec = Spec(array.shape, array.dtype)
    if module_of(array) is not NUMPY and not wait:
        return Cause(0, str, spec)
    octets = NUMPY.ascontiguousarray(CPU.move(array)).reshape(-1).view("uint8")
    n = len(octets) // 512 * 512 if len(octets) > 1 << 14 else 0
    parts = octets[:n].view("uint64").reshape(64, -1).sum(1) if n else b""
    total = crc32(octets[n:], crc32(parts))
    number = hash((total, crc32(repr((array.shape, array.dtype.str, placements)).encode())))
    return Cause(number, "{} with sum {:08x}".format, spec, total)
