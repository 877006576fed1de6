"""What another process has used: processor time, which a busy machine does not change, and memory.

Linux tells it in /proc, Windows through its kernel's library, macOS and others through `ps`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

MEMORY = 4 << 30
"""Bytes that a check may hold."""


class Usage(NamedTuple):
    """Processor seconds so far, and the bytes in memory now."""

    seconds: float
    memory: int


def usage(child: subprocess.Popen) -> Usage | None:
    """What a child has used; None once it has ended, or where the system does not tell."""
    try:
        if sys.platform == "win32":
            return of_windows(int(child._handle))
        return of_linux(child.pid) if sys.platform == "linux" else of_ps(child.pid)
    except (OSError, ValueError, IndexError, subprocess.SubprocessError):
        return None


def of_linux(pid: int) -> Usage:
    """From /proc/PID/stat: utime, stime (fields 14, 15, in ticks) and rss (24, in pages)."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()  # from field 3 on
    ticks = int(words[11]) + int(words[12])
    return Usage(ticks / os.sysconf("SC_CLK_TCK"), int(words[21]) * os.sysconf("SC_PAGE_SIZE"))


def of_ps(pid: int) -> Usage:
    """From ps, which writes processor time as [[days-]hours:]minutes:seconds."""
    command = ["ps", "-o", "time=,rss=", "-p", str(pid)]
    time, kilobytes = subprocess.run(
        command, capture_output=True, text=True, timeout=5
    ).stdout.split()
    days, _, clock = time.rpartition("-")
    seconds = 0.0
    for part in clock.split(":"):
        seconds = 60 * seconds + float(part)
    return Usage(seconds + 86400 * int(days or 0), 1024 * int(kilobytes))


def of_windows(handle: int) -> Usage:
    """From GetProcessTimes (units of 100 ns) and GetProcessMemoryInfo."""
    import ctypes
    from ctypes import wintypes

    sizes = ["peak", "size", "a", "b", "c", "d", "page", "peak_page"]

    class Counters(ctypes.Structure):
        _fields_ = [("cb", wintypes.DWORD), ("faults", wintypes.DWORD)] + [
            (name, ctypes.c_size_t) for name in sizes
        ]

    _, _, kernel, user = times = [ctypes.c_uint64() for _ in range(4)]
    counters = Counters(cb=ctypes.sizeof(Counters))
    process = wintypes.HANDLE(handle)
    library = ctypes.WinDLL("kernel32", use_last_error=True)
    told = library.GetProcessTimes(process, *map(ctypes.byref, times))
    told = told and library.K32GetProcessMemoryInfo(process, ctypes.byref(counters), counters.cb)
    if not told:
        raise OSError(ctypes.get_last_error())
    return Usage((kernel.value + user.value) / 1e7, counters.size)
