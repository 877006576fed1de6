"""An interpreter that stands on another one and hands everything on to it."""

from __future__ import annotations

from ..engine.core.dispatch import Interpreter


class PassThrough(Interpreter):
    """Does what the interpreter below does; a subclass looks at, or changes, what passes."""

    def __init__(self, below: Interpreter):
        self.below = below

    @property
    def recording(self) -> bool:
        return self.below.recording

    @recording.setter
    def recording(self, on: bool) -> None:
        self.below.recording = on

    def apply(self, op, inputs, attrs):
        return self.below.apply(op, inputs, attrs)

    def read(self, record, k):
        return self.below.read(record, k)

    def full(self, spec, value, like):
        return self.below.full(spec, value, like)

    def constant(self, data, dtype=None, place=None):
        return self.below.constant(data, dtype, place)

    def draw(self, generator):
        return self.below.draw(generator)
