"""Files that appear whole or not at all, even if other processes read or write them.

New bytes go to *neighbours* first: hidden files in the same folder. When all are on the disk, each
takes its name in one step. A process killed before that leaves the old files; killed between two
names, it leaves some of the new files beside the old ones: `waiting` finds them.
"""

from __future__ import annotations

import os
import stat
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None


def replace(files: dict[str, bytes | Callable[[str], None]]) -> None:
    """Put the bytes in the files, or let a function write to a path, each file in one step, folders
    included. A file keeps its mode.

    Several files change together: of two processes that replace them, one waits for the other
    (on Windows, and in a network folder without locks, it does not).
    """
    first = os.path.dirname(os.path.abspath(next(iter(files))))
    paths = {os.path.realpath(path): data for path, data in files.items()}
    neighbours: dict[str, str] = {}  # neighbour -> path
    path, renamed = first, 0
    try:
        os.makedirs(first, exist_ok=True)
        with hold(first) if len(files) > 1 else nullcontext():
            if len(files) > 1:  # what a killed process left: no other process writes these now
                for left in [name for path in paths for name in waiting(path)]:
                    os.unlink(left)
            for path, data in paths.items():
                neighbour = neighbour_of(path)
                neighbours[neighbour] = path
                write(neighbour, data, path)
            for neighbour, path in neighbours.items():
                os.replace(neighbour, path)
                renamed += 1
    except OSError as error:
        if error.errno is None:
            raise
        old = f"{renamed} of {len(paths)} files are new" if renamed else "the old file is untouched"
        message = f"could not save ({error.strerror}); {old}"
        raise OSError(error.errno, message, path) from error
    finally:
        for neighbour in [] if renamed else neighbours:  # after the first name, `waiting` has them
            if os.path.exists(neighbour):
                os.unlink(neighbour)
    for folder in {os.path.dirname(path) for path in paths}:
        sync_folder(folder)


def neighbour_of(path: str) -> str:
    """A free name for a file that waits to take the name `path`."""
    folder, name = os.path.split(path)
    os.makedirs(folder, exist_ok=True)
    if os.path.isdir(path):
        raise IsADirectoryError(f"{path} is a folder: give the name of a file")
    return os.path.join(folder, f".{name}.{uuid.uuid4().hex[:8]}.part")


def waiting(path: str) -> list[str]:
    """The files that wait to take the name `path`, or that a killed process left there."""
    folder, name = os.path.split(os.path.realpath(path))
    found = os.listdir(folder) if os.path.isdir(folder) else []
    return [
        os.path.join(folder, each)
        for each in sorted(found)
        if each.startswith(f".{name}.") and len(each) == len(name) + 15 and each.endswith(".part")
    ]


def write(neighbour: str, data, path: str) -> None:
    """Write a new file to the disk, with the mode of the file at `path`, if there is one."""
    with open(neighbour, "xb") as file:
        mode = os.stat(path if os.path.exists(path) else neighbour).st_mode
        if not callable(data):
            file.write(data)
    if callable(data):
        data(neighbour)  # it may put another file in its place
    os.chmod(neighbour, stat.S_IMODE(mode))
    with open(neighbour, "rb+") as file:
        os.fsync(file.fileno())


@contextmanager
def hold(folder: str) -> Iterator[None]:
    """Hold a folder: other processes and threads that want to hold it wait."""
    if fcntl is None:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # a network folder may have no locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_UN)  # a forked process may have the handle too
        os.close(handle)


def sync_folder(folder: str) -> None:
    """Bring a changed name to the disk too, where the system can."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
