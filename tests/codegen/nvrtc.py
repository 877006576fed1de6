"""Compiles CUDA text for a chip that is not there: NVRTC needs neither driver nor toolkit."""

from __future__ import annotations

from functools import cache
from unittest import mock

from minipaddle.executors.gpu import nvrtc
from minipaddle.executors.gpu.nvrtc import library, ptx

__all__ = ["compile_error", "library"]


def compile_error(text: str, chip: int) -> str:
    """What NVRTC has against a file for the chip sm_<chip>; nothing if it compiles."""
    try:
        with mock.patch.object(nvrtc, "OPTIONS", (*nvrtc.OPTIONS, *quick())):
            ptx(text, chip)
    except RuntimeError as error:
        return str(error)
    return ""


@cache
def quick() -> tuple[str, ...]:
    """The option to optimize little, which takes a third of the time; NVRTC 12.8 is the first."""
    option = ("-Ofc=max",)
    with mock.patch.object(nvrtc, "OPTIONS", (*nvrtc.OPTIONS, *option)):
        try:
            ptx("", 80)
        except RuntimeError:
            return ()
    return option
