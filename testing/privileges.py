"""What the system allows a test, and running a block with fewer rights: tests may run as root."""

import contextlib
import os
import tempfile
from collections.abc import Generator
from pathlib import Path

from creonowd.errors import DaemonError
from creonowd.storage import stored_files


def replaces_open_files(folder: Path) -> bool:
    """Return whether a file can be replaced while we read it: not before Windows 10, nor in Wine."""
    path = folder / "probe"
    path.write_bytes(b"old")
    descriptor = stored_files.open_to_read(path, os.O_RDONLY)
    try:
        stored_files.replace(path, b"new")
    except DaemonError:
        return False
    finally:
        os.close(descriptor)
        path.unlink()
    return True


@contextlib.contextmanager
def without_privileges() -> Generator[Path]:
    """Give a folder of someone who may not read everything, and be them."""
    root = os.geteuid() == 0
    with tempfile.TemporaryDirectory() as place:
        if root:
            os.chown(place, 65534, 65534)
            os.seteuid(65534)
        try:
            yield Path(place).resolve()
        finally:
            if root:
                os.seteuid(0)


@contextlib.contextmanager
def no_descriptors() -> Generator[None]:
    """Let nothing more be opened."""
    import resource

    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(each.name) for each in Path("/dev/fd").iterdir())
    taken = [os.open(os.devnull, os.O_RDONLY)]
    while taken[-1] <= highest:
        taken.append(os.open(os.devnull, os.O_RDONLY))
    resource.setrlimit(resource.RLIMIT_NOFILE, (taken[-1] + 1, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        for descriptor in taken:
            os.close(descriptor)
