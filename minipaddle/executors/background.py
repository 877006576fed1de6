"""The backend "auto": a thread compiles in the background while the interpreter runs a program.

A program that runs only once is not worth compiling: the second run puts it into a queue. What a
run finds compiled it uses; a run that has begun goes on as it began.
"""

from __future__ import annotations

import atexit
import os
import threading
import warnings
from collections import deque
from collections.abc import Callable
from copy import copy

from ..engine.core import slots
from ..engine.core.rank import SETTINGS, among
from ..engine.eager.tracer import LOCK
from ..engine.executors.compiler import (
    INSTALL,
    Unusable,
    compiler,
    give_up,
    unusable,
)
from ..engine.executors.executable_cache import BACKENDS, ExecutableCache
from ..engine.executors.native import LIVE, CannotCompile, Executable, threads
from .compilers import children, kill


def in_background(executables: ExecutableCache, key: tuple) -> object | None:
    """The executable for (program, place, shapes), or None as long as the interpreter serves."""
    if slots.yours():  # a reader's code is run as it is
        return None
    if among.now[1] > 1:  # several ranks change over together: they wait for the compiler
        return executables.build(key)
    build = executables.pending.get(key)
    if build is None:
        build = executables.pending[key] = Build(lambda: executables.compile(key))
    elif not build.asked:
        build.start()
    if not build.done:
        QUEUE.resume()
        return None
    del executables.pending[key]
    return finished(executables, key, build)


def finished(executables: ExecutableCache, key: tuple, build: Build) -> object:
    """The executable of a build; raises CannotCompile, after one warning, if it failed."""
    executable, error = build.executable, build.error
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


class Build:
    """An executable that the background thread builds by calling `make`."""

    def __init__(self, make: Callable):
        self.make, self.executable = make, None
        self.error: Exception | None = None
        self.asked = self.done = False
        self.settings = [copy(setting.now) for setting in SETTINGS]  # of the thread that asks

    def __str__(self) -> str:
        return "interpreter" + ", while it is compiled" * (self.asked and not self.done)

    def start(self) -> None:
        """Put the build into the queue."""
        QUEUE.add(self)

    def wait(self) -> None:
        """Build it, and return when it is done."""
        self.start()
        QUEUE.wait(self)

    def run(self) -> None:
        for setting, value in zip(SETTINGS, self.settings, strict=False):
            setting.box = [value]
        try:
            self.executable = self.make()
        except Exception as error:  # the thread that calls the program reports it
            self.error = error
        self.done = True


LAST_LOOKS = 10
"""How often the exit of a process looks for compilers that still run, or have just begun."""


class Queue:
    """The builds that wait; the first of them is being built. The thread ends with the last."""

    def __init__(self):
        self.builds: deque[Build] = deque()
        self.after_fork()

    def after_fork(self) -> None:
        """A child process has the builds but no thread: `resume` starts one when it is needed."""
        self.changed, self.thread = threading.Condition(), None

    def add(self, build: Build) -> None:
        with self.changed:
            if not build.asked:
                build.asked = True
                self.builds.append(build)
        self.resume()

    def resume(self) -> None:
        """Start the thread if it does not run and a build waits."""
        with self.changed:
            if self.thread is None and self.builds:
                self.thread = threading.Thread(target=self.work, name="compile", daemon=True)
                self.thread.start()

    def work(self) -> None:
        """Build one after the other."""
        while True:
            with self.changed:
                self.changed.notify_all()
                if not self.builds:
                    self.thread = None
                    return
                build = self.builds[0]
            build.run()
            with self.changed:
                if self.builds:  # none are left when the process ends
                    self.builds.popleft()

    def wait(self, build: Build | None = None) -> None:
        """Wait for one build, or for all of them."""
        self.resume()
        with self.changed:
            self.changed.wait_for(lambda: build.done if build else not self.builds)

    def stop(self) -> None:
        """At the exit of the process: build nothing more, and end the compiler that runs."""
        with self.changed:
            self.builds.clear()
            thread = self.thread
        for _ in range(LAST_LOOKS if thread is not None else 0):
            for process in list(children):
                kill(process)
            thread.join(timeout=0.02)  # it removes its files; Python ends it otherwise


def compute_on_one_thread() -> None:
    """After a fork: the threads of OpenMP are gone, and to wait for them would last for ever."""
    os.environ["MINIPADDLE_THREADS"] = "1"
    threads.cache_clear()
    for executable in LIVE:
        executable.set_threads(1)


QUEUE = Queue()
BACKENDS["auto"] = in_background
atexit.register(QUEUE.stop)

if hasattr(os, "register_at_fork"):  # never fork in the middle of a trace or of a pass
    os.register_at_fork(
        before=LOCK.acquire, after_in_parent=LOCK.release, after_in_child=LOCK.release
    )
    os.register_at_fork(after_in_child=QUEUE.after_fork)
    os.register_at_fork(after_in_child=compute_on_one_thread)
