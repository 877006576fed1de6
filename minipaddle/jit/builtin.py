"""Python's builtins on tensors of a program. On anything else each does the usual."""

import builtins
import operator
from functools import lru_cache, partial, reduce, update_wrapper
from gc import get_referents
from types import CellType, FunctionType

from ..eager.methods import element
from ..eager.numbers import (
    Number,
    as_float,
    as_int,
    as_tensor,
    boolean,
    is_number,
    kind_of,
    number,
    refuse_mixed,
    widest,
)
from ..engine.core.dim import Dim, larger, smaller
from ..engine.core.dispatch import Recording, current
from ..engine.eager.control_flow import is_static
from ..engine.eager.tensor import Tensor
from ..engine.jit import aliasing
from ..engine.jit.calling import LIST_METHODS, SPECIAL, TABLE, UNCONVERTED, call
from ..engine.jit.ignore import MARK
from ..engine.jit.leaves import scalar
from ..engine.jit.transpile import RUNTIME
from ..engine.jit.truth import and_, not_, or_, truth
from ..engine.jit.writing import writing
from ..engine.ops import elementwise, logic, reduction
from ..engine.ops.gather import take
from ..ops import reductions
from ..tensor.array import array_read, array_write
from ..tensor.growing_lists import (
    RestOfNumbers,
    has_grown,
    kind_of_rest,
    refuse_of_grown,
    stack_items,
)
from ..tensor.sequences import LazySequence, sequence
from .aliasing import same_object
from .either import Choosing, Either, apply_to_either, one_of_both
from .numbers import note_chosen
from .reading import CREATED, array, copy_values
from .sequences import enumerate_, one_of, range_, read_array, reverse_items, write_array, zip_
from .snapshot import ObjectSnapshot


def len_(x):
    """`len`; of a tensor the first size, which may be unknown."""
    if is_static(x) and x.ndim:
        return x.shape[0]
    if has_grown(x):
        return stack_items(x).shape[0]
    return x.length if isinstance(x, LazySequence) else builtins.len(x)


def casting(kind, convert):
    """`int` or `float`: of a tensor with one element a number that only a run knows, of a size the
    size itself or such a number.
    """

    def cast(*args, **kwargs):
        if args and isinstance(args[0], Dim):
            return args[0] if kind is int else args[0].as_float()
        if len(args) != 1 or not is_static(args[0]):
            return kind(*args, **kwargs)
        return convert(only_element(args[0]))

    return cast


def only_element(x):
    """A tensor with one element as a 0-D tensor with no past; eager mode's error for others."""
    if x.spec.size != 1:
        x.item()
    return scalar(x.detach())


def isinstance_(x, kinds):
    """`isinstance`: a number that only a run knows is what it is in eager mode."""
    x = one_of_both(x) if type(x) is Either else x
    if not isinstance(x, Number | Dim) or (isinstance(x, Dim) and isinstance(x, kinds)):
        return isinstance(x, kinds)
    answer = isinstance(kind_of(x)(), kinds)
    if isinstance(0, kinds) is not answer:
        refuse_mixed(x)
    return answer


def type_(*args, **kwargs):
    """`type`: for a number that only a run knows, the type in eager mode."""
    if len(args) == 1 and type(*args) is Either:
        args = (one_of_both(*args),)
    if len(args) != 1 or not isinstance(args[0], Number | Dim):
        return type(*args, **kwargs)
    refuse_mixed(*args)
    return kind_of(args[0])


def numpy_(x, blocking=True):
    """`Tensor.numpy`: of whole numbers or booleans a tensor, of others one that computes as NumPy's
    array does.
    """
    return array(copy_values(x)) if is_static(x) else Tensor.numpy(x)


def item(x, *args):
    """`Tensor.item`: a number that only a run knows."""
    if not is_static(x):
        return Tensor.item(x, *args)
    return read_element(element(x, args) if args else only_element(x))


def read_element(x):
    """The value of a 0-D tensor, as a number."""
    return as_int(x) if x.spec.dtype.kind in "iu" else number(x)


def tolist(x):
    """`Tensor.tolist`: lists of numbers that only a run knows."""
    if not is_static(x) or (x.spec.size > MOST and x.spec.dtype.kind not in "biu"):
        return Tensor.tolist(x)
    x = x.detach()
    return [tolist(row) for row in x] if x.spec.shape else read_element(x)


MOST = 1000
"""How many floats `tolist` gives at most: each is computed on its own."""


def bool_(*args):
    """`bool`."""
    return boolean(truth)(*args) if len(args) == 1 else builtins.bool(*args)


def extreme(function, better, place, size):
    """`max` or `min`, two items at a time; of equal items the first, which gets the gradient."""

    def best(*args, **kwargs):
        items = args[0] if len(args) == 1 else args
        grown = has_grown(items) and kind_of_rest(items)
        items = stack_items(items) if grown else items
        if is_static(items) and items.ndim == 1 and not kwargs:
            largest = take(items, place(items, axis=0, keepdim=False), axis=0)
            return number(largest) if grown is RestOfNumbers else largest
        items = list(items)
        wanted = kwargs.get("key") is not None
        if items and not wanted and all(map(is_number, items)) and any(map(is_static, items)):
            return reduce(partial(better_number, better, widest(map(kind_of, items))), items)
        if items and not kwargs and all(isinstance(x, int | Dim) for x in items):
            return reduce(size, items)
        if wanted or not any(map(is_static, items)):
            return function(items, **kwargs)
        out = items[0]
        with Recording(current.top.differentiable):  # Python picks one, it computes nothing
            for x in items[1:]:
                out = choosing(better)(one(out), one(x))
        return out

    return best


def choosing(better):
    """The function (out, x) that picks x if it is better."""
    return lambda out, x: one_of(elementwise.where(better(x, out), x, out), x, out)


def better_number(better, kind: type, out, x) -> Number:
    """The better one of two numbers, which are compared as numbers of a kind."""
    a, b = as_tensor(x, kind), as_tensor(out, kind)
    held = better(a, b)
    return note_chosen(held, x, out, elementwise.where(held, a, b))


def one(x):
    """x as a 0-D tensor; raises an error if it has several elements."""
    return scalar(x) if is_static(x) and truth(x) is not None else x


def sum_(items, /, start=0):
    """`sum`."""
    grown = has_grown(items) and kind_of_rest(items)
    known = stack_items(items) if grown else items
    if is_static(known) and sequence(known) is not None:
        total = reduction.sum(known, axis=(0,), keepdim=False)
        return (number(total) if grown is RestOfNumbers else total) + start
    for x in items:
        start = start + x
    return start


def taking_items(function):
    """`function`, which takes items one by one; refuse lists whose length only a run knows."""

    def run(*args, **kwargs):
        if any(map(has_grown, args)):
            refuse_of_grown(f"{function.__name__}()")
        return function(*args, **kwargs)

    return run


def quantifier(of_vector, combine, empty: bool):
    """`any` or `all`: stops at the first item that decides; Python's answers stay Python's."""

    def step(out, x):
        return combine(out, partial(truth, x))

    def decide(items):
        items = stack_items(items) if has_grown(items) else items
        if is_static(items) and items.ndim == 1:
            return number(of_vector(items.astype("bool"), axis=(0,), keepdim=False))
        out, items = empty, iter(items)
        for x in items:
            out = step(out, x)
            if is_static(out):
                return bool_(reduce(step, aliasing.rule.items(items), out))
            if out is not empty:
                break
        return out

    return decide


RUNTIME.not_ = boolean(not_)
TABLE |= CREATED | {
    len: len_,
    int: casting(int, as_int),
    float: casting(float, as_float),
    bool: bool_,
    operator.truth: bool_,
    operator.not_: RUNTIME.not_,
    operator.is_: same_object,
    operator.is_not: lambda a, b: RUNTIME.not_(same_object(a, b)),
    isinstance: isinstance_,
    type: type_,
    max: extreme(max, logic.greater_than, reductions.argmax, larger),
    min: extreme(min, logic.less_than, reductions.argmin, smaller),
    sum: sum_,
    sorted: taking_items(sorted),
    set: taking_items(set),
    reduce: taking_items(reduce),
    map: taking_items(map),
    filter: taking_items(filter),
    any: quantifier(reduction.any, or_, False),
    all: quantifier(reduction.all, and_, True),
    range: range_,
    enumerate: enumerate_,
    zip: zip_,
    reversed: reverse_items,
    array_read: read_array,
    array_write: write_array,
    Tensor.item: item,
    Tensor.numpy: numpy_,
    Tensor.tolist: tolist,
    setattr: lambda owner, name, value: builtins.setattr(writing(owner, name), name, value),
    delattr: lambda owner, name: builtins.delattr(writing(owner, name), name),
}


def unwrap_cache(function):
    """The function inside `functools.lru_cache`: each run computes results with its own tensors.

    The function may have no side effects, because the program would repeat them in each call.
    """
    inner = call(function.__wrapped__)

    def run(*args, **kwargs):
        before = ObjectSnapshot([inner])
        result = inner(*args, **kwargs)
        before.check("by a function whose results are kept (functools.lru_cache)")
        return result

    return run


SPECIAL[type(lru_cache(call))] = unwrap_cache


def rewrap(wrapper: FunctionType) -> FunctionType:
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
    rewrapped = FunctionType(code, space, wrapper.__name__, wrapper.__defaults__, cells)
    rewrapped.__kwdefaults__ = wrapper.__kwdefaults__
    return update_wrapper(rewrapped, wrapper)


def wrap_library(function):
    """A function of the library as converted code calls it."""
    wrapped = rewrap(function)
    return apply_to_either(wrapped) if isinstance(current.top, Choosing) else wrapped


UNCONVERTED.append(wrap_library)


def index_by_identity(function):
    """`items.index` where equality with a tensor is no bool: the place of the object itself."""
    items = function.__self__
    if function.__name__ == "index" and any(map(is_static, items)):
        return lambda x: next(k for k, each in enumerate(items) if each is x)
    return function


LIST_METHODS.append(index_by_identity)
