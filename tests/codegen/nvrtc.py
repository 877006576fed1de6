"""Compiles CUDA text for a chip that is not there: NVRTC needs neither driver nor toolkit."""

from __future__ import annotations

from minipaddle.executors.nvrtc import library, ptx

__all__ = ["compile_error", "library"]


def compile_error(text: str, chip: int) -> str:
    """What NVRTC has against a file for the chip sm_<chip>; nothing if it compiles."""
    try:
        ptx(text, chip)
    except RuntimeError as error:
        return str(error)
    return ""
