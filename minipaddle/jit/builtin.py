"""Python's builtins on tensors of a program. On anything else each does the usual."""

from __future__ import annotations

import builtins
import operator
from functools import lru_cache, partial, reduce, update_wrapper
from gc import get_referents
from types import CellType, FunctionType

from ..engine.core.dim import Dim, larger, smaller
from ..engine.core.dispatch import Recording, current
from ..engine.core.dtype import default, int64
from ..engine.eager.aliases import one_of
from ..engine.eager.control_flow import is_static
from ..engine.eager.tensor import Tensor
from ..engine.jit import aliasing
from ..engine.jit.calling import LIST_METHODS, SPECIAL, TABLE, UNCONVERTED, call
from ..engine.jit.ignore import MARK
from ..engine.jit.leaves import scalar
from ..engine.jit.truth import and_, not_, or_, truth
from ..engine.jit.writing import writing
from ..engine.ops import elementwise, logic, reduction
from ..engine.ops.gather import take
from ..ops import reductions
from ..tensor.growing_lists import has_grown, stack_items
from ..tensor.sequences import Sequence, sequence
from .aliasing import same_object
from .growth import bound_of_dtype, note_chosen, note_whole
from .reading import CREATED, ReadArray, array, copied
from .sequences import enumerate_, range_, reversed_, zip_
from .snapshot import Snapshot


def len_(x):
    """`len`; of a tensor the first size, which may be unknown."""
    if is_static(x) and x.ndim:
        return x.shape[0]
    if has_grown(x):
        return stack_items(x).shape[0]
    return x.length if isinstance(x, Sequence) else builtins.len(x)


def casting(kind, dtype):
    """`int` or `float`: of a tensor with one element a 0-D tensor of that dtype, of a size the size
    itself or such a tensor. Who reads an array (`x.numpy()`) wants Python's number: refused.
    """

    def cast(*args, **kwargs):
        if args and isinstance(args[0], Dim):
            return args[0] if kind is int else args[0].as_float()
        if len(args) != 1 or not is_static(args[0]) or type(args[0]) is ReadArray:
            return kind(*args, **kwargs)
        x = args[0]
        if x.spec.size != 1:
            x.item()  # raises the error of eager mode
        found = elementwise.cast(scalar(x.detach()), dtype=dtype())
        return note_whole(found, bound_of_dtype(x.spec.dtype)) if kind is int else found

    return cast


def isinstance_(x, kinds):
    """`isinstance`: a size that may change is an int, as it is in eager mode."""
    return isinstance(x, kinds) or (isinstance(x, Dim) and isinstance(0, kinds))


def type_(*args, **kwargs):
    """`type`: of a size that may change it is int."""
    return int if len(args) == 1 and isinstance(args[0], Dim) else type(*args, **kwargs)


def reading(method, convert):
    """`item` or `tolist`: of whole numbers or booleans of a program a tensor of it, which
    serves as an index, a size or a condition; the values of others are refused.
    """

    def _read(x, *args):  # errors name the method
        whole = is_static(x) and x.spec.dtype.kind in "biu"
        return convert(x, *args) if whole else method(x, *args)

    return _read


def numpy_(x, blocking=True):
    """`Tensor.numpy`: of whole numbers or booleans a tensor, of others one that computes as NumPy's
    array does.
    """
    return array(copied(x)) if is_static(x) else Tensor.numpy(x)


def item(x, *args):
    """`Tensor.item`: a 0-D tensor."""
    x = x.flatten()[args[0]] if len(args) == 1 else x[args] if args else x
    return bool_(x) if x.spec.dtype.kind == "b" else casting(int, lambda: int64.numpy)(x)


def tolist(x):
    """`Tensor.tolist`: lists of 0-D tensors."""
    return item(x) if not x.spec.shape else [tolist(row) for row in x]


def bool_(*args):
    """`bool`."""
    return truth(*args) if len(args) == 1 else builtins.bool(*args)


def extreme(function, better, place, size):
    """`max` or `min`, two items at a time; of equal items the first, which gets the gradient."""

    def best(*args, **kwargs):
        items = args[0] if len(args) == 1 else args
        if is_static(items) and items.ndim == 1 and not kwargs:
            return take(items, place(items, axis=0, keepdim=False), axis=0)
        items = list(items)
        if items and not kwargs and all(isinstance(x, int | Dim) for x in items):
            return reduce(size, items)
        if kwargs.get("key") is not None or not any(map(is_static, items)):
            return function(items, **kwargs)
        out = items[0]
        with Recording(current.top.differentiable):  # Python picks one, it computes nothing
            for x in items[1:]:
                out, x = one(out), one(x)
                out = one_of(elementwise.where(better(x, out), x, out), x, out)
        return note_chosen(out, *items)

    return best


def one(x):
    """x as a 0-D tensor; raises an error if it has several elements."""
    return scalar(x) if is_static(x) and truth(x) is not None else x


def sum_(items, /, start=0):
    """`sum`."""
    known = sequence(items)
    if known is not None and is_static(items):
        return reduction.sum(items, axis=(0,), keepdim=False) + start
    for x in items:
        start = start + x
    return start


def quantifier(of_vector, combine, empty: bool):
    """`any` or `all`: stops at the first item that decides; Python's answers stay Python's."""

    def step(out, x):
        return combine(out, partial(truth, x))

    def decide(items):
        if is_static(items) and items.ndim == 1:
            return of_vector(items.astype("bool"), axis=(0,), keepdim=False)
        out, items = empty, iter(items)
        for x in items:
            out = step(out, x)
            if is_static(out):
                return reduce(step, aliasing.rule.items(items), out)
            if out is not empty:
                break
        return out

    return decide


TABLE |= CREATED | {
    len: len_,
    int: casting(int, lambda: int64.numpy),
    float: casting(float, default),
    bool: bool_,
    operator.truth: bool_,
    operator.not_: not_,
    operator.is_: same_object,
    operator.is_not: lambda a, b: not_(same_object(a, b)),
    isinstance: isinstance_,
    type: type_,
    max: extreme(max, logic.greater_than, reductions.argmax, larger),
    min: extreme(min, logic.less_than, reductions.argmin, smaller),
    sum: sum_,
    any: quantifier(reduction.any, or_, False),
    all: quantifier(reduction.all, and_, True),
    range: range_,
    enumerate: enumerate_,
    zip: zip_,
    reversed: reversed_,
    Tensor.item: reading(Tensor.item, item),
    Tensor.numpy: numpy_,
    Tensor.tolist: reading(Tensor.tolist, tolist),
    setattr: lambda owner, name, value: builtins.setattr(writing(owner, name), name, value),
    delattr: lambda owner, name: builtins.delattr(writing(owner, name), name),
}


def uncached(function):
    """The function inside `functools.lru_cache`: each run computes results with its own tensors.

    The function may have no side effects, because the program would repeat them in each call.
    """
    inner = call(function.__wrapped__)

    def run(*args, **kwargs):
        before = Snapshot([inner])
        result = inner(*args, **kwargs)
        before.check("by a function whose results are kept (functools.lru_cache)")
        return result

    return run


SPECIAL[type(lru_cache(call))] = uncached


def rewrapped(wrapper: FunctionType) -> FunctionType:
    """The wrapper that a library's decorator made (`@paddle.no_grad()`, `@contextmanager`), around
    the converted function.
    """
    inner, cells = getattr(wrapper, "__wrapped__", None), wrapper.__closure__ or ()
    held = [cell for cell in cells if any(x is inner for x in get_referents(cell))]
    if not held or getattr(wrapper, MARK, False) or "_jst" in wrapper.__code__.co_freevars:
        return TABLE.get(wrapper, wrapper)
    own = call(inner)
    if own is inner:
        return wrapper
    cells = tuple(CellType(own) if cell in held else cell for cell in cells)
    space, code = wrapper.__globals__, wrapper.__code__
    made = FunctionType(code, space, wrapper.__name__, wrapper.__defaults__, cells)
    made.__kwdefaults__ = wrapper.__kwdefaults__
    return update_wrapper(made, wrapper)


UNCONVERTED.append(rewrapped)


def index_by_identity(function):
    """`items.index` where equality with a tensor is no bool: the place of the object itself."""
    items = function.__self__
    if function.__name__ == "index" and any(map(is_static, items)):
        return lambda x: next(k for k, each in enumerate(items) if each is x)
    return function


LIST_METHODS.append(index_by_identity)
