"""Being someone who may not read or open everything; the tests may well be run by root."""

import contextlib
import os
import tempfile
from collections.abc import Generator
from pathlib import Path


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
