"""Whose the cache of compiled programs is. A library runs in this process with all its rights, so
it comes from a folder and a file that nobody but this user and root can write.

Another folder is not used: programs are compiled in a private one, which lasts as long as the
process. Another file in our folder is compiled again. Both are said once.
"""

from __future__ import annotations

import atexit
import os
import shutil
import stat
import tempfile
import warnings
from functools import cache
from pathlib import Path

from ...engine.core.errors import teach
from ...engine.executors.compiler import MADE, READ

WRITERS = stat.S_IWGRP | stat.S_IWOTH
"""The bits of a mode that let others write."""


def fault_of(about: os.stat_result) -> str:
    """Why others may change a file or a folder; nothing if they may not."""
    if about.st_uid not in (0, os.getuid()):
        return f"belongs to the user {about.st_uid}"
    link = stat.S_ISLNK(about.st_mode)  # its mode says nothing
    return "can be written by others" if about.st_mode & WRITERS and not link else ""


def folder_fault(folder: Path) -> str:
    """Why a folder is not safe; nothing if it is.

    It and the one that it stands in are ours. A link on the way is not a stranger's, and no folder
    above lets everybody rename what stands there.
    """
    for path in (folder, folder.parent):
        if fault := fault_of(path.stat()):
            return f"{path} {fault}"
    for path in (*folder.parents, *folder.resolve().parents, folder):
        about = path.lstat()
        if stat.S_ISLNK(about.st_mode) and fault_of(about):
            return f"{path} is a link that {fault_of(about)}"
        if stat.S_ISDIR(about.st_mode) and about.st_mode & (stat.S_IWOTH | stat.S_ISVTX) == (
            stat.S_IWOTH
        ):
            return f"{path} can be written by others"
    return ""


def make_private(folder: Path) -> Path:
    """The folder, which is made for this user alone; a private one if it is not safe."""
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    fault = folder_fault(folder) if hasattr(os, "getuid") else ""
    if fault:
        say(
            f"the cache of compiled programs is not used: {fault}. Programs are compiled again in "
            "each process",
            f"chmod go-w {folder.parent} {folder}, or name another folder in MINIPADDLE_CACHE",
        )
    return private() if fault else folder


@cache
def private() -> Path:
    """A folder of this process."""
    folder, process = tempfile.mkdtemp(prefix="minipaddle-"), os.getpid()
    atexit.register(lambda: os.getpid() == process and shutil.rmtree(folder, ignore_errors=True))
    return Path(folder)


def read(path: Path) -> bytes:
    """The bytes of a file in the cache; PermissionError if it is not ours, or a link."""
    fault = "is a link" if path.is_symlink() else ""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with open(os.open(path, flags), "rb") as file:
        if hasattr(os, "getuid"):
            fault = fault or fault_of(os.fstat(file.fileno()))
        if not fault:
            return file.read()
    say(
        f"files of the cache of compiled programs are not used: {path} {fault}. They are made anew",
        f"see who wrote it, and remove the folder {path.parent}",
    )
    raise PermissionError(f"{path} {fault}")


@cache
def say(fact: str, hint: str) -> None:
    """Say something once."""
    warnings.warn(teach(fact, hint=hint), stacklevel=2)


MADE.append(make_private)
READ.append(read)
