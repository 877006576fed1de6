"""Arrays on a simulated device, and their array module: they show whether code uses `m` alone."""

import operator

import numpy as np


class DeviceArray:
    """An array on another device: it takes part in arithmetic, and NumPy cannot read it."""

    __array_ufunc__ = None

    def __init__(self, array):
        self._array = array

    def __array__(self, *_, **__):
        raise TypeError("NumPy cannot read an array that lives on another device")

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        value = getattr(self._array, name)
        return lift(value) if callable(value) else value


def lift(function):
    """The same function, of arrays that live elsewhere."""

    def run_on_device(*args, **kwargs):
        if any(isinstance(a, np.ndarray) for a in args):
            raise TypeError("an array of NumPy beside one that lives on another device")
        args = [a._array if isinstance(a, DeviceArray) else a for a in args]
        y = function(*args, **kwargs)
        return DeviceArray(y) if isinstance(y, np.ndarray | np.generic) else y

    return run_on_device


for sign in ("add", "sub", "mul", "truediv", "pow", "neg", "lt", "le", "gt", "ge", "getitem"):
    setattr(DeviceArray, f"__{sign}__", lift(getattr(operator, sign)))
for sign in ("add", "sub", "mul", "truediv", "pow"):
    flipped = (lambda f: lambda x, y: f(y, x))(getattr(operator, sign))
    setattr(DeviceArray, f"__r{sign}__", lift(flipped))


class DeviceModule:
    """An array module of that device: its functions and constants are NumPy's."""

    def __getattr__(self, name):
        value = getattr(np, name)
        return lift(value) if callable(value) and not isinstance(value, type) else value
