"""Static mode: calls are written into the default program, to be run later."""

from contextlib import contextmanager, nullcontext

from ..core.prelude import current, runtime_error
from .program import Program

__all__ = [
    "default_main_program", "default_startup_program", "disable_static", "enable_static",
    "in_dynamic_mode", "in_static_mode", "program_guard",
]  # fmt: skip


class Mode:
    """The default programs, and whether they are being written."""

    on = False
    startup = Program("startup")
    main = Program("main", startup)


def enable_static() -> None:
    """From now on calls are written into `static.default_main_program()`; a `static.Executor` runs
    it.

    >>> paddle.enable_static()
    >>> x = paddle.static.data("x", [None, 2])
    >>> y = (x * 2).sum()
    >>> paddle.disable_static()
    >>> exe = paddle.static.Executor()
    >>> float(exe.run(feed={"x": [[1.0, 2.0]]}, fetch_list=[y])[0])
    6.0
    """
    if not Mode.on:
        Mode.on = True
        Mode.main.tracer.enter()


def disable_static(place=None) -> None:
    """Return to eager mode, where calls are computed at once.

    >>> paddle.disable_static()
    """
    if Mode.on:
        Mode.on = False
        Mode.main.tracer.leave()


def in_dynamic_mode() -> bool:
    """Whether calls are computed at once.

    >>> paddle.in_dynamic_mode()
    True
    """
    return not current.top.by_hand


def in_static_mode() -> bool:
    """Whether calls are written into a program.

    >>> paddle.in_static_mode()
    False
    """
    return current.top.by_hand


def default_main_program() -> Program:
    """The program that is being written.

    >>> isinstance(paddle.static.default_main_program(), paddle.static.Program)
    True
    """
    return Mode.main


def default_startup_program() -> Program:
    """The program that gives parameters their first values.

    >>> isinstance(paddle.static.default_startup_program(), paddle.static.Program)
    True
    """
    return Mode.startup


@contextmanager
def program_guard(main_program: Program, startup_program: Program | None = None):
    """Write into `main_program` while the block runs.

    Raises RuntimeError in eager mode.

    >>> paddle.enable_static()
    >>> main = paddle.static.Program()
    >>> with paddle.static.program_guard(main):
    ...     x = paddle.static.data("x", [2])
    >>> paddle.disable_static()
    >>> [v.name for v in main.list_vars()]
    ['x']
    """
    writing("program_guard")
    before, startup = (Mode.main, Mode.startup), startup_program or Mode.startup
    main_program.writable().startup = startup
    switch_to(main_program, startup)
    try:
        yield
    finally:
        switch_to(*before)


def switch_to(main: Program, startup: Program) -> None:
    """Make other programs the default ones; in static mode calls are written into `main` now."""
    if Mode.on:
        Mode.main.tracer.leave()
    Mode.main, Mode.startup = main, startup
    if Mode.on:
        Mode.main.tracer.enter()


def outside():
    """A context that writes no program."""
    return Mode.main.tracer.outside() if Mode.on else nullcontext()


def writing(what: str):
    """The tracer of the program that is being written; raises RuntimeError in eager mode."""
    if not Mode.on:
        raise runtime_error(f"{what} in eager mode", hint="call paddle.enable_static() first")
    return Mode.main.tracer
