"""NVRTC, CUDA's compiler as a library: it needs neither a GPU nor its driver.

It comes as a wheel (`pip install nvidia-cuda-nvrtc-cu12`). On a machine with a GPU CuPy calls it;
this module is for machines without one.
"""

from __future__ import annotations

import ctypes
import importlib.util
from functools import cache
from pathlib import Path

from ...engine.core.errors import teach
from .device import OPTIONS

OF_CUPY = ("-default-device", "-ftz=true")
"""CuPy's options: unmarked functions run on the device; numbers below 1.2e-38 become 0."""


@cache
def library() -> ctypes.CDLL | None:
    """NVRTC from its wheel; None if that is not installed."""
    spec = importlib.util.find_spec("nvidia")
    roots = [Path(p) for p in spec.submodule_search_locations] if spec else []
    for path in [p for root in roots for p in sorted(root.rglob("libnvrtc.so.*"))]:
        if "builtins" not in path.name and "alt" not in path.name:
            return ctypes.CDLL(str(path))
    return None


def ptx(text: str, chip: int = 80) -> str:
    """The PTX (assembly) of a CUDA file for a GPU of compute capability `chip` / 10.

    Raises RuntimeError if NVRTC is not installed, or with the errors that it finds.
    """
    nvrtc, program = library(), ctypes.c_void_p()
    if nvrtc is None:
        hint = "pip install nvidia-cuda-nvrtc-cu12"
        raise RuntimeError(teach("NVRTC is not installed", hint=hint))
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"step.cu", 0, None, None)
    try:
        options = [o.encode() for o in (f"-arch=sm_{chip}", "-w", *OPTIONS, *OF_CUPY)]
        arguments = (ctypes.c_char_p * len(options))(*options)
        if nvrtc.nvrtcCompileProgram(program, len(options), arguments):
            log = text_of(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program)
            raise RuntimeError(log or "NVRTC gives no reason")
        return text_of(nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX, program)
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def text_of(size_of, write, program) -> str:
    """A text of NVRTC, from the two functions that return its size and its content."""
    size = ctypes.c_size_t()
    size_of(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    write(program, text)
    return text.value.decode()
