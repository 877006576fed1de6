"""Is it the reader's own work? The engine's function for a slot may not do it.

While a check runs, the engine's function for a slot leads to the reader's: one part may call
another so. Who calls the reference, which the slot keeps beside it, is refused.
"""

from __future__ import annotations

import linecache
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType

from ..engine.core import slots
from .exercise import Disagreement, Exercise

TOOL = 4
"""Our number in sys.monitoring (Python 3.12 on); 0, 1, 2 and 5 belong to known tools."""
HELD = threading.Lock()
"""Who judges holds it: threads share the number."""


class Borrowed(Disagreement):
    """The reader's code called the function of the engine that it is to replace."""

    def __init__(self, slot: str, code: CodeType, line: str):
        place = Path(code.co_filename).as_posix().rpartition("/minipaddle/")[2]
        super().__init__(
            f"this calls the engine's own {code.co_name} ({place}), which is what you are to "
            f"write: the part {slot}"
        )
        self.line = line


def codes(exercise: Exercise) -> dict[CodeType, str]:
    """The code of the engine's function for each slot of an exercise, and that slot's name."""
    found = {}
    for name in exercise.slots:
        held = slots.find(name).get()
        code = getattr(getattr(held, "fn", held), "__code__", None)  # a Rule has its function there
        if code is not None:
            found[code] = name
    return found


@contextmanager
def refusing(exercise: Exercise, file: str):
    """Within the block who calls the engine's function for a slot from `file` gets Borrowed.

    It begins before the reader's functions are plugged in, and gives the list of those that were
    raised: the reader's code may have caught them.
    """
    refused, ours = [], codes(exercise)

    def look(code: CodeType, caller: FrameType | None) -> None:
        if code in ours and caller is not None and caller.f_code.co_filename == file:
            text = linecache.getline(file, caller.f_lineno).strip()
            line = f"{Path(file).name}:{caller.f_lineno}: {text}"
            refused.append(Borrowed(ours[code], code, line))
            raise refused[-1]

    with (monitored if hasattr(sys, "monitoring") else profiled)(ours, look):
        yield refused


@contextmanager
def monitored(ours, look):
    """Call `look` whenever one of our codes begins; nothing else is slower for it."""
    tools = sys.monitoring
    started = tools.events.PY_START
    with HELD:
        tools.use_tool_id(TOOL, "minipaddle.learn")
        tools.register_callback(TOOL, started, lambda code, _: look(code, sys._getframe(1).f_back))
        for code in ours:
            tools.set_local_events(TOOL, code, started)
        try:
            yield
        finally:
            for code in ours:
                tools.set_local_events(TOOL, code, 0)
            tools.free_tool_id(TOOL)


@contextmanager
def profiled(ours, look):
    """The same for Python 3.11, which calls at the beginning of every function."""

    def profile(frame, event, _):
        if event == "call" and frame.f_code in ours:
            look(frame.f_code, frame.f_back)

    sys.setprofile(profile)
    try:
        yield
    finally:
        sys.setprofile(None)
