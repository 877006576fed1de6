"""Files that appear whole or not at all, even if other processes read or write them.

New bytes go to *neighbours* first: hidden files in the same folder. When all are on the disk, each
takes its name in one step. A process killed before that leaves the old files; killed between two
names, it leaves some of the new files beside the old ones: `waiting` finds them.
"""

import os
import stat
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress

from ..engine.core.errors import value_error

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None


class Disk:
    """The calls that change files. Tests give another one, whose calls fail like a disk's.

    A power cut leaves what was synced, and anything of the rest: a file's bytes are on the disk
    after `sync`, and its name, whether new, changed or gone, after `sync_folder`.
    """

    def open(self, path, mode: str):
        """A file without a buffer."""
        return open(path, mode, buffering=0)

    def write(self, file, data: bytes) -> None:
        """Write all bytes."""
        rest = memoryview(data)
        while rest:
            rest = rest[file.write(rest) :]

    def truncate(self, file, size: int) -> None:
        """Cut a file off after `size` bytes."""
        file.truncate(size)

    def sync(self, file) -> None:
        """Bring the bytes of a file to the disk."""
        os.fsync(file.fileno())

    def replace(self, old: str, new: str) -> None:
        """Let a file have another name, and no other file that one."""
        os.replace(old, new)

    def unlink(self, path: str) -> None:
        """Take the name of a file away."""
        os.unlink(path)

    def make_folder(self, path: str) -> None:
        """Make a folder and its parents, unless they exist."""
        if not os.path.isdir(path):
            self.make_folder(os.path.dirname(path))
            os.makedirs(path, exist_ok=True)
            self.sync_folder(os.path.dirname(path))

    def sync_folder(self, folder: str) -> None:
        """Bring the names in a folder to the disk, where the system can."""
        sync_folder(folder)


DISK = Disk()


def replace(files: dict[str, bytes | Callable[[str], None]], disk: Disk = DISK) -> None:
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
        disk.make_folder(first)
        with hold(first) if len(files) > 1 else nullcontext():
            if len(files) > 1:  # a killed process left some: no other process writes these now
                for left in [name for path in paths for name in waiting(path)]:
                    disk.unlink(left)
            for path, data in paths.items():
                neighbour = neighbour_of(path, disk)
                neighbours[neighbour] = path
                write(neighbour, data, path, disk)
            for neighbour, path in neighbours.items():
                disk.replace(neighbour, path)
                renamed += 1
        for folder in {os.path.dirname(path) for path in paths}:
            disk.sync_folder(folder)
    except OSError as error:
        if error.errno is None:
            raise
        old = f"{renamed} of {len(paths)} files are new" if renamed else "the old file is untouched"
        message = f"could not save ({error.strerror}); {old}"
        raise OSError(error.errno, message, path) from error
    finally:
        for neighbour in [] if renamed else neighbours:  # after the first name, `waiting` has them
            if os.path.exists(neighbour):
                disk.unlink(neighbour)


def require_file(path: str) -> None:
    """Raise ValueError if a path leads to something without an end that can be read: a FIFO, a
    device. To open a FIFO waits for a writer, which may never come.
    """
    mode = os.stat(path).st_mode if os.path.exists(path) else stat.S_IFREG
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        kind = "a FIFO" if stat.S_ISFIFO(mode) else "a device or a socket"
        raise value_error(
            f"{path} is {kind}", expected="a file", hint="copy what comes out of it to a file"
        )


def neighbour_of(path: str, disk: Disk = DISK) -> str:
    """A free name for a file that waits to take the name `path`."""
    folder, name = os.path.split(path)
    disk.make_folder(folder)
    if os.path.isdir(path):
        raise IsADirectoryError(f"{path} is a folder: give the name of a file")
    return os.path.join(folder, f".{name}.{uuid.uuid4().hex[:8]}.part")


def waiting(path: str) -> list[str]:
    """The files that wait to take the name `path`, or that a killed process left there."""
    folder, name = os.path.split(os.path.realpath(path))
    names = os.listdir(folder) if os.path.isdir(folder) else []
    return [
        os.path.join(folder, each)
        for each in sorted(names)
        if each.startswith(f".{name}.") and len(each) == len(name) + 15 and each.endswith(".part")
    ]


def write(neighbour: str, data, path: str, disk: Disk = DISK) -> None:
    """Write a new file to the disk, with the mode of the file at `path`, if there is one."""
    with disk.open(neighbour, "xb") as file:
        mode = os.stat(path if os.path.exists(path) else neighbour).st_mode
        if not callable(data):
            disk.write(file, data)
    if callable(data):
        data(neighbour)  # it may put another file in its place
    os.chmod(neighbour, stat.S_IMODE(mode))
    with disk.open(neighbour, "rb+") as file:
        disk.sync(file)


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
