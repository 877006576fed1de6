"""A stand-in for CuPy that computes with NumPy and is stricter than either.

It has the names that real CuPy has (tests/data/cupy_names.txt) and no others, and, like CuPy, it
refuses to mix its arrays with NumPy's or to turn into one silently. Code that runs on it asks
nothing of the array module that CuPy could not answer.
"""

from __future__ import annotations

import operator
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from weakref import WeakValueDictionary

import numpy as np
import scipy.special

NAMES = set((Path(__file__).parents[1] / "data" / "cupy_names.txt").read_text().split())
KERNELS: Counter[str] = Counter()
"""The kernels of a GPU: "cupy" for results of array operations, "ours" for launches."""
FREE = {"dtype", "shape", "ndim", "size", "itemsize", "strides", "nbytes"}
FLAGS = ("c_contiguous", "f_contiguous", "owndata", "forc", "fnc")


class Array:
    """What `cupy.ndarray` is to the engine: an array that lives elsewhere."""

    __array_priority__ = 1000
    __array_ufunc__ = None

    def __init__(self, a):
        self.a = np.asarray(a)
        root = owner(self.a)
        if root is self.a:
            self.base = None
            OWNERS.setdefault(id(root), self)
        else:  # one owner for all views: `is` tells shared memory
            known = OWNERS.get(id(root))
            self.base = Array(root) if known is None else known
        self.device = SimpleNamespace(id=0)

    def __array__(self, *_, **__):
        raise TypeError("Implicit conversion to a NumPy array is not allowed; use .get()")

    def get(self):
        return self.a.copy()

    def set(self, values, stream=None):
        assert (values.shape, values.dtype) == (self.a.shape, self.a.dtype)
        self.a[...] = values

    def __getattr__(self, name):
        if name.startswith("__") or f"cupy.ndarray.{name}" not in NAMES:
            raise AttributeError(f"cupy.ndarray has no attribute {name!r}")
        value = getattr(self.a, name)
        if name == "flags":  # CuPy's lack `writeable`
            return SimpleNamespace(**{k: getattr(value, k) for k in FLAGS})
        if name in FREE:
            return value
        return lift(value) if callable(value) else hide(value)

    def __getitem__(self, key):
        return hide(self.a[show(key)])

    def __setitem__(self, key, value):
        self.a[show(key)] = show(value)

    def __len__(self):
        return len(self.a)

    def __bool__(self):
        return bool(self.a)

    def __int__(self):
        return int(self.a)

    def __float__(self):
        return float(self.a)

    def __index__(self):
        return operator.index(self.a[()])

    def __iter__(self):
        return iter([hide(x) for x in self.a])

    __hash__ = None


OWNERS: WeakValueDictionary[int, Array] = WeakValueDictionary()


def owner(a):
    while isinstance(a.base, np.ndarray):
        a = a.base
    return a


def show(x):
    """NumPy's view of what CuPy code passes; a NumPy array among it is CuPy's TypeError."""
    if isinstance(x, Array):
        return x.a
    if isinstance(x, np.ndarray):
        raise TypeError("Unsupported type <class 'numpy.ndarray'>")
    if isinstance(x, tuple | list):
        return type(x)(map(show, x))
    return x


def hide(x):
    """What CuPy would return: device arrays, also where NumPy gives scalars."""
    if isinstance(x, np.ndarray | np.generic):
        KERNELS["cupy"] += getattr(x, "base", None) is None  # a view needs none
        return Array(x)
    if isinstance(x, tuple | list):
        parts = [hide(v) for v in x]
        return type(x)(*parts) if hasattr(x, "_fields") else type(x)(parts)
    return x


def lift(function):
    """A NumPy function on device arrays."""

    def call(*args, **kwargs):
        kwargs = {k: show(v) for k, v in kwargs.items()}
        return hide(function(*map(show, args), **kwargs))

    return call


def add_operators():
    pairs = "add sub mul truediv floordiv mod pow matmul and_ or_ xor lshift rshift"
    for name in pairs.split():
        run, bare = getattr(operator, name), name.strip("_")
        setattr(Array, f"__{bare}__", lambda self, other, f=run: hide(f(self.a, show(other))))
        setattr(Array, f"__r{bare}__", lambda self, other, f=run: hide(f(show(other), self.a)))
    for name in ["lt", "le", "gt", "ge", "eq", "ne"]:
        run = getattr(operator, name)
        setattr(Array, f"__{name}__", lambda self, other, f=run: hide(f(self.a, show(other))))
    for name in ["neg", "pos", "abs", "invert"]:
        run = getattr(operator, name)
        setattr(Array, f"__{name}__", lambda self, f=run: hide(f(self.a)))


add_operators()


class Ufunc:
    """A ufunc: callable, with `at`, `reduce`, `accumulate` …"""

    def __init__(self, ufunc):
        self.ufunc = ufunc

    def __call__(self, *args, **kwargs):
        return lift(self.ufunc)(*args, **kwargs)

    def __getattr__(self, name):
        if name not in ("at", "reduce", "accumulate", "reduceat", "outer"):
            raise AttributeError(f"cupy.ufunc has no attribute {name!r}")
        return lift(getattr(self.ufunc, name))


class Module:
    """A namespace of CuPy: the names CuPy has, computed by NumPy or SciPy."""

    def __init__(self, path: str, source):
        self.path, self.source, self.__name__ = path, source, path

    def __getattr__(self, name):
        if f"{self.path}.{name}" not in NAMES:
            raise AttributeError(f"{self.path} has no {name!r}")
        value = getattr(self.source, name)
        if isinstance(value, np.ufunc):
            return Ufunc(value)
        if isinstance(value, type) or not callable(value):
            return value
        return lift(value)


class Device:
    """`with cupy.cuda.Device(0):`"""

    def __init__(self, index=0):
        self.id = index

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    use = synchronize = __enter__


def asarray(a, dtype=None, **_):
    """The one door from NumPy onto the device."""
    return Array(np.array(a.a if isinstance(a, Array) else a, dtype=dtype, copy=None))


cupy = Module("cupy", np)
cupy.ndarray = Array
cupy.asarray = asarray
cupy.array = lambda a, dtype=None, copy=True, order="K", **_: Array(
    np.array(show(a), dtype=dtype, order=order)
)
cupy.linalg = Module("cupy.linalg", np.linalg)


@contextmanager
def errstate(*, linalg: str):
    """`cupyx.errstate`."""
    before, CHECKS.linalg = CHECKS.linalg, linalg
    try:
        yield
    finally:
        CHECKS.linalg = before


CHECKS = SimpleNamespace(linalg="ignore")


def solve(a, b):
    """CuPy's does not broadcast."""
    if b.ndim > 1 and a.shape[:-1] != b.shape[:-1]:
        raise ValueError("a must have (..., M, M) shape and b must have (..., M, K)")
    return unchecked(np.linalg.solve)(a, b)


def unchecked(function):
    """What CuPy does where NumPy raises LinAlgError: without a check it returns some numbers."""

    def call(*args, **kwargs):
        try:
            return lift(function)(*args, **kwargs)
        except np.linalg.LinAlgError:
            if CHECKS.linalg == "raise":
                raise
            return hide(np.full(args[-1].shape, np.nan, args[0].dtype))

    return call


cupy.linalg.solve = solve
cupy.linalg.cholesky, cupy.linalg.inv = map(unchecked, (np.linalg.cholesky, np.linalg.inv))
cupy.lib = SimpleNamespace(stride_tricks=Module("cupy.lib.stride_tricks", np.lib.stride_tricks))
cupy.cuda = SimpleNamespace(
    Device=Device,
    is_available=lambda: True,
    runtime=SimpleNamespace(getDeviceCount=lambda: 1),
)
special = Module("cupyx.scipy.special", scipy.special)
