"""Hot code: computed in one way until it has done enough work, then by a compiled executable.

All that is compiled while a program runs goes this way: programs of `to_static` (`background`),
operators on large arrays (`eager_kernels`), walks back (`tapes`), steps of optimizers
(`optimizer.update`). A user of it gives a key, equal for uses that one executable can serve; the
work of a use; and `make`, which builds the executable. One thread builds, one after the other, what
is hot. Without enough work nothing is built; `report` says for each key who computes, and why.

In eager mode C computes what is hot as programs of the backend "auto" do: unless another backend
or FLAGS_eager_kernels says otherwise; walks and steps only with FLAGS_eager_programs, as to read a
tape takes longer; on a GPU, where each array operation is a kernel that the host launches, always.
C and NumPy differ by rounding. A count of work, not the clock, decides at which use C begins to
serve: a program gives the same numbers, to the last bit, each time it runs. On a GPU it is the
third.
"""

from __future__ import annotations

import atexit
import threading
from collections import deque
from collections.abc import Callable
from copy import copy
from time import perf_counter
from weakref import WeakSet

from ...core.flags import FLAGS
from ...core.prelude import current
from ...engine.core import slots
from ...engine.core.rank import SETTINGS, among
from ...engine.eager.device import NUMPY
from ...engine.eager.execution import Eager
from ...engine.eager.tracer import LOCK
from ...engine.executors.arrays import address
from ...engine.executors.compiler import compiler, unusable
from ..gpu.device import Gpu
from ..gpu.gpu_program import device_of
from ..native.compilers import children, kill


class Hot:
    """One thing that is computed in some way, and by `executable` once it is hot.

    `make` returns the executable, on the thread that builds; `about` names the thing in reports.
    """

    start, serve = 2, None
    """The least work after which it is built, and may serve (None: once it is built)."""
    other, unit, by = "interpreter", "runs", "C"

    def __init__(self, make: Callable, about: str = ""):
        self.make, self.about = make, about
        self.work, self.waited = 0, 0.0
        self.executable = self.built = self.error = None
        self.asked = self.done = False
        self.settings = [copy(setting.now) for setting in SETTINGS]  # of the thread that asks

    def __str__(self) -> str:
        """Who computes, and why."""
        if self.executable is not None:
            waited = f", waited {self.waited:.1f} s for it" if self.waited > 0.05 else ""
            return self.by + waited
        if self.serve is None:
            return self.other + ", while it is compiled" * (self.asked and not self.done)
        why = f": {self.error}" if self.error else f", {self.work} {self.unit} so far"
        return self.other + why

    def count(self, work: int = 1) -> None:
        """Count work that is done in the other way; let it be built, and serve."""
        self.work += work
        if self.work >= self.start and not self.done:
            QUEUE.add(self)
        if self.serve is None or self.work < self.serve or LOCK._is_owned():
            return  # (the thread that builds needs the lock)
        began = perf_counter()
        self.wait()
        self.waited, self.executable = perf_counter() - began, self.built

    def wait(self) -> None:
        """Build it, and return when it is done."""
        QUEUE.add(self)
        QUEUE.wait(self)

    def build(self) -> None:
        """Call `make` with the settings of the thread that asked."""
        for setting, value in zip(SETTINGS, self.settings, strict=False):
            setting.box = [value]
        try:
            self.built = self.make()
        except Exception as error:  # the thread that computes reports it
            self.error = error
        self.done = True


class EagerKernel(Hot):
    """Hot code of eager mode: arrays go in, and come out. `device` is their GPU.

    To compile takes a quarter of a second, in which NumPy computes some 10⁸ elements. It serves so
    much later that hardly anybody waits for it.
    """

    start, serve = 1 << 26, 1 << 29
    room = 1 << 20
    """Most bytes of working memory that stay between two calls, as there are many kernels."""
    other, unit = "NumPy", "elements"

    def __init__(self, make: Callable, about: str = "", device: Gpu | None = None):
        super().__init__(make, about)
        if device is not None:
            self.start = self.serve = 0
            self.by, self.other = "CUDA", "CuPy"

    def __call__(self, arrays, elements: int) -> list | None:
        """The results in C; None if NumPy computes this call, of `elements` elements."""
        executable = self.executable
        if executable is None:
            if self.error is None:
                self.count(elements)
            return None
        try:
            return executable(arrays) if self.by != "C" else self.run(executable, arrays)
        except IndexError:  # of a label: NumPy's body names it
            return None

    def run(self, executable, arrays) -> list:
        """The results of a function of C. Its memory stays for the next call, if it is little."""
        context = executable.context()
        try:
            return self.enter(context, arrays)
        finally:
            executable.last = None
            if executable.plan.size <= self.room:
                executable.contexts.append(context)

    def enter(self, context, arrays) -> list:
        """The results for arrays of the shapes and dtypes that the key names, in a program without
        states. What goes in is not kept alive.
        """
        table, copies = context.table, []
        for k, x in enumerate(arrays, 1):
            if x.flags.num & READY != READY:
                copies.append(x := NUMPY.array(x, order="C"))
            table[k] = address(x)
        return context.run(())


READY = 0x101
"""NumPy's flags of an array that C can read: row-major and aligned."""
CACHES: WeakSet = WeakSet()


class HotCache:
    """Hot code by key. The first use of a key is only noted, as most keys are used once; beyond
    `most` keys the oldest is forgotten.
    """

    def __init__(self, most: int = 64):
        self.most, self.codes, self.noted = most, {}, {}
        CACHES.add(self)

    def find(self, key, create: Callable) -> Hot | None:
        """The hot code for a key, which `create` makes at the second use; None at the first."""
        code = self.codes.get(key)
        if code is None:
            code = create() if key in self.noted else None
            known = self.noted if code is None else self.codes
            if key not in known and len(known) == self.most:
                del known[next(iter(known))]
            known[key] = code
        return code

    def __iter__(self):
        """The codes that were used more than once."""
        return iter([*self.codes.values()])


def eager_is_compiled(array=None) -> bool:
    """Whether programs in C, or for an array on a GPU in CUDA, may serve walks and steps here."""
    on_host = array is None or type(array) is NUMPY.ndarray
    if on_host and not FLAGS["FLAGS_eager_programs"]:
        return False
    eager = isinstance(current.top, Eager) and not current.top.tracing
    if not eager or slots.PLUGGED or among.now[1] > 1:
        return False
    return has_compiler() if on_host else device_of(array) is not None


def has_compiler() -> bool:
    """Whether C can be compiled here."""
    return not unusable and compiler() is not None


def report() -> str:
    """A line for each thing that eager mode computes in C here, or would once it is hot.

    >>> from minipaddle.executors import hot
    >>> paddle.set_flags({"FLAGS_eager_kernels": False})
    >>> print(hot.report())
    eager mode: NumPy; paddle.set_flags({"FLAGS_eager_kernels": True}) compiles what is hot
    """
    if not (FLAGS["FLAGS_eager_kernels"] or FLAGS["FLAGS_eager_programs"]):
        hint = 'paddle.set_flags({"FLAGS_eager_kernels": True}) compiles what is hot'
        return f"eager mode: NumPy; {hint}"
    if not has_compiler():
        return "eager mode: NumPy, as there is no C compiler"
    lines = sorted(f"  {code.about}: {code}" for cache in [*CACHES] for code in cache)
    return "\n".join(["eager mode: C for what is hot", *lines])


LAST_LOOKS = 10
"""How often the exit of a process looks for compilers that still run, or have just begun."""


class Queue:
    """The builds that wait; the first of them is being built. The thread ends with the last."""

    def __init__(self):
        self.builds: deque[Hot] = deque()
        self.after_fork()

    def after_fork(self) -> None:
        """A child process has the builds but no thread: `resume` starts one when it is needed."""
        self.changed, self.thread = threading.Condition(), None

    def add(self, build: Hot) -> None:
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
            build.build()
            with self.changed:
                if self.builds:  # none are left when the process ends
                    self.builds.popleft()

    def wait(self, build: Hot | None = None) -> None:
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


QUEUE = Queue()
atexit.register(QUEUE.stop)
