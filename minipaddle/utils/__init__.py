"""A check of the installation, and nested structures. Source: Paddle API `paddle.utils`."""

from importlib import import_module
from re import fullmatch
from time import perf_counter

from ..base import unique_name
from ..eager import dlpack
from ..engine.core.errors import runtime_error, value_error
from ..engine.executors.compiler import INSTALL, compiler
from ..jit.decorator import to_static
from ..tensor.random import randn
from ..version import full_version
from . import download
from .nested import flatten, is_sequence, map_structure, pack_sequence_as

__all__ = [
    "dlpack", "download", "flatten", "is_sequence", "map_structure", "pack_sequence_as",
    "require_version", "run_check", "try_import", "unique_name",
]  # fmt: skip


def run_check() -> None:
    """Compute a small gradient in every way that this machine supports, and print the ways.

    Eagerly, as a program, compiled to C if there is a compiler; a missing compiler is named with
    what to install. Raises RuntimeError if two ways disagree.

    >>> paddle.utils.run_check()  # doctest: +ELLIPSIS
    MiniPaddle works eagerly and as a program on the CPU.
    ...
    MiniPaddle is installed successfully!
    """
    x = randn([8, 8])
    wanted = gradient_of_tanh(x)
    require_equal(to_static(gradient_of_tanh, backend="interpreter")(x), wanted, "as a program")
    print("MiniPaddle works eagerly and as a program on the CPU.")
    cc, began = compiler(), perf_counter()
    require_equal(to_static(gradient_of_tanh, backend="native")(x), wanted, "compiled")
    if cc is None:
        print("There is no C compiler: NumPy computes, large groups in blocks.")
        print(f"  to install: {INSTALL}")
    else:
        print(f"C compiler: {cc}; ready after {perf_counter() - began:.1f} s.")
    print("MiniPaddle is installed successfully!")


def gradient_of_tanh(x):
    """The derivative of Σ tanh(x·x) in x."""
    x = x.detach()
    x.stop_gradient = False
    (x @ x).tanh().sum().backward()
    return x.grad


def require_equal(found, wanted, how: str) -> None:
    """Raise RuntimeError unless two tensors are nearly the same."""
    away = float((found - wanted).abs().max())
    if not away < 1e-3:
        raise RuntimeError(f"{how}, MiniPaddle computes what is {away:.3g} away from eager mode")


def require_version(min_version: str, max_version: str | None = None) -> None:
    """Raise RuntimeError unless Paddle's version here is at least, or at most, the one given.

    Raises ValueError for what is no version.

    >>> paddle.utils.require_version("2.6")
    >>> paddle.utils.require_version("2.0", "2.6")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    RuntimeError: the program requires Paddle from 2.0 to 2.6; this is the interface of 3.3.1
    ...
    """
    least, now, most = map(numbers_of, (min_version, full_version, max_version or full_version))
    if not least <= now <= most:
        wanted = f"from {min_version}" + ("" if most is None else f" to {max_version}")
        raise runtime_error(
            f"the program requires Paddle {wanted}; this is the interface of {full_version}"
        )


def numbers_of(version: str) -> list[int]:
    """[3, 3, 1, 0] of "3.3.1"."""
    if not isinstance(version, str) or not fullmatch(r"\d+(\.\d+){0,3}", version):
        raise value_error(f"the version {version!r}", 'one to four numbers, as "3.3.1"')
    return [*map(int, version.split(".")), 0, 0, 0][:4]


def try_import(module_name: str, err_msg: str | None = None):
    """Import a module; the ImportError names the package to install.

    >>> paddle.utils.try_import("numpy").__name__
    'numpy'
    """
    try:
        return import_module(module_name)
    except ImportError as error:
        package = module_name.partition(".")[0]
        hint = err_msg or f"{module_name} is not here: pip install {package}"
        raise ImportError(hint, name=module_name) from error
