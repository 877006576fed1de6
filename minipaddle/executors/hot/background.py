"""The backend "auto": the interpreter runs a program until it is hot and compiled (`hot.Hot`).

The second run makes it hot. A run uses the executable that it finds; a run that has begun goes on
as it began.
"""

from __future__ import annotations

import os
import warnings
from functools import partial

from ...engine.core import slots
from ...engine.core.rank import among
from ...engine.eager.tracer import LOCK
from ...engine.executors.compiler import INSTALL, Unusable, compiler, give_up, unusable
from ...engine.executors.executable_cache import BACKENDS, ExecutableCache
from ...engine.executors.native import LIVE, CannotCompile, Executable, threads
from . import QUEUE, Hot


def compile_in_background(executables: ExecutableCache, key: tuple) -> object | None:
    """The executable for (program, place, shapes), or None as long as the interpreter serves."""
    if slots.yours():  # a reader's code is run as it is
        return None
    if among.now[1] > 1:  # several ranks change over together: they wait for the compiler
        return executables.build(key)
    hot = executables.pending.get(key)
    if hot is None:
        hot = executables.pending[key] = Hot(partial(executables.compile, key))
    hot.count()
    if not hot.done:
        return None
    del executables.pending[key]
    return executable_of(executables, key, hot)


def executable_of(executables: ExecutableCache, key: tuple, hot: Hot) -> object:
    """The executable that was built; raises CannotCompile, after one warning, if that failed."""
    executable, error = hot.built, hot.error
    if isinstance(error, Unusable) or (error is None and no_compiler()):
        give_up(error or Unusable("there is no C compiler", expected=INSTALL))
        return executable or executables.compile(key)
    if error is not None:
        if not isinstance(error, CannotCompile):
            error = CannotCompile(f"{key[0].name} was not compiled: {error}")
            warnings.warn(f"{error}\n  it runs on the interpreter, slower", stacklevel=2)
        raise error
    if isinstance(executable, Executable) and executable.weights.sources:
        executable.weights.renew()  # they may have changed since
    return executable


def no_compiler() -> bool:
    """Whether there is no compiler, and the user neither chose that nor was warned."""
    return compiler() is None and not unusable and "MINIPADDLE_CC" not in os.environ


def compute_on_one_thread() -> None:
    """After a fork: the threads of OpenMP are gone, and to wait for them would last for ever."""
    os.environ["MINIPADDLE_THREADS"] = "1"
    threads.cache_clear()
    for executable in LIVE:
        executable.set_threads(1)


BACKENDS["auto"] = compile_in_background

if hasattr(os, "register_at_fork"):  # never fork in the middle of a trace or of a pass
    os.register_at_fork(
        before=LOCK.acquire, after_in_parent=LOCK.release, after_in_child=LOCK.release
    )
    os.register_at_fork(after_in_child=QUEUE.after_fork)
    os.register_at_fork(after_in_child=compute_on_one_thread)
