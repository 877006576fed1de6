"""Compiles CUDA text for a chip that is not there: NVRTC needs neither driver nor toolkit."""

from __future__ import annotations

import ctypes
import importlib.util
from functools import cache
from pathlib import Path

from minipaddle.executors.gpu import OPTIONS


@cache
def library() -> ctypes.CDLL | None:
    """NVRTC from its wheel (nvidia-cuda-nvrtc-cu12 or nvidia-cuda-nvrtc), or None."""
    spec = importlib.util.find_spec("nvidia")
    roots = [Path(p) for p in spec.submodule_search_locations] if spec else []
    found = [p for root in roots for p in sorted(root.rglob("libnvrtc.so.*"))]
    for path in found:
        if "builtins" not in path.name and "alt" not in path.name:
            return ctypes.CDLL(str(path))
    return None


def compile_error(text: str, chip: int) -> str:
    """What NVRTC has against a file for the chip sm_<chip>; nothing if it compiles."""
    nvrtc, program = library(), ctypes.c_void_p()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"step.cu", 0, None, None)
    try:
        options = [o.encode() for o in (f"-arch=sm_{chip}", "-w", *OPTIONS)]
        given = (ctypes.c_char_p * len(options))(*options)
        if not nvrtc.nvrtcCompileProgram(program, len(options), given):
            return ""
        size = ctypes.c_size_t()
        nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetProgramLog(program, log)
        return log.value.decode() or "no reason given"
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
