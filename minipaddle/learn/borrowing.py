"""Refuse solutions that call the engine's own function for a slot: the work must be the reader's.

While a check runs, the engine's name for a slot leads to the reader's function, so one part may
call another. Calls of the reference, which the slot keeps beside it, are refused.
"""

import linecache
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType

from ..engine.core import slots
from .comparison import Disagreement
from .exercise import Exercise

TOOL = 4
"""Our number in sys.monitoring (Python 3.12 on); 0, 1, 2 and 5 belong to known tools."""
HELD = threading.Lock()
"""Held while a check is judged: all threads share the number."""


class BorrowedPart(Disagreement):
    """The reader's code called the function of the engine that it is to replace."""

    def __init__(self, slot: str, code: CodeType, line: str):
        place = Path(code.co_filename).as_posix().rpartition("/minipaddle/")[2]
        called = f"the engine's own {code.co_name} ({place})"
        super().__init__(f"this calls {called}, which is what you are to write: the part {slot}")
        self.line = line


def codes(exercise: Exercise) -> dict[CodeType, str]:
    """The code of the engine's function for each slot of an exercise, and that slot's name."""
    slot_of = {}
    for name in exercise.slots:
        held = slots.find(name).get()
        code = getattr(getattr(held, "fn", held), "__code__", None)  # a Rule has its function there
        if code is not None:
            slot_of[code] = name
    return slot_of


@contextmanager
def refuse_borrowing(exercise: Exercise, file: str):
    """Within the block, calls of the engine's function for a slot from `file` raise Borrowed.

    It begins before the reader's functions are plugged in, and yields the list of the errors
    raised: the reader's code may have caught them.
    """
    refused, ours = [], codes(exercise)

    def look(code: CodeType, caller: FrameType | None) -> None:
        if code in ours and caller is not None and caller.f_code.co_filename == file:
            text = linecache.getline(file, caller.f_lineno).strip()
            line = f"{Path(file).name}:{caller.f_lineno}: {text}"
            refused.append(BorrowedPart(ours[code], code, line))
            raise refused[-1]

    with (monitor if hasattr(sys, "monitoring") else profile_calls)(ours, look):
        yield refused


@contextmanager
def monitor(ours, look):
    """Call `look` whenever one of our codes begins; no other code runs slower."""
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
def profile_calls(ours, look):
    """The same for Python 3.11, whose hook is called at the beginning of every function."""

    def profile(frame, event, _):
        if event == "call" and frame.f_code in ours:
            look(frame.f_code, frame.f_back)

    sys.setprofile(profile)
    try:
        yield
    finally:
        sys.setprofile(None)
