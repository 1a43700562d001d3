"""Whatever a handler raises becomes an error that the client may see."""

import errno

import pytest

from creonowd.clock import SteppingClock
from creonowd.errors import ErrorCode
from creonowd.rpc.boundary import as_daemon_error


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (errno.EMFILE, ErrorCode.IO_ERROR),
        (errno.EROFS, ErrorCode.IO_ERROR),
        (errno.EACCES, ErrorCode.IO_ERROR),
        (errno.ENOSPC, ErrorCode.STORAGE_FULL),
        (errno.ENOENT, ErrorCode.INTERNAL),
    ],
)
def test_what_the_disk_refused_is_reported_without_saying_where(
    number: int, code: ErrorCode
) -> None:
    refusal = OSError(number, "refused", "/home/someone/secret place")

    error = as_daemon_error(ExceptionGroup("several", [refusal]), "a:channel", SteppingClock())

    assert error.code is code
    assert "secret place" not in f"{error.message} {error.details}"
